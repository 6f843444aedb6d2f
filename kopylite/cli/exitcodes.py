"""The exit codes of the command line, told apart so that a supervisor or a script can act on them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Why the process ended. 2 is also what argparse uses for a wrong command line."""

    def __new__(cls, code: int, meaning: str) -> Exit:
        member = int.__new__(cls, code)
        member._value_ = code
        member.__doc__ = meaning
        return member

    STOPPED = 0, "stopped by SIGTERM or SIGINT, all running reconciles finished"
    FORCED = 1, "stopped at once by a second signal"
    USAGE = 2, "wrong command line, or an address that cannot be listened on"
    MODULE = 3, "the module cannot be found or imported"
    ATTRIBUTE = 4, "the module has no such attribute, or it is no App"
    REGISTRATION = 5, "the App has no controllers, or declares something wrongly"
    KUBECONFIG = 6, "the kubeconfig cannot be read or used, or the API server refuses its credentials"
    UNREACHABLE = 7, "the API server did not answer within --connect-timeout"
    UNFINISHED = 8, "stopped by a signal, but reconciles had to be cancelled after --grace-period"
    LIFECYCLE = 9, "an on_start, a lifespan or a fatal task of the App has failed; all else ended in order"
    INTERNAL = 70, "a part that must not end has failed; the log has the traceback"

    @classmethod
    def table(cls) -> str:
        """For a --help text."""
        return "\n".join(f"  {code.value:>3}  {code.__doc__}" for code in cls)
