"""What a run ends with on the screen."""

from epistemic_calibration.workflow.closing import closing_text


def test_a_run_shows_the_summaries_that_are_there(one_job_per_stage):
    planned, jobs = one_job_per_stage
    planned.asked["tables/digits"] = ("tables", jobs["tables"])
    # With --until, no job has written it.
    assert "Summary" not in closing_text(planned)
    path = planned.base_dir / "results/tables/digits_summary.txt"
    path.parent.mkdir(parents=True)
    path.write_text("Summary of digits\n")
    assert "Summary of digits\n" in closing_text(planned)
