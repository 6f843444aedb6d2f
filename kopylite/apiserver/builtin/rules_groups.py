"""The particulars of the kinds of all other groups: one table. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kopylite.apiserver.builtin import preparation_core as core
from kopylite.apiserver.builtin import preparation_groups as groups
from kopylite.apiserver.builtin import validation_certificates as certificates
from kopylite.apiserver.builtin import validation_devices as devices
from kopylite.apiserver.builtin import validation_flow as flow
from kopylite.apiserver.builtin import validation_groups, warnings
from kopylite.apiserver.builtin import validation_hooks as hooks
from kopylite.apiserver.builtin import validation_networking as networking
from kopylite.apiserver.builtin import validation_policies as policies
from kopylite.apiserver.builtin import validation_slices as slices
from kopylite.apiserver.builtin import validation_storage as storage
from kopylite.apiserver.builtin.conversion import note_current_metrics
from kopylite.apiserver.builtin.rules import METADATA_TOO, KindRules, any_segment

_HOOKS = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_DEVICES = "resource.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

# Kinds that are in neither table have no particulars.
GROUP_RULES: Mapping[tuple[str, str], KindRules] = {
    ("autoscaling", "HorizontalPodAutoscaler"): KindRules(
        generation=True,
        decode=note_current_metrics,
        update={"": lambda obj, old, context: note_current_metrics(obj)},  # the status is the old one now
        validate=(validation_groups.autoscaler,),
    ),
    ("networking.k8s.io", "Ingress"): KindRules(
        generation=True, create=core.create_ingress, validate=(networking.ingress,)
    ),
    ("networking.k8s.io", "IngressClass"): KindRules(
        generation=True,
        changes_first=True,
        validate=(networking.ingress_class, networking.controller_named),
        validate_update=(networking.update_ingress_class,),
    ),
    ("networking.k8s.io", "NetworkPolicy"): KindRules(
        generation=True, counts_empties="spec", validate=(networking.network_policy,)
    ),
    ("networking.k8s.io", "IPAddress"): KindRules(
        name_errors=networking.ip_address_name,
        validate=(networking.ip_address,),
        validate_update=(networking.update_ip_address,),
    ),
    ("networking.k8s.io", "ServiceCIDR"): KindRules(
        status_keeps_metadata=True,
        reset_fields=METADATA_TOO,
        validate_new=(networking.service_cidr,),
        validate_update=(networking.update_service_cidr,),
    ),
    ("policy", "PodDisruptionBudget"): KindRules(
        generation=True,
        unconditional_update=False,
        name_errors=any_segment,
        validate=(validation_groups.pod_disruption_budget,),
        validate_status=(certificates.statuses,),
    ),
    ("coordination.k8s.io", "Lease"): KindRules(
        decode=groups.decode_lease,
        unconditional_update=False,
        create_on_update=True,
        validate=(validation_groups.lease,),
    ),
    ("discovery.k8s.io", "EndpointSlice"): KindRules(
        generation=True,
        update={"": groups.update_endpoint_slice},
        validate=(networking.endpoint_slice,),
        validate_update=(networking.update_endpoint_slice,),
    ),
    ("scheduling.k8s.io", "PriorityClass"): KindRules(
        create=groups.create_priority_class,
        validate_new=(validation_groups.new_priority_class,),
        validate=(validation_groups.priority_class,),
        validate_update=(validation_groups.update_priority_class,),
    ),
    ("node.k8s.io", "RuntimeClass"): KindRules(
        unconditional_update=False,
        create_on_update=True,
        changes_first=True,
        validate=(validation_groups.runtime_class,),
        validate_update=(validation_groups.update_runtime_class,),
    ),
    (_DEVICES, "DeviceClass"): KindRules(generation=True, validate=(devices.device_class,)),
    (_DEVICES, "DeviceTaintRule"): KindRules(
        generation=True,
        unconditional_update=False,
        create=groups.create_taint_rule,
        validate=(devices.taint_rule,),
        validate_status=(certificates.statuses,),
    ),
    (_DEVICES, "ResourceClaim"): KindRules(
        validate_new=(devices.claim,),
        validate_there=(devices.admin_access("spec"),),
        validate_update=(devices.update_claim,),
    ),
    (_DEVICES, "ResourceClaimTemplate"): KindRules(
        validate=(devices.claim_template,),
        validate_there=(devices.admin_access("spec", "spec"),),
        validate_update=(devices.update_claim_template,),
    ),
    (_DEVICES, "ResourceSlice"): KindRules(
        generation=True,
        create=groups.create_resource_slice,
        validate=(slices.resource_slice,),
        validate_update=(slices.update_resource_slice,),
    ),
    ("storage.k8s.io", "CSIDriver"): KindRules(
        warnings=warnings.csi_driver,
        unconditional_update=False,
        update={"": groups.update_csi_driver},
        validate=(storage.csi_driver,),
        validate_update=(storage.update_csi_driver,),
    ),
    ("storage.k8s.io", "CSINode"): KindRules(
        unconditional_update=False,
        status_keeps_metadata=True,
        reset_fields=METADATA_TOO,
        validate=(storage.csi_node,),
        validate_update=(storage.update_csi_node,),
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): KindRules(
        unconditional_update=False,
        validate=(storage.csi_storage_capacity,),
        validate_update=(storage.update_csi_storage_capacity,),
    ),
    ("storage.k8s.io", "VolumeAttachment"): KindRules(
        unconditional_update=False,
        status_keeps_metadata=True,
        reset_fields=METADATA_TOO,
        validate=(storage.volume_attachment,),
        validate_update=(storage.update_volume_attachment,),
        validate_status=(storage.volume_attachment_status,),
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): KindRules(
        create=groups.protect_attributes_class,
        changes_first=True,
        validate=(storage.volume_attributes_class,),
        validate_update=(storage.update_volume_attributes_class,),
    ),
    ("storagemigration.k8s.io", "StorageVersionMigration"): KindRules(
        unconditional_update=False,
        status_keeps_metadata=True,
        reset_fields=METADATA_TOO,
        validate=(certificates.migration,),
        validate_update=(certificates.update_migration,),
        validate_status=(certificates.statuses,),
    ),
    (_RBAC, "Role"): KindRules(
        name_errors=any_segment,
        create_on_update=True,
        validate=(validation_groups.role,),
    ),
    (_RBAC, "ClusterRole"): KindRules(
        name_errors=any_segment,
        create_on_update=True,
        validate=(validation_groups.cluster_role,),
    ),
    (_RBAC, "RoleBinding"): KindRules(
        name_errors=any_segment,
        create_on_update=True,
        validate=(validation_groups.role_binding,),
        validate_update=(validation_groups.update_binding,),
    ),
    (_RBAC, "ClusterRoleBinding"): KindRules(
        name_errors=any_segment,
        create_on_update=True,
        validate=(validation_groups.cluster_role_binding,),
        validate_update=(validation_groups.update_binding,),
    ),
    (_HOOKS, "ValidatingWebhookConfiguration"): KindRules(
        counts_empties="webhooks", generation=True, unconditional_update=False, validate=(hooks.validating_webhooks,)
    ),
    (_HOOKS, "MutatingWebhookConfiguration"): KindRules(
        counts_empties="webhooks", generation=True, unconditional_update=False, validate=(hooks.mutating_webhooks,)
    ),
    (_HOOKS, "ValidatingAdmissionPolicy"): KindRules(
        generation=True,
        unconditional_update=False,
        status_keeps_metadata=True,
        reset_fields=METADATA_TOO,
        validate=(policies.validating_policy,),
    ),
    (_HOOKS, "ValidatingAdmissionPolicyBinding"): KindRules(
        generation=True, unconditional_update=False, validate=(policies.validating_binding,)
    ),
    (_HOOKS, "MutatingAdmissionPolicy"): KindRules(
        generation=True, unconditional_update=False, validate=(policies.mutating_policy,)
    ),
    (_HOOKS, "MutatingAdmissionPolicyBinding"): KindRules(
        generation=True, unconditional_update=False, validate=(policies.mutating_binding,)
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): KindRules(generation=True, unconditional_update=False),
    ("certificates.k8s.io", "CertificateSigningRequest"): KindRules(
        name_errors=any_segment,
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
    ("certificates.k8s.io", "ClusterTrustBundle"): KindRules(
        unconditional_update=False,
        name_errors=any_segment,
        validate=(certificates.trust_bundle,),
        validate_new=(certificates.trust_anchors,),
        validate_update=(certificates.update_trust_bundle,),
    ),
    ("certificates.k8s.io", "PodCertificateRequest"): KindRules(
        unconditional_update=False,
        validate_new=(certificates.pod_certificate,),
        validate_update=(certificates.update_pod_certificate,),
        validate_status=(certificates.statuses,),
    ),
    ("apiregistration.k8s.io", "APIService"): KindRules(
        name_errors=any_segment,
        unconditional_update=False,
        validate=(certificates.api_service,),
        validate_status=(certificates.statuses,),
    ),
    (_FLOW, "FlowSchema"): KindRules(
        generation=True, status_keeps_metadata=True, reset_fields=METADATA_TOO, validate=(flow.flow_schema,)
    ),
    (_FLOW, "PriorityLevelConfiguration"): KindRules(
        generation=True, status_keeps_metadata=True, reset_fields=METADATA_TOO, validate=(flow.priority_level,)
    ),
    ("storage.k8s.io", "StorageClass"): KindRules(
        validate=(validation_groups.storage_class, storage.topologies),
        validate_update=(validation_groups.update_storage_class,),
    ),
}
