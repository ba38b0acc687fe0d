"""How Sphinx makes the site from this folder: ``sphinx-build -W docs DIRECTORY``, or ``tox -e docs``.

The pages also read well where they lie, in a repository's browser: links lead to files, and what leads out of
this folder is a page of the site where there is one, else the name of a file.
"""

from __future__ import annotations

import os
import re
import sys
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.http_reference import http_reference
from sphinx.errors import ExtensionError

import collidium

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Collidium"
project_copyright = "the Collidium developers"
release = version = collidium.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
]
root_doc = "index"
# The list of pages for those who read them in the repository.
exclude_patterns = ["README.md", "package", "validation/*.html"]

nitpicky = True
# Types in signatures: other people's, and aliases of a module.
nitpick_ignore_regex = [(r"py:(class|obj)", r".*")]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_show_tb = True
nb_execution_timeout = 600
nb_merge_streams = True

autodoc_mock_imports = ["grain", "torch"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = f"Collidium {release}"
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]

DOCS: Final = Path(__file__).parent
ROOT: Final = DOCS.parent
#: Files outside of this folder that are pages of the site.
_PAGES: Final = {
    "index": "README.md",
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "performance": "perf/README.md",
}
_PAGE_OF: Final = {(ROOT / path).resolve(): page for page, path in _PAGES.items()}
_LINK: Final = re.compile(
    r"(?P<image>!?)\[(?P<text>[^]]*)\]\((?!https?:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)"
)
#: A line of tutorials with cells that are tagged ``torch``, and what it becomes where that is not installed.
_TORCH: Final = "% where torch is missing"
_NOT_RUN: Final = """:::{note}
Cells that need torch were not run for this page: it was made where torch is not installed.
:::"""
_SCRIPT: Final = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)


def _source(app: Sphinx, name: str, source: list[str]) -> None:
    """Fill the pages that lie outside of this folder, and lead links to pages."""
    file = DOCS / f"{name}.md"
    if name == "reference/http":
        source[0] = http_reference()
    elif name in _PAGES and name != root_doc:
        file = ROOT / _PAGES[name]
        source[0] = file.read_text()

    def replaced(link: re.Match[str]) -> str:
        target = (file.parent / link["path"]).resolve()
        if target in _PAGE_OF:
            target = DOCS / f"{_PAGE_OF[target]}.md"
        elif not (link["image"] or target.is_relative_to(DOCS)):
            return f"{link['text']} (`{target.relative_to(ROOT)}`)"
        path = os.path.relpath(target, (DOCS / name).parent)
        return f"{link['image']}[{link['text']}]({path}{link['anchor'] or ''})"

    source[0] = _LINK.sub(replaced, source[0])
    if not find_spec("torch"):
        source[0] = source[0].replace(":tags: [torch", ":tags: [skip-execution").replace(_TORCH, _NOT_RUN)


def _scripts_in_files(app: Sphinx, failure: Exception | None) -> None:
    """Give each script within a page a file: the policy of the server's pages runs no others."""
    scripts = Path(app.outdir, "_static/inline")
    scripts.mkdir(exist_ok=True)
    for page in Path(app.outdir).rglob("*.html"):

        def linked(script: re.Match[str], page: Path = page) -> str:
            file = scripts / f"{sha256(script[1].encode()).hexdigest()[:16]}.js"
            file.write_text(script[1])
            return f'<script src="{os.path.relpath(file, page.parent)}"></script>'

        text = page.read_text()
        if "<span></span>&lt;Figure size" in text:
            raise ExtensionError(f"{page}: a plot is shown as text; its notebook needs `%matplotlib inline`")
        page.write_text(_SCRIPT.sub(linked, text))


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _source)
    app.connect("build-finished", _scripts_in_files)
