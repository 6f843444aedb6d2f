"""DECLARE: CustomResourceDefinitions from CustomResource classes, and what a new version means for stored objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopylite.crds.crd import crd_of, crds_of
    from kopylite.crds.schema import SchemaWarning
else:
    from kopylite.lazily import found_in

    __getattr__ = found_in(
        __name__,
        {
            "kopylite.crds.crd": "crd_of crds_of",
            "kopylite.crds.schema": "SchemaWarning",
        },
    )

__all__ = ["SchemaWarning", "crd_of", "crds_of"]
