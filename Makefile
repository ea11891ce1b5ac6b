# Each target first installs the environment it needs; `make demo TORCH=cpu` does without CUDA's
# libraries. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORES ?= all
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
TORCH ?=
MARKDOWN := $(wildcard *.md docs/*.md resources/*.md)

.DEFAULT_GOAL := help
.PHONY: help demo benchmark toy verify bench validate test lint format docs lock clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

# What a run needs, and what tests and checks need besides, in the locked versions.
RUN_EXTRAS := benchmark,extended,page,workflow
DEV_EXTRAS := $(RUN_EXTRAS),cluster,dev,docs,parquet,plot,torchmetrics
INSTALL = $(BIN)/python -m pip install --quiet --constraint envs/requirements.lock
# With TORCH=cpu, the same version of PyTorch without CUDA's libraries, from its own index.
CPU_INDEX := https://download.pytorch.org/whl/cpu

$(READY): envs/requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version). Use: make PYTHON=python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@[ "$(TORCH)" != cpu ] || \
	  $(INSTALL) --retries 1 --no-deps --index-url $(CPU_INDEX) torch torchvision || \
	  echo "$(CPU_INDEX) cannot be reached: PyTorch comes with CUDA's libraries, about 6 GB" >&2
	$(INSTALL) --editable '.[$(RUN_EXTRAS)]'
	@$(BIN)/python -m epistemic_calibration.workflow.config
	@touch $@

$(READY_DEV): $(READY)
	$(INSTALL) --editable '.[$(DEV_EXTRAS)]'
	@touch $@

demo: $(READY) ## run the full pipeline on scikit-learn's digits: tables and figures in minutes
	$(BIN)/snakemake --cores $(CORES) demo

benchmark: $(READY) ## run the full benchmark of the paper on MNIST and CIFAR-10
	$(BIN)/snakemake --cores $(CORES)

toy: $(READY) ## run the toy experiments, for which the truth is known
	$(BIN)/snakemake --cores $(CORES) toy

verify: $(READY) ## read every result, and name those that are damaged, lost or stale
	@$(BIN)/python -m epistemic_calibration.workflow.verify

bench: $(READY_DEV) ## time the workflow against a plain script (FULL=1: the full benchmark, hours)
	$(BIN)/python benchmarks/compare.py --cores $(CORES) $(if $(FULL),--full)
	$(BIN)/python benchmarks/scaling.py --cores $(CORES)

validate: $(READY_DEV) ## run the simulations behind what the docs claim, quickly
	$(BIN)/python validation/run.py --quick

test: $(READY_DEV) ## run every test that can run on this machine
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

lint: $(READY_DEV) ## check style: ruff, snakefmt, snakemake --lint, wrapping of Markdown
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/mdformat --check $(MARKDOWN)
	$(BIN)/snakemake --lint

format: $(READY_DEV) ## rewrite code and Markdown in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile rules
	$(BIN)/mdformat $(MARKDOWN)

docs: $(READY_DEV) ## build the documentation into build/site; tutorials and pages of the API included
	MPLBACKEND=agg $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/site
	@echo "Open build/site/index.html"

lock: $(READY) ## pin the newest releases that pyproject.toml allows (needs uv)
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	  --no-annotate --no-header --upgrade -o envs/requirements.lock

clean: ## delete results; keep data and the environment
	rm -rf results .snakemake
