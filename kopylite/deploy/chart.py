"""The same objects as a Helm chart: what installations differ in comes from its values. Pure.

Objects get values by placeholders in the place of scalars, `<<block name>>`, that are replaced in their YAML. With the
default values a chart renders to the objects of `manifests`, but for the Namespace, which is Helm's to make.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kopylite.deploy.manifests import Object, Shipment, documents
from kopylite.deploy.needs import Needs
from kopylite.objects.yamlwrite import to_yaml

NAMESPACE, IMAGE = "{{ .Release.Namespace }}", "{{ .Values.image }}"
VERSION = "0.1.0"
# Keys of the pod that are there only when a value is.
POD = ("imagePullSecrets", "nodeSelector", "tolerations", "affinity")

_PLACE = re.compile(r"^( *)(- )?(\w+): '?<<(\w+) (\w+)>>'?\n", re.MULTILINE)
_FORMS = {
    # A scalar that is no text.
    "bare": "{indent}{key}: {{{{ .Values.{name} }}}}\n",
    # A map or list, with its key; neither where it is empty.
    "block": "{indent}{{{{- with .Values.{name} }}}}\n{indent}{key}:\n{indent}  {{{{- toYaml . | nindent {deep} }}}}\n"
    "{indent}{{{{- end }}}}\n",
    # More items of the list that it is an item of.
    "items": "{indent}{{{{- with .Values.{name} }}}}\n{indent}{{{{- toYaml . | nindent {width} }}}}\n"
    "{indent}{{{{- end }}}}\n",
}


def chart(deployment: Shipment, needs: Needs, crds: Sequence[Object], *, monitor: bool = False) -> dict[str, str]:
    """The files of a chart, by their paths in it.

    Args:
        deployment: in the namespace NAMESPACE, as the needs are.
        monitor: whether the ServiceMonitor is there by default.
    """
    found = documents(replace(deployment, image=IMAGE), needs, (), monitor=True)
    operator = [_with_values(each) for each in found["30-operator.yaml"] if each["kind"] != "NetworkPolicy"]
    policies = [each for each in found["30-operator.yaml"] if each["kind"] == "NetworkPolicy"]
    [workload] = [each for each in found["30-operator.yaml"] if each["kind"] == "Deployment"]
    values = _values(deployment, workload, monitor)
    files = {
        "Chart.yaml": to_yaml([_about(deployment)]),
        "values.yaml": to_yaml([values]),
        "values.schema.json": json.dumps(_schema(), indent=2) + "\n",
        "templates/rbac.yaml": to_yaml(found["20-rbac.yaml"]),
        "templates/operator.yaml": _filled(to_yaml(operator)),
        "templates/networkpolicy.yaml": _if("networkPolicy.enabled", to_yaml(policies)),
        "templates/servicemonitor.yaml": _if("serviceMonitor.enabled", to_yaml(found["40-monitoring.yaml"])),
        "templates/NOTES.txt": _notes(deployment),
    }
    return files | ({"crds/crds.yaml": to_yaml(crds)} if crds else {})


_NOTES = """\
{name} runs in the namespace {namespace}.

  kubectl -n {namespace} rollout status deployment/{name}
  kubectl -n {namespace} logs deployment/{name}

Helm installs the CRDs of a chart, and neither upgrades nor deletes them: after a change, kubectl apply -f crds/
"""


# Not in the schema: its errors say that 1 is the most, and not why.
_ONE = """\
{{{{- if gt (int .Values.replicas) 1 }}}}
{{{{- fail "replicas: {name} has no leader election in this chart, so two would both work. \
`kopylite manifests --replicas 2 --helm` makes one that has" }}}}
{{{{- end }}}}
"""


def _notes(deployment: Shipment) -> str:
    text = _NOTES if deployment.several else _ONE + _NOTES
    return text.format(name=deployment.name, namespace=NAMESPACE)


def _about(deployment: Shipment) -> Object:
    head = {"apiVersion": "v2", "name": deployment.name, "description": f"The operator {deployment.name}"}
    return {**head, "type": "application", "version": VERSION}


def _values(deployment: Shipment, workload: Object, monitor: bool) -> Object:
    [container] = workload["spec"]["template"]["spec"]["containers"]
    return {
        "image": deployment.image,
        "replicas": deployment.replicas,
        "resources": container["resources"],
        "env": [],
        "imagePullSecrets": [],
        "nodeSelector": {},
        "tolerations": [],
        "affinity": {},
        "networkPolicy": {"enabled": True},
        "serviceMonitor": {"enabled": monitor},
    }


def _schema() -> Object:
    objects = {"type": "array", "items": {"type": "object"}}
    switch = {"type": "object", "properties": {"enabled": {"type": "boolean"}}, "additionalProperties": False}
    properties: Mapping[str, Any] = {
        "image": {"type": "string", "pattern": r"^[^\s'\"{}]+$"},
        "replicas": {"type": "integer", "minimum": 0},
        "resources": {"type": "object"},
        "env": objects,
        "imagePullSecrets": objects,
        "nodeSelector": {"type": "object", "additionalProperties": {"type": "string"}},
        "tolerations": objects,
        "affinity": {"type": "object"},
        "networkPolicy": switch,
        "serviceMonitor": switch,
        "global": {"type": "object"},  # Helm's own
    }
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
    return {**head, "required": ["image"], "properties": properties, "additionalProperties": False}


def _with_values(found: Object) -> Object:
    """An object with the placeholders for its values."""
    if found["kind"] != "Deployment":
        return found
    spec = found["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    env = [*container["env"], {"env": "<<items env>>"}]
    container = {**container, "env": env, "resources": "<<block resources>>"}
    pod = {**pod, "containers": [container], **{key: f"<<block {key}>>" for key in POD}}
    template = {**spec["template"], "spec": pod}
    return {**found, "spec": {**spec, "replicas": "<<bare replicas>>", "template": template}}


def _filled(text: str) -> str:
    def put(place: re.Match[str]) -> str:
        indent, _, key, form, name = place.groups()
        return _FORMS[form].format(indent=indent, key=key, name=name, width=len(indent), deep=len(indent) + 2)

    return _PLACE.sub(put, text)


def _if(value: str, text: str) -> str:
    return f"{{{{- if .Values.{value} }}}}\n{text}{{{{- end }}}}\n"
