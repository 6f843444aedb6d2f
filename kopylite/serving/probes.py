"""Probes: the answers of /healthz and /readyz, in the format that Kubernetes' own components use.

Pure: what is checked, and over which connection the answer goes, is the business of others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kopylite.boundary import CHECK, Guard
from kopylite.serving.routes import Answer, Query

Check = Callable[[], str | None]
"""One check: None while all is well, else what is wrong in one line."""

ProbeRun = Callable[[str, Check], str | None]
"""Asks one check, by its name."""


def guarded(now: Callable[[], float]) -> ProbeRun:
    """A Run that tells in the log why a check itself failed, once per cause; `now` is a monotonic clock."""

    def ask(check: Check) -> tuple[str | None]:
        return (check(),)

    guard: Guard[[Check], tuple[str | None]] = Guard(CHECK, ask, name="of a probe", now=now)
    broken = ("the check itself failed; the log says why",)
    return lambda name, check: guard.call(lambda: name, broken, check)[0]


def wants(query: Query, name: str) -> bool:
    """Whether a query asks for a check: by its name, or for all without excluding it."""
    return query.tail == name if query.tail else name not in query.parameters.get("exclude", ())


def probe(endpoint: str, checks: Mapping[str, Check], query: Query, run: ProbeRun) -> Answer:
    """Answer a GET of `endpoint` ("healthz" or "readyz") or of `endpoint/name`.

    All checks: 200 "ok", or 500 with one line a check; a problem's text is withheld there, for the address may
    face a network. `?verbose` shows the lines of a success too; `?exclude=name`, repeatable, leaves checks out.
    One check: 200 "ok", or 500 with the problem. An unknown name is a 404.

    Args:
        run: asks a check; a check that raises has failed.
    """
    if query.tail:
        check = checks.get(query.tail)
        if check is None:
            known = ", ".join(sorted(checks)) or "none"
            return _answer(404, f"no check {query.tail!r} in {endpoint}; there are: {known}")
        problem = run(query.tail, check)
        return _answer(200, "ok") if problem is None else _answer(500, f"{query.tail} failed: {problem}")
    excluded = set(query.parameters.get("exclude", ()))
    problems = {name: run(name, check) for name, check in sorted(checks.items()) if name not in excluded}
    failed = any(problem is not None for problem in problems.values())
    if not failed and "verbose" not in query.parameters:
        return _answer(200, "ok")
    lines = [f"[+]{n} ok" if p is None else f"[-]{n} failed: reason withheld" for n, p in problems.items()]
    lines += [f"[+]{name} excluded: ok" for name in sorted(excluded & checks.keys())]
    if unknown := sorted(excluded - checks.keys()):
        lines.append(f"warn: some checks cannot be excluded: no matches for {', '.join(map(repr, unknown))}")
    lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
    return _answer(500 if failed else 200, "\n".join(lines) + "\n")


def _answer(status: int, text: str) -> Answer:
    return Answer(status, text.encode())
