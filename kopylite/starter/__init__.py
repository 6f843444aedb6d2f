"""START: a new project, whose files are the user's own from then on; what can live in the library stays in it."""

from __future__ import annotations

from kopylite.starter.naming import ProjectNames, names_of
from kopylite.starter.project import files_of, write_project

__all__ = ["ProjectNames", "files_of", "names_of", "write_project"]
