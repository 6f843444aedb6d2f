"""Fields that belong to features which a default server has switched off: it drops them. Pure data, by type."""

from __future__ import annotations

from collections.abc import Mapping

GATED: Mapping[str, tuple[str, ...]] = {
    "batch.v1.JobSpec": ("scheduling",),
    "core.v1.KeyToPath": ("user",),
    "core.v1.SecretVolumeSource": ("defaultUser",),
    "core.v1.ConfigMapVolumeSource": ("defaultUser",),
    "core.v1.DownwardAPIVolumeSource": ("defaultUser",),
    "core.v1.DownwardAPIVolumeFile": ("user",),
    "core.v1.ProjectedVolumeSource": ("defaultUser",),
    "core.v1.ServiceAccountTokenProjection": ("user",),
    "core.v1.ClusterTrustBundleProjection": ("user",),
    "core.v1.PodCertificateProjection": ("user",),
    "core.v1.EmptyDirVolumeSource": ("mode",),
    "core.v1.HTTPGetAction": ("protocol",),
    "core.v1.GRPCAction": ("mode",),
    "core.v1.VolumeMount": ("bindMountOptions",),
    "core.v1.Lifecycle": ("stopSignal",),
    "core.v1.PodSpec": ("evictionResponders", "schedulingGroup"),
    "discovery.v1.Endpoint": ("deprecatedTopology",),
    "resource.v1.Device": ("nodeAllocatableResources",),
    "resource.v1.DeviceAttribute": ("bools", "ints", "strings", "versions"),
    "resource.v1.DeviceCounterConsumption": ("compatibilityGroups",),
    "resource.v1.DeviceRequestAllocationResult": ("skipNodeOperations",),
    "resource.v1.DeviceSubRequest": ("derivedAttributes",),
    "resource.v1.ExactDeviceRequest": ("derivedAttributes",),
    "storage.v1.CSINodeStatus": ("storageHealth",),
    "resource.v1.ResourceSliceSpec": ("partitionTypeAttribute", "skipNodeOperations"),
}
