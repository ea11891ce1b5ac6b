"""What unit tests share."""

import copy
import functools
import http.server
import inspect
import threading

import pytest
from shipped import EXTENDED, SHIPPED


@pytest.fixture(scope="session")
def few():
    """Return what makes a method cheap to fit, for tests that hold however long it is trained."""
    values = {"n_members": 3, "n_steps": 20, "n_epochs": 3, "min_steps": 20}
    return lambda method: {k: v for k, v in values.items() if k in method.default_parameters()}


@pytest.fixture
def one_job_per_stage(tmp_path):
    """A plan of the digits, and the wildcards of one job of every stage, by stage."""
    from epistemic_calibration.workflow.config import resolve_config
    from epistemic_calibration.workflow.plan import Plan, stages

    config = copy.deepcopy(SHIPPED)
    for group, entries in EXTENDED.items():
        config[group] |= entries
    config["methods"]["mine"] = {"predictions": "{task}.npz", "datasets": ["digits"]}
    config["datasets"] = {"digits": config["datasets"]["digits"]}
    config["benchmark"] = ["digits"]
    for task in range(10):
        (tmp_path / f"{task}.npz").write_bytes(b"")
    one = {"dataset": "digits", "seed": 0, "method": "eknn"}
    one |= {"experiment": "eece_per_method", "page": "benchmark"}
    jobs = {}
    for name, stage in stages().items():
        wildcards = [key for key in inspect.signature(stage.needs).parameters if key != "plan"]
        jobs[name] = {key: one[key] for key in wildcards}
    jobs["predictions"]["method"] = "mine"
    return Plan(resolve_config(config, tmp_path, check_packages=False), tmp_path), jobs


@pytest.fixture
def served(tmp_path):
    """A folder, and the address at which a server of this machine has its files."""
    folder = tmp_path / "server"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def forget_sources():
    """A function that has sources read anew, which the workflow reads once in a run."""
    from epistemic_calibration.workflow import sources

    def forget():
        for value in vars(sources).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()

    yield forget
    forget()
