"""`python -m kopylite`: the command line without an installed script."""

from __future__ import annotations

from kopylite.cli import script

script()
