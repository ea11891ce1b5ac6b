"""Write docs/api.md: every public name of the library, from the code.

PYTHONPATH=workflow_scripts python docs/api.py
"""

import importlib
import inspect
import re
from pathlib import Path

import mdformat

PAGE = Path(__file__).with_name("api.md")

#: Title, module, and its names where they are not all of ``__all__``.
GROUPS = (
    ("Everything in one call", "epistemic_calibration", ("evaluate", "Evaluation")),
    ("Models in memory", "epistemic_calibration.adapters", None),
    ("Training loops", "epistemic_calibration.torchmetrics", None),
    ("Predictions", "epistemic_calibration.predictions", None),
    ("Metrics", "epistemic_calibration.metrics", None),
    ("Methods", "epistemic_calibration.methods", None),
    ("Parameters", "epistemic_calibration.parameters", ("parameter",)),
    ("Data sources", "epistemic_calibration.data", None),
    ("Encoders", "epistemic_calibration.latents", None),
)

INTRODUCTION = """\
# API

Every public name of the library with its signature and what it is, made from the code by
`make docs`. Shapes, ranges, errors, sources and examples are in the docstrings:
`help(epistemic_calibration.evaluate)`. What the numbers mean is in [estimators.md](estimators.md),
models are in [models.md](models.md).
"""


def page() -> str:
    """Return the page as Markdown, wrapped as the rest."""
    text = INTRODUCTION + "".join(_group(*group) for group in GROUPS)
    options = {"wrap": 100, "number": True}
    return mdformat.text(text, options=options, extensions={"gfm"})


def _group(title: str, name: str, names: tuple[str, ...] | None) -> str:
    module = importlib.import_module(name)
    parts = [f"\n## {title}\n\n`{name}`: {_first_sentence(module)}\n"]
    for public in names or module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isroutine(value):
            parts.append(_entry(public, value))
        else:
            parts.append(f"\n### {public}\n\n```python\n{public} = {_quoted(value)}\n```\n")
    return "".join(parts)


def _entry(name: str, value: object) -> str:
    lines = [f"\n### {name}\n\n```python\n{_signature(name, value)}\n```\n"]
    lines.append(f"\n{_first_sentence(value)}\n")
    if inspect.isclass(value):
        methods = [
            f"- `{member}`: {_first_sentence(function)}"
            for member, function in vars(value).items()
            if _is_public_method(member, function)
        ]
        lines += ["\n", "\n".join(methods), "\n"] if methods else []
    return "".join(lines)


def _is_public_method(name: str, member: object) -> bool:
    member = getattr(member, "__func__", member)
    kinds = inspect.isfunction(member) or isinstance(member, property)
    return kinds and not name.startswith("_") and bool(inspect.getdoc(member))


def _signature(name: str, value: object) -> str:
    if inspect.isclass(value) and (issubclass(value, Exception) or inspect.isabstract(value)):
        bases = ", ".join(base.__name__ for base in value.__bases__)
        return f"class {name}({bases})"
    try:
        signature = inspect.signature(value)
    except ValueError:
        return f"class {name}"
    # Types are in the docstrings, in words; here they would hide the names.
    plain = [
        p.replace(annotation=p.empty, default=_plain(p.default))
        for p in signature.parameters.values()
        if not p.name.startswith("_")
    ]
    text = str(signature.replace(parameters=plain, return_annotation=signature.empty))
    line = f"{'class ' if inspect.isclass(value) else ''}{name}{text}"
    if len(line) <= 100:
        return line
    start, *_ = line.partition("(")
    parts = [str(p) for p in plain]
    kinds = [p.kind for p in plain]
    first = next(
        (i for i, kind in enumerate(kinds) if kind is inspect.Parameter.KEYWORD_ONLY), None
    )
    if first is not None and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parts.insert(first, "*")
    return f"{start}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


class _Default:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _plain(default: object) -> object:
    """Return a default whose repr is the same on every run."""
    if default is inspect.Parameter.empty:
        return default
    text = _quoted(default)
    return _Default("...") if re.search(r"0x[0-9a-f]+|<.*>", text) else _Default(text)


def _quoted(value: object) -> str:
    return repr(value).replace("'", '"')


def _first_sentence(value: object) -> str:
    member = getattr(value, "__func__", value)
    text = inspect.getdoc(member)
    if not text:
        raise ValueError(f"{value!r} has no docstring")
    # Sphinx's roles and double backticks are Markdown's single ones.
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", text.partition("\n\n")[0]).replace("``", "`")
    text = " ".join(text.split())
    return re.match(r".*?[.:](?=\s[A-Z]|$)|.*", text)[0].rstrip(":")


if __name__ == "__main__":
    PAGE.write_text(page())
