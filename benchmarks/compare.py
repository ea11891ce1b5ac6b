"""Time the plain script and the workflow on the same images, one after the other.

Both read one .npz file, do the same tasks with the same methods, epochs and numbers of
hypotheses, and run on the processor. The workflow scores more: `plain.py` has no estimates
beyond the paper's. Tables go to the screen and, as CSV, to results/bench.

How the numbers are made: wall seconds and peak memory of the workflow's jobs are those of
Snakemake's benchmark files. Processor seconds are each process's own count at its end. What
Snakemake's own process uses is scheduling; imports are what outermost import statements take.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from measure import (
    ROOT,
    Usage,
    arguments,
    measure,
    n_cores,
    new_project,
    npz_block,
    read_config,
    read_images,
    read_process_times,
    snakemake,
    write_images,
)

from epistemic_calibration._epochs import number_of_epochs
from epistemic_calibration.report.style import PAPER_METHODS
from epistemic_calibration.workflow.config import resolve_config

#: What is compared, from images to scores.
STAGES = ("images", "encoder", "latents", "neighbors", "hypotheses", "scores")
#: Stages whose arithmetic is nearly all matrix products.
NETWORKS = ("dropconnect", "mc_dropout", "deep_ensemble", "laplace")
TIMES = ["wall s", "CPU s"]


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--dataset", action="append", help="of the configuration; may be repeated")
    parser.add_argument("--full", action="store_true", help="all of the benchmark (hours)")
    parser.add_argument("--n-train", type=int, default=10_000)
    parser.add_argument("--n-test", type=int, default=2_000)
    parser.add_argument("--n-tasks", type=int, default=3)
    parser.add_argument("--n-epochs", type=int, default=5, help="of the networks")
    parser.add_argument("--n-seeds", type=int, default=1, help="both sides, each seed anew")
    parser.add_argument(
        "--plain-threads",
        type=int,
        help="of the plain script's tensors (default: one a core, as libraries do)",
    )
    parser.add_argument("--work", type=Path, help="keep the runs in this new folder")
    args = parser.parse_args()
    if args.n_seeds < 1:
        parser.error(f"--n-seeds {args.n_seeds}: at least 1")
    config = read_config(args)
    if args.full:
        args.n_train = args.n_test = args.n_tasks = args.n_epochs = None
    datasets = args.dataset or (config["benchmark"] if args.full else ["mnist"])
    for dataset in datasets:
        if dataset not in config["datasets"]:
            parser.error(f"--dataset {dataset}: the configuration has no such data set")
    args.output.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        if args.work is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        else:
            folder = args.work.resolve()
        # All copies first: what is edited meanwhile has no part in it.
        comparisons = [Comparison(name, config, args, folder / name) for name in datasets]
        totals = [comparison.run(args.output) for comparison in comparisons]
    if len(totals) > 1:
        wall, cpu = (sum(t.loc[row, ["plain", "workflow"]] for t in totals) for row in TIMES)
        table = pd.DataFrame([wall, cpu], index=TIMES)
        table["plain / workflow"] = table["plain"] / table["workflow"]
        show(f"In all, {' and '.join(datasets)}", table, 2)
        table.to_csv(args.output / "all_totals.csv")


class Comparison:
    """Both ways to do the work of one data set, in a folder of its own."""

    def __init__(self, dataset, config, args, folder):
        self.images = read_images(config, dataset, args.n_train, args.n_test)
        folder.mkdir(parents=True)
        data = folder / "images.npz"
        write_images(data, self.images)
        tasks = self.images.class_names[: args.n_tasks]
        block = npz_block(config["datasets"][dataset], data, tasks)
        config = benchmark_config(config, dataset, block, args.n_seeds)
        for entry in config["methods"].values():
            if args.n_epochs is not None and "n_epochs" in entry:
                entry |= {"n_epochs": args.n_epochs, "min_steps": 1}
        resolved = resolve_config(config)
        self.dataset, self.folder, self.data = dataset, folder, data
        self.block, self.methods = resolved.datasets[dataset], resolved.methods
        self.seeds, self.cores = config["seeds"], n_cores(args.cores)
        self.plain_threads = args.plain_threads or self.cores
        self.project = new_project(folder / "project", config)
        self.times = folder / "process_times.jsonl"

    def run(self, output):
        """Time both, show and write the tables, return that of the totals."""
        images, dataset = self.images, self.dataset
        print(
            f"\n# {dataset}: {len(images.x_train)} training and {len(images.x_test)} test images, "
            f"{len(self.block.tasks)} tasks, {len(self.methods)} methods, "
            f"{len(self.seeds)} seed(s), {self.cores} core(s), "
            f"{self.plain_threads} thread(s) of the plain script's tensors\n",
            flush=True,
        )
        workflow, plain = self.run_workflow(), self.run_plain()
        processes = pd.DataFrame(read_process_times(self.times))
        stages = stage_table(self.project, dataset, self.methods, processes, self.folder)
        totals = total_table(plain, workflow, processes, self.cores)
        tables = {
            "stages": ("Seconds and memory by stage, summed over jobs", 2, stages),
            "totals": ("In all", 2, totals),
            "scores": (
                "Scores, mean over tasks and seeds: the same work must give the same scores",
                4,
                score_table(self.project, dataset, self.folder),
            ),
            "roofline": (
                "Roofline: training's arithmetic at the speed of a matrix product, one core",
                2,
                roofline_table(self.project, dataset, images, self.methods, self.block, stages),
            ),
        }
        for name, (title, digits, table) in tables.items():
            show(title, table, digits)
            table.to_csv(output / f"{dataset}_{name}.csv")
        print(f"written to {output}/{dataset}_*.csv", flush=True)
        return totals

    def run_workflow(self):
        return measure(
            snakemake("--cores", str(self.cores), f"results/tables/{self.dataset}.csv"),
            cwd=self.project,
            PYTHONPATH=str(ROOT / "benchmarks" / "process_times"),
            PROCESS_TIMES=str(self.times),
        )

    def run_plain(self):
        folder = self.folder
        commands = [
            [
                *(sys.executable, ROOT / "benchmarks" / "plain.py", "--data", self.data),
                *("--output", folder / f"plain_scores_{seed}.csv", "--seed", seed),
                *("--times", folder / f"plain_times_{seed}.csv"),
                *("--methods", *self.methods, "--tasks", *self.block.tasks),
                *("--n-epochs", epochs(self.methods["deep_ensemble"].parameters, self.images)),
                *("--autoencoder-epochs", epochs(self.block.encoder_parameters, self.images)),
                *("--n-bins", self.block.scores.n_bins),
            ]
            for seed in self.seeds
        ]
        threads = str(self.plain_threads)
        return in_turn(measure(c, cwd=folder, OMP_NUM_THREADS=threads) for c in commands)


def epochs(parameters, images):
    """Return how many epochs a block of parameters trains on the training images."""
    sizes = {name: parameters[name] for name in ("min_steps", "batch_size")}
    return number_of_epochs(parameters["n_epochs"], n_samples=len(images.x_train), **sizes)


def in_turn(usages):
    """Return what commands used that ran one after the other."""
    usages = list(usages)
    sums = {name: sum(getattr(u, name) for u in usages) for name in ("wall", "cpu")}
    peaks = {name: max(getattr(u, name) for u in usages) for name in ("peak_mb", "peak_total_mb")}
    return Usage(**sums, **peaks, output="".join(u.output for u in usages))


def benchmark_config(config, dataset, block, n_seeds):
    """Return the configuration of what the plain script does too."""
    methods = {name: config["methods"][name] for name in PAPER_METHODS if name in config["methods"]}
    return {
        **config,
        "benchmark": [dataset],
        "datasets": {dataset: block},
        "seeds": list(range(n_seeds)),
        "device": "cpu",
        "methods": methods,
        "controls": {},
    }


def stage_table(project, dataset, methods, processes, folder):
    plain = pd.concat(
        pd.read_csv(path, keep_default_na=False) for path in folder.glob("plain_times_*.csv")
    )
    plain = plain.groupby(["stage", "method"]).agg(
        {"seconds": "sum", "cpu_seconds": "sum", "peak_mb_so_far": "max"}
    )
    runtimes = read_runtimes(project / "results" / "benchmarks" / dataset, methods)
    jobs = runtimes.groupby(["stage", "method"]).agg(
        seconds=("seconds", "sum"), peak_mb=("peak_mb", "max"), jobs=("seconds", "size")
    )
    used = processes.dropna(subset="stage").groupby(["stage", "method"])
    index = pd.MultiIndex.from_tuples(
        [
            (stage, method)
            for stage in ("imports", *STAGES)
            for method in (methods if stage in ("hypotheses", "scores") else [""])
        ],
        names=["stage", "method"],
    )
    table = pd.DataFrame(
        {
            "plain wall s": plain["seconds"],
            "workflow wall s": jobs["seconds"],
            "plain CPU s": plain["cpu_seconds"],
            "workflow CPU s": used["cpu_seconds"].sum(),
            "of it imports": used["import_seconds"].sum(),
            "jobs": jobs["jobs"],
            # A process cannot tell what a stage adds, only its largest memory until then.
            "plain MB so far": plain["peak_mb_so_far"],
            "workflow MB": jobs["peak_mb"],
        }
    ).reindex(index)
    table.insert(4, "CPU ratio", table["plain CPU s"] / table["workflow CPU s"])
    return table


def read_runtimes(folder, methods):
    """Read Snakemake's benchmark files of a data set: a row per job of the stages compared."""
    rows = []
    for path in sorted(folder.rglob("*.tsv")):
        names = [
            part for part in path.relative_to(folder).with_suffix("").parts if part[:4] != "seed"
        ]
        stage, method = (*names, "")[:2]
        if stage in STAGES and method in (*methods, ""):
            used = pd.read_csv(path, sep="\t", na_values=["-", "NA"]).mean(numeric_only=True)
            rows.append((stage, method, used["s"], used["max_rss"]))
    return pd.DataFrame(rows, columns=["stage", "method", "seconds", "peak_mb"])


def total_table(plain, workflow, processes, cores):
    own = processes["stage"].isna()
    scheduling = processes.loc[own, "cpu_seconds"].sum()
    imports = processes.loc[~own, "import_seconds"].sum()
    rows = {
        "wall s": (plain.wall, workflow.wall, plain.wall / workflow.wall),
        "CPU s": (plain.cpu, workflow.cpu, plain.cpu / workflow.cpu),
        "peak MB of a process": (plain.peak_mb, workflow.peak_mb, None),
        "peak MB at once": (plain.peak_total_mb, workflow.peak_total_mb, None),
        "cores in use, of CPU time": (
            plain.cpu / plain.wall / cores,
            workflow.cpu / workflow.wall / cores,
            None,
        ),
        "share of scheduling in CPU": (0.0, scheduling / workflow.cpu, None),
        "share of imports in CPU": (None, imports / workflow.cpu, None),
    }
    table = pd.DataFrame.from_dict(
        rows, orient="index", columns=["plain", "workflow", "plain / workflow"], dtype=float
    )
    return table.rename_axis("what")


def score_table(project, dataset, folder):
    """Return the mean over tasks and seeds of both, and how many standard errors they differ by."""
    plain = {
        path.stem: pd.read_csv(path).groupby(["method", "metric"])["value"].mean()
        for path in folder.glob("plain_scores_*.csv")
    }
    plain = pd.concat(plain, names=["seed"])
    files = sorted((project / "results" / dataset).glob("seed*/scores/*.csv"))
    ours = pd.concat(map(pd.read_csv, files))
    ours = ours[ours["scope"] == "task"].groupby(["seed", "method", "metric"])["value"].mean()
    sides = {}
    for name, values in (("plain", plain), ("workflow", ours)):
        by_score = values.groupby(["method", "metric"])
        sides[name], sides[f"{name} SE"] = by_score.mean(), by_score.sem()
    table = pd.DataFrame(sides).loc[sides["plain"].index]
    error = (table.pop("plain SE") ** 2 + table.pop("workflow SE") ** 2) ** 0.5
    table["difference"] = table["workflow"] - table["plain"]
    if error.notna().any():
        table["in SE"] = table["difference"] / error
    return (
        table.unstack("metric").swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False)
    )


def roofline_table(project, dataset, images, methods, block, stages):
    """Return floating-point operations, seconds at the machine's speed, and seconds taken."""
    import numpy as np
    import torch

    from epistemic_calibration.latents._convolutional import ConvolutionalAutoencoder

    torch.set_num_threads(1)
    latents_paths = list(project.glob("results/*/seed*/latents.npz"))
    n_seeds = len(latents_paths)
    settings = block.encoder_parameters
    model = ConvolutionalAutoencoder(images.x_train.shape[1:], settings["latent_size"])
    height, width, channels = images.x_train.shape[1:]
    shape = (settings["batch_size"], channels, height, width)
    steps = n_seeds * epochs(settings, images) * len(images.x_train) / settings["batch_size"]
    operations = {("encoder", ""): steps * step_operations(model, torch.rand(shape))}

    with np.load(latents_paths[0]) as latents:
        n_active = int(latents["x_train"].any(axis=0).sum())
    shapes = {}
    for name in [name for name in NETWORKS if name in methods]:
        parameters = methods[name].parameters
        sizes = [n_active, *parameters["hidden_sizes"], 2]
        layers = [torch.nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
        model = torch.nn.Sequential(*layers)
        batch = torch.rand(parameters["batch_size"], n_active)
        n_networks = n_seeds * len(block.tasks) * parameters.get("n_members", 1)
        steps = epochs(parameters, images) * len(images.x_train) / parameters["batch_size"]
        operations["hypotheses", name] = n_networks * steps * step_operations(model, batch)
        shapes[name] = (parameters["batch_size"], n_active, sizes[1])

    speed = max(product_speed((n, n), (n, n)) for n in (256, 512, 1024, 2048))
    rows = {}
    for key, count in operations.items():
        taken = stages.loc[key, "workflow CPU s"] - stages.loc[key, "of it imports"]
        row = {
            "GFLOP": count / 1e9,
            "GFLOP/s, best product": speed / 1e9,
            "s at that speed": count / speed,
            "CPU s taken": taken,
            "fraction": count / speed / taken,
        }
        if key[1] in shapes:
            # The products of the first layer, as many as there are networks in a group.
            rows_, inner, columns = shapes[key[1]]
            batched = product_speed((10, rows_, inner), (10, inner, columns))
            row |= {
                "GFLOP/s, batched": batched / 1e9,
                "fraction of batched": count / batched / taken,
            }
        rows[key] = row
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["stage", "method"])
    total = table[["GFLOP", "s at that speed", "CPU s taken"]].sum()
    total["fraction"] = total["s at that speed"] / total["CPU s taken"]
    table.loc[("all", ""), :] = total
    return table


def step_operations(model, batch):
    """Return the floating-point operations of one training step."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        model(batch).sum().backward()
    return counter.get_total_flops()


def product_speed(left, right):
    """Return the operations per second of a product of matrices, or of batches of them."""
    import torch

    a, b = torch.rand(left), torch.rand(right)
    product = torch.empty((*left[:-1], right[-1]))
    operations = 2 * product.numel() * left[-1]
    repetitions = max(1, int(2e8 / operations))
    best = float("inf")
    for _ in range(8):
        started = time.perf_counter()
        for _ in range(repetitions):
            torch.matmul(a, b, out=product)
        best = min(best, (time.perf_counter() - started) / repetitions)
    return operations / best


def show(title, table, digits):
    text = table.to_string(float_format=f"{{:.{digits}f}}".format, na_rep="")
    print(f"## {title}\n\n{text}\n", flush=True)


if __name__ == "__main__":
    main()
