"""The configuration: checked against typed models, completed with defaults, resolved.

`resolve_config` takes what ``config.yaml`` says and returns a `Config`, which the plan reads.
Run as a script this module writes the JSON schema that editors check ``config.yaml`` with.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from epistemic_calibration import registry
from epistemic_calibration.latents import available_encoders
from epistemic_calibration.methods import available_methods, load_method
from epistemic_calibration.methods._faults import told
from epistemic_calibration.methods._signatures import class_faults
from epistemic_calibration.paper.toy import available_experiments
from epistemic_calibration.workflow._config_faults import (
    ConfigError,
    check_yaml,
    parse,
    suggest,
)
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
    "check_yaml",
    "json_schema",
    "resolve_config",
    "retyped",
]

#: For editors; `make` writes it.
SCHEMA_PATH = Path(__file__).parents[3] / "config.schema.json"


class Dataset(Block):
    """A data set, with all that holds for it; what an encoder "auto" means, the plan says."""

    source: dict[str, Any]
    tasks: Literal["all"] | list[str]
    seeds: list[int]
    encoder: str
    encoder_parameters: dict[str, Any]
    scaling: str
    n_neighbors: int
    scores: Scores


class MethodEntry(Block):
    """An entry of ``methods`` or ``controls``."""

    #: Name of a method of the project, or path of a user's file, with ``::`` and the name of the
    #: class where one is chosen; None where predictions were made elsewhere.
    implementation: str | None = None
    #: Pattern of the paths of these predictions.
    predictions: str | None = None
    #: Files that count as code of the method.
    depends_on: list[str] = Field(default_factory=list)
    #: Why the class cannot be loaded here, where a package that it needs is not installed: its
    #: jobs fail, and no others.
    missing: str | None = None
    label: str
    family: Literal["active", "illustrative", "control"] = "active"
    uses_neighbors: bool = False
    datasets: list[str]
    more_seeds: list[int] = Field(default_factory=list)
    parameters: dict[str, Any] = Field(default_factory=dict)


class Config(Common):
    """The configuration with every default filled in."""

    datasets: dict[str, Dataset]
    methods: dict[str, MethodEntry]
    controls: dict[str, MethodEntry]
    sensitivity: Sensitivity
    #: ``seeds``, ``methods`` and ``arguments``, the values of all settings, by experiment.
    toy: dict[str, dict[str, Any]]


def resolve_config(
    config: Mapping[str, Any],
    base_dir: str | Path = ".",
    reserved: Collection[str] = (),
    *,
    check_packages: bool = True,
) -> Config:
    """Check a configuration and return it with every default filled in.

    Names in ``reserved`` are for no data set. ``check_packages`` is off where jobs run in
    environments of their own. A `ConfigError` names every fault; what one block demands of
    another is checked once each block is right by itself.
    """
    config = dict(config)
    for group in ("methods", "controls"):
        if isinstance(config.get(group), Mapping):
            # An entry that is null is left out, as from the command line.
            config[group] = {n: entry for n, entry in config[group].items() if entry is not None}
    faults: list[str] = []
    file = parse(file_model(), config, "", faults)
    # Names and methods are checked in what is given, so that they are told with faults of form.
    datasets = config.get("datasets")
    datasets = list(datasets) if isinstance(datasets, Mapping) else []
    faults += _name_faults(datasets, config.get("benchmark"), reserved)
    groups: dict[str, dict[str, Any]] = {"methods": {}, "controls": {}}
    for group, entries in groups.items():
        given = config.get(group)
        for name, entry in given.items() if isinstance(given, Mapping) else ():
            key = f"{group}.{name}"
            if name in groups["methods"]:
                faults.append(f"{key}: the name is taken by methods.{name}")
            entries[name] = _method_entry(
                key, entry, datasets, Path(base_dir), faults, check_packages
            )
    faults += _alike("methods", [name for entries in groups.values() for name in entries])
    if faults:
        raise ConfigError(faults)
    resolved = {name: _dataset(block, file) for name, block in file.datasets.items()}
    _distinct_labels(config, groups)
    for group, entries in groups.items():
        for name, entry in entries.items():
            entry.parameters |= _default_device(entry.parameters, config[group][name], file)
            faults += _neighbor_faults(f"{group}.{name}", entry, resolved)
    toy = _toy(file.toy, groups["methods"], faults)
    if faults:
        raise ConfigError(faults)
    common = {name: getattr(file, name) for name in (*Common.model_fields, "sensitivity")}
    return Config(**common, datasets=resolved, **groups, toy=toy)


def _name_faults(names: list[str], benchmark: Any, reserved: Collection[str]) -> Iterator[str]:
    package = "epistemic_calibration.report.tables"
    suffixes = {registry.load(package, table).SUFFIX for table in registry.available(package)}
    suffixes = tuple(sorted({*suffixes, "_comparisons", "_scores", "_warnings"} - {""}))
    for name in names:
        if name in reserved:
            yield f"datasets.{name}: the name is reserved; choose another"
        # Its tables could be those of another data set.
        if str(name).endswith(suffixes):
            yield f"datasets.{name}: a name must not end as tables do, in {' or '.join(suffixes)}"
    yield from _alike("datasets", names)
    for name in benchmark if isinstance(benchmark, list) else ():
        if name not in names:
            yield f"benchmark: {name!r} is not a data set{suggest(name, names)}"


def _alike(group: str, names: Collection[str]) -> Iterator[str]:
    """Yield names whose folders are one where a file system does not tell cases apart."""
    taken: dict[str, str] = {}
    for name in names:
        if (other := taken.setdefault(str(name).lower(), name)) != name:
            yield f"{group}.{name}: the name differs from {other} in case only"


def _is_there(path: Path) -> bool:
    # A named pipe exists, too, and would be read for ever.
    return path.is_file() or path.is_dir()


def _method_entry(
    key: str,
    entry: Any,
    datasets: list[str],
    base_dir: Path,
    faults: list[str],
    check_packages: bool,
) -> MethodEntry | None:
    """Return an entry but for the device; if it is wrong, None, or one that nobody uses."""
    given = parse(Entry, entry, key, faults)
    if given is None:
        return None
    name, shown_on = key.partition(".")[2], given.datasets or datasets
    strange = [n for n in shown_on if n not in datasets]
    faults += [f"{key}.datasets: {n!r} is not a data set{suggest(n, datasets)}" for n in strange]
    resolved = {
        "label": given.label or name,
        "datasets": shown_on,
        "more_seeds": given.more_seeds or [],
    }
    if given.predictions:
        return MethodEntry(predictions=given.predictions, **resolved)
    implementation, own = given.method or name, given.file and base_dir / given.file
    if own:
        implementation = given.file + (f"::{given.class_}" if given.class_ else "")
        lost = [file for file in given.depends_on or () if not _is_there(base_dir / file)]
        faults += [f"{key}.depends_on: no such file or folder: {file}" for file in lost]
    elif implementation not in available_methods():
        names = available_methods()
        words = f"no method {implementation!r}{suggest(implementation, names)}"
        faults.append(f"{key}: {words}; give one of {', '.join(names)}, or a `file`")
        return None
    resolved |= {
        "implementation": implementation,
        "depends_on": given.depends_on or [],
        "parameters": given.model_extra,
    }
    before = len(faults)
    try:
        method = load_method(str(base_dir / implementation) if own else implementation)
        if check_packages:
            faults += [f"{key}: {missing}" for missing in method.missing_packages()]
        if own:
            faults += class_faults(method, given.model_extra, key)
        if len(faults) > before:
            return None
        if not given.label and (own or implementation == name):
            resolved["label"] = getattr(method, "label", name)
        resolved |= {
            "family": method.family,
            "uses_neighbors": method.uses_neighbors,
            "parameters": method_parameters(method, given.model_extra, key, faults),
        }
    except ModuleNotFoundError as error:
        resolved["missing"] = f"{key}: {told(error, own)}"
    # A user's file may fail in any way.
    except Exception as error:
        # Of a ValueError of this project's, the message says it all.
        faults.append(f"{key}: {told(error, own).removeprefix('ValueError: ')}")
        return None
    return parse(MethodEntry, resolved, key, faults)


def _distinct_labels(config: Mapping[str, Any], groups: Mapping[str, dict[str, Any]]) -> None:
    """Give entries whose classes have the same label their own names."""
    entries = [(group, name, e) for group in groups for name, e in groups[group].items() if e]
    counts = Counter(entry.label for _, _, entry in entries)
    for group, name, entry in entries:
        if counts[entry.label] > 1 and not config[group][name].get("label"):
            entry.label = name


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
        source=block.model_dump(
            exclude={"tasks", "seeds", "latents", "scores", *available_encoders()}
        ),
        tasks=block.tasks,
        seeds=block.seeds or file.seeds,
        **latents.model_dump(),
        encoder_parameters=parameters | _default_device(parameters, encoder.model_fields_set, file),
        scores=_merged(file.scores, block.scores),
    )


def _toy(
    toy: Any, methods: Mapping[str, MethodEntry], faults: list[str]
) -> dict[str, dict[str, Any]]:
    """Return the toy experiments by name, as `Config` has them."""
    fitted = {name: entry.family for name, entry in methods.items() if entry.implementation}
    known = {*fitted, *available_methods()}
    resolved = {}
    for name in available_experiments():
        if name not in toy.model_fields_set:
            continue
        block = getattr(toy, name)
        chosen = getattr(block, "methods", [])
        if chosen in ("all", "active"):
            chosen = [n for n, family in fitted.items() if chosen in ("all", family)]
        strange = [n for n in chosen if n not in known]
        faults += [f"toy.{name}.methods: no method {n!r}{suggest(n, known)}" for n in strange]
        # A method that is left out of the benchmark is left out here, and an experiment
        # without methods goes with it.
        shown = [n for n in chosen if n in fitted]
        if shown or not chosen:
            resolved[name] = {
                "seeds": block.seeds or toy.seeds,
                "methods": shown,
                "arguments": block.model_dump(exclude={"seeds", "methods"}),
            }
    return resolved


def _merged(block: Any, changes: Any) -> Any:
    """Return a block with the values that another one gives, which may be None."""
    given = changes.model_fields_set if changes else ()
    return block.model_copy(update={name: getattr(changes, name) for name in given})


def retyped(value: Any) -> Any:
    """Return what ``--config`` brought with the types that YAML gives it.

    Snakemake reads ``--config 'seeds=[0, 1]'`` as a list of texts.

    >>> retyped({"seeds": ["0", "1"]})
    {'seeds': [0, 1]}
    """
    if isinstance(value, Mapping):
        return {key: retyped(part) for key, part in value.items()}
    if isinstance(value, list):
        return [retyped(part) for part in value]
    return yaml.safe_load(value) if isinstance(value, str) else value


if __name__ == "__main__":
    SCHEMA_PATH.write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")
