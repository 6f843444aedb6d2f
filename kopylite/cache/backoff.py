"""How long a stream waits before it tries again. Pure: failures, times and chance go in, seconds come out."""

from __future__ import annotations

from typing import Final

# The reflector of client-go starts at 0.8 s, doubles, and caps at 30 s.
FIRST_DELAY: Final = 0.8
LONGEST_DELAY: Final = 30.0
# A longer Retry-After would look like a dead informer; whoever sends it is asked again.
LONGEST_RETRY_AFTER: Final = 300.0
# A kind that is missing is looked for each second at first: a CRD that is replaced is back in seconds. The longer it
# stays away, the less does a moment more matter: a fifth of that time. A CRD installed at last is found within 10 s.
FIRST_KIND_DELAY: Final = 1.0
LONGEST_KIND_DELAY: Final = 10.0
KIND_SHARE: Final = 0.2


def delay(failures: int, chance: float) -> float:
    """Seconds after so many failures before this one: exponential, with jitter in [1/2, 1) of it.

    So an outage isn't followed by a stampede. `chance` is a random number in [0, 1).
    """
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures, 30)) * (0.5 + 0.5 * chance)


def at_least(seconds: float, retry_after: float | None) -> float:
    """Seconds, but not less than the server asks for, within reason."""
    return max(seconds, min(retry_after or 0.0, LONGEST_RETRY_AFTER))


def kind_delay(missing: float, chance: float, longest: float = LONGEST_KIND_DELAY) -> float:
    """Seconds until a kind that has been missing for so long is looked for again."""
    return min(longest, max(FIRST_KIND_DELAY, missing * KIND_SHARE)) * (0.75 + 0.25 * chance)
