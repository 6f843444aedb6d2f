"""What is in the zoo: each module here that has a scenario has an App `bug` and an App `twin`, which does it right."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent


class Animal(NamedTuple):
    """One bug and its twin.

    Attributes:
        name: of the module, and of the scenario.
        ends: what is there after the scenario was played without any fault.
        bug_ends: the same with the bug, where it shows without a fault.
    """

    name: str
    ends: str
    bug_ends: str = ""

    @property
    def scenario(self) -> Path:
        return FOLDER / f"{self.name}.yaml"


ANIMALS = [
    Animal("child_not_restored", "2 ConfigMap, 2 Thing", "1 ConfigMap, 2 Thing"),
    Animal("cleanup_when_gone", ""),
    Animal("cross_namespace_owner", "1 ConfigMap, 1 Thing", "1 Thing"),
    Animal("defaulted_loop", "1 Deployment, 1 Thing"),
    Animal("deletion_mark", ""),
    Animal("deletion_order", ""),
    Animal("exists_is_fatal", "1 ConfigMap, 1 Thing"),
    Animal("failed_sticks", "1 ConfigMap, 1 Thing"),
    Animal("finalizer_late", ""),
    Animal("finalizer_update", "1 Thing"),
    Animal("foreign_finalizer", "1 Thing", " "),
    Animal("generate_name", "1 ConfigMap, 1 Thing"),
    Animal("half_done", "1 ConfigMap, 1 Secret, 1 Thing"),
    Animal("ignored_conflict", "1 ConfigMap, 1 Thing"),
    Animal("job_twice", "1 Thing"),
    Animal("keys_of_next", "1 Secret, 1 Thing"),
    Animal("lost_update", "1 ConfigMap, 1 Thing"),
    Animal("memory_timer", "1 Thing"),
    Animal("module_state", "1 ConfigMap, 1 Thing"),
    Animal("observed_generation", "1 ConfigMap, 1 Thing"),
    Animal("old_child_kept", "1 ConfigMap, 1 Thing"),
    Animal("optional_kept", "1 ConfigMap, 1 Thing"),
    Animal("owner_later", ""),
    Animal("password_regenerated", "1 Secret, 1 Thing"),
    Animal("random_name", "1 ConfigMap, 1 Thing"),
    Animal("recreated_name", "1 ConfigMap, 1 Thing"),
    Animal("run_counter", "1 Thing"),
    Animal("scale_down_stale", "2 Secret, 1 Thing"),
    Animal("secret_once", "1 ConfigMap, 1 Secret, 1 Thing"),
    Animal("selector_changed", "1 Deployment, 1 Thing"),
    Animal("skipped_condition", "1 ConfigMap, 1 Thing"),
    Animal("stale_list_patch", "1 RoleBinding, 2 Thing"),
    Animal("status_time", "1 Thing"),
    Animal("swallowed_error", "1 ConfigMap, 1 Thing"),
    Animal("truncated_name", "2 ConfigMap, 2 Thing", "1 ConfigMap, 2 Thing"),
]
