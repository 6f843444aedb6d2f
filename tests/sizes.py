"""How much hypothesis tries. The profile `ci` is full; `default` a quarter of it; `quick` a tenth, for the loop of a
developer.

`HYPOTHESIS_PROFILE=ci make test` chooses; where `CI` is set, it is `ci` without being asked. No example fails by its
time: machines are loaded.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FULL = 100  # examples of a property that says nothing else
_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]

settings.register_profile("ci", deadline=None, max_examples=FULL, print_blob=True, suppress_health_check=_SLOW)
settings.register_profile("default", deadline=None, max_examples=FULL // 4, suppress_health_check=_SLOW)
settings.register_profile("quick", settings.get_profile("default"), max_examples=FULL // 10)
settings.register_profile("mutants", settings.get_profile("default"), database=None, derandomize=True)


def load_profile() -> None:
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default"))


def examples(full: int) -> int:
    """As many of `full` examples as the profile wants."""
    return max(1, full * settings().max_examples // FULL)
