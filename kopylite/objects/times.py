"""Times and durations in exactly the texts that the API server's own types use."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from kopylite.objects.wireformats import read_duration, write_duration, write_time

Time = Annotated[
    datetime,
    PlainSerializer(lambda moment: write_time(moment, "seconds"), return_type=str, when_used="json-unless-none"),
]
"""metav1.Time: "2026-01-31T12:00:00Z", whole seconds; fractions are cut off when written."""

MicroTime = Annotated[
    datetime,
    PlainSerializer(lambda moment: write_time(moment, "microseconds"), return_type=str, when_used="json-unless-none"),
]
"""metav1.MicroTime: "2026-01-31T12:00:00.000000Z", always six digits."""

Duration = Annotated[
    timedelta,
    BeforeValidator(read_duration),
    PlainSerializer(write_duration, return_type=str, when_used="json-unless-none"),
]
"""metav1.Duration: "1h30m0s". Inside a CustomResource a plain timedelta is written so, too."""
