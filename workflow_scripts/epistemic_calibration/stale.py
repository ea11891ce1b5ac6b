"""Results on disk that do not come from the present configuration and sources.

Snakemake reruns them by itself as long as it has its own record of how they were made. Where
that record is lost, or is made to say otherwise by ``--touch``, it would take them for
current; the fingerprint inside each file tells.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
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


def expected_files(plan: Plan) -> Iterator[tuple[Path, str]]:
    """Yield the results that carry a fingerprint, and which one.

    Tables and figures are written in several formats by one job; one stands for all.

    Returns
    -------
    iterator of (path, fingerprint)
        Paths relative to the working folder, upstream files first.
    """
    for dataset in plan.config["datasets"]:
        folder = Path("results", dataset)
        if not (plan.base_dir / folder).is_dir():
            continue
        yield folder / "images.npz", plan.fingerprint("images", dataset=dataset)
        for seed in plan.config["seeds"]:
            made = folder / f"seed{seed}"
            where = {"dataset": dataset, "seed": seed}
            yield made / "autoencoder.safetensors", plan.fingerprint("autoencoder", **where)
            yield made / "latents.npz", plan.fingerprint("latents", **where)
            yield made / "neighbors.npz", plan.fingerprint("neighbors", **where)
            for name in ("autoencoder_loss", "reconstructions"):
                figure = Path("results", "figures", dataset, f"{name}_seed{seed}.png")
                yield figure, plan.fingerprint("autoencoder_figures", **where)
            for method in plan.methods(dataset):
                stage = "predictions" if method in plan.imported else "hypotheses"
                fit = plan.fingerprint(stage, method=method, **where)
                for task in plan.tasks(dataset):
                    yield made / "hypotheses" / method / f"{task}.npz", fit
                score = plan.fingerprint("scores", method=method, **where)
                yield made / "scores" / f"{method}.csv", score
                yield made / "scores" / f"{method}.npz", score
                sensitivity = plan.fingerprint("sensitivity", method=method, **where)
                yield made / "sensitivity" / f"{method}.csv", sensitivity
        for name in (dataset, f"{dataset}_summary", f"{dataset}_drivers"):
            for folder, stage in (("tables", "tables"), ("partial", "partial_tables")):
                fingerprint = plan.fingerprint(stage, dataset=dataset)
                yield Path("results", folder, f"{name}.md"), fingerprint
        comparisons = Path("results", "tables", f"{dataset}_comparisons.md")
        yield comparisons, plan.fingerprint("comparisons", dataset=dataset)
        runtimes = Path("results", "runtimes", f"{dataset}.md")
        yield runtimes, plan.fingerprint("runtimes", dataset=dataset)
        figures = Path("results", "figures", dataset)
        for name in DATASET_FIGURES:
            yield figures / f"{name}.png", plan.fingerprint("figures", dataset=dataset)
        sensitivity = plan.fingerprint("sensitivity_figure", dataset=dataset)
        yield figures / "sensitivity.png", sensitivity
    for toy in ("toy", "toy_demo"):
        for experiment in plan.config[toy]:
            for method in plan.toy_methods(toy, experiment):
                path = Path("results", toy, experiment, "methods", f"{method}.csv")
                where = {"toy": toy, "experiment": experiment, "method": method}
                yield path, plan.fingerprint("toy_data", **where)
            figure = Path("results", toy, experiment, f"{experiment}.png")
            yield figure, plan.fingerprint("toy_figures", toy=toy, experiment=experiment)
    for stage in ("paper_comparison", "claims"):
        yield Path("results", "tables", f"{stage}.md"), plan.fingerprint(stage)


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
    return [
        path
        for path, fingerprint in expected_files(plan)
        if path not in besides
        and (plan.base_dir / path).is_file()
        and stored_fingerprint(plan.base_dir / path) != fingerprint
    ]


def recorded_files(base_dir: Path) -> set[Path]:
    """Return the results of which Snakemake has a record of how they were made."""
    paths = set()
    folder = base_dir / ".snakemake" / "metadata"
    for record in folder.rglob("*"):
        if record.is_dir():
            continue
        # A long name is cut into folders, whose names begin with this sign.
        parents = record.relative_to(folder).parts[:-1]
        parts = [part[1:] for part in parents if part.startswith("@")]
        with contextlib.suppress(ValueError):
            name = base64.urlsafe_b64decode("".join([*parts, record.name])).decode()
            paths.add(Path(name))
    return paths


def damaged_files(plan: Plan) -> list[Path]:
    """Return the results that cannot be read and whose change Snakemake would act on.

    Before a job runs, Snakemake deletes its old outputs; then the job fails on the damaged
    file. So the files that are newer than what was made from them are read first.
    """
    damaged = []
    for dataset in plan.config["datasets"]:
        folder = Path("results", dataset)
        chains = [(folder / "images.npz", [(folder, "seed*/latents.npz")])]
        for seed in plan.config["seeds"]:
            made = folder / f"seed{seed}"
            fits = (made / "hypotheses", "*/*.npz")
            latents = made / "latents.npz"
            chains += [
                (made / "autoencoder.safetensors", [(made, latents.name)]),
                (latents, [(made, "neighbors.npz"), fits]),
                (made / "neighbors.npz", [fits]),
            ]
            for method in plan.methods(dataset):
                scores = (made / "scores", f"{method}.csv")
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
            if any(product.stat().st_mtime_ns < changed for product in products):
                damaged += [] if _is_whole(plan.base_dir / path) else [path]
    return damaged


def _is_whole(path: Path) -> bool:
    from safetensors import SafetensorError, safe_open

    try:
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
    lines = path.read_text(encoding="utf-8").splitlines()
    column = lines[0].split(",").index("fingerprint")
    found = {line.split(",")[column] for line in lines[1:]}
    (fingerprint,) = found
    return fingerprint


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
    ".png": _read_png,
    ".safetensors": _read_safetensors,
}
