"""The docs site: Sphinx reads these Markdown files as they are, so that GitHub shows them too. `make docs` builds it.

Sphinx and MyST because they are kept up (MkDocs 1 and its Material theme are not any more), need no network, and are
strict: with -W, a link to a page or a heading that is not there ends the build, and so does a page in no list.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

_project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
project = "kopylite"
author = "The kopylite authors"
version = release = _project["version"]

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns: list[str] = []
# Links to headings, with the anchors that GitHub gives them.
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["toc.multiple_toc_parents"]

html_theme = "furo"
html_title = f"kopylite {version}"
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "source_repository": _project["urls"]["Source"],
    "source_branch": "main",
    "source_directory": "docs/",
}

_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)")


def link_to_sources(app: object, page: str, source: list[str]) -> None:
    """Links that leave docs/ lead to the repository. One that leads nowhere ends the build."""
    here = (DOCS / page).parent

    def target(found: re.Match[str]) -> str:
        path = (here / found[1]).resolve()
        if path.is_relative_to(DOCS):
            return found[0]
        if not path.is_relative_to(ROOT) or not path.exists():
            raise FileNotFoundError(f"docs/{page}.md links to {found[1]}, which is not there")
        kind = "tree" if path.is_dir() else "blob"
        return f"{_project['urls']['Source']}/{kind}/main/{path.relative_to(ROOT)}"

    source[0] = _LINK.sub(target, source[0])


def setup(app: object) -> None:
    from scripts.make_reference import write

    write(DOCS / "reference")
    app.connect("source-read", link_to_sources)  # type: ignore[attr-defined]
