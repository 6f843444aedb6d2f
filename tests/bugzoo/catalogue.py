"""What is in the zoo: each module here that has a scenario has an App `bug` and an App `twin`, which does it right."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent


class Animal(NamedTuple):
    """One bug and its twin.

    Attributes:
        name: of the module, and of the scenario.
        fault: the one of the sweep's that shows it; others may, too.
        ends: what is there after the scenario was played without any fault.
        bug_ends: the same with the bug, where it shows without a fault.
    """

    name: str
    fault: str
    ends: str
    bug_ends: str = ""

    @property
    def scenario(self) -> Path:
        return FOLDER / f"{self.name}.yaml"


ANIMALS = [
    Animal("child_not_restored", "crash", "2 ConfigMap, 2 Thing", "1 ConfigMap, 2 Thing"),
    Animal("cleanup_when_gone", "crash", ""),
    Animal("copied_generation", "crash", "1 ConfigMap, 1 Thing"),
    Animal("cross_namespace_owner", "rerun", "1 ConfigMap, 1 Thing", "1 Thing"),
    Animal("defaulted_loop", "rerun", "1 Deployment, 1 Thing"),
    Animal("deletion_mark", "crash", ""),
    Animal("deletion_order", "crash", ""),
    Animal("exists_is_fatal", "crash", "1 ConfigMap, 1 Thing"),
    Animal("failed_sticks", "refused", "1 ConfigMap, 1 Thing"),
    Animal("finalizer_late", "crash", ""),
    Animal("finalizer_update", "writer", "1 Thing"),
    Animal("foreign_finalizer", "writer", "1 Thing", " "),
    Animal("generate_name", "stale", "1 ConfigMap, 1 Thing"),
    Animal("half_done", "crash", "1 ConfigMap, 1 Secret, 1 Thing"),
    Animal("ignored_conflict", "refused", "1 ConfigMap, 1 Thing"),
    Animal("job_twice", "crash", "1 Thing"),
    Animal("keys_of_next", "stale", "1 Secret, 1 Thing"),
    Animal("lost_update", "missed", "1 ConfigMap, 1 Thing"),
    Animal("memory_timer", "crash", "1 Thing"),
    Animal("module_state", "crash", "1 ConfigMap, 1 Thing"),
    Animal("never_restored", "children", "1 ConfigMap, 1 Thing"),
    Animal("observed_generation", "meanwhile", "1 ConfigMap, 1 Thing"),
    Animal("old_child_kept", "crash", "1 ConfigMap, 1 Thing"),
    Animal("optional_kept", "missed", "1 ConfigMap, 1 Thing"),
    Animal("owner_later", "crash", ""),
    Animal("paid_twice", "effect", "1 Thing"),
    Animal("password_regenerated", "rerun", "1 Secret, 1 Thing"),
    Animal("random_name", "crash", "1 ConfigMap, 1 Thing"),
    Animal("recreated_name", "recreate", "1 ConfigMap, 1 Thing"),
    Animal("run_counter", "rerun", "1 Thing"),
    Animal("scale_down_stale", "stale", "2 Secret, 1 Thing"),
    Animal("secret_once", "crash", "1 ConfigMap, 1 Secret, 1 Thing"),
    Animal("selector_changed", "rerun", "1 Deployment, 1 Thing"),
    Animal("skipped_condition", "missed", "1 ConfigMap, 1 Thing"),
    Animal("stale_list_patch", "writer", "1 RoleBinding, 2 Thing"),
    Animal("status_time", "rerun", "1 Thing"),
    Animal("swallowed_error", "refused", "1 ConfigMap, 1 Thing"),
    Animal("truncated_name", "rerun", "2 ConfigMap, 2 Thing", "1 ConfigMap, 2 Thing"),
]
