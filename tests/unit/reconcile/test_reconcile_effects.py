from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kopylite import effect
from kopylite.errors import RegistrationError
from kopylite.reconcile.effects import EFFECTS, EffectCall


class Watcher:
    def __init__(self) -> None:
        self.heard: list[tuple[str, EffectCall]] = []

    async def begins(self, call: EffectCall) -> None:
        self.heard.append(("begins", call))

    async def happened(self, call: EffectCall) -> None:
        self.heard.append(("happened", call))

    def begins_in_thread(self, call: EffectCall) -> None:
        self.heard.append(("begins", call))

    def happened_in_thread(self, call: EffectCall) -> None:
        self.heard.append(("happened", call))


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    found = Watcher()
    token = EFFECTS.set(found)
    yield found
    EFFECTS.reset(token)


@effect
async def send(address: str, text: str = "hello") -> str:
    """Sends."""
    return f"{text}, {address}"


@effect(key="request_id")
def book(request_id: str, cents: int) -> int:
    """Books."""
    if cents < 0:
        raise ValueError(cents)
    return cents


def test_a_marked_function_is_what_it_was() -> None:
    assert asyncio.run(send("you")) == "hello, you"
    assert book("r", cents=5) == 5
    assert (send.__name__, book.__doc__) == ("send", "Books.")


async def test_who_listens_hears_of_calls_by_name_before_and_after(watcher: Watcher) -> None:
    EFFECTS.set(watcher)
    await send("you")
    book("r", 5)
    sent = EffectCall("send", {"address": "you", "text": "hello"})
    booked = EffectCall("book", {"request_id": "r", "cents": 5}, "r")
    assert watcher.heard == [("begins", sent), ("happened", sent), ("begins", booked), ("happened", booked)]


def test_a_call_that_fails_has_not_happened(watcher: Watcher) -> None:
    with pytest.raises(ValueError, match="-1"):
        book("r", -1)
    assert [what for what, _ in watcher.heard] == ["begins"]


def test_a_key_has_to_be_a_parameter() -> None:
    with pytest.raises(RegistrationError, match=r"@effect\(key='id'\): .* has no parameter of that name"):
        effect(key="id")(lambda request_id: None)


def test_a_parameter_that_services_know_repeats_by_is_a_key_without_being_named(watcher: Watcher) -> None:
    effect(lambda idempotency_key: None)("k")
    effect(lambda key: None)("k")
    assert [call.key for what, call in watcher.heard if what == "happened"] == ["k", None]
