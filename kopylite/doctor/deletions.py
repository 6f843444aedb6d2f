"""Objects and namespaces that do not come to their end: who would have to do something, and does he live? Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from kopylite.doctor.findings import Finding, command, error, listed, warning
from kopylite.doctor.wire import Object, age, conditions, mapping, maps, name, namespace, span, text, texts, title

CHECK = "finalizers"
# Kubernetes' own, and what each of them waits for.
BUILT_IN: Mapping[str, str] = {
    "kubernetes": "the namespace controller, which deletes what is in the namespace",
    "foregroundDeletion": "the garbage collector, which waits for the objects that this one owns "
    "(blockOwnerDeletion) and that have finalizers of their own",
    "orphan": "the garbage collector, which takes this owner out of what it owns",
    "kubernetes.io/pvc-protection": "the controller manager, which waits until no pod uses the claim",
    "kubernetes.io/pv-protection": "the controller manager, which waits until no claim is bound to the volume",
    "customresourcecleanup.apiextensions.k8s.io": "the API server, which deletes the objects of the kind first",
    "batch.kubernetes.io/job-tracking": "the Job controller, which counts the pod first",
    "service.kubernetes.io/load-balancer-cleanup": "the cloud's controller, which deletes the load balancer first",
}
# Of an object whose finalizer belongs to nobody who lives, and of one whose does: a clean-up may take its time.
ORPHANED_AFTER, LATE_AFTER = 15.0, 300.0


def managers(obj: Object) -> dict[str, str]:
    """Who put each finalizer, as far as managedFields tell."""
    found: dict[str, str] = {}
    for entry in maps(obj, "metadata", "managedFields"):
        for field in mapping(entry, "fieldsV1", "f:metadata", "f:finalizers"):
            if field.startswith('v:"') and field.endswith('"'):
                found[field[3:-1]] = text(entry, "manager")
    return found


def owner_of(finalizer: str, manager: str, alive: Collection[str]) -> tuple[str, bool]:
    """Who removes a finalizer, in words, and whether that one is known to live.

    Args:
        manager: who put it.
        alive: names of the Deployments that have ready pods, and of Leases that are held.
    """
    if finalizer in BUILT_IN:
        return BUILT_IN[finalizer], True
    group = finalizer.partition("/")[0]
    for living in sorted(alive):
        if living and (living in (manager, group) or living in group.split(".") or finalizer == living):
            return f"{living}, which runs", True
    return f"whoever added it ({manager or group}), and nothing of that name runs", False


def judge(obj: Object, kind: str, resource: str, now: datetime, alive: Collection[str]) -> Iterator[Finding]:
    """Whether an object waits for its end for too long.

    Args:
        kind, resource: of the object, for people and for kubectl.
        alive: see `owner_of`.
    """
    since = age(text(obj, "metadata", "deletionTimestamp"), now)
    finalizers = texts(obj, "metadata", "finalizers")
    if since is None or not finalizers or since < ORPHANED_AFTER:
        return
    by, where = managers(obj), title(obj, kind)
    for finalizer in finalizers:
        who, lives = owner_of(finalizer, by.get(finalizer, ""), alive)
        if (finalizer in BUILT_IN and since < LATE_AFTER) or (lives and since < LATE_AFTER):
            continue
        what = f"its deletion was asked for {span(since)} ago and waits for the finalizer {finalizer}: of {who}"
        clear = _clear(obj, resource, finalizer)
        if lives:
            yield warning(
                CHECK, where, what, f"look what it waits for, in its log or Events; if all is cleaned up: {clear}"
            )
        else:
            yield error(
                CHECK, where, what, f"# start what owns it; or clean up by hand what it stands for, and then:\n{clear}"
            )


def _clear(obj: Object, resource: str, finalizer: str) -> str:
    where = ("-n", namespace(obj)) if namespace(obj) else ()
    words = ("python", "-m", "kopylite", "finalizers", "clear", resource, name(obj), *where, "--finalizer", finalizer)
    return command(*words, "--yes")


_NAMESPACE: Mapping[str, str] = {
    "NamespaceDeletionDiscoveryFailure": "an API group of the cluster does not answer, so nobody knows what is in it",
    "NamespaceDeletionGroupVersionParsingFailure": "an API group has a name that cannot be read",
    "NamespaceDeletionContentFailure": "what is in it cannot be deleted",
    "NamespaceContentRemaining": "there is still something in it",
    "NamespaceFinalizersRemaining": "objects in it wait for their finalizers",
}


def judge_namespace(obj: Object, now: datetime) -> Iterator[Finding]:
    """Why a namespace does not come to its end."""
    since = age(text(obj, "metadata", "deletionTimestamp"), now)
    if since is None or since < ORPHANED_AFTER:
        return
    held = {kind: message for kind, status, _, message in conditions(obj) if status == "True" and kind in _NAMESPACE}
    if not held and since < LATE_AFTER:
        return
    where, found = f"Namespace {name(obj)}", name(obj)
    why = "; ".join(f"{_NAMESPACE[kind]} ({message})" for kind, message in held.items())
    what = (
        f"it has been Terminating for {span(since)}: {why or 'and does not say why: does the controller manager run?'}"
    )
    if "NamespaceDeletionDiscoveryFailure" in held:
        fix = "kubectl get apiservices    # mend or delete those that are not available; see the finding about them"
    elif "NamespaceDeletionContentFailure" in held:
        fix = (
            f"{command('kubectl', 'get', 'events', '-n', found)}    # who refuses the deletions: a webhook, or a quota?"
        )
    elif held:
        fix = (
            command("python", "-m", "kopylite", "finalizers", "list", "-n", found) + "    # and clear what nobody will"
        )
    else:
        fix = "kubectl -n kube-system get pods"
    yield error("namespaces", where, what, fix)


def judge_paused(objects: Collection[Object], kind: str, resource: str, annotation: str) -> Iterator[Finding]:
    """Objects of the App that nobody works on because somebody said so."""
    paused, odd = [], []
    for obj in objects:
        value = text(obj, "metadata", "annotations", annotation)
        if value.lower() == "true" and not text(obj, "metadata", "deletionTimestamp"):
            paused.append(obj)
        elif value.lower() not in ("", "false", "true"):
            odd.append(obj)
    for found, verb in ((paused, "paused: no reconcile runs for"), (odd, "not paused, for the value means nothing:")):
        if not found:
            continue
        names = listed(title(each, kind) for each in found)
        first = found[0]
        where = ("-n", namespace(first)) if namespace(first) else ()
        fix = command("kubectl", *where, "annotate", resource, name(first), f"{annotation}-")
        more = "    # and so each of them" if len(found) > 1 else ""
        yield warning("paused", f"annotation {annotation}", f"{verb} {names}", fix + more)
