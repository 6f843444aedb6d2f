"""The pages about what people see: a message that has one ends with its address. The one place that knows them."""

from __future__ import annotations

from enum import Enum

# As pyproject.toml has it, Documentation without the page. GitHub shows the same files that the site is made of.
DOCS = "https://github.com/kopylite/kopylite/blob/main/docs"


class Trouble(Enum):
    """What people see; each has a page in docs/troubleshooting, of its name. As a text it is the page's address."""

    NOTHING_HAPPENS = "nothing-happens"
    HOT_LOOP = "runs-all-the-time"
    FORBIDDEN = "forbidden"
    STUCK = "stuck-in-terminating"
    CONFLICT = "conflict"
    SLOW = "slow-start"
    BLOCKED = "blocked-event-loop"
    WEBHOOK = "webhooks"
    LOST_LEASE = "lost-lease"

    def __str__(self) -> str:
        return f"{DOCS}/troubleshooting/{self.value}.md"
