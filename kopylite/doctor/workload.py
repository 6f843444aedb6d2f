"""The operator's own Deployment and what guards it, where they can be found by the App's name. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kopylite.doctor.findings import Finding, command, error, kubectl, warning
from kopylite.doctor.wire import Object, conditions, maps, name, namespace, number, part, text, texts, title

CHECK = "operator"


def judge(deployment: Object, *, elects: bool, runs: bool = True) -> Iterator[Finding]:
    """What is wrong with the Deployment of an operator.

    Args:
        elects: whether the App says that only one of several processes works.
        runs: whether the cluster has nodes, and somebody who makes pods.
    """
    where, wanted = title(deployment, "Deployment"), number(deployment, "spec", "replicas")
    wanted = 1 if wanted is None else wanted
    ready = number(deployment, "status", "readyReplicas") or 0
    logs = command("kubectl", "-n", namespace(deployment), "logs", f"deployment/{name(deployment)}")
    if part(deployment, "spec", "paused") is True:
        yield warning(
            CHECK,
            where,
            "its rollout is paused: a new image or setting does not come",
            kubectl("rollout", "resume", f"deployment/{name(deployment)}", namespace(deployment)),
        )
    if not wanted:
        yield warning(CHECK, where, "it has no replicas: nobody does its work", _scaled(deployment, 1))
    elif runs and not ready:
        why = "; ".join(
            message
            for kind, status, _, message in conditions(deployment)
            if status == "False" or kind == "ReplicaFailure"
        )
        yield error(CHECK, where, f"none of its {wanted} pods is ready: {why}", f"{logs}\n{_describe(deployment)}")
    elif runs and ready < wanted:
        yield warning(CHECK, where, f"{ready} of its {wanted} pods are ready", _describe(deployment))
    if not (elects or asks_for_election(deployment)):
        yield from _alone(deployment, where, wanted)


def _alone(deployment: Object, where: str, wanted: int) -> Iterator[Finding]:
    if wanted > 1:
        yield error(
            CHECK,
            where,
            f"{wanted} replicas without leader election: each object is worked on by all of them at once",
            f"add --leader-elect to its arguments; until then:\n{_scaled(deployment, 1)}",
        )
    elif text(deployment, "spec", "strategy", "type") != "Recreate":
        patch = '{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}'
        yield warning(
            CHECK,
            where,
            "one replica, no leader election, and strategy RollingUpdate: the old and the new one "
            "work at the same time during a rollout",
            command("kubectl", "-n", namespace(deployment), "patch", "deployment", name(deployment), "-p", patch),
        )


def judge_budget(budget: Object, replicas: int) -> Iterator[Finding]:
    """A PodDisruptionBudget of the operator's pods that lets nobody drain a node."""
    allowed, expected = (number(budget, "status", each) for each in ("disruptionsAllowed", "expectedPods"))
    if allowed == 0 and expected and (number(budget, "status", "desiredHealthy") or 0) >= expected:
        what = f"it never lets one of the {replicas} pods go: the drain of its node waits for ever"
        patch = '{"spec":{"minAvailable":null,"maxUnavailable":1}}'
        fix = kubectl("patch", "pdb", name(budget), namespace(budget), "--type=merge", "-p", patch)
        yield warning(CHECK, title(budget, "PodDisruptionBudget"), what, fix)


@dataclass(frozen=True, slots=True)
class DeployedSettings:
    """How a Deployment runs its operator, as far as its command line and environment tell; None: they do not."""

    leader_election: bool | None = None
    shards: int | None = None
    namespaces: tuple[str, ...] = ()
    labelled: str = ""
    webhook_manage: bool = False


def settings_of(deployment: Object) -> DeployedSettings:
    """What a container of a Deployment is told by flags of `kopylite run`, or by their variables."""
    given: dict[str, str] = {}
    for container in maps(deployment, "spec", "template", "spec", "containers"):
        for each in maps(container, "env"):
            given[text(each, "name")] = text(each, "value")
        words = [*texts(container, "command"), *texts(container, "args")]
        for word, after in zip(words, [*words[1:], ""], strict=False):
            flag, equals, value = word.partition("=")
            if flag in _FLAGS:
                given[_FLAGS[flag]] = "true" if flag in _SWITCHES else value if equals else after
    shards = given.get("KOPYLITE_SHARDS", "")
    names = tuple(filter(None, (each.strip() for each in given.get("KOPYLITE_NAMESPACE", "").split(","))))
    return DeployedSettings(
        True if given.get("KOPYLITE_LEADER_ELECT", "").lower() in ("true", "1") else None,
        int(shards) if shards.isascii() and shards.isdigit() and 0 < int(shards[:9]) < 10_000 else None,
        names,
        given.get("KOPYLITE_NAMESPACES_LABELLED", ""),
        given.get("KOPYLITE_WEBHOOK_MANAGE", "").lower() in ("true", "1"),
    )


_FLAGS = {
    "--leader-elect": "KOPYLITE_LEADER_ELECT",
    "--shards": "KOPYLITE_SHARDS",
    "-n": "KOPYLITE_NAMESPACE",
    "--namespace": "KOPYLITE_NAMESPACE",
    "--namespaces-labelled": "KOPYLITE_NAMESPACES_LABELLED",
    "--webhook-manage": "KOPYLITE_WEBHOOK_MANAGE",
}
_SWITCHES = ("--leader-elect", "--webhook-manage")


def asks_for_election(deployment: Object) -> bool:
    """Whether a Deployment says that only one of several processes works, or that each has its part."""
    found = settings_of(deployment)
    return bool(found.leader_election or found.shards)


def _describe(deployment: Object) -> str:
    return kubectl("describe", "deployment", name(deployment), namespace(deployment))


def _scaled(deployment: Object, replicas: int) -> str:
    where = namespace(deployment)
    return command("kubectl", "-n", where, "scale", f"deployment/{name(deployment)}", f"--replicas={replicas}")
