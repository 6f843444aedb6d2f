"""A Mailbox stands for an account at a mail provider, which makes up the id of each, and forbids to ask too often."""

from __future__ import annotations

import json
import os

import aiohttp
from pydantic import BaseModel, Field

from kopylite import (
    App,
    Condition,
    Conditions,
    Context,
    CustomResource,
    Request,
    Retry,
    TerminalError,
    Unstructured,
    effect,
    finalize,
    set_condition,
)

FINALIZER = "mail.example.com/account"


class MailboxSpec(BaseModel):
    address: str = Field(pattern=r"^[a-z.]+@[a-z.]+$")
    quota: int = Field(default=1, ge=1, description="In gigabytes.")


class MailboxStatus(BaseModel):
    account: str | None = None
    quota: int | None = None
    conditions: Conditions = []


class Mailbox(CustomResource[MailboxSpec, MailboxStatus], group="mail.example.com", version="v1"):
    """An account at the mail provider."""


app = App("mailbox")


@app.reconciler(Mailbox, workers=4, timeout=60)
async def reconcile(ctx: Context, request: Request) -> None:
    # The finalizer is there before the account: an object that goes meanwhile takes its account along.
    if await finalize(ctx, Mailbox, FINALIZER, close):
        return
    mailbox = await ctx.client.get(Mailbox, request)
    account, quota = mailbox.status.account, mailbox.status.quota
    try:
        if account is None:
            account = await open_account(mailbox.uid, mailbox.spec.address)
        if quota != mailbox.spec.quota:
            await set_quota(account, mailbox.spec.quota)
    except TerminalError as refused:
        await report(ctx, mailbox, account, quota, problem=str(refused))
        raise  # an Event says so too; the next run comes with the next edit
    await report(ctx, mailbox, account, mailbox.spec.quota)


async def report(ctx: Context, mailbox: Mailbox, account: str | None, quota: int | None, problem: str = "") -> None:
    """The status is the operator's memory: what is in it need not be asked again."""
    ready = Condition(
        type="Ready",
        status="False" if problem else "True",
        reason="Refused" if problem else "Open",
        message=problem,
        observed_generation=mailbox.generation,
    )
    conditions = list(mailbox.status.conditions)
    set_condition(conditions, ready, now=ctx.now())
    await ctx.client.patch_status(mailbox, MailboxStatus(account=account, quota=quota, conditions=conditions))


async def close(ctx: Context, mailbox: Unstructured) -> None:
    """Without an id in the status, the account may exist all the same: a crash came before it was noted.

    The same key gets the same answer, and so the id. One that was refused has no account to be closed.
    """
    account = mailbox.status.get("account")
    if account is None:
        try:
            account = await open_account(mailbox.uid, mailbox.spec["address"])
        except TerminalError:
            return
    await close_account(account)


@effect(key="key")
async def open_account(key: str, address: str) -> str:
    """The id of the account that was opened with this key, by this call or by one before.

    The key is the object's uid: known before the call, the same after a crash, and another one for a new object.
    """
    text = await ask_provider("POST", "/accounts", {"address": address}, key=key)
    return str(json.loads(text)["id"])


@effect(key="account")
async def set_quota(account: str, quota: int) -> None:
    """Says how it should be, and not what to add: so twice is as good as once."""
    await ask_provider("PUT", f"/accounts/{account}/quota", {"gigabytes": quota})


@effect(key="account")
async def close_account(account: str) -> None:
    """An account that is closed already is as good."""
    await ask_provider("DELETE", f"/accounts/{account}")


async def ask_provider(method: str, path: str, body: dict[str, str | int] | None = None, key: str = "") -> str:
    """The text of an answer.

    Raises:
        Retry: the provider wants to be left alone for a while; no failure, and no attempt of `max_retries`.
        TerminalError: it has said no, and will until the object is another.
        aiohttp.ClientError: it is ill or away; the next try comes by itself, later each time.
    """
    url = os.environ.get("PROVIDER_URL", "http://127.0.0.1:9001")
    headers = {"Idempotency-Key": key} if key else {}
    async with (
        aiohttp.ClientSession(url) as session,
        session.request(method, path, json=body, headers=headers) as reply,
    ):
        return answered(reply.status, await reply.text(), reply.headers.get("Retry-After", ""))


def answered(status: int, text: str, retry_after: str = "") -> str:
    """What an answer of the provider means for whoever asked."""
    if status == 429:
        raise Retry("the provider is asked too often", after=float(retry_after or 30))
    if status in (400, 409, 422):
        raise TerminalError(text)
    if status >= 400 and status != 404:
        raise aiohttp.ClientError(f"the provider answers {status}: {text[:200]}")
    return text
