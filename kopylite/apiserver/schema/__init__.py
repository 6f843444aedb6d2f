"""Schemas of API objects: the view of a schema, pruning, defaulting, validation and publishing. Pure."""

from __future__ import annotations
