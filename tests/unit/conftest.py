"""What unit tests share."""

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
OF_SEED = ("encoder", "encoder_figures", "latents", "neighbors")
OF_METHOD = ("hypotheses", "scores", "sensitivity")
OF_NOTHING = ("claims", "paper_comparison", "resolved_config")


@pytest.fixture
def one_job_per_stage(tmp_path):
    """A plan of the digits, and the wildcards of one job of every stage, by stage."""
    from epistemic_calibration.workflow.config import resolve_config
    from epistemic_calibration.workflow.plan import Plan, stages

    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    config["methods"]["mine"] = {"predictions": "{task}.npz", "datasets": ["digits"]}
    config["datasets"] = {"digits": config["datasets"]["digits"]}
    config["benchmark"] = ["digits"]
    for task in range(10):
        (tmp_path / f"{task}.npz").write_bytes(b"")
    digits = {"dataset": "digits", "seed": 0}
    toy = {"toy": "toy", "experiment": "eece_per_method"}
    wheres = {
        **dict.fromkeys(OF_SEED, digits),
        **{key: {**digits, "method": "eknn"} for key in OF_METHOD},
        **{key: {} for key in OF_NOTHING},
        "predictions": {**digits, "method": "mine"},
        "toy_data": {**toy, "method": "eknn"},
        "toy_figures": toy,
    }
    jobs = {stage: wheres.get(stage, {"dataset": "digits"}) for stage in stages()}
    return Plan(resolve_config(config, tmp_path), tmp_path), jobs
