# Every target sets up what it needs in .venv; the first one takes a minute or two.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help tour test lint oracle bench clean

help:
	@echo "make tour    the main job: the founding programs, a real fit, a graph page, a loss plot"
	@echo "make test    all tests"
	@echo "make lint    ruff and mypy"
	@echo "make oracle  compare with a live PyTorch (installs it)"
	@echo "make bench   speed beside PyTorch, as ratios"

$(VENV)/made:
	$(PYTHON) -c "import sys; assert sys.version_info >= (3, 11), 'Pullback needs Python 3.11 or newer: make PYTHON=python3.11 ...'"
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/tour: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[tour]"
	@touch $@

$(VENV)/dev: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

$(VENV)/oracle: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==2.13.0"
	@touch $@

tour: $(VENV)/tour
	$(BIN)/python -m examples.tour

test: $(VENV)/dev
	$(BIN)/python -m pytest -q -n 2 --ignore=tests/oracle tests

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/mypy

oracle: $(VENV)/oracle
	$(BIN)/python -m pytest -q -m torch tests/oracle

bench: $(VENV)/oracle
	$(BIN)/python -m bench.overhead
	$(BIN)/python -m bench.fused
	$(BIN)/python -m bench.transforms

clean:
	rm -rf $(VENV) out build dist
