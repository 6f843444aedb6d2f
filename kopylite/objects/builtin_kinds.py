"""The kinds that Kubernetes itself serves: plural and scope, so that no server need be asked for them.

From the discovery documents of kube-apiserver 1.37.2 with every API version enabled. A kind keeps plural and
scope in all its versions and for ever, so older and newer servers agree with this table; whether a server
serves a kind at all is not said here.
"""

from __future__ import annotations

from functools import cache

from kopylite.objects.kinds import Kind

# Kind:plural of the namespaced kinds, by apiVersion.
_NAMESPACED = {
    "v1": (
        "Binding:bindings ConfigMap:configmaps Endpoints:endpoints Event:events LimitRange:limitranges "
        "PersistentVolumeClaim:persistentvolumeclaims Pod:pods PodTemplate:podtemplates "
        "ReplicationController:replicationcontrollers ResourceQuota:resourcequotas Secret:secrets Service:services "
        "ServiceAccount:serviceaccounts"
    ),
    "apps/v1": (
        "ControllerRevision:controllerrevisions DaemonSet:daemonsets Deployment:deployments ReplicaSet:replicasets "
        "StatefulSet:statefulsets"
    ),
    "authorization.k8s.io/v1": "LocalSubjectAccessReview:localsubjectaccessreviews",
    "autoscaling/v1": "HorizontalPodAutoscaler:horizontalpodautoscalers",
    "autoscaling/v2": "HorizontalPodAutoscaler:horizontalpodautoscalers",
    "batch/v1": "CronJob:cronjobs Job:jobs",
    "certificates.k8s.io/v1": "PodCertificateRequest:podcertificaterequests",
    "certificates.k8s.io/v1beta1": "PodCertificateRequest:podcertificaterequests",
    "coordination.k8s.io/v1": "Lease:leases",
    "coordination.k8s.io/v1alpha2": "LeaseCandidate:leasecandidates",
    "coordination.k8s.io/v1beta1": "LeaseCandidate:leasecandidates",
    "discovery.k8s.io/v1": "EndpointSlice:endpointslices",
    "events.k8s.io/v1": "Event:events",
    "lifecycle.k8s.io/v1alpha1": "Eviction:evictions EvictionRequest:evictionrequests",
    "networking.k8s.io/v1": "Ingress:ingresses NetworkPolicy:networkpolicies",
    "policy/v1": "PodDisruptionBudget:poddisruptionbudgets",
    "rbac.authorization.k8s.io/v1": "Role:roles RoleBinding:rolebindings",
    "resource.k8s.io/v1": "ResourceClaim:resourceclaims ResourceClaimTemplate:resourceclaimtemplates",
    "resource.k8s.io/v1beta1": "ResourceClaim:resourceclaims ResourceClaimTemplate:resourceclaimtemplates",
    "resource.k8s.io/v1beta2": "ResourceClaim:resourceclaims ResourceClaimTemplate:resourceclaimtemplates",
    "scheduling.k8s.io/v1alpha3": "CompositePodGroup:compositepodgroups PodGroup:podgroups Workload:workloads",
    "scheduling.k8s.io/v1beta1": "PodGroup:podgroups Workload:workloads",
    "storage.k8s.io/v1": "CSIStorageCapacity:csistoragecapacities",
}

# The same of the cluster-scoped kinds.
_CLUSTER = {
    "v1": "ComponentStatus:componentstatuses Namespace:namespaces Node:nodes PersistentVolume:persistentvolumes",
    "admissionregistration.k8s.io/v1": (
        "MutatingAdmissionPolicy:mutatingadmissionpolicies "
        "MutatingAdmissionPolicyBinding:mutatingadmissionpolicybindings "
        "MutatingWebhookConfiguration:mutatingwebhookconfigurations "
        "ValidatingAdmissionPolicy:validatingadmissionpolicies "
        "ValidatingAdmissionPolicyBinding:validatingadmissionpolicybindings "
        "ValidatingWebhookConfiguration:validatingwebhookconfigurations"
    ),
    "admissionregistration.k8s.io/v1alpha1": (
        "MutatingAdmissionPolicy:mutatingadmissionpolicies "
        "MutatingAdmissionPolicyBinding:mutatingadmissionpolicybindings"
    ),
    "admissionregistration.k8s.io/v1beta1": (
        "MutatingAdmissionPolicy:mutatingadmissionpolicies "
        "MutatingAdmissionPolicyBinding:mutatingadmissionpolicybindings"
    ),
    "apiextensions.k8s.io/v1": "CustomResourceDefinition:customresourcedefinitions",
    "apiregistration.k8s.io/v1": "APIService:apiservices",
    "authentication.k8s.io/v1": "SelfSubjectReview:selfsubjectreviews TokenReview:tokenreviews",
    "authorization.k8s.io/v1": (
        "SelfSubjectAccessReview:selfsubjectaccessreviews SelfSubjectRulesReview:selfsubjectrulesreviews "
        "SubjectAccessReview:subjectaccessreviews"
    ),
    "certificates.k8s.io/v1": (
        "CertificateSigningRequest:certificatesigningrequests ClusterTrustBundle:clustertrustbundles"
    ),
    "certificates.k8s.io/v1beta1": "ClusterTrustBundle:clustertrustbundles",
    "flowcontrol.apiserver.k8s.io/v1": "FlowSchema:flowschemas PriorityLevelConfiguration:prioritylevelconfigurations",
    "internal.apiserver.k8s.io/v1alpha1": "StorageVersion:storageversions",
    "networking.k8s.io/v1": "IPAddress:ipaddresses IngressClass:ingressclasses ServiceCIDR:servicecidrs",
    "node.k8s.io/v1": "RuntimeClass:runtimeclasses",
    "rbac.authorization.k8s.io/v1": "ClusterRole:clusterroles ClusterRoleBinding:clusterrolebindings",
    "resource.k8s.io/v1": "DeviceClass:deviceclasses DeviceTaintRule:devicetaintrules ResourceSlice:resourceslices",
    "resource.k8s.io/v1alpha3": "DeviceTaintRule:devicetaintrules ResourcePoolStatusRequest:resourcepoolstatusrequests",
    "resource.k8s.io/v1beta1": "DeviceClass:deviceclasses ResourceSlice:resourceslices",
    "resource.k8s.io/v1beta2": (
        "DeviceClass:deviceclasses DeviceTaintRule:devicetaintrules ResourceSlice:resourceslices"
    ),
    "scheduling.k8s.io/v1": "PriorityClass:priorityclasses",
    "storage.k8s.io/v1": (
        "CSIDriver:csidrivers CSINode:csinodes StorageClass:storageclasses VolumeAttachment:volumeattachments "
        "VolumeAttributesClass:volumeattributesclasses"
    ),
    "storagemigration.k8s.io/v1": "StorageVersionMigration:storageversionmigrations",
    "storagemigration.k8s.io/v1beta1": "StorageVersionMigration:storageversionmigrations",
}


@cache
def _table() -> dict[tuple[str, str], Kind]:
    table = {}
    for rows, namespaced in ((_NAMESPACED, True), (_CLUSTER, False)):
        for api_version, row in rows.items():
            for entry in row.split():
                kind, _, plural = entry.partition(":")
                table[api_version, kind] = Kind(api_version, kind, plural, namespaced)
    return table


def builtin_kinds() -> tuple[Kind, ...]:
    """Every built-in kind, in every version."""
    return tuple(_table().values())


def builtin_kind(api_version: str, kind: str) -> Kind | None:
    """A built-in kind with plural and scope, or None: ask the server."""
    return _table().get((api_version, kind))


def complete(kind: Kind) -> Kind:
    """The kind with plural and scope filled in where they are known and not given."""
    if kind.plural is not None and kind.namespaced is not None:
        return kind
    known = builtin_kind(kind.api_version, kind.kind)
    if known is None:
        return kind
    if kind.plural is None and kind.namespaced is None:
        return known
    return Kind(
        kind.api_version,
        kind.kind,
        known.plural if kind.plural is None else kind.plural,
        known.namespaced if kind.namespaced is None else kind.namespaced,
    )
