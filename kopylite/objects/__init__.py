"""SAY: what an object is called, what it holds, and how it looks on the wire."""

from __future__ import annotations

from kopylite.objects.kinds import GroupKind, Kind
from kopylite.objects.meta import HasKey, ObjectKey, OwnerReference, compare_versions

__all__ = ["GroupKind", "HasKey", "Kind", "ObjectKey", "OwnerReference", "compare_versions"]
