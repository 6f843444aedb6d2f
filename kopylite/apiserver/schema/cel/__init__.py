"""CEL as Kubernetes speaks it: parsing, a look at the names, translation for the evaluator, libraries. Pure."""

from __future__ import annotations
