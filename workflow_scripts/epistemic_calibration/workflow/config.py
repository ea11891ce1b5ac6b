"""The configuration: checked against typed models, completed with defaults, resolved.

`resolve_config` takes what ``config.yaml`` says and returns a `Config`, which the plan reads.
Run as a script this module writes the JSON schema that editors check ``config.yaml`` with.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from epistemic_calibration import registry
from epistemic_calibration.latents import available_encoders
from epistemic_calibration.methods import available_methods, load_method
from epistemic_calibration.paper.toy import available_experiments
from epistemic_calibration.workflow._config_faults import ConfigError, parse, suggest
from epistemic_calibration.workflow._config_file import (
    Block,
    Common,
    Entry,
    Scores,
    Sensitivity,
    file_model,
    json_schema,
    method_parameters,
)

__all__ = [
    "Config",
    "ConfigError",
    "Dataset",
    "MethodEntry",
    "check_duplicate_keys",
    "json_schema",
    "resolve_config",
    "retype_overrides",
]

SCHEMA_PATH = Path(__file__).parents[2] / "schemas" / "config.schema.json"


class Dataset(Block):
    """A data set, with all that holds for it.

    Attributes
    ----------
    source : dict
        ``source``, the name of the source, and the values of all of its keys.
    encoder, scaling : str
        As given, "auto" too: what that means depends on the inputs
        (`epistemic_calibration.workflow.plan.Plan.encoding`).
    encoder_parameters : dict
        Values of the parameters of the encoder, of the autoencoder where it is "auto".
    """

    source: dict[str, Any]
    tasks: Literal["all"] | list[str]
    encoder: str
    encoder_parameters: dict[str, Any]
    scaling: str
    n_neighbors: int
    scores: Scores


class MethodEntry(Block):
    """An entry of ``methods`` or ``controls``.

    Attributes
    ----------
    implementation : str or None
        Name of a method of the project, or path of a user's file; None where predictions
        were made elsewhere.
    predictions : str or None
        Pattern of the paths of these predictions.
    parameters : dict
        Values of all parameters but ``random_state``.
    """

    implementation: str | None = None
    predictions: str | None = None
    label: str
    family: Literal["active", "illustrative", "control"] = "active"
    uses_neighbors: bool = False
    datasets: list[str]
    parameters: dict[str, Any] = Field(default_factory=dict)


class Config(Common):
    """The configuration with every default filled in.

    Attributes
    ----------
    toy, toy_demo : dict
        ``seeds``, ``methods`` and ``arguments``, the values of all settings, by experiment.
    """

    datasets: dict[str, Dataset]
    methods: dict[str, MethodEntry]
    controls: dict[str, MethodEntry]
    sensitivity: Sensitivity
    toy: dict[str, dict[str, Any]]
    toy_demo: dict[str, dict[str, Any]]


def resolve_config(
    config: Mapping[str, Any], base_dir: str | Path = ".", reserved: Collection[str] = ()
) -> Config:
    """Check a configuration and return it with every default filled in.

    Parameters
    ----------
    config : mapping
        What ``config.yaml`` says, as read by a YAML parser. It is not changed.
    base_dir : path
        Folder that relative paths of method files start from.
    reserved : collection of str
        Names that no data set may have.

    Raises
    ------
    ConfigError
        At every fault found. What one block demands of another is checked once each block
        is right by itself.
    """
    faults: list[str] = []
    file = parse(file_model(), dict(config), "", faults)
    # Names and methods are checked in what is given, so that they are told with faults of form.
    datasets = config.get("datasets")
    datasets = list(datasets) if isinstance(datasets, Mapping) else []
    faults += _name_faults(datasets, config.get("benchmark"), reserved)
    groups: dict[str, dict[str, Any]] = {"methods": {}, "controls": {}}
    taken: dict[str, str] = {}
    for group, entries in groups.items():
        given = config.get(group)
        for name, entry in given.items() if isinstance(given, Mapping) else ():
            key, folded = f"{group}.{name}", str(name).lower()
            if folded in taken:
                faults.append(f"{key}: the name is taken by {taken[folded]}")
            taken[folded] = key
            entries[name] = _method_entry(key, entry, datasets, Path(base_dir), faults)
    if faults:
        raise ConfigError(faults)
    resolved = {name: _dataset(block, file) for name, block in file.datasets.items()}
    for group, entries in groups.items():
        for name, entry in entries.items():
            entry.parameters |= _default_device(entry.parameters, config[group][name], file)
            faults += _neighbor_faults(f"{group}.{name}", entry, resolved)
    toys = {toy: _toy(toy, file, groups["methods"], faults) for toy in ("toy", "toy_demo")}
    if faults:
        raise ConfigError(faults)
    common = {name: getattr(file, name) for name in (*Common.model_fields, "sensitivity")}
    return Config(**common, datasets=resolved, **groups, **toys)


def _name_faults(names: list[str], benchmark: Any, reserved: Collection[str]) -> Iterator[str]:
    package = "epistemic_calibration.report.tables"
    suffixes = {registry.load(package, table).SUFFIX for table in registry.available(package)}
    for name in names:
        if name in reserved:
            yield f"datasets.{name}: the name is reserved; choose another"
        # Its tables could be those of another data set.
        for suffix in sorted({*suffixes, "_comparisons"} - {""}):
            if str(name).endswith(suffix):
                yield f"datasets.{name}: a name must not end in {suffix}, as tables do"
    for name in benchmark if isinstance(benchmark, list) else ():
        if name not in names:
            yield f"benchmark: {name!r} is not a data set{suggest(name, names)}"


def _method_entry(
    key: str, entry: Any, datasets: list[str], base_dir: Path, faults: list[str]
) -> MethodEntry | None:
    """Return an entry but for the device; if it is wrong, None, or one that nobody uses."""
    given = parse(Entry, entry, key, faults)
    if given is None:
        return None
    name = key.partition(".")[2]
    shown_on = given.datasets or datasets
    faults += [
        f"{key}.datasets: {dataset!r} is not a data set{suggest(dataset, datasets)}"
        for dataset in shown_on
        if dataset not in datasets
    ]
    kinds = [kind for kind in ("method", "file", "predictions") if getattr(given, kind)]
    if len(kinds) > 1:
        faults.append(f"{key}: give one of {' and '.join(kinds)}, not both")
        return None
    if given.predictions:
        faults += [
            f"{key}.{name}: predictions made elsewhere take no parameters"
            for name in given.model_extra
        ]
        label = given.label or name
        return MethodEntry(predictions=given.predictions, label=label, datasets=shown_on)
    implementation = given.file or given.method or name
    if not given.file and implementation not in available_methods():
        names = available_methods()
        faults.append(
            f"{key}: no method {implementation!r}{suggest(implementation, names)}; give one of "
            f"{', '.join(names)}, or `file: path/to/method.py`"
        )
        return None
    try:
        method = load_method(str(base_dir / given.file) if given.file else implementation)
        resolved = {
            "implementation": implementation,
            "label": given.label or (method.label if implementation == name else name),
            "family": method.family,
            "uses_neighbors": method.uses_neighbors,
            "datasets": shown_on,
            "parameters": method_parameters(method, given.model_extra, key, faults),
        }
    # A user's file may fail in any way.
    except Exception as error:
        faults.append(f"{key}: {type(error).__name__}: {' '.join(str(error).split())}")
        return None
    return parse(MethodEntry, resolved, key, faults)


def _default_device(
    parameters: Mapping[str, Any], given: Collection[str], file: Any
) -> dict[str, str]:
    """Return the device of the whole configuration where a block takes one and gives none."""
    return {"device": file.device} if "device" in parameters and "device" not in given else {}


def _neighbor_faults(
    key: str, entry: MethodEntry, datasets: Mapping[str, Dataset]
) -> Iterator[str]:
    needed = entry.parameters.get("n_neighbors", 0) if entry.uses_neighbors else 0
    for name in entry.datasets:
        stored = datasets[name].n_neighbors
        if needed > stored:
            yield (
                f"{key}.n_neighbors: {needed} is more than the {stored} neighbours that "
                f"latents.n_neighbors stores for data set {name}; raise that key"
            )


def _dataset(block: Any, file: Any) -> Dataset:
    latents = _merged(file.latents, block.latents)
    name = "autoencoder" if latents.encoder == "auto" else latents.encoder
    encoder = _merged(getattr(file, name), getattr(block, name))
    parameters = encoder.model_dump()
    return Dataset(
        source=block.model_dump(exclude={"tasks", "latents", "scores", *available_encoders()}),
        tasks=block.tasks,
        **latents.model_dump(),
        encoder_parameters=parameters | _default_device(parameters, encoder.model_fields_set, file),
        scores=_merged(file.scores, block.scores),
    )


def _toy(
    toy: str, file: Any, methods: Mapping[str, MethodEntry], faults: list[str]
) -> dict[str, dict[str, Any]]:
    """Return the toy experiments by name, as `Config` has them."""
    fitted = {name: entry.family for name, entry in methods.items() if entry.implementation}
    known = {*fitted, *available_methods()}
    resolved = {}
    for name in available_experiments():
        if name not in file.toy.model_fields_set:
            continue
        changes = getattr(file.toy_demo, name) if toy == "toy_demo" else None
        block = _merged(getattr(file.toy, name), changes)
        chosen = getattr(block, "methods", [])
        if chosen in ("all", "active"):
            chosen = [n for n, family in fitted.items() if chosen in ("all", family)]
        elif toy == "toy" or "methods" in getattr(changes, "model_fields_set", ()):
            faults += [
                f"{toy}.{name}.methods: no method {n!r}{suggest(n, known)}"
                for n in chosen
                if n not in known
            ]
        # A method that is left out of the benchmark is left out here, and an experiment
        # without methods goes with it.
        shown = [n for n in chosen if n in fitted]
        if shown or not chosen:
            seeds = (toy == "toy_demo" and file.toy_demo.seeds) or file.toy.seeds
            arguments = block.model_dump(exclude={"seeds", "methods"})
            resolved[name] = {
                "seeds": block.seeds or seeds,
                "methods": shown,
                "arguments": arguments,
            }
    return resolved


def _merged(block: Any, changes: Any) -> Any:
    """Return a block with the values that another one gives, which may be None."""
    given = changes.model_fields_set if changes else ()
    return block.model_copy(update={name: getattr(changes, name) for name in given})


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
                name = f"{prefix}.{key.value}" if prefix else str(key.value)
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
        raise ConfigError(faults)


if __name__ == "__main__":
    SCHEMA_PATH.write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")
    print(f"{SCHEMA_PATH} written")
