# Each target makes the environment that it needs first. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORES ?= all
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo benchmark toy bench test lint format lock clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

$(READY): envs/requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version). Use: make PYTHON=python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r envs/requirements.lock
	@touch $@

demo: $(READY) ## the whole pipeline on embedded data: all methods, a table, figures (minutes)
	$(BIN)/snakemake --cores $(CORES) demo
	@echo; cat results/tables/digits_summary.md; echo
	@echo "Tables: results/tables/   Figures: results/figures/digits/"

benchmark: $(READY) ## the full benchmark of the paper on MNIST and CIFAR-10
	$(BIN)/snakemake --cores $(CORES)

toy: $(READY) ## the toy experiments, where the truth is known
	$(BIN)/snakemake --cores $(CORES) toy

bench: $(READY) ## time the workflow against a plain script (FULL=1: all of the benchmark, hours)
	$(BIN)/python benchmarks/compare.py --cores $(CORES) $(if $(FULL),--full)
	$(BIN)/python benchmarks/scaling.py --cores $(CORES)

test: $(READY) ## every test that can run on this machine
	$(BIN)/python -m pytest

lint: $(READY) ## ruff, snakefmt and snakemake --lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint

format: $(READY) ## rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile rules

lock: $(READY) ## pin the newest releases that pyproject.toml admits (needs uv)
	uv pip compile pyproject.toml --extra workflow --extra cluster --extra dev --universal \
	  --python-version 3.11 --no-annotate --no-header --upgrade -o envs/requirements.lock

clean: ## delete results, but neither data nor the environment
	rm -rf results .snakemake
