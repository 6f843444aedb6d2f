"""What people tell an operator by annotations of an object: leave it alone, or look at it now. Pure.

- `kopylite.dev/paused: "true"` (in any case of letters): no reconcile runs for it, except while it is being deleted.
  "false" and "" do not pause; nor does anything else, which is most likely a slip, and so is told.
- `kopylite.dev/reconcile-at`: each new value, whatever it is, asks for a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kopylite.cache import Record

PAUSED: Final = "kopylite.dev/paused"
RECONCILE_AT: Final = "kopylite.dev/reconcile-at"

# No JSON of the API server escapes one of these characters, so that an object without these bytes has neither.
_PREFIX: Final = b'"kopylite.dev/'


class Annotated(NamedTuple):
    """What an object's annotations tell.

    Attributes:
        paused: no reconcile is to run. Never true while it is being deleted.
        unclear: the value of `paused`, if it is none that means anything.
        reconcile_at: the last request for a run; None: there was none.
    """

    paused: bool = False
    unclear: str | None = None
    reconcile_at: str | None = None


NOTHING: Final = Annotated()
"""What nearly all objects tell."""


def annotated(record: Record | None) -> Annotated:
    """What an object tells. Costs a search through its bytes where it tells nothing; never raises."""
    if record is None or _PREFIX not in record.body:
        return NOTHING
    found = record.annotations()
    value = found.get(PAUSED, "")
    word = value.lower() if len(value) < 8 else value
    paused = word == "true" and record.deletion_timestamp is None
    return Annotated(paused, None if word in ("true", "false", "") else value, found.get(RECONCILE_AT))
