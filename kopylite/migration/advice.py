"""Advice: what the report says of each construct of kopf. Texts only."""

from __future__ import annotations

SETTINGS = {
    "persistence.finalizer": "taken into account: the finalizer is replaced",
    "persistence.diffbase_storage": "taken into account as far as it names a prefix; nothing is stored in this way",
    "persistence.progress_storage": "taken into account as far as it names a prefix; nothing is stored in this way",
    "persistence": "there is no such storage: what is kept are hashes in annotations",
    "peering.name": "taken into account: this peering is looked at before the start",
    "peering.standalone": "no Lease is taken unless you say App(..., leader_election=True) or --leader-elect",
    "peering": "of several replicas one works with App(..., leader_election=True), or --leader-elect",
    "posting.enabled": "Events come only from ctx.event, and from failures (failure_events=False of the reconciler)",
    "posting": "log lines are no Events here; ctx.event(obj, reason, note) is one",
    "watching": "timeouts and reconnecting need no settings; --connect-timeout is that of the start",
    "networking": "each request has limits of its own; --connect-timeout is that of the start",
    "queueing.worker_limit": "workers= of a reconciler, or --workers: how many keys are worked on at a time",
    "batching.worker_limit": "workers= of a reconciler, or --workers: how many keys are worked on at a time",
    "queueing": "the queue merges what comes for a key, and needs no settings",
    "batching": "the queue merges what comes for a key, and needs no settings",
    "execution.max_workers": "plain functions run in up to 40 threads; threads= of a reconciler that is a plain def",
    "execution": "plain functions run in threads of kopylite; back-off is rate_limit= of a reconciler",
    "admission.server": "kopylite serves webhooks itself: see docs/webhooks.md",
    "admission.managed": "kopylite registers and certifies its webhooks itself: see docs/webhooks.md",
    "admission": "see docs/webhooks.md",
    "scanning": "kinds are declared, so nothing is scanned for; namespaces: --namespace, --namespaces-labelled",
    "background": "daemons are cancelled with their object, or when this process no longer leads",
    "process": "--grace-period is how long running reconciles have at the end",
}

MISSING = {
    "run": "take it out; the operator is run by `python -m kopylite run FILE`, or `Manager(app, load_config()).run()`",
    "operator": "embed the App instead: `await Manager(app, load_config()).run()`, of kopylite.manager and .client",
    "spawn_tasks": "embed the App instead: `await Manager(app, load_config()).run()`, of kopylite.manager and .client",
    "configure": "take it out; logging is set up by `kopylite run`, see --log-format and --log-level",
    "EVERYTHING": "name the kinds: a reconciler is of one kind",
    "build_owner_reference": "use owner_reference of kopylite.objects, or owner= of create and create_or_update",
    "build_object_reference": "write the dict: apiVersion, kind, name, namespace, uid",
    "login_via_client": "take it out: kopylite reads a kubeconfig, or the pod's service account",
    "login_via_pykube": "take it out: kopylite reads a kubeconfig, or the pod's service account",
    "login_with_kubeconfig": "take it out: kopylite reads a kubeconfig, or the pod's service account",
    "login_with_service_account": "take it out: kopylite reads a kubeconfig, or the pod's service account",
    "ConnectionInfo": "take it out: kopylite reads a kubeconfig, or the pod's service account",
    "lifecycles": "take it out: handlers run in the order of the reconcile",
    "set_default_lifecycle": "take it out: handlers run in the order of the reconcile",
    "OperatorRegistry": "an App is the registry: there may be several, and `app.include(other)` joins them",
}
REGISTRY = "write it as a reconciler by hand, or declare it at the top of the module with names that are written there"

_COMPARE = "compare with what is there (the child, the outside), not with an earlier state; see docs/from-kopf.md"

CONDITIONAL = "see that its function is there whenever the module is imported, or put the condition where it is called"

# Of arguments that a handler uses: what is different, and what to do ("": nothing).
ARGUMENTS = {
    "old": ("it is a stand-in, and using it is a TerminalError", _COMPARE),
    "diff": ("it is a stand-in, and using it is a TerminalError", _COMPARE),
    "event": ("`type` in it is always None, as in kopf's first listing",
              "do what the object's present state asks for; what is deleted is handled in a finalizer"),
    "type": ("it is always None, as in kopf's first listing",
             "do what the object's present state asks for; what is deleted is handled in a finalizer"),
    "retry": ("it counts from 0 when the process starts", ""),
    "reason": ("it is always None: a reconcile is not told why it runs", "let the state of the object decide"),
    "headers": ("it is empty", "HTTP headers are not known to a handler; decide by review.user"),
    "sslpeer": ("it is empty", "certificates are not known to a handler; decide by review.user"),
}  # fmt: skip

# Of options of a declaration.
OPTIONS = {
    "retries": "",
    "initial_delay": "",
    "idle": "return at the top of the handler when the object's own state says that it is too early",
    "sharp": "times are always sharp here: they follow from the creation of the object",
    "cancellation_backoff": "a daemon is told and cancelled at once; a thread ends when it looks at `stopped`",
    "cancellation_timeout": "a daemon is told and cancelled at once; a thread ends when it looks at `stopped`",
    "cancellation_polling": "a daemon is told and cancelled at once; a thread ends when it looks at `stopped`",
    "old": "the earlier value of a field is not known, so it is not filtered by it: decide by the present one",
    "registry": "",
    "deleted": "an object that is being deleted runs its cleanup, and nothing else",
    "persistent": "webhooks stay registered as docs/webhooks.md says",
}

# Of each kind of handler: what became of it, and what to do.
BECAME: dict[str, tuple[str, str]] = {
    "create": ("is called once for each object, by an annotation; what kopf has handled counts as created", ""),
    "update": ("is called when more than the status has changed since it was called last", ""),
    "resume": ("is called once for each object in each process; of a handler of updates too, in each run",
               "see that it bears a new object, too: nothing tells it that the operator has just begun"),
    "delete": ("is called in a finalizer, which takes the place of kopf's", ""),
    "field": ("is called when the field differs from what it was called with last", ""),
    "event": ("is called in each run: what comes while one goes on is one run, and none comes for what is gone", ""),
    "timer": ("is @app.timer: its times are counted from the creation of the object, over restarts", ""),
    "daemon": ("is a task for each object, in the process that leads",
               "a loop with a pause is better an @app.timer; a stream from outside: sources=[channel(...)]"),
    "index": ("is asked anew about all cached objects whenever a handler has it as an argument",
              "for many objects use ctx.client.list(kind, index={'spec.field': value})"),
    "validate": ("is @app.validator; kopylite serves and registers it", ""),
    "mutate": ("is @app.mutator; kopylite serves and registers it", ""),
    "startup": ("is @app.on_start: one that fails ends the process", ""),
    "cleanup": ("is @app.on_stop", ""),
    "login": ("is called by nobody: kopylite reads a kubeconfig, or the pod's service account, by itself",
              "where it did more, put that into the kubeconfig (an exec plugin)"),
    "probe": ("is @app.health: healthy unless it raises; what it returns is not shown", ""),
}  # fmt: skip

LIBRARIES = frozenset({"kubernetes", "kubernetes_asyncio", "pykube", "kr8s", "lightkube"})
OWN_CLIENT = (
    "its calls go past kopylite: they read no cache, and `kopylite manifests` does not know their rights. Keep the "
    "rules of RBAC that you have; move calls to ctx.client (handlers may take `ctx`) when you touch them"
)


def of_setting(path: str) -> str:
    """For "peering.name" and the like; the nearest that is known."""
    while path:
        if path in SETTINGS:
            return SETTINGS[path]
        path = path.rpartition(".")[0]
    return "kopylite has no such setting; see `kopylite run --help`"
