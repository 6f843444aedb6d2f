"""/metrics: what this server has done, under kube-apiserver's names, in the text form of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from kopylite.apiserver.endpoints.version import version_info
from kopylite.apiserver.request.request import HttpRequest, Response, Target
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.world import World

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
# Those of upstream's apiserver_request_duration_seconds, in seconds.
_BUCKETS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
)  # fmt: skip
_VERBS: Final = {
    "create": "POST", "update": "PUT", "patch": "PATCH", "get": "GET", "list": "LIST", "watch": "WATCH",
    "delete": "DELETE", "deletecollection": "DELETECOLLECTION",
}  # fmt: skip
_CONNECT: Final = ("attach", "exec", "log", "portforward", "proxy")
_OTHER_VERBS: Final = ("get", "head", "post", "put", "patch", "delete", "options")
_MUTATING: Final = ("create", "update", "patch", "delete", "deletecollection", "post", "put")

LabelPairs = tuple[tuple[str, str], ...]


class RequestMetrics:
    """Counts requests. Labels come from what is served, never from a client's text, so their number has a bound."""

    def __init__(self) -> None:
        self._total: Counter[LabelPairs] = Counter()
        self._buckets: dict[LabelPairs, list[int]] = {}
        self._seconds: defaultdict[LabelPairs, float] = defaultdict(float)
        self._inflight: Counter[str] = Counter()

    def begin(self, target: Target) -> str:
        """A request is being answered; give the result to `end`."""
        kind = "mutating" if target.verb in _MUTATING else "readOnly"
        self._inflight[kind] += 1
        return kind

    def end(self, kind: str) -> None:
        self._inflight[kind] -= 1

    def note(self, labels: LabelPairs, request: HttpRequest, status: int, seconds: float) -> None:
        """A request is answered; a watch, when it begins, and without its duration."""
        dry = (("dry_run", "All" if request.param("dryRun") == "All" else ""),)
        self._total[tuple(sorted((*labels, *dry, ("code", str(status)))))] += 1
        if ("verb", "WATCH") in labels:
            return
        self._buckets.setdefault(labels, [0] * (len(_BUCKETS) + 1))[bisect_left(_BUCKETS, seconds)] += 1
        self._seconds[labels] += seconds

    def lines(self) -> Iterator[str]:
        yield from _head("apiserver_current_inflight_requests", "gauge", "Requests being answered, by kind.")
        for kind in ("mutating", "readOnly"):
            yield _line("apiserver_current_inflight_requests", (("request_kind", kind),), self._inflight[kind])
        yield from _head("apiserver_request_total", "counter", "Requests, by what they were about and their code.")
        for labels, count in sorted(self._total.items()):
            yield _line("apiserver_request_total", labels, count)
        name = "apiserver_request_duration_seconds"
        yield from _head(name, "histogram", "How long answers took, in seconds; watches are not in it.")
        for labels, counts in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*map(str, _BUCKETS), "+Inf"), counts, strict=True):
                total += count
                yield _line(f"{name}_bucket", (*labels, ("le", bound.removesuffix(".0"))), total)
            yield _line(f"{name}_sum", labels, self._seconds[labels])
            yield _line(f"{name}_count", labels, total)


def labels_of(target: Target, resource: Resource | None, documents: Iterable[str]) -> LabelPairs:
    """What a request is about."""
    if resource is None:
        document = next((path for path in documents if path != "/" and target.path.startswith(path)), "")
        verb = target.verb.upper() if target.verb in _OTHER_VERBS else "other"
        found = {"subresource": document.strip("/"), "verb": verb}
    else:
        scope = "resource" if target.name or target.verb == "create" else "namespace" if target.namespace else "cluster"
        verb = "CONNECT" if target.subresource in _CONNECT else _VERBS.get(target.verb, "other")
        about = {"group": resource.group, "version": resource.version, "resource": resource.plural}
        sub = target.subresource if target.subresource in resource.subresources else ""
        found = {**about, "subresource": sub, "scope": scope, "verb": verb}
    named = dict.fromkeys(("component", "group", "resource", "scope", "subresource", "version"), "")
    return tuple(sorted({**named, "component": "apiserver" if resource else "", **found}.items()))


def respond_metrics(request: HttpRequest, world: World, requests: RequestMetrics) -> Response:
    """Answered in text whatever the Accept header is, as upstream."""
    lines = [*requests.lines(), *_stored(world), *_build(world.minor)]
    return Response(body=("\n".join(lines) + "\n").encode(), content_type=CONTENT_TYPE)


def _stored(world: World) -> Iterator[str]:
    served = world.registry.storages()
    collections = [(served[name], world.store.collection(name)) for name in sorted(served)]
    yield from _head("apiserver_longrunning_requests", "gauge", "Open watches.")
    for resource, collection in collections:
        labels = {"group": resource.group, "version": resource.version, "resource": resource.plural, "verb": "WATCH"}
        if collection.subscriptions:
            yield _line("apiserver_longrunning_requests", tuple(sorted(labels.items())), len(collection.subscriptions))
    yield from _head("apiserver_resource_objects", "gauge", "Stored objects.")
    for resource, collection in collections:
        about = (("group", resource.group), ("resource", resource.plural))
        yield _line("apiserver_resource_objects", about, len(collection.records))


def _build(minor: int) -> Iterator[str]:
    info = version_info(minor)
    names = {"build_date": "buildDate", "compiler": "compiler", "git_commit": "gitCommit", "git_version": "gitVersion"}
    names |= {"git_tree_state": "gitTreeState", "go_version": "goVersion", "major": "major", "minor": "minor"}
    names["platform"] = "platform"
    yield from _head("kubernetes_build_info", "gauge", "What this server emulates, always 1.")
    yield _line("kubernetes_build_info", tuple(sorted((label, info[key]) for label, key in names.items())), 1)


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{shown}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
