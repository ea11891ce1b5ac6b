"""What ``config.yaml`` may hold: typed models, and the JSON schema made of them.

The keys of data sources, encoders, methods and toy experiments are not written here: they are
fields of the classes, and arguments of the functions, that use them.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import typing
from collections.abc import Mapping
from functools import cache, reduce
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from epistemic_calibration.data import available_sources, load_source
from epistemic_calibration.latents import available_encoders, load_encoder
from epistemic_calibration.latents._scaling import scale_latents
from epistemic_calibration.methods import Method
from epistemic_calibration.methods._signatures import signature_fields
from epistemic_calibration.metrics.binning import Binning
from epistemic_calibration.paper.toy import available_experiments, load_experiment
from epistemic_calibration.workflow._config_faults import SchemaOfKeys, parse, suggest

_T = TypeVar("_T")


def _distinct(values: list[_T]) -> list[_T]:
    if any(value in values[:k] for k, value in enumerate(values)):
        raise PydanticCustomError("not_distinct", "Input has non-unique elements")
    return values


Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]
Name = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$",
        description="Letters, digits and underscores, starting with a letter: it becomes a folder "
        "and a target.",
    ),
]
Distinct = Annotated[
    list[_T],
    Field(min_length=1, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_distinct),
]


class Block(BaseModel):
    """Settings by name. Other names are faults, and values are not converted."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=()
    )


class Common(Block):
    """What is the same in ``config.yaml`` and when resolved."""

    data_dir: Text = Field("data", description="folder of raw data, relative to the working folder")
    benchmark: Distinct[str] = Field(description="data sets that the default target runs")
    seeds: Distinct[Seed] = Field(description="trainings of each method; scores are means of them")
    share_encoder: bool = Field(
        True, description="whether all seeds train on the encoder of the first one"
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="where networks are trained; auto is CUDA where there is one"
    )
    threads: Count = Field(1, description="threads per job")


class Scores(Block):
    """How hypotheses are scored."""

    n_bins: Count = Field(100, description="bins of the EECE")
    binning: Binning = Field("kmeans", description="how the bins of the EECE are built")
    ece_n_bins: Count = Field(10, description="bins of the ECE")
    corrected_n_bins: Count = Field(50, description="bins of the corrected TECE")
    corrected_binning: Binning = Field(
        "nested", description="how the bins of the corrected TECE are built"
    )
    confidence_level: float = Field(0.95, gt=0, lt=1, description="of all intervals")
    n_resamples: Count | Literal["auto"] = Field(
        "auto",
        description="label sets drawn per test; auto is enough for the number of tests that are "
        "corrected together",
    )
    recalibration: bool = Field(
        False, description="whether to score a recalibration, fitted on half of the test set, too"
    )
    random_state: Seed = Field(0, description="seed of K-means, folds and resampling")


class Sensitivity(Block):
    """How the estimates change with their settings."""

    n_tasks: Count = Field(2, description="tasks of each data set, the first ones")
    n_bins: Distinct[Count] = Field([10, 30, 100, 300, 1000], description="numbers of bins")
    n_hypotheses: Distinct[Count] = Field(
        [2, 5, 10, 20, 50, 100], description="sizes of the subsets of each method's hypotheses"
    )


class Entry(Block):
    """A method of the project, or of a file, with its parameters; or imported predictions."""

    model_config = ConfigDict(extra="allow")

    method: Text | None = Field(None, description="method of the project; by default the name")
    file: Annotated[str, Field(pattern=r"\.py$")] | None = Field(
        None, description="path of a .py file that defines a method"
    )
    class_: Text | None = Field(
        None, alias="class", description="class of the file, where it defines several methods"
    )
    depends_on: Distinct[Text] | None = Field(
        None,
        description="files, and folders of files, that the method reads or loads otherwise than "
        "by an import statement; their content counts as its code does",
    )
    predictions: Annotated[str, Field(pattern=r"(\{task\}.*\.(npz|csv)|\.npz)$")] | None = Field(
        None,
        description="path of a file of predictions, .npz or .csv, with {task} in it and, where "
        "they differ, {dataset} and {seed}; without {task}, an .npz of all classes",
    )
    label: Text | None = Field(None, description="name in tables and figures")
    datasets: Distinct[str] | None = Field(None, description="data sets it runs on; else all")
    more_seeds: Distinct[Seed] | None = Field(None, description="trainings beside `seeds`")

    @model_validator(mode="after")
    def _of_one_kind(self) -> Entry:
        kinds = [kind for kind in ("method", "file", "predictions") if getattr(self, kind)]
        text = ""
        if len(kinds) > 1:
            text = f"give one of {' and '.join(kinds)}, not both"
        elif self.predictions and self.model_extra:
            text = f"predictions made elsewhere take no {', '.join(self.model_extra)}"
        elif (self.class_ or self.depends_on) and not self.file:
            text = "`class` and `depends_on` only where `file` is given"
        if text:
            raise PydanticCustomError("kinds", "{text}", {"text": text})
        return self


def _latents() -> type[Block]:
    encoder = Field(
        "auto",
        description="what makes features of images; auto: autoencoder, or none where the inputs "
        "are features",
    )
    scaling = Field(
        "auto",
        description="how latents are scaled; auto: none as in the paper, or standard where the "
        "inputs are features",
    )
    scalings = typing.get_args(typing.get_type_hints(scale_latents)["scaling"])
    neighbors = Field(12, description="neighbours stored per test point, for all methods")
    return create_model(
        "Latents",
        __base__=Block,
        __doc__="From inputs to the features of methods.",
        encoder=(Literal[("auto", *available_encoders())], encoder),
        scaling=(Literal[("auto", *scalings)], scaling),
        n_neighbors=(Count, neighbors),
    )


@cache
def class_model(cls: type) -> type[Any]:
    """Return the model of a dataclass's fields, but ``random_state``."""
    return create_model(
        cls.__name__, __base__=Block, __doc__=_first_line(cls), **_class_fields(cls)
    )


def method_parameters(
    method: type[Method], given: Mapping[str, Any], key: str, faults: list[str]
) -> dict[str, Any]:
    """Return the parameters of a method, checked, with defaults filled in."""
    if method.parameter_fields() is not None:
        block = parse(class_model(method), given, key, faults)
        return block.model_dump() if block else {}
    defaults, fields = method.default_parameters(), signature_fields(method)
    for name in given:
        if name not in fields:
            faults.append(f"{key}.{name}: unknown key{suggest(name, fields)}")
            continue
        model = create_model(name, __base__=Block, **_fields({name: fields[name]}))
        parse(model, {name: given[name]}, key, faults)
    for name, value in defaults.items():
        try:
            json.dumps(value)
        except TypeError:
            faults.append(
                f"{key}.{name}: its default {value!r} in {method.__name__} is none that YAML can "
                f"give; make it a number, a text, a list or None"
            )
            return {}
    # A round trip through JSON makes lists of tuples, as YAML gives them.
    return json.loads(json.dumps({**defaults, **given}))


@cache
def file_model() -> type[Any]:
    """Return the model of ``config.yaml``."""
    # What a data set may override, too.
    blocks: dict[str, Any] = {"latents": _latents(), "scores": Scores}
    blocks |= {name: class_model(load_encoder(name)) for name in available_encoders()}
    blocks = {name: (block, Field(default_factory=block)) for name, block in blocks.items()}
    tasks = Field(
        "all",
        description="classes that are the positive class of a task, in this order; of two classes "
        "one, by default the second",
    )
    seeds = Field(None, description="if not as for the others: trainings of each method")
    datasets = []
    for name in available_sources():
        cls = load_source(name)
        source = Field(description="where its inputs come from")
        dataset = create_model(
            f"DatasetOf_{name}",
            __base__=Block,
            __doc__=_first_line(cls),
            source=(Literal[name], source),
            **_class_fields(cls),
            tasks=(Literal["all"] | Distinct[str], tasks),
            seeds=(Distinct[Seed] | None, seeds),
            **blocks,
        )
        datasets.append(dataset)
    dataset = Annotated[reduce(operator.or_, datasets), Field(discriminator="source")]
    entries = dict[Name, Entry]
    toy = _toy_model()
    methods = Field(description="what the tables compare")
    controls = Field(default_factory=dict, description="baselines, shown beside the methods")
    return create_model(
        "Configuration of the epistemic calibration benchmark",
        __base__=Common,
        __doc__="Every key of config.yaml.",
        datasets=(dict[Name, dataset], Field(min_length=1)),
        **blocks,
        methods=(entries, methods),
        controls=(entries, controls),
        sensitivity=(Sensitivity, Field(default_factory=Sensitivity)),
        toy=(toy, Field(default_factory=toy)),
    )


def _toy_model() -> type[Any]:
    blocks: dict[str, Any] = {}
    for name in available_experiments():
        experiment = load_experiment(name)
        fields = _fields(experiment.settings())
        fields["seeds"] = (Distinct[Seed], _optional("repetitions; by default those of `toy`"))
        if experiment.methods:
            choice = Field("all", description="all, active, or a list of names under `methods`")
            fields["methods"] = (Literal["all", "active"] | Distinct[str], choice)
        block = create_model(
            f"Toy_{name}", __base__=Block, __doc__=_first_line(experiment.run), **fields
        )
        blocks[name] = (block, _optional())
    seeds = Field(list(range(10)), description="repetitions of each experiment")
    return create_model(
        "Toy",
        __base__=Block,
        __doc__="Toy experiments, by name.",
        seeds=(Distinct[Seed], seeds),
        **blocks,
    )


def _class_fields(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls, include_extras=True)
    settings = {}
    for field in dataclasses.fields(cls):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if field.init and field.name != "random_state":
            default = ... if default is dataclasses.MISSING else default
            settings[field.name] = (hints[field.name], default, field.metadata)
    return _fields(settings)


def _fields(settings: Mapping[str, tuple[Any, Any, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return settings (annotation, default or ``...``, metadata) as fields of a model."""
    fields = {}
    for name, (hint, default, metadata) in settings.items():
        bounds = dict(metadata)
        description = bounds.pop("description", "") or None
        default = list(default) if isinstance(default, tuple) else default
        field = Field(default, validate_default=True, description=description)
        fields[name] = (_annotation(hint, bounds), field)
    return fields


def _optional(description: str | None = None) -> Any:
    """Return a field that is None if it is not given, which the JSON schema does not show."""
    return Field(default_factory=lambda: None, description=description)


def _annotation(hint: Any, bounds: Mapping[str, Any]) -> Any:
    """Return an annotation with its bounds, as pydantic reads them, and lists for tuples."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _annotation(parts[0], reduce(operator.or_, parts[1:], dict(bounds)))
    if origin in (typing.Union, UnionType):
        return reduce(operator.or_, [_annotation(part, bounds) for part in parts])
    if origin is Literal or hint is NoneType:
        return hint
    if origin is tuple and ... not in parts:
        bounds = {"min_length": len(parts), "max_length": len(parts)}
    if origin in (tuple, list):
        items = [part for k, part in enumerate(parts) if part is not ... and part not in parts[:k]]
        hint = list[reduce(operator.or_, [_annotation(item, {}) for item in items])]
    return Annotated[hint, Field(**bounds)]


def _first_line(described: Any) -> str:
    return (described.__doc__ or "").strip().partition("\n")[0]


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of ``config.yaml``, for editors."""
    return file_model().model_json_schema(schema_generator=SchemaOfKeys)
