"""config/extended.yaml over config.yaml: what is planned, and in which order."""

import pytest
import yaml

pytest.importorskip("gpytorch", reason="needs epistemic-calibration[extended]")
pytest.importorskip("venn_abers", reason="needs epistemic-calibration[extended]")

EXTENDED = ("--configfile", "config/extended.yaml")


def test_added_methods_are_planned_and_nothing_else_runs_again(project):
    added = yaml.safe_load((project.folder / EXTENDED[1]).read_text())
    added = [*added["methods"], *added["controls"]]
    planned = project.planned("results/tables/digits.md", *EXTENDED)
    work = [m for m in planned if m.startswith(("Fitting", "Scoring", "Encoding", "Importing"))]
    expected = {f"{what} {n} on digits, seed 0" for n in added for what in ("Fitting", "Scoring")}
    assert set(work) == expected


def test_added_methods_come_after_those_of_config_yaml(project):
    # Two cheap ones, so that the tables can be made.
    path = project.folder / EXTENDED[1]
    added = yaml.safe_load(path.read_text())
    small = {"n_members": 2, "max_iter": 3}
    added["methods"] = {"gradient_boosting_ensemble": small}
    added["controls"] = {"venn_abers": added["controls"]["venn_abers"]}
    # What another file changes of a method of config.yaml does not move it.
    added["methods"]["mc_dropout"] = {"n_hypotheses": 11}
    path.write_text(yaml.safe_dump(added))
    project.run("results/config.resolved.yaml", "results/tables/digits.md", *EXTENDED)
    resolved = yaml.safe_load((project.folder / "results/config.resolved.yaml").read_text())
    expected = {"random_forest", "eknn", "mc_dropout", "gradient_boosting_ensemble"}
    assert set(resolved["methods"]) == expected
    assert resolved["methods"]["mc_dropout"]["parameters"]["n_hypotheses"] == 11
    assert resolved["methods"]["mc_dropout"]["parameters"]["n_epochs"] == 2
    assert set(resolved["controls"]) == {"base_rate", "venn_abers"}
    assert resolved["controls"]["venn_abers"]["family"] == "control"
    table = (project.folder / "results/tables/digits.md").read_text()
    places = [
        table.index(n) for n in ("Random Forest", "MC-Dropout", "GBDT Ensemble", "Venn–Abers")
    ]
    assert places == sorted(places)


@pytest.mark.fault
def test_a_missing_package_stops_the_run_with_one_line(project, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from epistemic_calibration.methods import Method\n"
        "class Mine(Method):\n"
        "    label = 'Mine'\n"
        "    required_packages = {'no_such_module': 'no-such-package'}\n"
        "    def fit(self, X, y): ...\n"
        "    def sample_hypotheses(self, X): ...\n"
    )
    entry = {"file": str(tmp_path / "mine.py")}
    project.configure(lambda c: c["methods"].update(mine=entry))
    done = project.run("--dry-run", "digits", check=False)
    screen = done.stdout + done.stderr
    assert done.returncode != 0
    assert "methods.mine: needs no_such_module: pip install no-such-package" in screen
    assert "Traceback" not in screen
