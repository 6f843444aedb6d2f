"""The operator with the provider that it calls, for a sweep: what is outside does not live in virtual time."""

from __future__ import annotations

from kopylite import App
from samples.mailbox import operator
from samples.mailbox.provider import Provider

app = App("mailbox")
app.include(operator.app)

provider = Provider()


async def ask_provider(method: str, path: str, body: dict[str, str | int] | None = None, key: str = "") -> str:
    """Below `@effect`: a sweep crashes the operator after each call, and counts them."""
    return operator.answered(*provider.answer(method, path, body, key))


operator.ask_provider = ask_provider
