"""DECLARE: CustomResourceDefinitions from CustomResource classes, and what a new version means for stored objects."""

from __future__ import annotations

from kopylite.crds.crd import crd_of, crds_of
from kopylite.crds.schema import SchemaWarning

__all__ = ["SchemaWarning", "crd_of", "crds_of"]
