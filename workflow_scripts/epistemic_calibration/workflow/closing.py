"""What a run ends with on the screen."""

from epistemic_calibration.report.warning_text import sentences
from epistemic_calibration.workflow.job_warnings import merged
from epistemic_calibration.workflow.plan import Plan
from epistemic_calibration.workflow.provenance import read_receipt


def closing_text(plan: Plan) -> str:
    """Return the summaries of a run, what its jobs have warned of, and where everything is."""
    asked = list(plan.asked.values())
    shown = {where["dataset"] for stage, where in asked if stage == "tables"}
    datasets = [name for name in plan.config.datasets if name in shown]
    # With --until, a run ends before its tables.
    summaries = [plan.base_dir / f"results/tables/{name}_summary.txt" for name in datasets]
    parts = [path.read_text(encoding="utf-8").strip() for path in summaries if path.is_file()]
    receipts = [read_receipt(job, plan.base_dir) for job in plan.asked]
    warned = merged(receipt["warnings"] for receipt in receipts if receipt)
    labels = {name: entry.label for name, entry in plan.entries.items()}
    parts.append("\n".join(f"Warning: {text}" for text in sentences(warned, labels)))
    places = {"results/toy/" for stage, _ in asked if stage == "toy_figures"}
    if datasets:
        places |= {"results/tables/", "results/figures/"}
    parts.append(f"Tables and figures: {', '.join(sorted(places))}" if places else "")
    pages = [where["page"] for stage, where in asked if stage == "page"]
    parts.append("\n".join(f"Open results/{page}/report.html" for page in pages))
    return "\n".join(["", *(f"{part}\n" for part in parts if part)])
