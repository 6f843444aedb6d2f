"""A stand-in for a mail provider: `python -m samples.mailbox.provider` serves it on http://127.0.0.1:9001."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class Provider:
    """What it knows: the accounts, what it has answered to which key, and how many requests it lets through.

    Attributes:
        patience: requests until each further one is a 429; None: there is no limit.
    """

    accounts: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    patience: int | None = None

    def answer(self, method: str, path: str, body: dict[str, Any] | None, key: str = "") -> tuple[int, str]:
        if self.patience is not None:
            if self.patience <= 0:
                return 429, "slow down"
            self.patience -= 1
        account = path.split("/")[2] if path.count("/") > 1 else ""
        if method == "POST":
            return self._open(str((body or {}).get("address")), key)
        if method == "DELETE":
            return (204 if self.accounts.pop(account, None) else 404), ""
        if account not in self.accounts:
            return 404, ""
        self.accounts[account]["quota"] = (body or {})["gigabytes"]
        return 204, ""

    def _open(self, address: str, key: str) -> tuple[int, str]:
        if key not in self.answers:
            if address in [account["address"] for account in self.accounts.values()]:
                return 409, f"{address} is taken"
            account = hashlib.sha256(address.encode()).hexdigest()[:8]  # its own business
            self.accounts[account] = {"address": address}
            self.answers[key] = account
        return 200, json.dumps({"id": self.answers[key]})

    def app(self) -> web.Application:
        async def handle(request: web.Request) -> web.Response:
            if request.method == "GET":
                return web.json_response(self.accounts)
            body = await request.json() if request.body_exists else None
            status, text = self.answer(request.method, request.path, body, request.headers.get("Idempotency-Key", ""))
            return web.Response(status=status, text=text, headers={"Retry-After": "1"} if status == 429 else {})

        app = web.Application()
        app.add_routes([web.route("*", "/{path:.*}", handle)])
        return app


if __name__ == "__main__":
    web.run_app(Provider().app(), host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 9001)
