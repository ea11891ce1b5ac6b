"""The metric of torchmetrics gives what the library gives for all batches together."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.special import expit
from shipped import ROOT

from epistemic_calibration import evaluate, metrics

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")

from epistemic_calibration.torchmetrics import EpistemicCalibrationError  # noqa: E402

N = 700


RNG = np.random.default_rng(0)
LOGITS = RNG.normal(0, 1.5, N)
TARGET = torch.tensor(RNG.random(N) < expit(LOGITS))
HYPOTHESES = torch.tensor(expit(1.7 * (LOGITS[:, None] + RNG.normal(0, 0.3, (N, 8)))))
SAMPLE = HYPOTHESES, TARGET


def fed(metric, sample, *sizes):
    for hypotheses, target in zip(*(tensor.split(sizes) for tensor in sample), strict=True):
        metric.update(hypotheses, target)
    return metric


def test_batches_give_what_the_library_gives():
    found = fed(EpistemicCalibrationError(), SAMPLE, 300, 0, 1, 399).compute()
    hypotheses, target = HYPOTHESES.numpy(), TARGET.numpy()
    direct = metrics.corrected_epistemic_calibration_error(target, hypotheses, n_bins=35)
    assert found.dtype == torch.float64 and found.item() == direct.estimate
    assert found.item() == evaluate(target, hypotheses).tece.estimate
    settings = {"n_bins": 10, "random_state": 3, "confidence_level": 0.9}
    found = fed(EpistemicCalibrationError(**settings), SAMPLE, 350, 350).compute()
    direct = metrics.corrected_epistemic_calibration_error(target, hypotheses, **settings)
    assert found.item() == direct.estimate


def test_details_are_those_of_the_evaluation():
    metric = fed(EpistemicCalibrationError(details=True), SAMPLE, 200, 500)
    found = {name: value.item() for name, value in metric.compute().items()}
    frame = evaluate(TARGET.numpy(), HYPOTHESES.numpy()).to_frame().set_index("metric")
    expected = {}
    for name in found:
        plain, _, end = name.partition("_ci_")
        expected[name] = frame.loc[plain, f"ci_{end}" if end else "value"]
    assert found == expected and len(found) == 18


def test_collections_keep_one_copy_of_the_states():
    coarse = EpistemicCalibrationError(n_bins=5)
    collection = torchmetrics.MetricCollection(
        {"tece": EpistemicCalibrationError(), "coarse": coarse}
    )
    found = fed(collection, SAMPLE, 350, 350).compute()
    assert found["tece"] == fed(EpistemicCalibrationError(), SAMPLE, N).compute()
    assert found["coarse"] == fed(EpistemicCalibrationError(n_bins=5), SAMPLE, N).compute()
    assert len(collection.compute_groups) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_low_precision_is_read(dtype):
    metric = fed(EpistemicCalibrationError(), (HYPOTHESES.to(dtype), TARGET.long()), 350, 350)
    read = HYPOTHESES.to(dtype).float().numpy()
    expected = metrics.corrected_epistemic_calibration_error(TARGET.numpy(), read, n_bins=35)
    assert metric.compute().item() == expected.estimate


def test_few_inputs_give_no_number():
    metric = EpistemicCalibrationError()
    metric.update(HYPOTHESES[:10], TARGET[:10])
    with pytest.warns(UserWarning, match="10 inputs are too few"):
        assert metric.compute().isnan()


@pytest.mark.fault
@pytest.mark.parametrize(
    ("hypotheses", "target", "message"),
    [
        (torch.full((3, 2, 4), 0.25), torch.zeros(3), "one against the rest"),
        (torch.zeros(3, 2), torch.tensor([0, 1, 2]), r"target must hold 0 and 1, .*\[0, 1, 2\]"),
        (torch.full((3, 2), 1.5), torch.zeros(3), r"expected values in \[0, 1\]"),
        (torch.zeros(3, 5), torch.zeros(3), "5 hypotheses, those before have 2"),
    ],
)
def test_wrong_batches_are_refused_at_once(hypotheses, target, message):
    metric = EpistemicCalibrationError()
    metric.update(torch.full((4, 2), 0.5), torch.tensor([0, 1, 0, 1]))
    with pytest.raises(ValueError, match=message):
        metric.update(hypotheses, target)
    assert len(metric.target) == 1


@pytest.mark.fault
@pytest.mark.parametrize("settings", [{"n_bins": 0}, {"confidence_level": 1}, {"random_state": -1}])
def test_wrong_settings_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        EpistemicCalibrationError(**settings)


PROCESS = """
import sys
import torch
from epistemic_calibration.torchmetrics import EpistemicCalibrationError

rank, folder = int(sys.argv[1]), sys.argv[2]
torch.distributed.init_process_group(
    "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2
)
hypotheses, target = torch.load(f"{folder}/sample.pt")
part = slice(0, 450) if rank == 0 else slice(450, None)
metric = EpistemicCalibrationError()
metric.update(hypotheses[part], target[part])
torch.save((metric.compute(), len(metric.target[0])), f"{folder}/{rank}.pt")
"""


def test_processes_pool_their_inputs(tmp_path):
    torch.save(SAMPLE, tmp_path / "sample.pt")
    commands = [[sys.executable, "-c", PROCESS, str(rank), str(tmp_path)] for rank in range(2)]
    running = [
        subprocess.Popen(c, env={"PYTHONPATH": str(ROOT / "workflow_scripts")}) for c in commands
    ]
    assert [process.wait(timeout=240) for process in running] == [0, 0]
    expected = fed(EpistemicCalibrationError(), SAMPLE, N).compute()
    for rank, n in ((0, 450), (1, 250)):
        value, own = torch.load(tmp_path / f"{rank}.pt")
        assert value.item() == pytest.approx(expected.item(), rel=1e-9) and own == n
