"""What sets one built-in kind apart from the next, beyond its schema and defaults: one table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kopylite.apiserver.builtin import preparation_core as core
from kopylite.apiserver.builtin import preparation_groups as groups
from kopylite.apiserver.builtin import services
from kopylite.apiserver.names import label_errors, path_segment_errors, subdomain_errors
from kopylite.apiserver.schema.field_errors import FieldError
from kopylite.apiserver.strategy import Environment

Object = dict[str, Any]
Decoded = Callable[[Object], None]
Create = Callable[[Object, Environment], None]
Update = Callable[[Object, Object, Environment], None]
Validate = Callable[[Object], list[FieldError]]
ValidateUpdate = Callable[[Object, Object], list[FieldError]]
Warn = Callable[[Object, Object | None], list[str]]
NameErrors = Callable[[str, bool], list[str]]


def _prefixed(check: Callable[[str], list[str]]) -> NameErrors:
    """A generateName may end with a hyphen: it is checked with its last two characters replaced by a letter."""

    def errors(name: str, prefix: bool) -> list[str]:
        return check(f"{name[:-2]}a" if prefix and len(name) > 1 and name.endswith("-") else name)

    return errors


def _cron_job_name(name: str) -> list[str]:
    # Eleven characters are left for the names of its jobs.
    return subdomain_errors(name) + (["must be no more than 52 characters"] if len(name) > 52 else [])


def _any_segment(name: str, prefix: bool) -> list[str]:
    return path_segment_errors(name)


@dataclass(frozen=True, slots=True)
class Rules:
    """The particulars of one kind.

    Attributes:
        decode: runs after each decoding, for what Go's conversion functions do.
        create: writes what the server sets, after status was reset.
        update: likewise for an update, by sub-resource ("" for the main endpoint).
        status_keeps_metadata: `/status` changes no metadata.
        reset_fields: by sub-resource, where it is not `status` for the main endpoint and `spec` for `/status`.
    """

    generation: bool = False
    unconditional_update: bool = True
    create_on_update: bool = False
    grace: bool = False
    status_keeps_metadata: bool = False
    name_errors: NameErrors = _prefixed(subdomain_errors)
    decode: Decoded | None = None
    create: Create | None = None
    update: Mapping[str, Update] = field(default_factory=dict)
    validate: tuple[Validate, ...] = ()
    validate_update: tuple[ValidateUpdate, ...] = ()
    validate_status: tuple[ValidateUpdate, ...] = ()
    warnings: Warn | None = None
    reset_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_label = _prefixed(label_errors)
_METADATA_TOO = {"status": ("metadata", "spec")}
_HOOKS = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

# Kinds that are not here have no particulars.
RULES: Mapping[tuple[str, str], Rules] = {
    ("", "Pod"): Rules(
        generation=True,
        grace=True,
        create=core.create_pod,
        update={
            "": core.update_pod,
            "status": core.update_pod_status,
            "ephemeralcontainers": core.update_ephemeral_containers,
        },
        reset_fields={"status": ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences")},
    ),
    ("", "PodTemplate"): Rules(generation=True),
    ("", "ReplicationController"): Rules(generation=True),
    ("", "Service"): Rules(
        name_errors=_label,
        create_on_update=True,
        create=services.create_service,
        update={"": services.update_service},
    ),
    ("", "Secret"): Rules(decode=core.decode_secret, update={"": core.update_secret}),
    ("", "Namespace"): Rules(
        name_errors=_label,
        create=core.create_namespace,
        update={"": core.update_namespace, "finalize": core.finalize_namespace},
        reset_fields={"finalize": ("status",)},
    ),
    ("", "PersistentVolume"): Rules(
        create=core.create_persistent_volume, update={"status": core.update_persistent_volume_status}
    ),
    ("", "PersistentVolumeClaim"): Rules(create=core.create_persistent_volume_claim),
    ("", "Node"): Rules(create=core.create_node),
    ("", "LimitRange"): Rules(create_on_update=True),
    ("", "Endpoints"): Rules(create_on_update=True),
    ("", "Event"): Rules(name_errors=_any_segment, create_on_update=True),
    ("events.k8s.io", "Event"): Rules(name_errors=_any_segment, create_on_update=True),
    ("apps", "Deployment"): Rules(
        generation=True,
        update={"": groups.update_deployment, "status": groups.update_deployment_status},
        reset_fields={"status": ("spec", "metadata.labels")},
    ),
    ("apps", "ReplicaSet"): Rules(generation=True),
    ("apps", "StatefulSet"): Rules(generation=True, name_errors=_label, decode=groups.decode_stateful_set),
    ("apps", "DaemonSet"): Rules(
        generation=True,
        decode=groups.decode_daemon_set,
        create=groups.create_daemon_set,
        update={"": groups.update_daemon_set},
    ),
    ("batch", "Job"): Rules(generation=True, unconditional_update=False, create=groups.create_job),
    ("batch", "CronJob"): Rules(generation=True, unconditional_update=False, name_errors=_prefixed(_cron_job_name)),
    ("autoscaling", "HorizontalPodAutoscaler"): Rules(generation=True),
    ("networking.k8s.io", "Ingress"): Rules(generation=True, create=core.create_ingress),
    ("networking.k8s.io", "IngressClass"): Rules(generation=True),
    ("networking.k8s.io", "NetworkPolicy"): Rules(generation=True),
    ("networking.k8s.io", "ServiceCIDR"): Rules(status_keeps_metadata=True, reset_fields=_METADATA_TOO),
    ("policy", "PodDisruptionBudget"): Rules(generation=True, unconditional_update=False),
    ("coordination.k8s.io", "Lease"): Rules(unconditional_update=False, create_on_update=True),
    ("discovery.k8s.io", "EndpointSlice"): Rules(generation=True, update={"": groups.update_endpoint_slice}),
    ("scheduling.k8s.io", "PriorityClass"): Rules(create=groups.create_priority_class),
    ("node.k8s.io", "RuntimeClass"): Rules(unconditional_update=False, create_on_update=True),
    ("storage.k8s.io", "CSIDriver"): Rules(unconditional_update=False),
    ("storage.k8s.io", "CSINode"): Rules(
        unconditional_update=False, status_keeps_metadata=True, reset_fields=_METADATA_TOO
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): Rules(unconditional_update=False),
    ("storage.k8s.io", "VolumeAttachment"): Rules(
        unconditional_update=False, status_keeps_metadata=True, reset_fields=_METADATA_TOO
    ),
    ("storagemigration.k8s.io", "StorageVersionMigration"): Rules(
        unconditional_update=False, status_keeps_metadata=True, reset_fields=_METADATA_TOO
    ),
    (_RBAC, "Role"): Rules(name_errors=_any_segment, create_on_update=True),
    (_RBAC, "ClusterRole"): Rules(name_errors=_any_segment, create_on_update=True),
    (_RBAC, "RoleBinding"): Rules(name_errors=_any_segment, create_on_update=True),
    (_RBAC, "ClusterRoleBinding"): Rules(name_errors=_any_segment, create_on_update=True),
    (_HOOKS, "ValidatingWebhookConfiguration"): Rules(generation=True, unconditional_update=False),
    (_HOOKS, "MutatingWebhookConfiguration"): Rules(generation=True, unconditional_update=False),
    (_HOOKS, "ValidatingAdmissionPolicy"): Rules(
        generation=True, unconditional_update=False, status_keeps_metadata=True, reset_fields=_METADATA_TOO
    ),
    (_HOOKS, "ValidatingAdmissionPolicyBinding"): Rules(generation=True, unconditional_update=False),
    (_HOOKS, "MutatingAdmissionPolicy"): Rules(generation=True, unconditional_update=False),
    (_HOOKS, "MutatingAdmissionPolicyBinding"): Rules(generation=True, unconditional_update=False),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Rules(generation=True, unconditional_update=False),
    ("certificates.k8s.io", "CertificateSigningRequest"): Rules(
        name_errors=_any_segment,
        update={"": groups.freeze_spec, "approval": groups.update_approval},
        reset_fields={
            "": ("spec", "status"),
            "status": ("spec", "status.conditions"),
            "approval": ("spec", "status.certificate"),
        },
    ),
    ("apiregistration.k8s.io", "APIService"): Rules(name_errors=_any_segment, unconditional_update=False),
    (_FLOW, "FlowSchema"): Rules(
        generation=True, unconditional_update=False, status_keeps_metadata=True, reset_fields=_METADATA_TOO
    ),
    (_FLOW, "PriorityLevelConfiguration"): Rules(
        generation=True, unconditional_update=False, status_keeps_metadata=True, reset_fields=_METADATA_TOO
    ),
}
