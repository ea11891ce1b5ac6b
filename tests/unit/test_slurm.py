"""What is made of SLURM's words: why a job ended, and which jobs are in the queue."""

import asyncio

import pytest

from epistemic_calibration.workflow.slurm import (
    end_of_job,
    parse_queue,
    patient,
)

RUN = "35e87770-1707-43ff-9bb9-f450e6d2cba4"
ASKED = {"mem_mb": 4000, "runtime": 240}
MEMORY = (
    "SLURM ended job 7_1: it used more memory than its 4000 MB. "
    "More: --set-resources=scores:mem_mb=8000"
)
TIME = (
    "SLURM ended job 7_1: it took longer than its 240 minutes. "
    "More: --set-resources=scores:runtime=480"
)


def ended(state):
    """Return what the plugin says, with squeue as its source."""
    return (
        f"SLURM-job '7_1' failed, SLURM status is: '{state}'. Detailed failure reason "
        "unavailable (status command is not 'sacct')."
    )


@pytest.mark.fault
@pytest.mark.parametrize(
    ("state", "log", "expected"),
    [
        ("OUT_OF_MEMORY", "", MEMORY),
        ("TIMEOUT", "", TIME),
        # With polling instead of control groups, and as srun says it.
        ("FAILED", "slurmstepd: error: StepId=7.batch exceeded memory limit (2 > 1)", MEMORY),
        ("FAILED", "error: Detected 1 oom_kill event in StepId=7.0", MEMORY),
        ("CANCELLED", "*** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT", TIME),
        (
            "CANCELLED",
            "*** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***",
            "SLURM ended job 7_1: it was cancelled, as by scancel",
        ),
        ("NODE_FAIL", "", "SLURM ended job 7_1: its node failed"),
        # Its own log has the reason.
        ("FAILED", "WorkflowError: At least one job did not complete successfully.", ""),
    ],
)
def test_a_job_that_slurm_ends_is_told_with_what_mends_it(state, log, expected, tmp_path):
    path = tmp_path / "7_1.log"
    path.write_text(log)
    assert end_of_job(ended(state), path, "scores", ASKED) == expected


def test_without_a_log_the_state_speaks():
    assert end_of_job(ended("TIMEOUT"), "no/such.log", "scores", ASKED) == TIME
    assert end_of_job(ended("FAILED"), None, "scores", ASKED) == ""


@pytest.mark.fault
def test_a_job_that_sbatch_refuses_has_its_words():
    said = (
        "SLURM sbatch failed. The error message was 'sbatch: error: Batch job submission failed: "
        "Invalid account'.\n    sbatch call:\n        sbatch --parsable …\n"
    )
    expected = "SLURM refuses the job: sbatch: error: Batch job submission failed: Invalid account"
    assert end_of_job(said, None, "scores", ASKED) == expected
    assert end_of_job("something else\nand more", None, "scores", ASKED) == "something else"


def test_jobs_of_a_folder_are_those_of_snakemake_that_have_not_ended(tmp_path):
    link = tmp_path / "link"
    here = tmp_path / "here"
    here.mkdir()
    link.symlink_to(here)
    table = "\n".join(
        [
            f"7_1|RUNNING|{RUN}|{here}",
            f"7_[2-3]|PENDING|mine_{RUN}|{link}",
            f"8|COMPLETING|{RUN}|{here}",
            f"9|RUNNING|{RUN}|{tmp_path}",
            f"10|RUNNING|snakemake.sh|{here}",
        ]
    )
    for folder in (here, link):
        assert [job.number for job in parse_queue(table, folder)] == ["7_1", "7_[2-3]"]


@pytest.mark.fault
def test_a_queue_that_does_not_answer_is_told_once_and_its_jobs_still_wait():
    answers = iter([({"7": "RUNNING"}, 0.1), (None, None), (None, None), ({}, 0.1), (None, None)])
    told = []

    async def query(command, logger):
        return next(answers)

    ask = patient(query, told.append)
    found = [asyncio.run(ask("squeue", None)) for _ in range(5)]
    assert found == [({"7": "RUNNING"}, 0.1), ({}, 0.0), ({}, 0.0), ({}, 0.1), ({}, 0.0)]
    assert len(told) == 2
