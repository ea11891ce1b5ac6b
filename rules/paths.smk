# What files of a run are called, and which of them a job reads.


def of_methods(pattern):
    """An input function: a path for each method of a data set and seed, the first by default."""

    def paths(wildcards):
        seed = int(wildcards.get("seed", plan.seeds(wildcards.dataset)[0]))
        trained = [m for s, m in plan.trainings(wildcards.dataset) if s == seed]
        return expand(pattern, method=trained, seed=seed, allow_missing=True)

    return paths


def score_files(dataset, suffix=".csv"):
    """Score files of a data set: every seed and method."""
    folder = f"results/{dataset}/seed{{}}/scores/{{}}{suffix}"
    return [folder.format(seed, method) for seed, method in plan.trainings(dataset)]


def table_inputs(dataset):
    """What tables and figures of a data set are made of: its scores, and bounds beside them."""
    bounds = expand(f"results/{dataset}/seed{{seed}}/bounds.csv", seed=plan.seeds(dataset))
    return [*score_files(dataset), *bounds]


def label_counts_file(wildcards):
    """The label counts of a data set, where there are several labels of each test input."""
    if not plan.of_source(has_label_counts, wildcards.dataset):
        return []
    return f"results/{wildcards.dataset}/label_counts.npz"


def encoded(wildcards, name):
    """A file of the encoder that a training uses."""
    seed = plan.encoder_seed(wildcards.dataset, wildcards.seed)
    return f"results/{wildcards.dataset}/seed{seed}/{name}"


def latents_file(wildcards):
    return encoded(wildcards, "latents.npz")


def neighbors_file(wildcards):
    """The neighbours of the latents, for the methods that use them."""
    if not plan.entries[wildcards.method].uses_neighbors:
        return []
    return encoded(wildcards, "neighbors.npz")


def prediction_files(wildcards):
    """The files of predictions made elsewhere, one for each task."""
    files = plan.prediction_files(**dict(wildcards.items()))
    return [os.path.relpath(path) for path in files.values()]


# What each table and figure of a data set is called comes from the folder that it lies in.
TABLES = {
    name: load("epistemic_calibration.report.tables", name).SUFFIX
    for name in available("epistemic_calibration.report.tables")
}
FIGURES = available("epistemic_calibration.report.figures")


def captioned(path, kind, name):
    """An output that Snakemake's report shows, with the caption report/NAME.rst."""
    return report(
        path,
        category="{dataset}",
        subcategory=f"{kind.capitalize()}s",
        caption=f"../report/{name}.rst",
        labels={kind: name.replace("_", " ")},
    )


def table_files(folder):
    """The tables of a data set, each in three formats, and what else stands beside them."""
    stem = f"{folder}/{{dataset}}"
    files = [f"{stem}_summary.txt", f"{stem}_scores.csv", f"{stem}_warnings.csv"]
    for name, suffix in TABLES.items():
        files.append(captioned(f"{stem}{suffix}.csv", "table", name))
        files += [f"{stem}{suffix}.md", f"{stem}{suffix}.tex"]
    return files


def figure_files():
    """The figures of a data set in two widths and formats, and their captions."""
    stem = "results/figures/{dataset}"
    png = [captioned(f"{stem}/{name}.png", "figure", name) for name in FIGURES]
    ends = (".pdf", "_narrow.png", "_narrow.pdf", ".txt")
    return [*png, *(f"{stem}/{name}{end}" for name in FIGURES for end in ends)]


def encoder_figures(dataset):
    """The figures of a data set's encoders, where they have something to show."""
    if not load_encoder(plan.encoding(dataset).encoder).reconstructs:
        return []
    names = ("autoencoder_loss", "reconstructions")
    stem = f"results/figures/{dataset}/{{name}}_seed{{seed}}.{{suffix}}"
    return expand(stem, name=names, seed=plan.encoder_seeds(dataset), suffix=("png", "pdf"))


def toy_results():
    """Everything that the target of the toy experiments makes."""
    return [multiext(f"results/toy/{e}/{e}", ".csv", ".png", ".pdf") for e in CONFIG.toy]


def dataset_results(dataset):
    """Everything that a target named after a data set makes, the page first."""
    if dataset not in DATASETS:

        def refused(wildcards):
            raise WorkflowError(plan.unavailable.get(dataset, f"datasets has no {dataset}"))

        return refused
    return [
        f"results/{dataset}/report.html",
        expand(map(str, table_files("results/tables")), dataset=dataset),
        multiext(f"results/tables/{dataset}_comparisons", ".csv", ".md", ".tex"),
        expand(map(str, figure_files()), dataset=dataset),
        encoder_figures(dataset),
        "results/config.resolved.yaml",
    ]


def diagnostics_file(dataset):
    """What figures and pages show of single inputs: of the first seed."""
    return f"results/{dataset}/seed{plan.seeds(dataset)[0]}/diagnostics.json"


def page_inputs(wildcards):
    """What a page is made of, by the names that its stage has for them."""
    of_benchmark = wildcards.page == "benchmark"
    datasets = CONFIG.benchmark if of_benchmark else [wildcards.page]
    stems = [f"results/tables/{d}_{name}" for d in datasets for name in ("summary", "comparisons")]
    paper = ("paper_comparison.csv", "paper_comparison.md", "claims.csv", "claims.md")
    return {
        "scores": [path for d in datasets for path in table_inputs(d)],
        "diagnostics": [diagnostics_file(d) for d in datasets],
        "tables": [f"{stem}{suffix}" for stem in stems for suffix in (".csv", ".md")],
        "paper": [f"results/tables/{name}" for name in paper if of_benchmark],
    }
