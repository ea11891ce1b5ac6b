"""The site: `make docs` builds it into build/site."""

import importlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "workflow_scripts"))

from epistemic_calibration import __version__  # noqa: E402

MODULES = ("adapters", "metrics", "predictions", "methods", "data", "latents", "torchmetrics")


def public_names() -> dict[str, list[str]]:
    """Return the functions and classes that each module of the reference lists."""
    found = {"epistemic_calibration": ["evaluate", "hypotheses_of", "Evaluation"]}
    found["epistemic_calibration.parameters"] = ["parameter"]
    for name in (f"epistemic_calibration.{module}" for module in MODULES):
        module = importlib.import_module(name)
        found[name] = [n for n in module.__all__ if callable(getattr(module, n))]
    return found


project = "Epistemic calibration"
author = "The epistemic calibration benchmark authors"
copyright = author
release = version = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]

# As code hosts make the anchors of headings.
myst_heading_anchors = 4
# A line may begin with a percent sign that belongs to a number.
myst_disable_syntax = ["myst_line_comment"]

# Docstrings name other objects in single backticks, as NumPy's do.
default_role = "py:obj"
autosummary_context = {"public": public_names()}
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
# Words of a docstring's types are looked up as names, and may be those of several.
suppress_warnings = ["ref.python"]

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples" / "tutorials"),
    "gallery_dirs": "generated/tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "Epistemic calibration"
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}
html_sidebars = {page: [] for page in ("index", "read_your_result", "results")}
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]


def escape_bars(app, what, name, obj, options, lines):
    """Leave |x| of a docstring what it is in a terminal, not a substitution."""
    code = re.compile(r"(``.*?``)")
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "|")):
            parts = code.split(line)
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[i] = "".join(parts)


def setup(app):
    # Before napoleon, which reads sections.
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
