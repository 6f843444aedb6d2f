"""Transitions: from a State, a Memory and what happened to the next State and Memory. Functions, and nothing else.

How failures are weighed:
- A watch that delivered an event, or stayed open for 5 s, has worked. If its connection then breaks, as that of an
  idle watch does behind a load balancer, the failures before it are forgotten, and it is opened again at once.
- Otherwise openings are not closer to each other than the back-off says: what a watch has lived counts as waited.
- Nothing but time cures a server that keeps declaring versions too old: the first list that it forces comes at once,
  the next ones are backed off until a watch has lived for a minute.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kopylite.cache.backoff import LONGEST_DELAY, at_least, delay, kind_delay
from kopylite.cache.record import BadFrame
from kopylite.cache.states import Active, FindingKind, Listing, Memory, Probing, State, Streaming, Waiting, Watching
from kopylite.cache.steps import ClosedEarly, Problem, Silence, WentBack
from kopylite.errors import (
    ApiError,
    BadRequest,
    ConnectionFailed,
    Expired,
    Invalid,
    KindNotFound,
    MethodNotAllowed,
    NotFound,
    TooManyRequests,
    TransportError,
)

# A watch that stays open this long without an error has worked.
SETTLED_AFTER: Final = 5.0
# One that the server ended cleanly after this long is opened again at once, as by client-go: nothing is wrong with it.
ENDED_WELL_AFTER: Final = 1.0
# One that has lived this long shows that the server keeps the versions which it lists.
HEALTHY_AFTER: Final = 60.0
# Bad frames and in-stream errors in a row, at the same version, after which a list is tried instead.
MOST_STRIKES: Final = 3
# Initial streams in a row that ended before the marker, after which a list is tried instead.
MOST_BROKEN_INITIAL_STREAMS: Final = 2

Next = tuple[State, Memory]


def lived(state: State, now: float) -> float | None:
    """Seconds since the watch was opened; None if none is open."""
    return now - state.opened if isinstance(state, Watching) and state.opened is not None else None


def settled(state: State, now: float) -> bool:
    return (lived(state, now) or 0.0) >= SETTLED_AFTER


def begin_list(memory: Memory) -> Active:
    """Where the whole state comes from next."""
    streams = memory.streaming and memory.broken_streams < MOST_BROKEN_INITIAL_STREAMS
    return Streaming() if streams else Listing()


def complete(memory: Memory) -> Memory:
    """The whole state is there."""
    return replace(memory, has_state=True, broken_streams=0, strikes=0)


def kind_missing(memory: Memory, error: KindNotFound, now: float, chance: float) -> Next:
    """Discovery says that the server does not serve the kind."""
    since = now if memory.missing_since is None else memory.missing_since
    memory = replace(memory, has_state=False, missing_since=since, problem=_problem(memory, error, now))
    return Waiting(kind_delay(now - since, chance), FindingKind()), memory


def opened(state: State, memory: Memory, now: float) -> Next:
    """The server has answered 200 to a watch."""
    match state:
        case Streaming():
            return Streaming(now, now, state.collected), memory
        case Watching():
            # After one failure of a watch that had worked, everything is as before; after more, time will tell.
            problem = None if memory.failures <= 1 else memory.problem
            return Watching(state.version, now), replace(memory, missing_since=None, problem=problem)
    raise AssertionError(state)


def probed(state: Probing, memory: Memory, version: str, older: bool, now: float, chance: float) -> Next:
    """The server is at this version; `older`: it was further before."""
    if not older:
        return Watching(state.version), memory
    error = WentBack(f"the server is at version {version}, after {state.version}")
    memory = replace(memory, problem=_problem(memory, error, now))
    return _forced_list(memory, chance, excuse=True)


def closed(state: Watching, memory: Memory, now: float) -> Next | None:
    """The server ended the watch cleanly; None: that is a failure, because it did so at once."""
    age = lived(state, now) or 0.0
    if not (state.progressed or age >= ENDED_WELL_AFTER):
        return None
    memory = _forgive(state, memory, age)
    if not state.version:
        return begin_list(memory), memory
    return Watching(state.version), memory


def failed(state: State, memory: Memory, error: Exception, now: float, chance: float) -> Next:
    """What was tried in a state has failed."""
    assert not isinstance(state, Waiting), "nothing is tried in a pause"
    age = lived(state, now)
    if isinstance(state, Watching) and age is not None:
        memory = _forgive(state, memory, 0.0 if isinstance(error, Silence) else age)  # nobody knows when it died
    memory = replace(memory, problem=_problem(memory, error, now))
    if isinstance(error, NotFound | KindNotFound):
        return _look_for_kind(memory, now, chance)
    following: Active | None = state
    match state:
        case Streaming():
            following, memory = _stream_failed(memory, error)
        case Listing():
            following = _list_failed(state, memory, error)
        case Watching():
            following, memory = _watch_failed(state, memory, error)
    retry_after = error.retry_after if isinstance(error, ApiError) else None
    if following is None:
        pause, memory = _forced_list(memory, chance, excuse=isinstance(error, Expired))
        return _at_least(pause, retry_after), memory
    if not memory.streaming and isinstance(state, Streaming):
        return _after(at_least(0.0, retry_after), following), memory  # no fault: the server is older than that
    progressed = isinstance(state, Watching) and state.progressed
    seconds = 0.0 if progressed else max(0.0, delay(memory.failures, chance) - (age or 0.0))
    memory = replace(memory, failures=memory.failures + 1)
    return _after(at_least(seconds, retry_after), following), memory


def is_routine(state: State, error: Exception, now: float) -> bool:
    """Whether a failure is everyday life, and nothing to tell anybody: the watch has worked, and its connection broke;
    or the server is older than streamed initial states."""
    if isinstance(state, Streaming):
        return _refuses_streaming(error)
    age = lived(state, now)
    if age is None or not isinstance(state, Watching) or not (state.progressed or age >= SETTLED_AFTER):
        return False
    return isinstance(error, TransportError) and not isinstance(error, BadFrame | WentBack | Silence)


def _forgive(state: Watching, memory: Memory, age: float) -> Memory:
    """What came before is over, if the watch has worked."""
    if state.progressed or age >= SETTLED_AFTER:
        memory = replace(memory, failures=0, problem=None)
    if state.progressed:
        memory = replace(memory, strikes=0)
    return replace(memory, lists=0) if age >= HEALTHY_AFTER else memory


def _look_for_kind(memory: Memory, now: float, chance: float) -> Next:
    """The resource answers 404. Discovery knows better, and is asked at once; but not for ever at once: the two may
    contradict each other for as long as an aggregated API is broken."""
    since = memory.missing_since
    if since is not None:
        seconds = kind_delay(now - since, chance, LONGEST_DELAY)
    else:
        seconds = delay(memory.failures, chance) if memory.failures else 0.0
        memory = replace(memory, failures=memory.failures + 1, missing_since=now)
    return _after(seconds, FindingKind()), memory


def _stream_failed(memory: Memory, error: Exception) -> tuple[Active, Memory]:
    if _refuses_streaming(error):
        memory = replace(memory, streaming=False)
    elif not isinstance(error, ConnectionFailed | TooManyRequests):
        memory = replace(memory, broken_streams=memory.broken_streams + 1)
    return begin_list(memory), memory


def _list_failed(state: Listing, memory: Memory, error: Exception) -> Active:
    if state.whole:
        return begin_list(memory)  # in pages again: what is too long to come through at once may do in pieces
    if state.token and isinstance(error, Expired | BadRequest | Invalid):
        # In one piece it can't expire. The new token that an expired one may come with is of no use: the pages that
        # follow it show another version than those before.
        return Listing(whole=True)
    return state


def _watch_failed(state: Watching, memory: Memory, error: Exception) -> tuple[Active | None, Memory]:
    """The next state; None: nothing but a new list helps."""
    if isinstance(error, BadFrame) or (state.opened is not None and isinstance(error, ApiError)):
        memory = replace(memory, strikes=memory.strikes + (not isinstance(error, TooManyRequests)))
    if (
        isinstance(error, Expired | WentBack | BadRequest | Invalid)
        or _is_too_large_version(error)
        or memory.strikes >= MOST_STRIKES
        or not state.version
    ):
        return None, memory
    if isinstance(error, TransportError) and not isinstance(error, ClosedEarly):
        return Probing(state.version), memory
    return Watching(state.version), memory


def _forced_list(memory: Memory, chance: float, *, excuse: bool) -> Next:
    """List anew. `excuse`: the server works, and has said what cures it: what failed before is no reason to wait."""
    failures = max(memory.failures, memory.lists)
    seconds = 0.0 if excuse and not memory.lists else delay(failures, chance)
    memory = replace(memory, lists=memory.lists + 1, failures=failures + 1)
    return _after(seconds, begin_list(memory)), memory


def _after(seconds: float, state: Active) -> State:
    return Waiting(seconds, state) if seconds > 0 else state


def _at_least(state: State, retry_after: float | None) -> State:
    if isinstance(state, Waiting):
        return Waiting(at_least(state.seconds, retry_after), state.then)
    return _after(at_least(0.0, retry_after), state)


def _problem(memory: Memory, error: Exception, now: float) -> Problem:
    return Problem(error, memory.problem.since if memory.problem else now)


def _refuses_streaming(error: Exception) -> bool:
    return isinstance(error, Invalid | BadRequest | MethodNotAllowed)


def _is_too_large_version(error: Exception) -> bool:
    return isinstance(error, ApiError) and (
        any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
        or "Too large resource version" in error.message
    )
