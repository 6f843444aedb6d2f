"""The particulars of the core kinds, workloads and events: one table. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kopylite.apiserver.builtin import preparation_core as core
from kopylite.apiserver.builtin import preparation_groups as groups
from kopylite.apiserver.builtin import services, validation_core, validation_services, warnings
from kopylite.apiserver.builtin import validation_claims as claims
from kopylite.apiserver.builtin import validation_events as events
from kopylite.apiserver.builtin import validation_jobs as jobs
from kopylite.apiserver.builtin import validation_pods as pods
from kopylite.apiserver.builtin import validation_resources as resources
from kopylite.apiserver.builtin import validation_volumes as volumes
from kopylite.apiserver.builtin import validation_workloads as workloads
from kopylite.apiserver.builtin.rules import CRON_JOB, LABEL, KindRules, any_segment
from kopylite.apiserver.schema.field_errors import FieldError


def _pod_template_kind(obj: dict[str, Any]) -> list[FieldError]:
    return pods.pod_template(obj["template"], "template")


# Kinds that are in neither table have no particulars.
CORE_RULES: Mapping[tuple[str, str], KindRules] = {
    ("", "Pod"): KindRules(
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
        validate_new=(pods.new_pod,),
        validate_update=(pods.update_pod,),
    ),
    ("", "PodTemplate"): KindRules(generation=True, validate=(_pod_template_kind,)),
    ("", "ReplicationController"): KindRules(
        warnings=warnings.workload("spec", "template"), generation=True, validate=(workloads.replication_controller,)
    ),
    ("", "Service"): KindRules(
        warnings=warnings.service,
        name_errors=LABEL,
        create_on_update=True,
        create=services.create_service,
        update={"": services.update_service},
        validate_status=(validation_services.service_status,),
        validate=(validation_services.service,),
        validate_there=(validation_services.allocated,),
        validate_update=(validation_services.update_service,),
    ),
    ("", "Secret"): KindRules(
        decode=core.decode_secret,
        update={"": core.update_secret},
        validate=(validation_core.secret,),
        validate_update=(validation_core.update_secret,),
    ),
    ("", "Namespace"): KindRules(
        name_errors=LABEL,
        create=core.create_namespace,
        update={"": core.update_namespace, "finalize": core.finalize_namespace},
        reset_fields={"finalize": ("status",)},
        validate_status=(validation_core.namespace_status,),
        validate=(validation_core.namespace,),
    ),
    ("", "PersistentVolume"): KindRules(
        create=core.create_persistent_volume,
        update={"status": core.update_persistent_volume_status},
        validate=(volumes.persistent_volume,),
        validate_update=(volumes.update_persistent_volume,),
    ),
    ("", "PersistentVolumeClaim"): KindRules(
        update={"": core.update_persistent_volume_claim},
        create=core.create_persistent_volume_claim,
        validate=(claims.persistent_volume_claim,),
        validate_update=(claims.update_claim,),
    ),
    ("", "Node"): KindRules(
        warnings=warnings.node,
        decode=core.decode_node,
        keeps_status=True,
        create=core.create_node,
        validate=(validation_core.node,),
        validate_update=(validation_core.update_node,),
    ),
    ("", "ServiceAccount"): KindRules(create=core.create_service_account, update={"": core.update_service_account}),
    ("", "LimitRange"): KindRules(create_on_update=True, validate=(resources.limit_range,)),
    ("", "Endpoints"): KindRules(create_on_update=True, validate=(validation_core.endpoints,)),
    ("", "Event"): KindRules(name_errors=any_segment, create_on_update=True, validate=(events.core_event,)),
    ("events.k8s.io", "Event"): KindRules(
        name_errors=any_segment,
        create_on_update=True,
        validate_new=(events.new_event,),
        validate_update=(events.update_event,),
    ),
    ("apps", "Deployment"): KindRules(
        warnings=warnings.workload("spec", "template"),
        generation=True,
        update={"": groups.update_deployment, "status": groups.update_deployment_status},
        reset_fields={"status": ("spec", "metadata.labels")},
        validate_status=(workloads.deployment_status,),
        validate=(workloads.deployment,),
        validate_update=(workloads.same_selector,),
    ),
    ("apps", "ReplicaSet"): KindRules(
        warnings=warnings.workload("spec", "template"),
        generation=True,
        validate_status=(workloads.replica_set_status,),
        validate=(workloads.replica_set,),
        validate_update=(workloads.same_selector,),
    ),
    ("apps", "StatefulSet"): KindRules(
        warnings=warnings.workload("spec", "template", named=False),
        generation=True,
        name_errors=LABEL,
        decode=groups.decode_stateful_set,
        validate_new=(workloads.new_stateful_set,),
        validate=(workloads.stateful_set,),
        validate_update=(workloads.update_stateful_set,),
    ),
    ("apps", "DaemonSet"): KindRules(
        warnings=warnings.workload("spec", "template", named=False),
        generation=True,
        decode=groups.decode_daemon_set,
        create=groups.create_daemon_set,
        update={"": groups.update_daemon_set},
        changes_first=True,
        validate=(workloads.daemon_set,),
        validate_update=(workloads.same_selector,),
    ),
    ("batch", "Job"): KindRules(
        warnings=warnings.workload("spec", "template"),
        validate_new=(jobs.generated_selector,),
        generation=True,
        create=groups.create_job,
        validate=(jobs.job,),
        validate_update=(jobs.update_job,),
    ),
    ("batch", "CronJob"): KindRules(
        warnings=warnings.workload("spec", "jobTemplate", "spec", "template"),
        generation=True,
        name_errors=CRON_JOB,
        validate=(jobs.cron_job,),
    ),
    ("", "ConfigMap"): KindRules(
        validate=(validation_core.config_map,), validate_update=(validation_core.update_config_map,)
    ),
    ("", "ResourceQuota"): KindRules(
        validate=(resources.resource_quota,), validate_update=(resources.update_resource_quota,)
    ),
    ("apps", "ControllerRevision"): KindRules(
        validate=(validation_core.controller_revision,), validate_update=(validation_core.update_controller_revision,)
    ),
}
