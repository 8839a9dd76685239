# Every job of the project is a target here; `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python
# Test processes at a time; the tests are independent of each other.
JOBS ?= 2

.PHONY: help build test test-checked lint docs sdist-check demo clean bench-eval

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The environment: the build's own requirements first, because the package is built without isolation
# so that `make build` and the installation share their work.
$(VENV)/base: pyproject.toml setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip "setuptools>=77" "Cython>=3.1,<4" "numpy>=2.0"
	$(BIN)/pip install --quiet --no-build-isolation --editable ".[test]"
	@touch $@

$(VENV)/lint: $(VENV)/base
	$(BIN)/pip install --quiet --no-build-isolation --editable ".[lint]"
	@touch $@

$(VENV)/docs: $(VENV)/base
	$(BIN)/pip install --quiet --no-build-isolation --editable ".[docs]"
	@touch $@

build: $(VENV)/base  ## compile what changed
	@$(RUN) setup.py --quiet build_ext --inplace

test: build  ## all tests
	$(BIN)/pytest --numprocesses=$(JOBS)

test-checked: $(VENV)/base  ## all tests on a build with bounds checks (and back to the fast build)
	TSGKIT_CHECKED=1 $(RUN) setup.py --quiet build_ext --inplace
	$(BIN)/pytest --numprocesses=$(JOBS); status=$$?; $(MAKE) --no-print-directory build && exit $$status

lint: $(VENV)/lint  ## ruff, cython-lint, mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/cython-lint ext
	$(BIN)/mypy

docs: $(VENV)/docs build  ## the manual, in docs/_build/html
	$(RUN) -m sphinx --fail-on-warning --keep-going -q -b html docs docs/_build/html

sdist-check: $(VENV)/base  ## the source package builds, and installs in an empty environment
	rm -rf build/sdist-check && mkdir -p build/sdist-check
	$(BIN)/pip install --quiet build
	$(RUN) -m build --sdist --outdir build/sdist-check .
	$(PYTHON) -m venv build/sdist-check/venv
	build/sdist-check/venv/bin/pip install --quiet build/sdist-check/tsgkit-*.tar.gz
	cd build/sdist-check && venv/bin/tsgkit --version && venv/bin/tsgkit --help

bench-eval: build  ## sentence pairs scored per second
	$(RUN) -m tsgkit.tools.bench.eval

clean:  ## remove everything that was built
	rm -rf build dist docs/_build docs/api/generated *.egg-info .hypothesis
	find tsgkit ext tests tools -name '*.so' -delete -o -name __pycache__ -prune -exec rm -rf {} +
