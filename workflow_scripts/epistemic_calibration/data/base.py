"""What every data source shares: the data set it returns, its contract, its checks."""

from __future__ import annotations

import dataclasses
import logging
import re
import typing
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from epistemic_calibration.parameters import parameter

logger = logging.getLogger("epistemic_calibration")

#: Characters of a class name in a path: names of files end at 255 bytes, and those of receipts and
#: temporary files are longer.
_LONGEST = 150


class DataError(RuntimeError):
    """Raw data are missing or wrong; the message names the file and what to do."""


class MissingDataError(DataError):
    """Raw data are not there at all."""


def raise_faults(where: str, faults: Sequence[str]) -> None:
    """Raise a DataError that tells all faults of raw data at once, if there are any."""
    if len(faults) == 1:
        raise DataError(f"{where}: {faults[0]}")
    if faults:
        raise DataError("\n  ".join([f"{where} has {len(faults)} faults:", *faults]))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs and class labels, split into a training and a test set.

    Attributes
    ----------
    x_train, x_test : ndarray
        Images, of shape (n_samples, height, width, channels), uint8 or float32 in [0, 1], with
        one or three channels; or features, (n_samples, n_features), finite floating-point
        numbers.
    y_train, y_test : ndarray of shape (n_samples,), int64
        Indices into ``class_names``.
    class_names : tuple of str
    test_rows : ndarray of shape (n_test,), int
        Row of each test input in the set that it was chosen from, before ``max_test``: in the
        source's whole test set, or training set where ``annotations`` hold a part of it out.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    class_names: tuple[str, ...]
    test_rows: np.ndarray

    def check(self) -> None:
        """Check that the parts fit each other and that both sets hold every class.

        Raises
        ------
        DataError
            At the first fault found.
        """
        check_class_names(self.class_names)
        for name, inputs, labels in (
            ("train", self.x_train, self.y_train),
            ("test", self.x_test, self.y_test),
        ):
            check_inputs(f"x_{name}", inputs)
            if len(inputs) != len(labels):
                raise DataError(
                    f"x_{name} has {len(inputs)} inputs, but y_{name} {len(labels)} labels"
                )
            if labels.min() < 0 or labels.max() >= len(self.class_names):
                raise DataError(
                    f"y_{name} has labels from {labels.min()} to {labels.max()}; they must lie in "
                    f"0 ... {len(self.class_names) - 1}"
                )
            missing = sorted(set(range(len(self.class_names))) - set(labels.tolist()))
            if missing:
                words = ", ".join(self.class_names[k] for k in missing)
                raise DataError(f"the {name} set has no input of class {words}")
        if self.x_train.shape[1:] != self.x_test.shape[1:]:
            raise DataError(
                f"x_train has shape {self.x_train.shape}, but x_test {self.x_test.shape}: inputs "
                f"must be of one size"
            )
        if len(self.test_rows) != len(self.y_test):
            raise DataError(
                f"test_rows has {len(self.test_rows)} rows, but y_test {len(self.y_test)} labels"
            )

    @staticmethod
    def pixels(images: np.ndarray) -> np.ndarray:
        """Return images as float32 in [0, 1].

        Examples
        --------
        >>> Dataset.pixels(np.array([0, 255], dtype=np.uint8))
        array([0., 1.], dtype=float32)
        """
        if images.dtype == np.uint8:
            return images.astype(np.float32) / np.float32(255)
        return images.astype(np.float32, copy=False)


@dataclass(frozen=True, kw_only=True)
class DataSource(ABC):
    """Where a data set's inputs come from; its fields are the source's configuration keys.

    A source is a file ``NAME.py`` of this folder with one subclass, decorated as this class
    is. What plans a run (`class_names`, `has_features`, `inventory`) must not read more than it
    needs, and imports no heavy library before it is called: import those inside the methods.

    Raises
    ------
    ValueError
        If a field annotated as a ``Literal`` has another value, or ``label_counts`` and
        ``annotations`` are both given. Bounds are checked where the configuration is read.
    """

    max_train: int | None = parameter(
        None,
        ge=2,
        description="training inputs kept: a random subset, always the same, in their order, "
        "with the classes in their proportions and at least one input of each; all by default",
    )
    max_test: int | None = parameter(
        None, ge=2, description="test inputs kept, chosen as those of max_train; all by default"
    )
    label_counts: str | None = parameter(
        None,
        min_length=1,
        description="how many people gave each class to each test input, (n_test, n_classes), in "
        "the order of the whole test set: a .npy, .npz or .csv file, or a published set, cifar10h "
        "or fashion_mnist_h",
    )
    annotations: str | None = parameter(
        None,
        min_length=1,
        description="labels of each training input, (n_train, n_people), -1 where a person gave "
        "none: a .npy, .npz or .csv file, or a published set, cifar10n. Those of the first person "
        "are learnt, and all are counted on the training inputs that are held out as test set",
    )
    held_out_fraction: float = parameter(
        0.2,
        gt=0,
        lt=1,
        description="fraction of the training inputs that is the test set, with annotations",
    )

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value, choices = getattr(self, field.name), _choices(hints[field.name])
            if choices and value is not field.default and value not in choices:
                allowed = ", ".join(map(str, choices))
                raise ValueError(f"datasets.<name>.{field.name}: {value!r} is none of {allowed}")
        if self.label_counts is not None and self.annotations is not None:
            raise ValueError(
                "datasets.<name>.label_counts: with annotations the labels of the test inputs are "
                "counted from these; give one of the two"
            )

    # Each of these takes the folder where raw data lie, and raises a DataError if they are missing
    # or wrong, and a ValueError if a field is.

    @abstractmethod
    def load(self, data_dir: Path) -> Dataset:
        """Return the inputs; that they are a proper data set is checked by the caller."""

    @abstractmethod
    def class_names(self, data_dir: Path) -> tuple[str, ...]:
        """Return the class names as `load` orders them."""

    @abstractmethod
    def inventory(self, data_dir: Path) -> dict[str, Any]:
        """Return what tells the raw data from others, as JSON values.

        It must not depend on modification times or on where the data lie.
        """

    def has_features(self, data_dir: Path) -> bool:
        """Return whether the inputs are features, and not images, without reading them."""
        return False

    def has_label_counts(self, data_dir: Path) -> bool:
        """Return whether several labels of each test input are known, without reading them."""
        return self.label_counts is not None or self.annotations is not None

    def label_counts_inside(self, data_dir: Path) -> np.ndarray | None:
        """Return label counts that the raw data themselves hold, or None."""
        return None

    def chosen_rows(self, labels: np.ndarray, part: Literal["train", "test"]) -> np.ndarray | slice:
        """Return the rows of one set that ``max_train`` or ``max_test`` keeps, ascending.

        ``labels`` are those of the whole set.
        """
        n_kept = getattr(self, f"max_{part}")
        if n_kept is None or n_kept >= len(labels):
            return slice(None)
        counts = np.unique(labels, return_counts=True)[1]
        if n_kept < len(counts):
            raise ValueError(
                f"datasets.<name>.max_{part}: {n_kept} inputs cannot hold one of each of the "
                f"{len(counts)} classes"
            )
        # The k-th of a class's n images, in random order, comes at the moment k / n: any first
        # part of that queue has the classes in proportion, and its head has one of each.
        order = np.random.default_rng(0).permutation(len(labels))
        by_class = order[np.argsort(labels[order], kind="stable")]
        moment = np.concatenate([np.arange(n) / n for n in counts])
        return np.sort(by_class[np.argsort(moment, kind="stable")[:n_kept]])


def raw_file(data_dir: Path, given: str, key: str, more: str = "") -> Path:
    """Return the path of a file that a configuration key gives, which must exist."""
    path = data_dir / Path(given).expanduser()
    if not path.is_file():
        raise MissingDataError(f"no such file: {path} (config key datasets.<name>.{key}{more})")
    return path


def check_class_names(names: Sequence[str]) -> None:
    """Check that there are two classes or more, each with a name of its own."""
    if len(names) < 2:
        raise DataError(f"the data set has the classes {list(names)}; at least two are needed")
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise DataError(f"two classes are called {twice[0]!r}; rename one")


def check_inputs(name: str, inputs: np.ndarray) -> None:
    """Check that an array, called ``name``, holds images or features, as `Dataset` has them."""
    features = inputs.ndim == 2
    if 0 in inputs.shape or not (features or (inputs.ndim == 4 and inputs.shape[3] in (1, 3))):
        raise DataError(
            f"{name} has shape {inputs.shape}; it must be (n_samples, height, width) or "
            f"(n_samples, height, width, channels) with 1 or 3 channels, or (n_samples, "
            f"n_features), and not empty"
        )
    if inputs.dtype == np.uint8 and not features:
        return
    if inputs.dtype.kind != "f":
        raise DataError(f"{name} has dtype {inputs.dtype}; it must be floating point, or uint8")
    wrong = np.flatnonzero(~np.isfinite(inputs).reshape(len(inputs), -1).all(axis=1))
    if len(wrong):
        raise DataError(f"{name} has values that are NaN or infinite, first in row {wrong[0]}")
    if not features and (inputs.min() < 0 or inputs.max() > 1):
        raise DataError(
            f"{name} has pixels from {inputs.min():g} to {inputs.max():g}; floating-point pixels "
            f"must lie in [0, 1] (uint8 ones in 0 ... 255)"
        )


def task_names(class_names: Sequence[str]) -> tuple[str, ...]:
    """Return class names as parts of paths: ASCII letters, digits, ``-``, ``_`` and ``.``.

    Accents are dropped, each run of other characters becomes ``_``, and so does a leading dot.
    Where no letter or digit is left, as of names in other scripts, more than 150 characters are,
    or two names would be told apart by capitals alone or not at all, a class is called by its
    number, from 0: ``class_3``; then so is one whose own name is such a number.

    Parameters
    ----------
    class_names : sequence of str
        All classes of a data set, in its order.

    Raises
    ------
    ValueError
        If a name is empty.

    Examples
    --------
    >>> task_names(["T-shirt/top", "猫", "a b", "a_b"])
    ('T-shirt_top', 'class_1', 'class_2', 'class_3')
    """
    plain = [_path_safe(name) for name in class_names]
    taken = Counter(name.lower() for name in plain)
    numbered = {
        k
        for k, name in enumerate(plain)
        if not re.search("[A-Za-z0-9]", name) or taken[name.lower()] > 1 or len(name) > _LONGEST
    }
    if numbered:
        # Another class may have such a number for its name.
        numbered |= {k for k, name in enumerate(plain) if re.fullmatch(r"(?i)class_\d+", name)}
    return tuple(f"class_{k}" if k in numbered else name for k, name in enumerate(plain))


def _path_safe(class_name: str) -> str:
    if not class_name:
        raise ValueError("a class name is empty")
    plain = unicodedata.normalize("NFKD", class_name)
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return re.sub(r"^\.", "_", re.sub(r"[^A-Za-z0-9._-]+", "_", plain))


def _choices(annotation: Any) -> tuple[Any, ...]:
    """Return the values of ``Literal[...]`` or ``Literal[...] | None``, and of others none."""
    options = (annotation, *typing.get_args(annotation))
    literals = [option for option in options if typing.get_origin(option) is Literal]
    return typing.get_args(literals[0]) if literals else ()
