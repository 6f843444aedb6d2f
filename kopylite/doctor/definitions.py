"""CustomResourceDefinitions: are they there, served, equal to the code's, and free of the past? Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kopylite.crds.changes import CrdChange, compare_crds
from kopylite.doctor.findings import Finding, command, error, kubectl, listed, warning
from kopylite.doctor.wire import conditions, maps, name, part, text, texts

CHECK = "crd"
# Differences that are named; the command tells all.
NAMED = 5

Object = Mapping[str, Any]


def judge_declared(crd: Object, stored: Object | None, target: str) -> Iterator[Finding]:
    """A CRD of the code beside the one of the cluster.

    Args:
        stored: what the cluster has; None: nothing of this name.
        target: MODULE:APP, for the commands.
    """
    where = f"CustomResourceDefinition {name(crd)}"
    apply = f"{command('python', '-m', 'kopylite', 'crd', target)} | kubectl apply -f -"
    if stored is None:
        yield error(CHECK, where, "the App declares it, and the cluster does not have it", apply)
        return
    wanted = {text(each, "name") for each in maps(crd, "spec", "versions")}
    left = [each for each in texts(stored, "status", "storedVersions") if each not in wanted]
    if left:  # the server takes no CRD that leaves out a version in which something may be stored
        apply = (
            f"{_migration(stored, [each for each in _stored_in(stored) if each in wanted] or _stored_in(crd))}\n{apply}"
        )
    served = {text(each, "name") for each in maps(stored, "spec", "versions") if part(each, "served") is True}
    missing = [text(each, "name") for each in maps(crd, "spec", "versions") if text(each, "name") not in served]
    if missing:
        yield error(CHECK, where, f"the App uses its version {listed(missing)}, which is not served", apply)
    changes = differences(crd, stored)
    changes = [each for each in changes if not any(each.path == version for version in missing)]
    if changes:
        shown = listed((f"{each.path}: {each.text}" for each in changes), NAMED)
        text_of = f"it differs from the code: in the cluster, {shown}"
        tell = error if any(each.dangerous for each in changes) else warning
        yield tell(CHECK, where, text_of, apply)


def differences(crd: Object, stored: Object) -> list[CrdChange]:
    """What differs, from the code to the cluster; dangerous is what takes from the code what it relies on."""
    try:
        found = compare_crds(crd, stored)
    except (AttributeError, KeyError, TypeError, RecursionError):
        return [CrdChange("spec", "cannot be compared", True)]
    newer = ("the version is new", "is new", "is optional now")
    return [each for each in found if not each.text.endswith(newer)]


def judge_stored(crd: Object) -> Iterator[Finding]:
    """What is wrong with a CRD of the cluster, whoever it belongs to."""
    where = f"CustomResourceDefinition {name(crd)}"
    state = {kind: (status, message) for kind, status, _, message in conditions(crd)}
    describe = kubectl("describe", "crd", name(crd), "")
    going = text(crd, "metadata", "deletionTimestamp")
    if not going and state.get("NamesAccepted", ("True", ""))[0] == "False":
        yield error(
            CHECK,
            where,
            f"its names are taken: {state['NamesAccepted'][1]}",
            f"{describe}    # and delete or rename one of the two",
        )
    elif not going and state.get("Established", ("", ""))[0] != "True":
        yield error(
            CHECK,
            where,
            f"it is not established, so its kind is not served: {state.get('Established', ('', ''))[1]}",
            describe,
        )
    if state.get("NonStructuralSchema", ("False", ""))[0] == "True":
        yield error(CHECK, where, f"its schema is not structural: {state['NonStructuralSchema'][1]}", describe)
    versions = {text(each, "name"): part(each, "served") is True for each in maps(crd, "spec", "versions")}
    past = [each for each in texts(crd, "status", "storedVersions") if not versions.get(each, False)]
    if past and not going:
        yield _stored_in_the_past(crd, past)


def _stored_in_the_past(crd: Object, past: list[str]) -> Finding:
    what = f"status.storedVersions has {listed(past)}, which {'is' if len(past) == 1 else 'are'} not served any more: "
    what += "objects may still be stored so, and the version can never be removed"
    return warning(CHECK, f"CustomResourceDefinition {name(crd)}", what, _migration(crd, _stored_in(crd)))


def _stored_in(crd: Object) -> list[str]:
    return [text(each, "name") for each in maps(crd, "spec", "versions") if part(each, "storage") is True]


def _migration(crd: Object, versions: list[str]) -> str:
    """What writes all objects anew, in the version in which they are stored now, and then says so."""
    resource = f"{text(crd, 'spec', 'names', 'plural')}.{text(crd, 'spec', 'group')}"
    # An empty patch stores an object anew, and `kubectl replace` would put its version into what `apply` remembers.
    rewrite = f"{command('kubectl', 'get', resource, '-A', '-o', 'json')} | kubectl patch -f - --type=merge -p '{{}}'"
    patch = json.dumps({"status": {"storedVersions": versions}})
    forget = kubectl("patch", "crd", name(crd), "", "--subresource=status", "--type=merge", "-p", patch)
    return f"{rewrite}    # that there is none is no failure\n{forget}    # when all are patched"
