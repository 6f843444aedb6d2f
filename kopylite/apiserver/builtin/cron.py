"""Schedules of cron jobs: what is wrong with them, in the words of the parser that the server uses. Pure."""

from __future__ import annotations

import re
import zoneinfo

_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTHS = {
    m: i for i, m in enumerate(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1)
}
_DAYS = {d: i for i, d in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
# Of each field: lowest, highest, names.
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)


def schedule_problem(schedule: str) -> str:
    """Why a schedule cannot be used; "" if it can."""
    if "TZ" in schedule:
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if schedule.startswith("@"):
        return _descriptor_problem(schedule)
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for text, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in text.split(","):
            problem = _range_problem(part, low, high, names)
            if problem:
                return problem
    return ""


def _descriptor_problem(schedule: str) -> str:
    if schedule in _DESCRIPTORS:
        return ""
    if schedule.startswith("@every "):
        return (
            ""
            if re.fullmatch(r"@every (\d++(\.\d++)?(ns|us|µs|ms|s|m|h))++", schedule)
            else (f'failed to parse duration {schedule}: time: invalid duration "{schedule.removeprefix("@every ")}"')
        )
    return f"unrecognized descriptor: {schedule}"


def _range_problem(text: str, low: int, high: int, names: dict[str, int]) -> str:
    bounds, *steps = text.split("/")
    ends = bounds.split("-")
    if len(steps) > 1:
        return f"too many slashes: {text}"
    if len(ends) > 2:
        return f"too many hyphens: {text}"
    if ends[0] in ("*", "?"):
        first, last = low, high
    else:
        numbers = [_number(end, names) for end in ends]
        for number in numbers:
            if isinstance(number, str):
                return number
        first = int(numbers[0])
        last = int(numbers[-1]) if len(numbers) == 2 or not steps else high
    if steps:
        step = _number(steps[0], {})
        if isinstance(step, str):
            return step
        if step == 0:
            return f"step of range should be a positive number: {text}"
    if first < low:
        return f"beginning of range ({first}) below minimum ({low}): {text}"
    if last > high:
        return f"end of range ({last}) above maximum ({high}): {text}"
    return f"beginning of range ({first}) beyond end of range ({last}): {text}" if first > last else ""


def _number(text: str, names: dict[str, int]) -> int | str:
    """The number, or what is wrong with it."""
    if text.lower() in names:
        return names[text.lower()]
    if re.fullmatch(r"\d+", text):
        return int(text)
    if re.fullmatch(r"-\d+", text):
        return f"negative number ({int(text)}) not allowed: {text}"
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'


def time_zone_problem(zone: str) -> str:
    if zone.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return f"unknown time zone {zone}"
    return ""
