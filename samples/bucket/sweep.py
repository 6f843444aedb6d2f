"""The operator with the store that it calls, for a sweep: in virtual time, nothing outside would answer soon enough."""

from __future__ import annotations

from kopylite import App
from samples.bucket import operator
from samples.bucket.store import answer

app = App("bucket")
app.include(operator.app)

held: dict[str, str] = {}


async def ask_store(method: str, path: str, body: dict[str, str] | None = None) -> tuple[int, str]:
    """Below `@effect`: a sweep crashes the operator after each call, and counts them."""
    return answer(held, method, path, body)


operator.ask_store = ask_store
