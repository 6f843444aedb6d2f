"""Odd HTTP, byte by byte: what no client library would send. Each seed gives the same requests."""

# ruff: noqa: E501 - tables of bytes

from __future__ import annotations

import random
from dataclasses import dataclass

_METHODS = [b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS", b"TRACE", b"CONNECT", b"PRI", b"get",
            b"G\xc3\x89T", b"x" * 300, b"", b"GET\t"]  # fmt: skip
_TARGETS = [
    b"/version", b"/api/v1/namespaces/default/configmaps", b"/api/v1/namespaces/default/configmaps/a", b"/openapi/v3",
    b"http://127.0.0.1/version", b"http://evil.example/version", b"https://127.0.0.1:1/api", b"//version", b"*", b"",
    b"version", b"127.0.0.1:443", b"/%", b"/%zz", b"/%00", b"/%ff%fe", b"/api/v1/../v1", b"/version#x", b"/version?",
    b"/version?%", b"/version?a=%ff&=&&b", b"/\xff\xfe", b"/\xc3\xa9", b"/a b", b"/" + b"a" * 70_000,
    b"http://[::1", b"http://[zz]/", b"http://127.0.0.1:99999/version", b"http://127.0.0.1:x/", b"http:///version",
    b"http://a@b@c/", b"file:///etc/passwd", b"/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1",
]  # fmt: skip
_VERSIONS = [b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/1.2", b"HTTP/11",
             b"http/1.1", b"HTTP/1.1 ", b"", b"X/1.1"]  # fmt: skip
_NAMES = [b"Accept", b"Content-Type", b"Content-Length", b"Transfer-Encoding", b"Connection", b"Expect", b"Host",
          b"Authorization", b"Upgrade", b"Cookie", b"Range", b"If-None-Match", b"Accept-Encoding", b"Impersonate-User",
          b"Impersonate-Group", b"Impersonate-Extra-%", b"Impersonate-Uid", b"Origin", b"Sec-Fetch-Site", b"X-A",
          b"User-Agent", b"Audit-Id", b"Content-Encoding", b"TE", b"Trailer", b"Keep-Alive", b"Forwarded", b"Max-Forwards",
          b"", b" X", b"X Y", b"X\x00", b"X\xff", b"X\xc3\xa9", b"X" * 5000, b"Sec-WebSocket-Key", b"HTTP2-Settings"]  # fmt: skip
_VALUES = [b"", b"a", b"0", b"-1", b"+5", b"5", b"5, 5", b"1e3", b"0x10", b"9" * 5000, b"99999999999999999999", b"chunked",
           b"Chunked", b"gzip, chunked", b"chunked, chunked", b"identity", b"close", b"keep-alive", b"upgrade",
           b"close, keep-alive", b"Upgrade, HTTP2-Settings", b"h2c", b"websocket", b"100-continue", b"200-maybe",
           b"Bearer", b"Bearer ", b"Bearer a b", b"Bearer \xff", b"Basic YTpi", b"Basic \xff", b"bytes=0-", b"*/*", b"*",
           b";;;", b",,,", b"a/b;q=x", b"application/json;q=1;q=2", b"application/json;as=Table;v=v1;g=meta.k8s.io",
           b"application/vnd.kubernetes.protobuf", b"\xc3\xa9", b"\xff\xfe", b"a\tb", b"a\x00b", b"a\rb", b"a\x7fb",
           b'"', b"'", b"a" * 70_000, b"evil.example", b"127.0.0.1", b"localhost:99999", b"[::1]", b"[::1", b"a, b",
           b"http://evil.example", b"null", b"cross-site", b"kube-system:x", b"system:masters", b"%", b"%zz", b"13"]  # fmt: skip
_ENDS = [b"\r\n", b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\n ", b"\r\n\t"]
_BODIES = [
    b"", b"{}", b'{"metadata":{"name":"a"}}', b"0\r\n\r\n", b"2\r\n{}\r\n0\r\n\r\n", b"2;x=y\r\n{}\r\n0\r\nA: b\r\n\r\n",
    b"zz\r\n{}\r\n0\r\n\r\n", b"-1\r\n", b"ffffffffffffffff\r\n{}", b"2\r\n{}0\r\n\r\n", b"2\n{}\n0\n\n", b"\x00" * 100,
    b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n", b"5\r\n{}", b"2\r\n{}\r\n" * 500 + b"0\r\n\r\n",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Raw:
    """What is sent on one connection, and how many bytes at a time (0: all at once)."""

    sent: bytes
    step: int = 0


class RawFuzz:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"http {seed}")

    def connection(self) -> Raw:
        some = self.random
        if some.random() < 0.05:
            return Raw(some.randbytes(some.randrange(300)))
        requests = b"".join(self._request() for _ in range(some.choice([1, 1, 1, 2, 5])))
        if some.random() < 0.1:
            requests = requests[: some.randrange(len(requests) + 1)]
        return Raw(requests, some.choice([0, 0, 0, 7, 1000]) if len(requests) < 5000 else 0)

    def _request(self) -> bytes:
        some = self.random
        # One odd thing at a time: of more, only the first would be met.
        odd = some.choice(["method", "target", "version", "header", "header", "header", "headers", "body", "nothing"])
        method = some.choice(_METHODS) if odd == "method" else some.choice([b"GET", b"POST", b"PUT", b"DELETE"])
        target = some.choice(_TARGETS) if odd == "target" else _TARGETS[some.randrange(4)]
        version = some.choice(_VERSIONS) if odd == "version" else b"HTTP/1.1"
        lines = [b"Host: localhost"]
        body = some.choice(_BODIES) if odd == "body" or method in (b"POST", b"PUT") else b""
        if odd in ("header", "headers"):
            lines += [
                some.choice(_NAMES) + some.choice([b": ", b": ", b": ", b":", b" : "]) + some.choice(_VALUES)
                for _ in range(1 if odd == "header" else some.randrange(2, 5))
            ]
            some.shuffle(lines)
        if body and some.random() < 0.9:
            lines.append(some.choice([b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked"]))
        end = some.choice(_ENDS) if some.random() < 0.05 else b"\r\n"
        return method + b" " + target + b" " + version + end + end.join(lines) + b"\r\n\r\n" + body
