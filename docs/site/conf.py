# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx' configuration of the site; docs/site/stage.py puts together what it reads."""

import sys
from pathlib import Path
from typing import Any

import tomllib
from docutils import nodes
from docutils.utils.math import latex2mathml

import linkweir

sys.path.insert(0, str(Path(__file__).parent))

import playground

project = "Linkweir"
author = "The Linkweir maintainers"
copyright = "The Linkweir maintainers"  # noqa: A001
release = version = linkweir.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_reredirects"]
# Manuals of other projects' kinds, shown as files.
exclude_patterns = ["ns3/**/*.rst"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}

# Notebooks hold the figures of the run that their test compares.
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, Any] = {}  # they would be loaded from another host
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath", "html_image"]
myst_dmath_allow_space = myst_dmath_allow_digits = False  # prices are no formulas
html_math_renderer = "mathml"

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "Linkweir"
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_search_scorer = str(Path(__file__).parent / "static/scorer.js")
html_css_files = ["site.css"]
html_copy_source = html_use_index = html_domain_indices = False
html_show_sourcelink = False
html_theme_options = {"top_of_page_buttons": []}
highlight_language = "none"
# Most pages are reached by links and not from the menu; check.py looks that each is.
suppress_warnings = ["toc.not_included"]


def _redirects() -> dict[str, str]:
    """The old addresses of pages that have moved, and the new ones relative to them."""
    here = Path(__file__).parent
    moved = tomllib.loads((here / "moved.toml").read_text(encoding="utf-8"))
    found = {}
    for address in (here / "addresses.txt").read_text(encoding="utf-8").split():
        for old, new in moved.items():
            if address == old or (old.endswith("/") and address.startswith(old)):
                found[address] = f"{'../' * address.count('/')}{new}{address.removeprefix(old)}.html"
    return found


redirects = _redirects()


def setup(app: Any) -> None:
    """Formulas are MathML, which browsers show without a script from another host; one page has scripts of its own."""
    app.add_html_math_renderer("mathml", (_formula, None), (_displayed_formula, None))
    app.connect("html-page-context", _with_playground)


def _with_playground(app: Any, page: str, *_: Any) -> None:
    """The playground's own scripts and styles."""
    if page == playground.PAGE:
        for name in playground.SCRIPTS:
            app.add_js_file(name, loading_method="defer")
        for name in playground.STYLES:
            app.add_css_file(name)


def _formula(self: Any, node: nodes.math) -> None:
    self.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def _displayed_formula(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{latex2mathml.tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode
