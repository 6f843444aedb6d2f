"""What the API server itself is made of: aggregated APIs, and who may ask how much. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kopylite.doctor.findings import Finding, command, error, kubectl, warning
from kopylite.doctor.wire import Object, conditions, mapping, name, text


def judge_api_service(obj: Object) -> Iterator[Finding]:
    """An aggregated API whose server does not answer."""
    service = mapping(obj, "spec", "service")
    for kind, status, reason, message in conditions(obj):
        if kind == "Available" and status != "True":
            what = f"not available ({reason}: {message}): discovery is incomplete, so no namespace can be deleted, and "
            what += "the garbage collector may not know what it has to delete"
            remove = f"kubectl delete apiservice {name(obj)}    # if its server is gone for good"
            fix = remove
            if service:
                found = command("kubectl", "-n", text(service, "namespace"), "get", "service,pods")
                fix = f"{found}    # is {text(service, 'name')} up?\n{remove}"
            yield error("apiservices", f"APIService {name(obj)}", what, fix)


def judge_flow_schema(obj: Object) -> Iterator[Finding]:
    """A FlowSchema that sends requests to a priority level which is not there."""
    for kind, status, _, message in conditions(obj):
        if kind == "Dangling" and status == "True":
            level = text(obj, "spec", "priorityLevelConfiguration", "name")
            what = f"it names the priority level {level}, which does not exist: its requests fall to the catch-all, "
            what += f"where they wait behind everybody's ({message})"
            yield warning("priority", f"FlowSchema {name(obj)}", what, kubectl("delete", "flowschema", name(obj), ""))
