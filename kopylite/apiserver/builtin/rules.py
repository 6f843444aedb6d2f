"""What sets one built-in kind apart from the next, beyond its schema and defaults: one table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kopylite.apiserver.builtin import preparation_core as core
from kopylite.apiserver.builtin import preparation_groups as groups
from kopylite.apiserver.builtin import services, validation_core, validation_groups, validation_services, warnings
from kopylite.apiserver.builtin import validation_certificates as certificates
from kopylite.apiserver.builtin import validation_flow as flow
from kopylite.apiserver.builtin import validation_hooks as hooks
from kopylite.apiserver.builtin import validation_networking as networking
from kopylite.apiserver.builtin import validation_pods as pods
from kopylite.apiserver.builtin import validation_policies as policies
from kopylite.apiserver.builtin import validation_storage as storage
from kopylite.apiserver.builtin import validation_volumes as volumes
from kopylite.apiserver.builtin import validation_workloads as workloads
from kopylite.apiserver.resources.strategy import Environment
from kopylite.apiserver.schema.field_errors import FieldError
from kopylite.apiserver.schema.names import label_errors, path_segment_errors, subdomain_errors

Object = dict[str, Any]
Decoded = Callable[[Object], None]
Create = Callable[[Object, Environment], None]
Update = Callable[[Object, Object, Environment], None]
Validate = Callable[[Object], list[FieldError]]
ValidateUpdate = Callable[[Object, Object], list[FieldError]]
NameErrors = Callable[[str, bool], list[str]]


def _prefixed(check: Callable[[str], list[str]]) -> NameErrors:
    """A generateName may end with a hyphen: it is checked with its last two characters replaced by a letter."""

    def errors(name: str, prefix: bool) -> list[str]:
        return check(f"{name[:-2]}a" if prefix and len(name) > 1 and name.endswith("-") else name)

    return errors


def _cron_job_name(name: str) -> list[str]:
    # Eleven characters are left for the names of its jobs.
    return subdomain_errors(name) + (["must be no more than 52 characters"] if len(name.encode()) > 52 else [])


_subdomain = _prefixed(subdomain_errors)


def _any_segment(name: str, prefix: bool) -> list[str]:
    return path_segment_errors(name)


@dataclass(frozen=True, slots=True)
class Rules:
    """The particulars of one kind.

    Attributes:
        decode: runs after each decoding, for what Go's conversion functions do.
        keeps_status: a creator may set status.
        create: writes what the server sets, after status was reset.
        update: likewise for an update, by sub-resource ("" for the main endpoint).
        validate, validate_new, validate_update, validate_status: of every object, of new ones, of changes by the
            main endpoint, of changes by `/status`.
        changes_first: the errors of a change come before those of the object.
        status_keeps_metadata: `/status` changes no metadata.
        reset_fields: by sub-resource, where it is not `status` for the main endpoint and `spec` for `/status`.
    """

    generation: bool = False
    unconditional_update: bool = True
    create_on_update: bool = False
    grace: bool = False
    status_keeps_metadata: bool = False
    keeps_status: bool = False
    changes_first: bool = False
    name_errors: NameErrors = _subdomain
    decode: Decoded | None = None
    create: Create | None = None
    update: Mapping[str, Update] = field(default_factory=dict)
    validate: tuple[Validate, ...] = ()
    validate_new: tuple[Validate, ...] = ()
    validate_update: tuple[ValidateUpdate, ...] = ()
    validate_status: tuple[ValidateUpdate, ...] = ()
    warnings: warnings.Warn | None = None
    reset_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _pod_template_kind(obj: Object) -> list[FieldError]:
    return pods.pod_template(obj["template"], "template")


_label = _prefixed(label_errors)
_METADATA_TOO = {"status": ("metadata", "spec")}
_HOOKS = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

# Kinds that are not here have no particulars.
RULES: Mapping[tuple[str, str], Rules] = {
    ("", "Pod"): Rules(
        warnings=warnings.pod,
        generation=True,
        grace=True,
        create=core.create_pod,
        update={
            "": core.update_pod,
            "status": core.update_pod_status,
            "ephemeralcontainers": core.update_ephemeral_containers,
            "resize": core.resize_pod,
        },
        reset_fields={"status": ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences")},
        validate=(pods.pod,),
        validate_update=(pods.update_pod,),
    ),
    ("", "PodTemplate"): Rules(generation=True, validate=(_pod_template_kind,)),
    ("", "ReplicationController"): Rules(
        warnings=warnings.workload("spec", "template"), generation=True, validate=(workloads.replication_controller,)
    ),
    ("", "Service"): Rules(
        warnings=warnings.service,
        name_errors=_label,
        create_on_update=True,
        create=services.create_service,
        update={"": services.update_service},
        validate_status=(validation_services.service_status,),
        validate=(validation_services.service,),
        validate_update=(validation_services.update_service,),
    ),
    ("", "Secret"): Rules(
        decode=core.decode_secret,
        update={"": core.update_secret},
        validate=(validation_core.secret,),
        validate_update=(validation_core.update_secret,),
    ),
    ("", "Namespace"): Rules(
        name_errors=_label,
        create=core.create_namespace,
        update={"": core.update_namespace, "finalize": core.finalize_namespace},
        reset_fields={"finalize": ("status",)},
        validate_status=(validation_core.namespace_status,),
        validate=(validation_core.namespace,),
    ),
    ("", "PersistentVolume"): Rules(
        create=core.create_persistent_volume,
        update={"status": core.update_persistent_volume_status},
        validate=(volumes.persistent_volume,),
        validate_update=(volumes.update_persistent_volume,),
    ),
    ("", "PersistentVolumeClaim"): Rules(
        update={"": core.update_persistent_volume_claim},
        create=core.create_persistent_volume_claim,
        validate=(volumes.persistent_volume_claim,),
        validate_update=(volumes.update_claim,),
    ),
    ("", "Node"): Rules(
        decode=core.decode_node,
        keeps_status=True,
        create=core.create_node,
        validate=(validation_core.node,),
        validate_update=(validation_core.update_node,),
    ),
    ("", "LimitRange"): Rules(create_on_update=True, validate=(validation_core.limit_range,)),
    ("", "Endpoints"): Rules(create_on_update=True, validate=(validation_core.endpoints,)),
    ("", "Event"): Rules(name_errors=_any_segment, create_on_update=True, validate=(validation_core.core_event,)),
    ("events.k8s.io", "Event"): Rules(
        name_errors=_any_segment,
        create_on_update=True,
        validate=(validation_core.new_event,),
        validate_update=(validation_core.update_new_event,),
    ),
    ("apps", "Deployment"): Rules(
        warnings=warnings.workload("spec", "template"),
        generation=True,
        update={"": groups.update_deployment, "status": groups.update_deployment_status},
        reset_fields={"status": ("spec", "metadata.labels")},
        validate_status=(workloads.deployment_status,),
        validate=(workloads.deployment,),
        validate_update=(workloads.same_selector,),
    ),
    ("apps", "ReplicaSet"): Rules(
        warnings=warnings.workload("spec", "template"),
        generation=True,
        validate_status=(workloads.replica_set_status,),
        validate=(workloads.replica_set,),
        validate_update=(workloads.same_selector,),
    ),
    ("apps", "StatefulSet"): Rules(
        warnings=warnings.workload("spec", "template", named=False),
        generation=True,
        name_errors=_label,
        decode=groups.decode_stateful_set,
        validate=(workloads.stateful_set,),
        validate_update=(workloads.update_stateful_set,),
    ),
    ("apps", "DaemonSet"): Rules(
        warnings=warnings.workload("spec", "template", named=False),
        generation=True,
        decode=groups.decode_daemon_set,
        create=groups.create_daemon_set,
        update={"": groups.update_daemon_set},
        changes_first=True,
        validate=(workloads.daemon_set,),
        validate_update=(workloads.same_selector,),
    ),
    ("batch", "Job"): Rules(
        warnings=warnings.workload("spec", "template"),
        validate_new=(workloads.generated_selector,),
        generation=True,
        unconditional_update=False,
        create=groups.create_job,
        validate=(workloads.job,),
        validate_update=(workloads.update_job,),
    ),
    ("batch", "CronJob"): Rules(
        warnings=warnings.workload("spec", "jobTemplate", "spec", "template"),
        generation=True,
        unconditional_update=False,
        name_errors=_prefixed(_cron_job_name),
        validate=(workloads.cron_job,),
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Rules(generation=True, validate=(validation_groups.autoscaler,)),
    ("networking.k8s.io", "Ingress"): Rules(
        generation=True, create=core.create_ingress, validate=(networking.ingress,)
    ),
    ("networking.k8s.io", "IngressClass"): Rules(
        generation=True,
        changes_first=True,
        validate=(networking.ingress_class, networking.controller_named),
        validate_update=(networking.update_ingress_class,),
    ),
    ("networking.k8s.io", "NetworkPolicy"): Rules(generation=True, validate=(networking.network_policy,)),
    ("networking.k8s.io", "IPAddress"): Rules(
        name_errors=networking.ip_address_name,
        validate=(networking.ip_address,),
        validate_update=(networking.update_ip_address,),
    ),
    ("networking.k8s.io", "ServiceCIDR"): Rules(
        status_keeps_metadata=True,
        reset_fields=_METADATA_TOO,
        validate_new=(networking.service_cidr,),
        validate_update=(networking.update_service_cidr,),
    ),
    ("policy", "PodDisruptionBudget"): Rules(
        generation=True, unconditional_update=False, validate=(validation_groups.pod_disruption_budget,)
    ),
    ("coordination.k8s.io", "Lease"): Rules(
        unconditional_update=False, create_on_update=True, validate=(validation_groups.lease,)
    ),
    ("discovery.k8s.io", "EndpointSlice"): Rules(
        generation=True,
        update={"": groups.update_endpoint_slice},
        validate=(networking.endpoint_slice,),
        validate_update=(networking.update_endpoint_slice,),
    ),
    ("scheduling.k8s.io", "PriorityClass"): Rules(
        create=groups.create_priority_class,
        validate=(validation_groups.priority_class,),
        validate_update=(validation_groups.update_priority_class,),
    ),
    ("node.k8s.io", "RuntimeClass"): Rules(
        unconditional_update=False,
        create_on_update=True,
        validate=(validation_groups.runtime_class,),
        validate_update=(validation_groups.update_runtime_class,),
    ),
    ("storage.k8s.io", "CSIDriver"): Rules(
        warnings=warnings.csi_driver,
        unconditional_update=False,
        update={"": groups.update_csi_driver},
        validate=(storage.csi_driver,),
        validate_update=(storage.update_csi_driver,),
    ),
    ("storage.k8s.io", "CSINode"): Rules(
        unconditional_update=False,
        status_keeps_metadata=True,
        reset_fields=_METADATA_TOO,
        validate=(storage.csi_node,),
        validate_update=(storage.update_csi_node,),
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): Rules(
        unconditional_update=False,
        validate=(storage.csi_storage_capacity,),
        validate_update=(storage.update_csi_storage_capacity,),
    ),
    ("storage.k8s.io", "VolumeAttachment"): Rules(
        unconditional_update=False,
        status_keeps_metadata=True,
        reset_fields=_METADATA_TOO,
        validate=(storage.volume_attachment,),
        validate_update=(storage.update_volume_attachment,),
        validate_status=(storage.volume_attachment_status,),
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): Rules(
        create=groups.protect_attributes_class,
        validate=(storage.volume_attributes_class,),
        validate_update=(storage.update_volume_attributes_class,),
    ),
    ("storagemigration.k8s.io", "StorageVersionMigration"): Rules(
        unconditional_update=False,
        status_keeps_metadata=True,
        reset_fields=_METADATA_TOO,
        validate=(certificates.migration,),
        validate_update=(certificates.update_migration,),
        validate_status=(certificates.statuses,),
    ),
    (_RBAC, "Role"): Rules(
        name_errors=_any_segment,
        create_on_update=True,
        validate=(validation_groups.role,),
    ),
    (_RBAC, "ClusterRole"): Rules(
        name_errors=_any_segment,
        create_on_update=True,
        validate=(validation_groups.cluster_role,),
    ),
    (_RBAC, "RoleBinding"): Rules(
        name_errors=_any_segment,
        create_on_update=True,
        validate=(validation_groups.role_binding,),
        validate_update=(validation_groups.update_binding,),
    ),
    (_RBAC, "ClusterRoleBinding"): Rules(
        name_errors=_any_segment,
        create_on_update=True,
        validate=(validation_groups.cluster_role_binding,),
        validate_update=(validation_groups.update_binding,),
    ),
    (_HOOKS, "ValidatingWebhookConfiguration"): Rules(
        generation=True, unconditional_update=False, validate=(hooks.validating_webhooks,)
    ),
    (_HOOKS, "MutatingWebhookConfiguration"): Rules(
        generation=True, unconditional_update=False, validate=(hooks.mutating_webhooks,)
    ),
    (_HOOKS, "ValidatingAdmissionPolicy"): Rules(
        generation=True,
        unconditional_update=False,
        status_keeps_metadata=True,
        reset_fields=_METADATA_TOO,
        validate=(policies.validating_policy,),
    ),
    (_HOOKS, "ValidatingAdmissionPolicyBinding"): Rules(
        generation=True, unconditional_update=False, validate=(policies.validating_binding,)
    ),
    (_HOOKS, "MutatingAdmissionPolicy"): Rules(
        generation=True, unconditional_update=False, validate=(policies.mutating_policy,)
    ),
    (_HOOKS, "MutatingAdmissionPolicyBinding"): Rules(
        generation=True, unconditional_update=False, validate=(policies.mutating_binding,)
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Rules(generation=True, unconditional_update=False),
    ("certificates.k8s.io", "CertificateSigningRequest"): Rules(
        name_errors=_any_segment,
        update={
            "": groups.freeze_spec,
            "status": groups.update_request_status,
            "approval": groups.update_approval,
        },
        validate_status=(certificates.request_status, certificates.update_request_status),
        reset_fields={
            "": ("spec", "status"),
            "status": ("spec", "status.conditions"),
            "approval": ("spec", "status.certificate"),
        },
        validate=(certificates.request,),
    ),
    ("certificates.k8s.io", "ClusterTrustBundle"): Rules(
        unconditional_update=False,
        name_errors=_any_segment,
        validate=(certificates.trust_bundle,),
        validate_new=(certificates.trust_anchors,),
        validate_update=(certificates.update_trust_bundle,),
    ),
    ("certificates.k8s.io", "PodCertificateRequest"): Rules(
        unconditional_update=False,
        validate=(certificates.pod_certificate,),
        validate_update=(certificates.update_pod_certificate,),
        validate_status=(certificates.statuses,),
    ),
    ("apiregistration.k8s.io", "APIService"): Rules(
        name_errors=_any_segment,
        unconditional_update=False,
        validate=(certificates.api_service,),
        validate_status=(certificates.statuses,),
    ),
    (_FLOW, "FlowSchema"): Rules(
        generation=True, status_keeps_metadata=True, reset_fields=_METADATA_TOO, validate=(flow.flow_schema,)
    ),
    (_FLOW, "PriorityLevelConfiguration"): Rules(
        generation=True, status_keeps_metadata=True, reset_fields=_METADATA_TOO, validate=(flow.priority_level,)
    ),
    ("", "ConfigMap"): Rules(
        validate=(validation_core.config_map,), validate_update=(validation_core.update_config_map,)
    ),
    ("", "ResourceQuota"): Rules(validate=(validation_core.resource_quota,)),
    ("apps", "ControllerRevision"): Rules(
        validate=(validation_core.controller_revision,), validate_update=(validation_core.update_controller_revision,)
    ),
    ("storage.k8s.io", "StorageClass"): Rules(
        validate=(validation_groups.storage_class, storage.topologies),
        validate_update=(validation_groups.update_storage_class,),
    ),
}
