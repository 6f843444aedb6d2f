"""`python -m kopylite`: the command line without an installed script."""

from __future__ import annotations

import sys

from kopylite.cli import main

sys.exit(main())
