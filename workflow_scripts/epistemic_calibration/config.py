"""The configuration: checked against its schema, completed with defaults, resolved."""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from epistemic_calibration.methods import Method, available_methods, load_method
from epistemic_calibration.plan import STAGE_SCRIPTS

SCHEMA_PATH = Path(__file__).parents[1] / "schemas" / "config.schema.json"

#: Blocks that a data set may override.
OVERRIDABLE = ("autoencoder", "latents", "scores")
#: Names of folders, rules and targets that a data set must not take.
RESERVED_NAMES = frozenset(
    [
        *STAGE_SCRIPTS,
        "sensitivity_data",
        "paper_comparison_means",
        "all",
        "collect",
        "demo",
        "figures",
        "logs",
        "bench",
        "benchmarks",
        "partial",
        "runtimes",
        "tables",
        "toy",
        "toy_demo",
        "report",
        "sensitivity",
    ]
)

_TABLE_SUFFIXES = ("_summary", "_drivers", "_comparisons")

#: Keys of an entry of ``methods`` that are not parameters of the method.
_ENTRY_KEYS = ("method", "file", "predictions", "label", "datasets")


_PREAMBLE = "the configuration is wrong:\n"


class ConfigError(ValueError):
    """The configuration is wrong; the message names the key, the value and what is allowed."""


def resolve_config(config: Mapping[str, Any], base_dir: str | Path = ".") -> dict[str, Any]:
    """Check a configuration and return it with every default filled in.

    Parameters
    ----------
    config : mapping
        What ``config.yaml`` says, as read by a YAML parser.
    base_dir : path
        Folder that relative paths of method files start from.

    Returns
    -------
    dict
        ``datasets`` entries hold their complete ``autoencoder``, ``latents`` and
        ``scores`` blocks; ``methods`` and ``controls`` entries hold ``implementation``
        (a registered name, the path of a file, or None for ``predictions`` made elsewhere),
        ``label``, ``family``, ``uses_neighbors``, ``datasets`` and the complete ``parameters``.

    Raises
    ------
    ConfigError
        At every fault found, one line each.
    """
    config = copy.deepcopy(dict(config))
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    _check_schema(config, schema)
    faults = []
    for name, dataset in config["datasets"].items():
        if name in RESERVED_NAMES:
            faults.append(f"datasets.{name}: the name is reserved; choose another")
        for suffix in _TABLE_SUFFIXES:
            if name.endswith(suffix):
                faults.append(f"datasets.{name}: a name must not end in {suffix}, as tables do")
        for block in OVERRIDABLE:
            dataset[block] = {**config[block], **dataset.get(block, {})}
        dataset.setdefault("tasks", "all")
    for name in config["benchmark"]:
        if name not in config["datasets"]:
            faults.append(
                f"benchmark: {name!r} is not a data set{_suggest(name, config['datasets'])}"
            )
    folded: dict[str, str] = {}
    for group in ("methods", "controls"):
        for name in config[group]:
            if name.lower() in folded:
                faults.append(f"{group}.{name}: the name is taken by {folded[name.lower()]}")
            folded[name.lower()] = f"{group}.{name}"
    for group in ("methods", "controls"):
        for name, entry in config[group].items():
            shown_on = entry.get("datasets", list(config["datasets"]))
            for dataset in shown_on:
                if dataset not in config["datasets"]:
                    faults.append(
                        f"{group}.{name}.datasets: {dataset!r} is not a data set"
                        f"{_suggest(dataset, config['datasets'])}"
                    )
            try:
                resolved = _resolve_method(
                    f"{group}.{name}", name, entry, config["device"], Path(base_dir)
                )
                config[group][name] = {**resolved, "datasets": shown_on}
            except ConfigError as error:
                faults.append(str(error).removeprefix(_PREAMBLE))
    if faults:
        raise ConfigError("\n".join([_PREAMBLE.strip(), *faults]))
    for group in ("methods", "controls"):
        for name, entry in config[group].items():
            needed = entry["parameters"].get("n_neighbors", 0) if entry["uses_neighbors"] else 0
            for dataset, block in config["datasets"].items():
                stored = block["latents"]["n_neighbors"]
                if needed > stored:
                    faults.append(
                        f"{group}.{name}.n_neighbors: {needed} is more than the {stored} "
                        f"neighbours that latents.n_neighbors stores for data set {dataset}; raise "
                        f"that key"
                    )
    toys = {name: _resolve_toy(config, name) for name in ("toy", "toy_demo")}
    for name, (experiments, toy_faults) in toys.items():
        config[name] = experiments
        faults += toy_faults
    if faults:
        raise ConfigError("\n".join([_PREAMBLE.strip(), *faults]))
    return config


def _resolve_toy(config: Mapping[str, Any], variant: str) -> tuple[dict[str, Any], list[str]]:
    changes = {} if variant == "toy" else config[variant]
    fitted = {
        name: entry for name, entry in config["methods"].items() if "predictions" not in entry
    }
    seeds = changes.get("seeds", config["toy"]["seeds"])
    resolved, faults = {}, []
    for experiment in [key for key in config["toy"] if key != "seeds"]:
        block = {"seeds": seeds, **config["toy"][experiment], **changes.get(experiment, {})}
        chosen = block.get("methods", [])
        if chosen == "all":
            block["methods"] = list(fitted)
        elif chosen == "active":
            block["methods"] = [n for n, entry in fitted.items() if entry["family"] == "active"]
        else:
            known = {*fitted, *available_methods()}
            faults += [
                f"{variant}.{experiment}.methods: no method {name!r}{_suggest(name, known)}"
                for name in chosen
                if name not in known
            ]
            # A method that is left out of the benchmark is left out here, and an experiment
            # without methods goes with it.
            block["methods"] = [name for name in chosen if name in fitted]
            if chosen and not block["methods"]:
                continue
        resolved[experiment] = block
    return resolved, faults


def _resolve_method(
    key: str, name: str, entry: Mapping[str, Any], device: str, base_dir: Path
) -> dict[str, Any]:
    kinds = [kind for kind in ("method", "file", "predictions") if kind in entry]
    if len(kinds) > 1:
        raise ConfigError(f"{key}: give one of {' and '.join(kinds)}, not both")
    given = {k: v for k, v in entry.items() if k not in _ENTRY_KEYS}
    if "predictions" in entry:
        if given:
            raise ConfigError(
                f"{key}.{next(iter(given))}: predictions made elsewhere take no parameters"
            )
        return {
            "implementation": None,
            "predictions": entry["predictions"],
            "label": entry.get("label", name),
            "family": "active",
            "uses_neighbors": False,
            "parameters": {},
        }
    if "file" in entry:
        implementation = entry["file"]
        target = str(base_dir / implementation)
    else:
        implementation = target = entry.get("method", name)
        if implementation not in available_methods():
            names = available_methods()
            raise ConfigError(
                f"{key}: no method {implementation!r}{_suggest(implementation, names)}; give one "
                f"of {', '.join(names)}, or `file: path/to/method.py`"
            )
    try:
        method = load_method(target)
    except Exception as error:
        raise ConfigError(f"{key}: {type(error).__name__}: {error}") from error
    parameters = resolve_parameters(method, given, key)
    if "device" in parameters and "device" not in given:
        parameters["device"] = device
    return {
        "implementation": implementation,
        "label": entry.get("label", method.label if implementation == name else name),
        "family": method.family,
        "uses_neighbors": method.uses_neighbors,
        "parameters": parameters,
    }


def retype_overrides(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with the types that YAML gives what ``--config`` brought.

    Snakemake reads ``--config 'seeds=[0, 1]'`` as a list of texts.

    Parameters
    ----------
    config : mapping
        As merged by Snakemake.
    overrides : mapping
        What ``--config`` brought, as read by Snakemake.
    """
    import yaml

    def retyped(value: Any, given: Any) -> Any:
        if isinstance(given, Mapping):
            return {**value, **{key: retyped(value[key], part) for key, part in given.items()}}
        if isinstance(given, list):
            return [retyped(part, part) for part in given]
        return yaml.safe_load(given) if isinstance(given, str) else value

    nested = {key: given for key, given in overrides.items() if isinstance(given, Mapping | list)}
    return retyped(config, nested)


def check_duplicate_keys(path: str | Path) -> None:
    """Raise ConfigError where a YAML file gives a key twice, of which YAML keeps the last."""
    import yaml

    def visit(node: Any, prefix: str) -> Iterator[str]:
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                name = _join(prefix, str(key.value))
                if name in seen:
                    line = key.start_mark.line + 1
                    yield f"{name}: given twice, the second time in line {line} of {path}"
                seen.add(name)
                yield from visit(value, name)
        elif isinstance(node, yaml.SequenceNode):
            for value in node.value:
                yield from visit(value, prefix)

    with Path(path).open(encoding="utf-8") as file:
        faults = list(visit(yaml.compose(file, Loader=yaml.SafeLoader), ""))
    if faults:
        raise ConfigError("\n".join([_PREAMBLE.strip(), *faults]))


def resolve_parameters(
    method: type[Method], given: Mapping[str, Any], key: str = "parameters"
) -> dict[str, Any]:
    """Return the parameters of a method, defaults filled in, checked against its schema.

    Raises
    ------
    ConfigError
        Naming the parameter, the value and what is allowed.
    """
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": method.parameter_schema,
    }
    _check_schema(dict(given), schema, key)
    # A round trip through JSON makes lists of tuples, as YAML gives them.
    return json.loads(json.dumps({**method.default_parameters(), **given}))


def _check_schema(value: Any, schema: Mapping[str, Any], prefix: str = "") -> None:
    import jsonschema

    validator = jsonschema.Draft202012Validator(schema)
    errors = sorted(validator.iter_errors(value), key=lambda e: [str(p) for p in e.absolute_path])
    if errors:
        lines = dict.fromkeys(line for error in errors for line in _explain(error, prefix))
        raise ConfigError("\n".join([_PREAMBLE.strip(), *lines]))


def _explain(error: Any, prefix: str) -> Iterator[str]:
    path = ".".join([*([prefix] if prefix else []), *(str(p) for p in error.absolute_path)])
    if error.validator in ("oneOf", "anyOf") and error.context:
        # The branch of the chosen `source` is the one that the user means.
        branches: dict[int, list[Any]] = {}
        for inner in error.context:
            branches.setdefault(inner.schema_path[0], []).append(inner)
        meant = [
            branch
            for branch in branches.values()
            if not any(
                inner.validator == "const" and list(inner.path) == ["source"] for inner in branch
            )
        ]
        if len(meant) == 1:
            for inner in meant[0]:
                yield from _explain(inner, prefix)
            return
    if error.validator in ("additionalProperties", "unevaluatedProperties") and isinstance(
        error.instance, dict
    ):
        known = _known_keys(error.schema)
        for name in error.instance:
            if name not in known:
                allowed = ", ".join(sorted(known)) or "none"
                yield f"{_join(path, name)}: unknown key{_suggest(name, known)}; allowed: {allowed}"
        return
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        yield f"{path or 'config'}: missing key(s) {', '.join(missing)}"
        return
    what = error.schema.get("description", "")
    yield f"{path or 'config'}: {error.message}{f' ({what})' if what else ''}"


def _known_keys(schema: Mapping[str, Any]) -> set[str]:
    known = set(schema.get("properties", {}))
    for branch in schema.get("oneOf", ()):
        known |= set(branch.get("properties", {}))
    return known


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)


def _suggest(name: str, known: Any) -> str:
    close = difflib.get_close_matches(str(name), [str(k) for k in known], n=1)
    return f", did you mean {close[0]!r}?" if close else ""
