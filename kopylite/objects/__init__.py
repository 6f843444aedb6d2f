"""SAY: what an object is called, what it holds, and how it looks on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kopylite.objects.builtin_kinds import builtin_kind, builtin_kinds

if TYPE_CHECKING:
    from kopylite.objects.adapters import (
        Adapter,
        KindLike,
        adapter_like,
        adapter_of,
        identity_of,
        key_of,
        kind_of,
        meta_of,
        named_key,
        wire_of,
    )
    from kopylite.objects.apimodel import ApiModel, ObjectMeta, OwnerRef
    from kopylite.objects.condition import Condition
    from kopylite.objects.kinds import GroupKind, Kind
    from kopylite.objects.labelselector import LabelSelector, LabelSelectorRequirement
    from kopylite.objects.marks import (
        Mark,
        Rule,
        embedded_resource,
        immutable,
        int_or_string,
        list_atomic,
        list_map,
        list_set,
        map_atomic,
        preserve_unknown,
    )
    from kopylite.objects.meta import HasKey, ObjectKey, OwnerReference, compare_versions
    from kopylite.objects.modelcodec import to_wire
    from kopylite.objects.owners import (
        controller_of,
        has_controller_reference,
        has_owner_reference,
        owner_reference,
        remove_owner_reference,
        set_controller_reference,
        set_owner,
        set_owner_reference,
    )
    from kopylite.objects.quantity import Quantity
    from kopylite.objects.references import (
        Conditions,
        Int32,
        IntOrString,
        KeySelector,
        LocalObjectReference,
        ObjectReference,
        ResourceRequirements,
        Toleration,
        TypedLocalObjectReference,
    )
    from kopylite.objects.resource import CustomResource, Declaration, PrinterColumn, Scale
    from kopylite.objects.shard import Shard
    from kopylite.objects.times import Duration, MicroTime, Time
    from kopylite.objects.unstructured import Unstructured, read_owner_references
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.objects.adapters": (
                "Adapter KindLike adapter_like adapter_of identity_of key_of kind_of meta_of named_key wire_of"
            ),
            "kopylite.objects.apimodel": "ApiModel ObjectMeta OwnerRef",
            "kopylite.objects.condition": "Condition",
            "kopylite.objects.kinds": "GroupKind Kind",
            "kopylite.objects.labelselector": "LabelSelector LabelSelectorRequirement",
            "kopylite.objects.marks": (
                "Mark Rule embedded_resource immutable int_or_string list_atomic list_map list_set map_atomic "
                "preserve_unknown"
            ),
            "kopylite.objects.meta": "HasKey ObjectKey OwnerReference compare_versions",
            "kopylite.objects.modelcodec": "to_wire",
            "kopylite.objects.owners": (
                "controller_of has_controller_reference has_owner_reference owner_reference "
                "remove_owner_reference set_controller_reference set_owner set_owner_reference"
            ),
            "kopylite.objects.quantity": "Quantity",
            "kopylite.objects.references": (
                "Conditions Int32 IntOrString KeySelector LocalObjectReference ObjectReference "
                "ResourceRequirements Toleration TypedLocalObjectReference"
            ),
            "kopylite.objects.resource": "CustomResource Declaration PrinterColumn Scale",
            "kopylite.objects.shard": "Shard",
            "kopylite.objects.times": "Duration MicroTime Time",
            "kopylite.objects.unstructured": "Unstructured read_owner_references",
        },
    )

__all__ = [
    "Adapter",
    "ApiModel",
    "Condition",
    "Conditions",
    "CustomResource",
    "Declaration",
    "Duration",
    "GroupKind",
    "HasKey",
    "Int32",
    "IntOrString",
    "KeySelector",
    "Kind",
    "KindLike",
    "LabelSelector",
    "LabelSelectorRequirement",
    "LocalObjectReference",
    "Mark",
    "MicroTime",
    "ObjectKey",
    "ObjectMeta",
    "ObjectReference",
    "OwnerRef",
    "OwnerReference",
    "PrinterColumn",
    "Quantity",
    "ResourceRequirements",
    "Rule",
    "Scale",
    "Shard",
    "Time",
    "Toleration",
    "TypedLocalObjectReference",
    "Unstructured",
    "adapter_like",
    "adapter_of",
    "builtin_kind",
    "builtin_kinds",
    "compare_versions",
    "controller_of",
    "embedded_resource",
    "has_controller_reference",
    "has_owner_reference",
    "identity_of",
    "immutable",
    "int_or_string",
    "key_of",
    "kind_of",
    "list_atomic",
    "list_map",
    "list_set",
    "map_atomic",
    "meta_of",
    "named_key",
    "owner_reference",
    "preserve_unknown",
    "read_owner_references",
    "remove_owner_reference",
    "set_controller_reference",
    "set_owner",
    "set_owner_reference",
    "to_wire",
    "wire_of",
]
