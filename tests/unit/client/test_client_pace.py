"""How long an answer may take: what is large has time for its bytes, what is silent has not."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from kopylite.client import ApiRequest
from kopylite.client.pace import SLOWEST_RATE, Pace
from kopylite.client.verbs import Timeouts
from kopylite.testing.clock import VirtualClock

SERVER = "https://kube.example.com"


async def pieces(*script: float | bytes) -> AsyncIterator[bytes]:
    """Waits, and pieces."""
    for step in script:
        if isinstance(step, bytes):
            yield step
        else:
            await anyio.sleep(step)


def read(
    *script: float | bytes, total: bool = False, remaining: float = 10.0, **request: object
) -> tuple[bytes | str, float]:
    """What comes of an answer, or what is said of it, and after how many seconds."""
    clock = VirtualClock()
    found: list[bytes | str] = []

    async def main() -> None:
        pace = Pace(ApiRequest("GET", "/x", **request), remaining, total=total)  # type: ignore[arg-type]
        try:
            async with pace.limit:
                found.append(await pace.read(pieces(*script)))
        except TimeoutError:
            found.append(pace.describe(SERVER))

    clock.run(main)
    return found[0], clock.monotonic()


def test_a_small_answer_has_its_time_and_no_more() -> None:
    assert read(5.0, b"ab", 4.0, b"c") == (b"abc", 9.0)
    assert read(11.0, b"ab") == (f"no answer from {SERVER} within 10 s", 10.0)
    text, seconds = read(5.0, b"ab", 6.0, b"c")
    assert text == f"the answer of {SERVER} was not whole after 10 s: 2 bytes had come"
    assert seconds == pytest.approx(10.0, abs=0.01)


def test_the_bytes_of_an_answer_and_of_a_request_take_their_own_time() -> None:
    large = b"x" * (5 * SLOWEST_RATE)
    assert read(9.0, large, 5.0, b"y")[0] == large + b"y"
    assert "not whole after 15 s" in str(read(9.0, large, 7.0, b"y")[0])
    assert read(12.0, b"y", body=b"x" * (3 * SLOWEST_RATE))[0] == b"y"
    assert read(14.0, b"y", body=b"x" * (3 * SLOWEST_RATE))[1] == pytest.approx(13.0)


def test_a_long_answer_may_take_for_ever_if_it_does_not_fall_silent() -> None:
    patience = Timeouts(begin=60.0, silence=30.0)
    steady = [step for _ in range(20) for step in (29.0, b"x")]
    assert read(*steady, patience=patience) == (b"x" * 20, 20 * 29.0)
    text, seconds = read(50.0, b"abc", 31.0, b"d", patience=patience)
    assert text == f"{SERVER} fell silent for 30 s in mid-answer, after 3 bytes"
    assert seconds == 80.0
    assert read(61.0, b"abc", patience=patience)[1] == 60.0


def test_a_time_for_everything_is_one_whatever_comes() -> None:
    patience = Timeouts(begin=60.0, silence=30.0)
    full, thin = (4.0, b"x" * SLOWEST_RATE), (4.0, b"x")
    assert read(*full * 5, total=True)[1] == 10.0
    assert read(*thin * 5, total=True, patience=patience)[1] == 10.0
