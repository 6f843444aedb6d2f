"""CURE: what is wrong with a cluster, with an App in it, or with the way to it, and what mends each of it.

Facts are read by `reader.py`, which is bounded and never writes; judged by pure modules, one a subject, which are given
what was read and hand back Findings; `examination.py` joins them. What may not be read is told as unchecked.
"""

from __future__ import annotations

from kopylite.doctor.examination import Patient, examine
from kopylite.doctor.findings import Diagnosis, Finding, FindingSeverity, Unchecked
from kopylite.doctor.report import as_json, as_table

__all__ = ["Diagnosis", "Finding", "FindingSeverity", "Patient", "Unchecked", "as_json", "as_table", "examine"]
