# Two commands are enough: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?= -n auto

.PHONY: help setup demo test lint types unit unit-torch docs clean
help:
	@echo "make demo   see what the method is for (a few minutes, set-up included)"
	@echo "make test   lint, types, tests and docs"
	@echo "make docs   build the documentation into site/"
	@echo "make clean  remove the virtual environment and everything generated"

setup: $(VENV)/.installed
$(VENV)/.installed: pyproject.toml setup.py constraints.txt $(wildcard src/adgn/graph/native/*.?pp)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "adgn needs Python 3.10 or newer; set PYTHON=/path/to/python3.x"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: setup
	$(BIN)/adgn demo property --out demo

test: lint types unit unit-torch docs

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

unit: setup
	$(BIN)/pytest $(PYTEST_ARGS)

# The same layers without the native kernels, as on a machine where they could not be built.
unit-torch: setup
	ADGN_BACKEND=torch $(BIN)/pytest $(PYTEST_ARGS) tests/graph tests/nn src/adgn/graph src/adgn/nn

docs: setup
	$(BIN)/mkdocs build --quiet --strict

clean:
	rm -rf $(VENV) site demo build src/*.egg-info src/adgn/graph/native/*.so .mypy_cache .ruff_cache .pytest_cache
