"""When a cron schedule is due. Pure.

The server has checked that the schedule can be read; see apiserver.builtin.cron for its rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from kopylite.objects.wireformats import parse_duration

# As long as upstream looks ahead (robfig/cron, spec.go); the 29th of February comes within it, the 31st never.
_HORIZON_YEARS = 5
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Minutes, hours, days of the month, months and days of the week (Sunday is 0) that are due."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    every: timedelta | None = None

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Raises ValueError for a text that the server would refuse."""
        if text.startswith("@every "):
            none = frozenset[int]()
            every = max(timedelta(seconds=1), parse_duration(text.removeprefix("@every ")))
            return cls(none, none, none, none, none, any_day=True, every=every)
        minutes, hours, days, months, weekdays = _DESCRIPTORS.get(text, text).split()
        return cls(
            _numbers(minutes, 0, 59, []),
            _numbers(hours, 0, 23, []),
            _numbers(days, 1, 31, []),
            _numbers(months, 1, 12, _MONTHS),
            _numbers(weekdays, 0, 6, _DAYS),
            # A star leaves the choice to the other of the two; without one, either of them is enough.
            any_day=days[0] in "*?" or weekdays[0] in "*?",
        )

    def after(self, moment: datetime) -> datetime | None:
        """The first time later than `moment`, in its zone; None if there is none in its year and the five after it."""
        if self.every is not None:
            return moment.replace(microsecond=0) + self.every
        start = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for offset in range(366 * (_HORIZON_YEARS + 1)):
            day = start if offset == 0 else (start + timedelta(days=offset)).replace(hour=0, minute=0)
            if not self._on(day) or day.year > start.year + _HORIZON_YEARS:
                continue
            for hour in sorted(hour for hour in self.hours if hour >= day.hour):
                first = day.minute if hour == day.hour else 0
                if due := [minute for minute in self.minutes if minute >= first]:
                    return day.replace(hour=hour, minute=min(due))
        return None

    def _on(self, day: datetime) -> bool:
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (of_month and of_week if self.any_day else of_month or of_week)


def _numbers(text: str, low: int, high: int, names: list[str]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        bounds, _, step = part.partition("/")
        first, _, last = bounds.partition("-")
        if first in ("*", "?"):
            begin, end = low, high
        else:
            begin = _number(first, names, low)
            end = _number(last, names, low) if last else high if step else begin
        found.update(range(begin, end + 1, int(step or 1)))
    return frozenset(found)


def _number(text: str, names: list[str], low: int) -> int:
    return names.index(text.lower()) + low if re.fullmatch("[A-Za-z]+", text) else int(text)
