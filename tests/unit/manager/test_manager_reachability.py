from __future__ import annotations

from kopylite.manager.reachability import PAUSE, Reachability
from kopylite.observers import ClientObserver
from kopylite.testing.clock import VirtualClock


class Counter(ClientObserver):
    def __init__(self) -> None:
        self.codes: list[str] = []

    def requested(self, *, method: str, host: str, code: str, seconds: float) -> None:
        self.codes.append(code)


def test_the_first_answer_after_none_is_told_once_and_not_too_often() -> None:
    clock, counter, told = VirtualClock(), Counter(), list[float]()
    reachability = Reachability(counter, clock, lambda: told.append(clock.monotonic()))

    def answer(*codes: str) -> int:
        for code in codes:
            reachability.requested(method="GET", host="h", code=code, seconds=0.1)
        return len(told)

    assert answer("200", "404", "200") == 0
    assert answer("<error>", "<error>") == 0
    assert answer("503", "502") == 0, "a load balancer is not the server"
    assert answer("200", "200") == 1
    assert answer("<error>", "403") == 1, "within the pause"

    async def later() -> None:
        await clock.sleep(PAUSE)

    clock.run(later)
    assert answer("200", "200") == 2, "and not forgotten"
    clock.run(later)
    assert answer("200") == 2, "it answered all the time"
    assert len(counter.codes) == 14
