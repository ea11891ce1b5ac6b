"""Results on disk that do not come from the present configuration and sources.

Snakemake reruns them by itself as long as it has its own record of how they were made. Where
that record is lost, or is made to say otherwise by ``--touch``, it would take them for
current; the fingerprint inside each file tells.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import json
import re
import shlex
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from epistemic_calibration.provenance import FINGERPRINT_KEY
from epistemic_calibration.style import DATASET_FIGURES

if TYPE_CHECKING:
    from epistemic_calibration.plan import Plan

_MARK = re.compile(r"fingerprint: ([0-9a-f]{64})")


def expected_files(plan: Plan) -> Iterator[tuple[Path, str, dict[str, str | int]]]:
    """Yield the results that carry a fingerprint, and what gives the one expected.

    Tables and figures are written in several formats by one job; one stands for all.

    Returns
    -------
    iterator of (path, stage, wildcards)
        Paths relative to the working folder, upstream files first; the other two are
        arguments of `Plan.fingerprint`.
    """
    results = Path("results")
    yield results / "config.resolved.yaml", "resolved_config", {}
    for dataset in plan.config["datasets"]:
        where = {"dataset": dataset}
        folder, figures = results / dataset, results / "figures" / dataset
        yield folder / "images.npz", "images", where
        for seed in plan.config["seeds"]:
            of_seed, made = {**where, "seed": seed}, folder / f"seed{seed}"
            yield made / "autoencoder.safetensors", "autoencoder", of_seed
            yield made / "latents.npz", "latents", of_seed
            yield made / "neighbors.npz", "neighbors", of_seed
            for name in ("autoencoder_loss", "reconstructions"):
                yield figures / f"{name}_seed{seed}.png", "autoencoder_figures", of_seed
            for method in plan.methods(dataset):
                fit = {**of_seed, "method": method}
                stage = "predictions" if method in plan.imported else "hypotheses"
                for task in plan.tasks(dataset):
                    yield made / "hypotheses" / method / f"{task}.npz", stage, fit
                for suffix in (".csv", ".npz"):
                    yield made / "scores" / f"{method}{suffix}", "scores", fit
                yield made / "sensitivity" / f"{method}.csv", "sensitivity", fit
        for name in (dataset, f"{dataset}_summary", f"{dataset}_drivers"):
            yield results / "tables" / f"{name}.md", "tables", where
            yield results / "partial" / f"{name}.md", "partial_tables", where
        yield results / "tables" / f"{dataset}_comparisons.md", "comparisons", where
        yield results / "runtimes" / f"{dataset}.md", "runtimes", where
        for name in DATASET_FIGURES:
            yield figures / f"{name}.png", "figures", where
        yield figures / "sensitivity.png", "sensitivity_figure", where
    for toy in ("toy", "toy_demo"):
        for experiment in plan.config[toy]:
            where, folder = {"toy": toy, "experiment": experiment}, results / toy / experiment
            for method in plan.toy_methods(toy, experiment):
                yield folder / "methods" / f"{method}.csv", "toy_data", {**where, "method": method}
            yield folder / f"{experiment}.png", "toy_figures", where
    for stage in ("paper_comparison", "claims"):
        yield results / "tables" / f"{stage}.md", stage, {}


def stored_fingerprint(path: Path) -> str | None:
    """Return the fingerprint that a result file carries, or None where there is none to read."""
    try:
        return _READERS[path.suffix](path)
    except Exception:
        # Whatever is wrong with the file, it is not the result that it should be.
        return None


def stale_files(plan: Plan, besides: Collection[Path] = ()) -> list[Path]:
    """Return the results on disk whose fingerprint is not the expected one.

    Those in ``besides`` are not looked at.
    """
    stale = []
    for path, stage, wildcards in expected_files(plan):
        if path in besides or not (plan.base_dir / path).is_file():
            continue
        try:
            expected = plan.fingerprint(stage, **wildcards)
        except ValueError:
            # A file of predictions is missing, which is named before anything runs.
            continue
        if stored_fingerprint(plan.base_dir / path) != expected:
            stale.append(path)
    return stale


def recorded_files(base_dir: Path) -> set[Path]:
    """Return the results of which Snakemake's records say how they were made.

    A result that came here after its record was written counts if its fingerprint is that of
    the record.
    """
    paths = set()
    folder = base_dir / ".snakemake" / "metadata"
    for record in folder.rglob("*"):
        if record.is_dir():
            continue
        # A long name is cut into folders, whose names begin with this sign.
        parents = record.relative_to(folder).parts[:-1]
        parts = [part[1:] for part in parents if part.startswith("@")]
        with contextlib.suppress(ValueError, OSError):
            path = Path(base64.urlsafe_b64decode("".join([*parts, record.name])).decode())
            # The time at which a file got here, whatever modification time it brought along.
            unchanged = (base_dir / path).stat().st_ctime_ns <= record.stat().st_mtime_ns
            if unchanged or _recorded_fingerprint(record) == stored_fingerprint(base_dir / path):
                paths.add(path)
    return paths


def _recorded_fingerprint(record: Path) -> str:
    arguments = shlex.split(json.loads(record.read_text(encoding="utf-8"))["shellcmd"] or "")
    if "--spec" not in arguments:
        return ""
    # The spec is canonical JSON, of which the fingerprint is the hash.
    return hashlib.sha256(arguments[arguments.index("--spec") + 1].encode()).hexdigest()


def damaged_files(plan: Plan) -> list[Path]:
    """Return the results that cannot be read and whose change Snakemake would act on.

    Before a job runs, Snakemake deletes its old outputs; then the job fails on the damaged
    file. So the files that are newer than what was made from them are read first. Weights
    are judged by their header and length alone.
    """
    damaged = []
    for dataset in plan.config["datasets"]:
        folder = Path("results", dataset)
        networks = [(folder, "seed*/autoencoder.safetensors"), (folder, "seed*/latents.npz")]
        chains = [(folder / "images.npz", networks)]
        for seed in plan.config["seeds"]:
            made = folder / f"seed{seed}"
            fits = (made / "hypotheses", "*/*.npz")
            latents = made / "latents.npz"
            chains += [
                (made / "autoencoder.safetensors", [(made, latents.name)]),
                (latents, [(made, "neighbors.npz"), fits]),
                (made / "neighbors.npz", [fits]),
            ]
            tables = (Path("results", "tables"), f"{dataset}*.md")
            for method in plan.methods(dataset):
                scores = (made / "scores", f"{method}.csv")
                chains += [
                    (made / "scores" / f"{method}{suffix}", [tables]) for suffix in (".csv", ".npz")
                ]
                for task in plan.tasks(dataset):
                    chains.append((made / "hypotheses" / method / f"{task}.npz", [scores]))
        for path, consumers in chains:
            if not (plan.base_dir / path).is_file():
                continue
            products = (
                product
                for where, pattern in consumers
                for product in (plan.base_dir / where).glob(pattern)
            )
            changed = (plan.base_dir / path).stat().st_mtime_ns
            older = any(product.stat().st_mtime_ns < changed for product in products)
            if older and not _is_whole(plan.base_dir / path):
                damaged.append(path)
    return damaged


def _is_whole(path: Path) -> bool:
    from safetensors import SafetensorError, safe_open

    try:
        if path.suffix == ".csv":
            return stored_fingerprint(path) is not None
        if path.suffix == ".safetensors":
            with safe_open(path, framework="np"):
                return True
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, SafetensorError):
        return False


def touches(arguments: Sequence[str]) -> bool:
    """Whether a command line of Snakemake has ``--touch``, in full, short or abbreviated."""
    return any(
        # Behind other switches of one letter, as in -nt.
        re.fullmatch("-[FfknpR]*t", argument)
        or (len(argument) > 3 and "--touch".startswith(argument))
        for argument in arguments
    )


def _read_npz(path: Path) -> str:
    import numpy as np

    with np.load(path, allow_pickle=False) as file:
        return json.loads(str(file["provenance"]))["fingerprint"]


def _read_csv(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    (fingerprint,) = {row["fingerprint"] for row in csv.DictReader(text.splitlines())}
    return fingerprint if text.endswith("\n") else ""


def _read_text(path: Path) -> str:
    return _MARK.search(path.read_text(encoding="utf-8")).group(1)


def _read_safetensors(path: Path) -> str:
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        metadata = json.loads(file.read(size))["__metadata__"]
    return json.loads(json.loads(metadata["autoencoder"])["provenance"])["fingerprint"]


def _read_png(path: Path) -> str:
    from PIL import Image

    with Image.open(path) as image:
        return image.text[FINGERPRINT_KEY]


_READERS = {
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".md": _read_text,
    ".yaml": _read_text,
    ".png": _read_png,
    ".safetensors": _read_safetensors,
}
