# make help lists the targets. Everything lives in .venv; `make clean` removes what was built.
# Paths are relative, so that a checkout in a folder with spaces works.

SHELL := bash
PY := .venv/bin/python
STAMPS := .venv/.labkit
# Any of these may be 3.11 to 3.13; `make PYTHON=/path/to/python` puts yours first.
PYTHON ?=
CANDIDATES := $(PYTHON) python3 python3.13 python3.12 python3.11 python
MODEL := smollm2-135m
START := notebooks/00_start_here.ipynb
LAB_ARGS ?=
PYTEST_ARGS ?=
ROOT_FLAG := $(shell [ "$$(id -u)" = 0 ] && echo --allow-root)
SAY := @printf '\033[1m%s\033[0m\n'

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# A .venv whose Python has gone is made again.
$(shell $(PY) -c '' 2>/dev/null || rm -f $(STAMPS)/python)

.DEFAULT_GOAL := help
.PHONY: help lab test setup fetch lint soak notebooks exercises lock clean

help:  ## list the targets
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14

lab: setup  ## set up, then open JupyterLab on the first notebook (LAB_ARGS="--no-browser" prints the address)
	$(SAY) "Opening JupyterLab on $(START). Stop it with Ctrl-C."
	@exec $(PY) -m jupyterlab $(ROOT_FLAG) --ServerApp.root_dir=. \
	    --LabApp.default_url=/lab/tree/$(START) $(LAB_ARGS)

test: setup lint  ## set up, then lint, types, unit, multi-rank, notebook and browser tests
	$(SAY) "Tests and notebooks (coverage of labkit at the end)"
	@$(PY) -m pytest -m "not soak" --cov=labkit --cov-report=term:skip-covered \
	    --nbval-lax --nbval-cell-timeout=120 tests notebooks $(PYTEST_ARGS)

lint: setup  ## ruff (lint and format) and mypy
	$(SAY) "Lint, format, types"
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

soak: setup  ## repeat what should never fail, for minutes
	@$(PY) -m pytest -m soak --timeout=1800 tests

notebooks: setup  ## run every notebook again and save it (outputs in, widget state out)
	@$(PY) -m course.notebook notebooks/*.ipynb tests/notebooks/*.ipynb

exercises: setup  ## make exercises/ from solutions/ (solution bodies become stubs)
	@$(PY) -m course.grading.release solutions/*.ipynb

lock: setup  ## resolve requirements.lock again from pyproject.toml (needs uv)
	@$(PY) -m pip install --quiet uv
	@$(PY) -m uv pip compile --quiet pyproject.toml -o requirements.lock

# -- set-up: each step leaves a stamp, so an interrupted one goes on where it stopped ------------

setup: $(STAMPS)/packages  ## Python environment, locked packages, the model; costs nothing the second time
	@[ "$$(cat $(STAMPS)/place 2>/dev/null)" = "$$(pwd -P)" ] || { \
	    printf '\033[1m%s\033[0m\n' "Installing labkit itself, from this folder"; \
	    $(PY) -m pip install --quiet --no-deps --no-build-isolation -e . && pwd -P >$(STAMPS)/place; }
	@if [ -e $(STAMPS)/without-model ] && ! $(PY) -c 'import sys; from labkit.models.library import is_present; sys.exit(not is_present("$(MODEL)"))'; then \
	    echo "Going on with the tiny model: $(MODEL) could not be fetched earlier ('make fetch' tries again)."; \
	else \
	    rm -f $(STAMPS)/without-model; \
	    $(PY) -m labkit fetch $(MODEL) || { touch $(STAMPS)/without-model; \
	        echo "Going on with the tiny model, which ships here. 'make fetch' tries again."; }; \
	fi

fetch:  ## try again to fetch the model
	@rm -f $(STAMPS)/without-model
	@$(MAKE) --no-print-directory setup

$(STAMPS)/packages: requirements.lock pyproject.toml $(STAMPS)/python
	$(SAY) "Installing the packages of requirements.lock (the first time 1 to 6 minutes; about 2 GB with a CPU build of torch)"
	@set -o pipefail; $(PY) -m pip install --progress-bar off -r requirements.lock \
	    | awk '/Downloading|Installing collected/ { sub(/packages:.*/, "packages (no more word until they are in)"); print; fflush() }' || { \
	    echo "pip could not install them, see above. When its index can be reached, run make again: it goes on from here." >&2; exit 1; }
	@mkdir -p .venv/share/jupyter/lab/settings
	@printf '%s\n' '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' \
	    >.venv/share/jupyter/lab/settings/overrides.json
	@rm -f $(STAMPS)/place
	@touch $@

$(STAMPS)/python:
	@suits() { "$$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; }; \
	if suits $(PY) && $(PY) -m pip --version >/dev/null 2>&1; then \
	    mkdir -p $(STAMPS) && touch $@ && exit 0; \
	fi; \
	for python in $(CANDIDATES); do \
	    suits "$$python" || continue; \
	    printf '\033[1m%s\033[0m\n' "Making .venv with $$("$$python" --version) ($$python)"; \
	    "$$python" -m venv --clear .venv && mkdir -p $(STAMPS) && touch $@ && exit 0; \
	    exit 1; \
	done; \
	echo "No Python 3.11, 3.12 or 3.13 that can make virtual environments. Tried: $(CANDIDATES)." >&2; \
	echo "Install one (Debian and Ubuntu: apt install python3 python3-venv), or name yours: make setup PYTHON=/path/to/python3.12" >&2; \
	exit 1

clean:  ## remove .venv, caches and build output; models stay in the user's cache folder
	rm -rf .venv build dist ./*.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis htmlcov .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
