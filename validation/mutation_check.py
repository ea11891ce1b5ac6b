"""How many faults the unit tests catch: one-line mutations of the code, drawn at random.

    .venv/bin/python -m pip install coverage
    .venv/bin/python validation/mutation_check.py --output FOLDER
    .venv/bin/python validation/mutation_check.py --output FOLDER --again   # those that survived

From each room, the modules behind one kind of number, as many lines are drawn, and of each line
one mutation: a comparison, an operator, a number, a condition, a slice, a sign changed, or a call,
a keyword or an assignment left out. Texts, annotations and what is raised or warned of stay as they
are. The mutated line is put into a copy of the project, and the unit tests that execute it run
there: those of the test files closest to the module, the fastest first, and of further files until
one executes it. A mutation that no test notices has survived: it changes nothing that matters, or
the tests have a hole.

Each finished mutation is a line in ``FOLDER/mutations.jsonl``, and a run goes on where the last
one stopped. Needs the package coverage, and a system with fork.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FunctionType

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import coverage
import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

from epistemic_calibration.workflow.sources import source_files

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("workflow_scripts/epistemic_calibration")
FRESHNESS = ("ledger", "provenance", "sources", "stage")
#: Modules by room.
ROOMS = {
    "metrics": ("metrics/*.py",),
    "scoring": ("scoring/*.py",),
    "methods": ("methods/*.py",),
    "tables": ("report/tables/*.py",),
    "plan": ("workflow/plan.py",),
    "freshness": tuple(f"workflow/{name}.py" for name in FRESHNESS),
}
#: What every test process needs, imported once before processes are forked.
HEAVY = (
    *("PIL.Image", "joblib", "jsonschema", "matplotlib.pyplot", "pandas", "pydantic", "yaml"),
    *("scipy.optimize", "scipy.sparse", "scipy.spatial", "scipy.special", "scipy.stats"),
    *("sklearn.calibration", "sklearn.datasets", "sklearn.ensemble", "sklearn.gaussian_process"),
    *("sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.neighbors"),
    *("sklearn.pipeline", "torch", "torchvision.datasets"),
)

#: Text, and what differs on no machine that runs the tests.
NOT_MUTATED = {"description", "encoding", "label", "stacklevel", "strict"}
MESSAGES = {"warn", "warning", "info", "debug", "error", "exception", "print", "log"}
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
AUGMENTED = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


@dataclass(frozen=True)
class Mutation:
    """One changed line: the column and the length are in bytes of it."""

    room: str
    file: str
    line: int
    column: int
    length: int
    text: str
    before: str
    after: str
    #: Lines whose execution runs the mutated code, the first and the last.
    first: int
    last: int

    @property
    def key(self) -> tuple[str, int, str]:
        return self.file, self.line, self.after

    def of(self, source: bytes) -> bytes:
        """Return the source of the file with the mutation in it."""
        lines = source.splitlines(keepends=True)
        line, end = lines[self.line - 1], self.column + self.length
        lines[self.line - 1] = line[: self.column] + self.text.encode() + line[end:]
        return b"".join(lines)


# --- Mutations


class _Finder(ast.NodeVisitor):
    """Collects (node, replacement, first line, last line) of all that can be changed."""

    def __init__(self) -> None:
        self.found: list[tuple[ast.AST, str, int, int]] = []
        # What executes an expression: lines of its statement; of a header, those it opens.
        self.extent = (1, 10**9)

    def add(self, node: ast.AST, replacement: ast.AST | str) -> None:
        text = replacement if isinstance(replacement, str) else ast.unparse(replacement)
        # An operand keeps its place between others.
        if isinstance(node, ast.BoolOp | ast.BinOp | ast.Compare | ast.IfExp):
            text = f"({text})"
        self.found.append((node, text, *self.extent))

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            outer = self.extent
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.extent = (node.body[0].lineno, node.end_lineno)
            elif hasattr(node, "body"):
                self.extent = (node.lineno, max(node.lineno, node.body[0].lineno - 1))
            elif self.in_function:
                self.extent = (node.lineno, node.end_lineno)
            super().visit(node)
            self.extent = outer
        else:
            super().visit(node)

    in_function = False
    returns: str | None = None

    def statements(self, body: list[ast.stmt]) -> None:
        for k, node in enumerate(body):
            text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not (k == 0 and text):
                self.visit(node)

    def visit_Module(self, node: ast.Module) -> None:
        self.statements(node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self.in_function = self.in_function, False
        self.statements(node.body)
        self.in_function = outer

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in ("__repr__", "__str__"):
            return
        for child in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(child)
        outer, self.in_function = self.in_function, True
        returns, self.returns = self.returns, node.returns and ast.unparse(node.returns)
        self.statements(node.body)
        self.in_function, self.returns = outer, returns

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.condition(node)

    def condition(self, node: ast.If | ast.While | ast.IfExp) -> None:
        test = node.test
        self.add(test, test.operand if _is_not(test) else ast.UnaryOp(ast.Not(), test))
        self.generic_visit(node)

    visit_While = visit_IfExp = condition

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self.add(test, test.operand if _is_not(test) else ast.UnaryOp(ast.Not(), test))
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets):
            self.add(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.add(node, "pass")
        if type(node.op) in OPERATORS:
            self.add(node, ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value))
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and not _is_message(node.value):
            self.add(node, "pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and self.returns in ("float", "np.ndarray", "torch.Tensor"):
            self.add(node.value, ast.UnaryOp(ast.USub(), node.value))
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Call(self, node: ast.Call) -> None:
        if _is_message(node):
            return
        for k, keyword in enumerate(node.keywords):
            if keyword.arg and keyword.arg not in NOT_MUTATED:
                rest = node.keywords[:k] + node.keywords[k + 1 :]
                self.add(node, ast.Call(node.func, node.args, rest))
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in NOT_MUTATED:
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for k, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                ops = [*node.ops[:k], other(), *node.ops[k + 1 :]]
                self.add(node, ast.Compare(node.left, ops, node.comparators))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in OPERATORS and not _is_text(node.left) and not _is_text(node.right):
            self.add(node, ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self.add(node, ast.BoolOp(other, node.values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if not isinstance(node.op, ast.UAdd):
            self.add(node, node.operand)
        self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None and not isinstance(bound, ast.Constant):
                self.add(bound, ast.BinOp(bound, ast.Add(), ast.Constant(1)))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.add(node, repr(not value))
        elif isinstance(value, int | float):
            self.add(node, repr(value + 1))
            if value:
                self.add(node, repr(value * 2))


def _is_not(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_message(node: ast.Call) -> bool:
    return getattr(node.func, "attr", getattr(node.func, "id", "")) in MESSAGES


def mutations_of(room: str, file: str) -> list[Mutation]:
    """Return every one-line mutation of a file of the project."""
    source = (ROOT / file).read_bytes()
    lines = source.splitlines(keepends=True)
    finder = _Finder()
    finder.visit(ast.parse(source))
    found = []
    for node, text, first, last in finder.found:
        if node.lineno != node.end_lineno:
            continue
        line, start, end = lines[node.lineno - 1], node.col_offset, node.end_col_offset
        mutated = line[:start] + text.encode() + line[end:]
        texts = (line.decode().strip(), mutated.decode().strip())
        place = (node.lineno, start, end - start)
        found.append(Mutation(room, file, *place, text, *texts, first, last))
    return found


def files_of(room: str) -> list[str]:
    """Return the modules of a room, relative to the project."""
    paths = (path for pattern in ROOMS[room] for path in (ROOT / PACKAGE).glob(pattern))
    return sorted(path.relative_to(ROOT).as_posix() for path in paths)


def draw(seed: int, n_mutations: int) -> list[Mutation]:
    """Return mutations of as many lines of each room, by a round over the rooms."""
    chosen = []
    for k, room in enumerate(ROOMS):
        rng = np.random.default_rng([seed, k])
        by_line = defaultdict(list)
        for file in files_of(room):
            for mutation in mutations_of(room, file):
                by_line[mutation.file, mutation.line].append(mutation)
        lines = list(by_line.values())
        size = n_mutations // len(ROOMS) + (k < n_mutations % len(ROOMS))
        of_room = [lines[i] for i in rng.permutation(len(lines))[:size]]
        chosen.append([ways[rng.integers(len(ways))] for ways in of_room])
    longest = max(map(len, chosen))
    return [part[k] for k in range(longest) for part in chosen if k < len(part)]


# --- Tests, in processes forked from one that has imported what takes long


class _Loop:
    """Has something else done with the tests of a session than run them once."""

    def __init__(self, work: Callable[[pytest.Session], None]) -> None:
        self.work = work

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.work(session)
        return True


class _Recorder:
    """Notes what each test takes, where it passes, and has its lines told from those of others."""

    def __init__(self, tracer: coverage.Coverage) -> None:
        self.tracer = tracer
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.tracer.switch_context(item.nodeid)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        start = time.process_time()
        yield
        self.seconds[item.nodeid] = time.process_time() - start


class _Judge:
    """Notes which test fails, and ends the process where one takes far longer than it should."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self.caught_by = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        # A loop without an end is a fault that a test has caught. In seconds of the processor.
        signal.setitimer(signal.ITIMER_PROF, 30 + 10 * self.seconds[nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.caught_by:
            self.caught_by = report.nodeid


def _run(session: pytest.Session, plugin: object, items: list[pytest.Item]) -> Iterator[None]:
    """Run tests, yielding after each."""
    session.config.pluginmanager.register(plugin)
    for item, following in zip(items, [*items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        yield


def _replace(mutation: Mutation, source: bytes, path: Path) -> bool:
    """Put a mutated function in the place of the one that was imported; say whether it was."""
    tree = compile(mutation.of(source), str(path), "exec")
    waiting, codes = [tree], {}
    while waiting:
        code = waiting.pop()
        codes[code.co_qualname, code.co_firstlineno] = code
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    found = False
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(path):
            code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if code is not None and code != function.__code__:
                function.__code__ = code
                found = True
    return found


class Laboratory:
    """A copy of the project, what its tests execute, and a place to break it."""

    def __init__(self, folder: Path, *, n_files: int, budget: float, whole_files: bool) -> None:
        self.folder = folder
        self.copy = folder / "copy"
        self.baselines = folder / "baselines"
        self.log, self.answers = folder / "pytest.log", folder / "answers.jsonl"
        self.n_files, self.budget, self.whole_files = n_files, budget, whole_files
        self.baselines.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.copy, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (ROOT / name).is_file():
                (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.copy / name)
        self.modules = [file for room in ROOMS for file in files_of(room)]
        self.tests = sorted((ROOT / "tests" / "unit").rglob("test_*.py"))
        # Of the code as it was copied.
        self.digests = {test: self._digest(test) for test in self.tests}

    def _digest(self, test: Path) -> str:
        conftests = [(folder / "conftest.py") for folder in test.parents]
        digest = hashlib.sha256()
        for path in source_files(test, *filter(Path.is_file, conftests)):
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]

    def test_files(self, file: str) -> list[Path]:
        """Return the test files that import a module, the closest first.

        That is the file named after the module, then those that name most of what it defines. A
        module that is found by its name is imported with its package.
        """
        path = ROOT / file
        by_name = path.parent / "__init__.py"
        body = ast.parse((self.copy / file).read_bytes()).body
        defined = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        sources = {test: source_files(test) for test in self.tests}

        def distance(test: Path) -> tuple[bool, int, int]:
            words = set(re.findall(r"\w+", test.read_text(encoding="utf-8")))
            named = test.stem.endswith(f"_{path.stem.strip('_')}")
            return not named, -len(defined & words), len(sources[test])

        reach = [test for test, files in sources.items() if path in files]
        reach = reach or [test for test, files in sources.items() if by_name in files]
        return sorted(reach, key=distance)

    def judge(self, mutations: list[Mutation]) -> Iterator[dict]:
        """Yield what the tests say of mutations, those first that are caught first."""
        found = {m: {"result": "survived", "executed_by": 0, "caught_by": ""} for m in mutations}
        files = {m: self.test_files(m.file) for m in mutations}
        for rank in range(max(map(len, files.values()), default=0)):
            by_test = defaultdict(list)
            for mutation, said in found.items():
                enough = rank >= self.n_files and said["executed_by"] > 0
                if rank < len(files[mutation]) and not enough:
                    by_test[files[mutation][rank]].append(mutation)
            for test, group in sorted(by_test.items(), key=lambda pair: -len(pair[1])):
                print(f"  {len(group)} × {test.relative_to(ROOT)}", flush=True)
                for mutation, said in self._try(test, group):
                    found[mutation]["executed_by"] += said["executed_by"]
                    if said["result"] != "survived":
                        row = found.pop(mutation)
                        yield {**asdict(mutation), **row, **said, "executed_by": row["executed_by"]}
        for mutation, row in found.items():
            yield {**asdict(mutation), **row}

    def _try(self, test: Path, mutations: list[Mutation]) -> Iterator[tuple[Mutation, dict]]:
        """Yield what the tests of a file say of each mutation."""
        path = self.baselines / f"{test.stem}-{self.digests[test]}.json"
        include = [str(self.copy / file) for file in self.modules]
        tracer = coverage.Coverage(data_file=None, include=include, config_file=False)
        record = not path.is_file()
        self.answers.unlink(missing_ok=True)

        def work(session: pytest.Session) -> None:
            if record:
                self._child(lambda: self._record(session, tracer, path))
                tracer.stop()
            base = json.loads(path.read_text(encoding="utf-8"))
            for number, mutation in enumerate(mutations):
                self._answer(session, base, mutation, number, loaded=True)

        def main() -> int:
            if record:
                tracer.start()
            return self._pytest(test, work)

        name = test.relative_to(ROOT).as_posix()
        status = self._child(main, write_bytecode=True)
        if not path.is_file():
            raise RuntimeError(f"{name} could not run, status {status}; see {self.log}")
        said = {row["number"]: row for row in read(self.answers)}
        base = json.loads(path.read_text(encoding="utf-8"))
        for number, mutation in enumerate(mutations):
            if said[number]["result"] == "not loaded":
                # What an import has already executed is executed again.
                with self._mutated(mutation):
                    self.answers.unlink(missing_ok=True)
                    status = self._child(
                        lambda mutation=mutation, number=number: self._pytest(
                            test,
                            lambda session: self._answer(
                                session, base, mutation, number, loaded=False
                            ),
                        )
                    )
                failed = {"result": "caught", "caught_by": f"{name}: status {status}"}
                executed = said[number]["executed_by"]
                said[number] = {"executed_by": executed, **failed}
                for row in read(self.answers):
                    said[number] = row
            del said[number]["number"]
            yield mutation, said[number]

    def _answer(
        self, session: pytest.Session, base: dict, mutation: Mutation, number: int, *, loaded: bool
    ) -> None:
        """Run the tests that execute a mutated line, the fastest first, and write what they say.

        What a fixture or a cache has computed in one test, others may check: where none has failed,
        ``whole_files`` runs the rest of the file as well. So does the file named after a module
        of which nothing is executed here: it starts processes that execute it.
        """
        names = list(base["seconds"])
        run, imported = set(), False
        for line, numbers in base["lines"].get(mutation.file, {}).items():
            if mutation.first <= int(line) <= mutation.last:
                imported = imported or -1 in numbers
                run |= {names[k] for k in numbers if k >= 0}
        if imported:
            # Who reads what an import has made executes nothing of the module.
            run = set(names)
        said = {"number": number, "result": "survived", "executed_by": len(run), "caught_by": ""}
        seconds = base["seconds"]
        order = sorted(run, key=seconds.get)
        elsewhere = not run and all(Path(mutation.file).stem in name for name in names)
        if elsewhere or (run and self.whole_files):
            order += sorted(set(names) - run, key=seconds.get)
        of_name = {item.nodeid: item for item in session.items}
        items = [of_name[name] for name in order if name in of_name]
        path = self.copy / mutation.file

        def work() -> int:
            if loaded and (
                imported
                or elsewhere
                or self.whole_files
                or not _replace(mutation, path.read_bytes(), path)
            ):
                self._write({**said, "result": "not loaded"})
                return 0
            judge, start = _Judge(seconds), sum(os.times()[:4])
            for _ in _run(session, judge, items):
                if judge.caught_by or sum(os.times()[:4]) - start > self.budget:
                    break
            result = "caught" if judge.caught_by else "survived"
            self._write({**said, "result": result, "caught_by": judge.caught_by})
            return 0

        if session.testsfailed:
            # The file could not even be imported.
            self._write({**said, "result": "caught", "caught_by": "imports"})
        elif items:
            status = self._child(work)
            if status:
                over = -status in (signal.SIGPROF, signal.SIGALRM)
                result = "timeout" if over else "caught"
                self._write({**said, "result": result, "caught_by": f"status {status}"})
        else:
            self._write(said)

    def _write(self, row: dict) -> None:
        with self.answers.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    @contextlib.contextmanager
    def _mutated(self, mutation: Mutation) -> Iterator[None]:
        path = self.copy / mutation.file
        original, status = path.read_bytes(), path.stat()
        path.write_bytes(mutation.of(original))
        # Bytecode is recognised by time and size.
        os.utime(path, (status.st_atime, status.st_mtime + 1000))
        try:
            yield
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _record(self, session: pytest.Session, tracer: coverage.Coverage, path: Path) -> int:
        """Write the tests of a session that pass, with their times, and who executes which line.

        -1 is the import of a module.
        """
        recorder = _Recorder(tracer)
        for _ in _run(session, recorder, session.items):
            pass
        tracer.stop()
        number = {name: k for k, name in enumerate(recorder.seconds)} | {"": -1}
        data, lines = tracer.get_data(), {}
        for file in data.measured_files():
            executed = {
                line: sorted(number[name] for name in contexts if name in number)
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            lines[Path(file).relative_to(self.copy).as_posix()] = executed
        path.write_text(json.dumps({"seconds": recorder.seconds, "lines": lines}))
        return 0

    def _pytest(self, test: Path, work: Callable[[pytest.Session], None]) -> int:
        """Collect the tests of a file in this process, which must be a child, and use them."""
        output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for stream in (1, 2):
            os.dup2(output, stream)
        scripts = str(self.copy / "workflow_scripts")
        os.environ |= {"PYTHONPATH": scripts, "PYTHONDONTWRITEBYTECODE": "1"}
        os.chdir(self.copy)
        for name in [name for name in sys.modules if name.startswith("epistemic_calibration")]:
            del sys.modules[name]
        own = {str(ROOT / "workflow_scripts"), str(ROOT / "validation")}
        sys.path[:] = [scripts, *(path for path in sys.path if path not in own)]
        scratch = f"--basetemp={self.folder / 'tmp'}"
        options = ["-q", "-p", "no:cacheprovider", "--capture=sys", "--tb=short", scratch]
        return int(pytest.main([*options, test.relative_to(ROOT).as_posix()], [_Loop(work)]))

    def _child(self, work: Callable[[], int], *, write_bytecode: bool = False) -> int:
        """Do something in a process of its own; return its exit status, or minus a signal."""
        sys.stdout.flush()
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        status = 99
        try:
            sys.dont_write_bytecode = not write_bytecode
            status = work()
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(int(status))


# --- Results


def report(results: list[dict]) -> None:
    """Print the share of each room, and the survivors."""
    table = pd.DataFrame(results)
    table["caught"] = table["result"] != "survived"
    rooms = table.groupby("room", sort=False)["caught"].agg(["size", "sum"])
    rooms.loc["all"] = rooms.sum()
    rooms["caught, %"] = (100 * rooms["sum"] / rooms["size"]).round(1)
    print(f"\n{rooms.rename(columns={'size': 'mutations', 'sum': 'caught'}).to_markdown()}")
    print("\nSurvivors:")
    for row in table[~table["caught"]].itertuples():
        print(f"\n{row.file}:{row.line} (executed by {row.executed_by} tests)")
        print(f"    - {row.before}\n    + {row.after}")


def read(path: Path) -> list[dict]:
    """Return the finished mutations."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [json.loads(line) for line in text.splitlines()]


def still_there(row: dict) -> Mutation | None:
    """Return a mutation of an earlier state of the code as one of today's, the nearest."""
    same = [
        mutation
        for mutation in (
            mutations_of(row["room"], row["file"]) if (ROOT / row["file"]).is_file() else ()
        )
        if (mutation.before, mutation.after) == (row["before"], row["after"])
    ]
    return min(same, key=lambda mutation: abs(mutation.line - row["line"]), default=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mutations", type=int, default=120)
    parser.add_argument(
        "--files", type=int, default=8, help="test files per module (8), if one executes it"
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=120,
        help="processor seconds per mutation in each test file (default 120)",
    )
    parser.add_argument("--again", action="store_true", help="only those that survived before")
    parser.add_argument("--list", action="store_true", help="print the mutations, and run none")
    parser.add_argument("--output", type=Path, help="folder of the results and of what is kept")
    args = parser.parse_args()
    chosen = draw(args.seed, args.mutations)
    if args.list:
        for mutation in chosen:
            print(
                f"{mutation.file}:{mutation.line}\n    - {mutation.before}\n    + {mutation.after}"
            )
        return
    folder = (args.output or Path(tempfile.mkdtemp(prefix="mutations-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mutations.jsonl"
    lab = Laboratory(folder, n_files=args.files, budget=args.budget, whole_files=args.again)
    for module in HEAVY:
        importlib.import_module(module)
    finished = read(path)
    if args.again:
        survived = [row for row in finished if row["result"] == "survived"]
        chosen = [found for row in survived if (found := still_there(row))]
        print(f"{len(survived) - len(chosen)} of {len(survived)} survivors are no longer there")
        finished, path = [], folder / "again.jsonl"
        path.unlink(missing_ok=True)
    known = {(row["file"], row["line"], row["after"]) for row in finished}
    for row in lab.judge([mutation for mutation in chosen if mutation.key not in known]):
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{row['result']:>8}  {row['file']}:{row['line']}  {row['caught_by']}", flush=True)
    report(read(path))


if __name__ == "__main__":
    main()
