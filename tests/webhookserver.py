"""A webhook over TLS, for tests: what it does is in the path. Serves the embedded and the real API server alike.

`/allow`, `/deny`, `/patch-label`, ... : see `ANSWERS`; `/convert` converts by renaming a field, `/convert-...` badly.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import trustme
from aiohttp import web

Object = dict[str, Any]


def patch(*operations: Object) -> Object:
    encoded = base64.b64encode(json.dumps(list(operations)).encode()).decode()
    return {"allowed": True, "patch": encoded, "patchType": "JSONPatch"}


def add(path: str, value: Any) -> Object:
    return {"op": "add", "path": path, "value": value}


def _told(request: Object) -> Object:
    """Everything that the server told, as annotations: what differs from call to call left out."""
    shown = {key: value for key, value in request.items() if key not in ("uid", "object", "oldObject", "userInfo")}
    shown["user"] = sorted(request["userInfo"])
    shown["objects"] = [sorted(request[key] or ()) if key in request else None for key in ("object", "oldObject")]
    return {"allowed": False, "status": {"message": json.dumps(shown, sort_keys=True), "code": 418}}


ANSWERS: dict[str, Object | Callable[[Object], Object]] = {
    "allow": {"allowed": True},
    "deny": {"allowed": False},
    "deny-message": {"allowed": False, "status": {"message": "not today"}},
    "deny-reason": {"allowed": False, "status": {"reason": "Because"}},
    "deny-403": {"allowed": False, "status": {"message": "no", "code": 403, "reason": "Forbidden"}},
    "deny-200": {"allowed": False, "status": {"message": "no", "code": 200, "status": "Success"}},
    "deny-causes": {
        "allowed": False,
        "status": {
            "message": "wrong", "code": 422, "reason": "Invalid",
            "details": {"causes": [{"reason": "FieldValueInvalid", "message": "too red", "field": "spec.color"}]},
        },
    },
    "deny-warn": {"allowed": False, "warnings": ["careful", "careful", "a \"quoted\" one"]},
    "warn": {"allowed": True, "warnings": ["mind the gap"]},
    "audit": {"allowed": True, "auditAnnotations": {"key": "value"}},
    "tell": _told,
    "patch-label": patch(add("/metadata/labels", {"hook": "was-here"})),
    "patch-label-2": patch(add("/metadata/labels/second", "too")),
    "patch-data": patch(add("/data", {"from": "hook"})),
    "patch-unknown": patch(add("/unknown", "x")),
    "patch-type": patch(add("/data", 7)),
    "patch-missing": patch({"op": "remove", "path": "/nope"}),
    "patch-test": patch({"op": "test", "path": "/kind", "value": "Nope"}),
    "patch-empty": patch(),
    "patch-same": patch({"op": "replace", "path": "/kind", "value": "ConfigMap"}),
    "patch-spec": patch(add("/spec/size", 7)),
    "patch-spec-bad": patch(add("/spec/size", "seven")),
    "patch-spec-big": patch(add("/spec/size", 700)),
    "patch-name": patch(add("/metadata/name", "other")),
    "patch-counter": lambda request: patch(
        add("/metadata/labels", {"n": str(int((request["object"]["metadata"].get("labels") or {}).get("n", "0")) + 1)})
    ),
    "no-patch-type": {"allowed": True, "patch": "W10="},
    "no-patch": {"allowed": True, "patchType": "JSONPatch"},
    "bad-patch-type": {"allowed": True, "patch": "W10=", "patchType": "Other"},
    "bad-patch": {"allowed": True, "patch": base64.b64encode(b"{").decode(), "patchType": "JSONPatch"},
}  # fmt: skip


@dataclass
class WebhookServer:
    """A running webhook.

    Attributes:
        url: without a path.
        bundle: base64 PEM of the authority that its certificate is from.
        requests: the AdmissionRequests and ConversionRequests that came, with the path of each.
    """

    port: int
    bundle: str
    requests: list[tuple[str, Object]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def client_config(self, path: str) -> Object:
        return {"url": f"{self.url}/{path}", "caBundle": self.bundle}


@contextlib.asynccontextmanager
async def webhook_server(*, names: tuple[str, ...] = ("127.0.0.1", "localhost")) -> AsyncIterator[WebhookServer]:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
    running = WebhookServer(0, bundle)

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        return await _answer(running, request)

    runner = web.ServerRunner(web.Server(serve))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        running.port = runner.addresses[0][1]
        yield running
    finally:
        await runner.cleanup()


async def _answer(running: WebhookServer, request: web.BaseRequest) -> web.StreamResponse:
    path = request.path.strip("/")
    raw = await request.read()
    if path.startswith("http-"):
        return web.Response(status=int(path[5:]), text="sorry")
    if path == "redirect":
        return web.Response(status=302, headers={"Location": "/allow"})
    if path == "bad-json":
        return web.Response(text="oops")
    if path == "empty":
        return web.Response(text="")
    if not raw:  # a redirect became a GET
        return web.Response(status=400, text="no review")
    review = json.loads(raw)
    asked = review["request"]
    running.requests.append((path, asked))
    if path == "slow":
        await asyncio.sleep(1.5)
    if path.startswith("convert"):
        return web.json_response({**review, "request": None, "response": convert(path, asked)})
    found = ANSWERS.get(path, {"allowed": True})
    response = {"uid": asked["uid"], **(found(asked) if callable(found) else found)}
    if path == "wrong-uid":
        response["uid"] = "other"
    answer = {"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}
    if path == "no-response":
        del answer["response"]
    if path == "wrong-kind":
        answer["kind"] = "Other"
    if path == "wrong-version":
        answer["apiVersion"] = "admission.k8s.io/v1beta1"
    return web.json_response(answer)


def convert(path: str, asked: Object) -> Object:
    """v1 has spec.size, v2 has spec.width for it."""
    if path == "convert-fail":
        return {"uid": asked["uid"], "result": {"status": "Failure", "message": "cannot do it"}}
    converted = [_converted(obj, asked["desiredAPIVersion"]) for obj in asked["objects"]]
    if path == "convert-few":
        converted = converted[:-1]
    for obj in converted:
        if path == "convert-name":
            obj["metadata"]["name"] = "other"
        if path == "convert-label":
            obj["metadata"].setdefault("labels", {})["converted"] = "yes"
        if path == "convert-version":
            obj["apiVersion"] = "stable.example.com/v9"
        if path == "convert-uid":
            obj["metadata"]["uid"] = "other"
    uid = "other" if path == "convert-review-uid" else asked["uid"]
    return {"uid": uid, "result": {"status": "Success"}, "convertedObjects": converted}


def _converted(obj: Object, version: str) -> Object:
    spec = dict(obj.get("spec") or {})
    old, new = ("size", "width") if version.endswith("/v2") else ("width", "size")
    if old in spec:
        spec[new] = spec.pop(old)
    return {**obj, "apiVersion": version, **({"spec": spec} if "spec" in obj else {})}
