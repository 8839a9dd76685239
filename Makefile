# Every task of the project is a target here; `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python
# Number of test processes. Tests are independent of each other; those that share something expensive, such as a browser,
# are marked as a group and run in one process.
JOBS ?= 2
# Which files, folders or tests to run, and which marks they must have (an expression of pytest's -m); all by default.
TESTS ?=
MARK ?=
PYTEST = $(BIN)/pytest --numprocesses=$(JOBS) --dist=loadgroup

.PHONY: help build test test-slow test-all test-checked test-diagnostics test-integrations test-asan test-valgrind test-pythons coverage \
	lint ruff cython-lint mypy format docs layers screenshots pictures pages sdist-check adopt-build demo clean fuzz mutation io-faults kills oom soak \
	bench-eval bench-parse bench-train bench-scaling bench-stream bench-read bench-load bench-classes exp-headline exp-pcfg exp-cohn2010 exp-shindo2011 \
	exp-shindo2012

help:  ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The environment: the requirements of the build first, because `make build` compiles without isolation. The package is
# installed without its compiled modules, which `make build` compiles in place.
$(VENV)/base: pyproject.toml setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip "setuptools>=77" "Cython>=3.1,<4" "numpy>=2.0"
	TSGKIT_MODULES=none $(BIN)/pip install --quiet --no-build-isolation --editable ".[test]"
	@touch $@

# The requirements of an extra in pyproject.toml, without the package itself, which pip would compile again.
REQUIREMENTS := import sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print("\n".join(project["optional-dependencies"][sys.argv[1]]))

$(VENV)/lint $(VENV)/docs $(VENV)/plot $(VENV)/coverage: $(VENV)/%: $(VENV)/base
	@$(RUN) -c '$(REQUIREMENTS)' $* >$@.txt
	$(BIN)/pip install --quiet --requirement $@.txt
	@touch $@

build: $(VENV)/base  ## compile the modules that have changed
	@$(RUN) setup.py --quiet build_ext --inplace

test: build  ## run all tests except for the slow ones, or TESTS=...
	$(PYTEST) -m "not slow" $(TESTS)

# One process more, since many of these tests wait: for a browser, for a process to be killed.
test-slow: PYTEST = $(BIN)/pytest --numprocesses=$$(($(JOBS) + 1)) --dist=loadgroup
test-slow: build  ## run the slow tests
	$(PYTEST) -m slow $(TESTS)

test-all: build  ## run all tests
	$(PYTEST) $(TESTS)

# Files of earlier runs would count as well.
coverage: $(VENV)/coverage build  ## measure the coverage of the Python layers by `make test`; pyproject.toml has the minimum
	rm -f .coverage .coverage.*
	$(PYTEST) -m "not slow" --cov --cov-report=term $(TESTS)

test-checked: $(VENV)/base  ## run all tests on a build with bounds checks, then restore the normal build (MARK="not slow")
	TSGKIT_CHECKED=1 $(RUN) setup.py --quiet build_ext --inplace
	$(PYTEST) -m "$(MARK)" $(TESTS); status=$$?; $(MAKE) --no-print-directory build && exit $$status

# In a separate folder: ArviZ installs SciPy, which NLTK imports if it can, and every command would start more slowly.
test-diagnostics: build  ## compare our convergence diagnostics with ArviZ's
	@$(RUN) -c '$(REQUIREMENTS)' diagnostics >build/diagnostics.txt
	$(BIN)/pip install --quiet --upgrade --target build/diagnostics --requirement build/diagnostics.txt
	PYTHONPATH=build/diagnostics $(BIN)/pytest tests/inference/test_convergence.py

# In a separate folder for the same reason: scikit-learn and spaCy bring SciPy and much else.
test-integrations: build  ## run the tests with scikit-learn, spaCy and Jupyter
	@$(RUN) -c '$(REQUIREMENTS)' integrations >build/integrations.txt
	$(BIN)/pip install --quiet --upgrade --target build/integrations --requirement build/integrations.txt
	PYTHONPATH=build/integrations $(BIN)/pytest tests/test_estimators.py tests/test_spacy.py tests/test_notebook.py

# A Python that was built without the sanitizers must load their libraries first. Python itself does not free all its
# memory. No command of tsgkit exits with 99.
SANITIZED = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:exitcode=99

test-asan: $(VENV)/base  ## run all tests with the address and undefined behaviour sanitizers, then restore the normal build
	TSGKIT_SANITIZE=1 $(RUN) setup.py --quiet build_ext --inplace
	$(SANITIZED) $(PYTEST) -m "$(MARK)" $(TESTS); \
		status=$$?; $(MAKE) --no-print-directory build && exit $$status

# Few, because valgrind is some thirty times slower.
VALGRIND_TESTS ?= tests/parsing/test_rows.py tests/models/test_rules.py \
	tests/evaluation/test_quirks.py tests/fuzz/test_fuzz.py::test_valid_inputs_are_taken \
	$(foreach part,tsg_sampler insertion_sampler sr_sampler sr_sites,tests/models/test_$(part).py::test_going_on_from_what_was_saved) \
	tests/parsing/test_forest.py::test_best_trees_of_any_forest tests/parsing/test_derivations.py::test_best_derivation
test-valgrind: build  ## run some tests of compiled code under valgrind
	PYTHONMALLOC=malloc valgrind --quiet --error-exitcode=9 --suppressions=tests/valgrind.supp --gen-suppressions=all \
		$(RUN) -m pytest -q -p no:xdist -p no:cacheprovider $(or $(TESTS),$(VALGRIND_TESTS))

# The interpreters to compare; each needs its header files.
PYTHONS ?= python3.11 python3.12 python3.13
test-pythons:  ## check that the same seed gives the same model with each of PYTHONS
	set -e; for python in $(PYTHONS); do \
		venv=build/pythons/$$(basename $$(dirname $$(dirname $$(command -v $$python))))-$$(basename $$python); \
		$$python -m venv $$venv; \
		$$venv/bin/pip install --quiet "setuptools>=77" "Cython>=3.1,<4" "numpy>=2.0" pytest hypothesis; \
		$$venv/bin/pip install --quiet --no-build-isolation .; \
		echo "$$($$venv/bin/python --version):"; \
		(cd tests && PYTHONPATH=. PYTHONSAFEPATH=1 ../$$venv/bin/python -m pytest -q -c /dev/null --rootdir=. test_numbers.py); \
	done

# Number of damaged inputs, targets (all by default), and seconds of atheris for each, if it is installed.
FUZZ_INPUTS ?= 2000000
FUZZ_TARGETS ?=
FUZZ_GUIDED ?= 60
FUZZ_SEED ?= 1
fuzz: build  ## feed damaged inputs to every reader (FUZZ_INPUTS, FUZZ_TARGETS, FUZZ_SEED, FUZZ_GUIDED)
	PYTHONPATH=tests $(RUN) -m fuzz.run --inputs=$(FUZZ_INPUTS) --guided=$(FUZZ_GUIDED) --seed=$(FUZZ_SEED) $(FUZZ_TARGETS)

# Which targets, and options of tests/oom/run.py.
OOM ?=
oom: build  ## let allocations fail, one at a time, in every kernel of the parser and every command (OOM="--stays eval")
	PYTHONPATH=tests $(RUN) -m oom.run $(OOM)

FAULTS ?=
mutation: build  ## put deliberate faults into kernels and samplers, one at a time: the tests must detect each
	PYTHONPATH=tests $(RUN) -m mutation.run $(FAULTS)

# Which scenarios, and options of tests/injection/run.py.
INJECTION ?=
io-faults: build  ## let every file call of every command fail once, with each error it can return (INJECTION=--one tsg)
	PYTHONPATH=tests $(RUN) -m injection.run faults $(INJECTION)

kills: build  ## kill every command at every file call, resume it, and compare the results
	PYTHONPATH=tests $(RUN) -m injection.run kills $(INJECTION)

soak: build  ## measure the memory over 100,000 parses and 1,000 iterations of every sampler
	$(RUN) -m tools.bench.soak

bench-read: build  ## measure the readers: tokens per second, memory (TREES=100000)
	$(RUN) -m tools.bench.read --trees=$(or $(TREES),100000)

bench-classes: build  ## measure how well the classes of unknown words predict their tags
	$(RUN) -m tools.bench.classes

bench-load: build  ## measure the web server under load: requests per second, latency, refused requests
	$(RUN) -m tools.bench.load

lint: ruff cython-lint mypy  ## run ruff, cython-lint and mypy

ruff: $(VENV)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

cython-lint: $(VENV)/lint
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint ext

mypy: $(VENV)/lint
	$(BIN)/mypy

format: $(VENV)/lint  ## fix and format the code with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/docs build  ## build the manual in docs/_build/html
	rm -rf docs/_build docs/api/generated
	$(RUN) -m sphinx --fail-on-warning --keep-going -q -b html docs docs/_build/html

layers: $(VENV)/base  ## write the diagram and the table of parts on the design page, from docs/layers.py
	$(RUN) docs/layers.py

# The screenshots of the manual, taken by the tests of pages; they need Chromium and its driver. 256 colours keep them small.
PICTURES := serve-start serve-tree serve-derivation serve-dependencies serve-node serve-gold serve-dark serve-phone report-tsg \
	report-srtsg report-srtsg-subcategories report-insertion-derivations
SHRINK := import sys; from PIL import Image; \
	[Image.open(name).convert("RGB").quantize(256, method=1, kmeans=3).save(name, optimize=True) for name in sys.argv[1:]]

# The accessibility checker of the tests of pages; they are skipped without it.
build/axe:
	mkdir -p build/axe && cd build/axe && npm pack --silent axe-core >/dev/null && tar -xzf axe-core-*.tgz

screenshots: build  ## take the screenshots of the manual, in docs/_static
	rm -rf build/manual && TSGKIT_SCREENSHOTS=build/manual $(BIN)/pytest tests/report/test_browser.py
	$(RUN) -c '$(SHRINK)' $(PICTURES:%=build/manual/%.png)
	cp $(PICTURES:%=build/manual/%.png) docs/_static/
	$(BIN)/tsgkit train --quiet --force --model=tsg --iterations=400 --output=build/manual/tsg.model village:train
	$(BIN)/tsgkit draw --model=build/manual/tsg.model --number=4 --format=svg -o docs/_static/draw-derivation.svg village:train
	$(BIN)/tsgkit draw --dependencies --number=5 -o docs/_static/draw-arcs.svg village:dev

# Every Python module of the source tree: the wheel must contain them all. One needs spaCy, which is not installed there.
MODULES = $(subst /,.,$(patsubst %.py,%,$(patsubst %/__init__.py,%,$(shell \
	find tsgkit -name '*.py' -not -name '__main__.py' -not -name '_spacy_component.py'))))
IMPORT_ALL := import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]

# Files that a wheel must contain besides the modules, which are imported below.
TYPES = tsgkit/py.typed $(patsubst ext/tsgkit/%.pyx,tsgkit/%.pyi,$(wildcard ext/tsgkit/*.pyx))

# The wheel is built from the unpacked source package, so that `make adopt-build` can use what was compiled there.
sdist-check: $(VENV)/base  ## build the source package and a wheel, and test the wheel in an empty environment
	rm -rf build/sdist-check && mkdir -p build/sdist-check/source
	$(BIN)/pip install --quiet build
	{ $(RUN) -m build --sdist --outdir build/sdist-check . \
		&& tar -xf build/sdist-check/tsgkit-*.tar.gz -C build/sdist-check/source --strip-components=1 \
		&& $(BIN)/pip wheel --verbose --no-deps --wheel-dir build/sdist-check build/sdist-check/source; \
	} >build/sdist-check/log 2>&1 || { cat build/sdist-check/log; exit 1; }
	! grep -E '(^|[^A-Z])[Ww]arning' build/sdist-check/log | grep -v 'byte-compiling is disabled'
	$(RUN) -m zipfile -l build/sdist-check/tsgkit-*.whl >build/sdist-check/files
	for file in $(TYPES); do grep -q "^$$file " build/sdist-check/files || { echo "no $$file in the wheel"; exit 1; }; done
	! grep -E 'tools/(bench|experiments)' build/sdist-check/files
	$(PYTHON) -m venv build/sdist-check/venv
	build/sdist-check/venv/bin/pip install --quiet "$$(echo build/sdist-check/tsgkit-*.whl)[plot,web]"
	cd build/sdist-check && venv/bin/python -c '$(IMPORT_ALL)' $(MODULES)
	cd build/sdist-check && venv/bin/tsgkit prepare village:dev -o dev.mrg \
		&& venv/bin/tsgkit eval dev.mrg dev.mrg --summary >score && grep '^Bracketing FMeasure *= *100.00' score
	cd build/sdist-check && venv/bin/tsgkit train --quiet --model=tsg --iterations=20 village:train -o tsg.model \
		&& echo "the old man smiled ." | venv/bin/tsgkit parse --quiet tsg.model -o tree.mrg \
		&& venv/bin/tsgkit draw --model=tsg.model --format=svg tree.mrg -o tree.svg && grep -q '</svg>' tree.svg

# For a checkout whose sources are those of the package: files that are newer than all sources are not built again.
adopt-build: $(VENV)/base  ## after `make sdist-check`: use the modules of the wheel, instead of compiling them again
	rm -rf build/cython build/lib.* && cp -r build/sdist-check/source/build/cython build/sdist-check/source/build/lib.* build
	find build/cython -type f -exec touch {} +
	cp build/lib.*/tsgkit/*.so tsgkit && touch build/lib.*/tsgkit/*.so tsgkit/*.so
	cp build/sdist-check/source/build/mode build/mode

# Derivations for the manual, drawn by the commands that it explains. Each is of one sentence.
DRAWN := build/pictures
DRAW = $(BIN)/tsgkit parse --quiet $(DRAWN)/$(1).model | $(BIN)/tsgkit draw --model=$(DRAWN)/$(1).model --format=svg \
	-o docs/_static/$(2).svg

pictures: build  ## draw the derivations on the pages of the models, in docs/_static
	mkdir -p $(DRAWN)
	$(BIN)/tsgkit train --quiet --force --model=cfg village:train -o $(DRAWN)/cfg.model
	$(BIN)/tsgkit train --quiet --force --model=tsg --iterations=300 --type-moves=1000 village:train -o $(DRAWN)/tsg.model
	$(BIN)/tsgkit train --quiet --force --model=srtsg village:train -o $(DRAWN)/srtsg.model
	$(BIN)/tsgkit generate --quiet 500 --seed=1 >$(DRAWN)/trees.mrg
	$(BIN)/tsgkit train --quiet --force --model=insertion --threshold=0 --iterations=100 --type-moves=1000 --seed=1 \
		$(DRAWN)/trees.mrg -o $(DRAWN)/insertion.model
	echo "I will meet you at the station with the dog ." | $(call DRAW,tsg,derivation)
	echo "That 's very kind of you ." | $(call DRAW,cfg,model-cfg)
	echo "That 's very kind of you ." | $(call DRAW,tsg,model-tsg)
	echo "That 's very kind of you ." | $(call DRAW,srtsg,model-srtsg)
	echo "she broke the pretty ice ." | $(call DRAW,insertion,model-insertion)

pages: pictures  ## update the output of commands on the pages of the tutorial and the how-to
	TSGKIT_UPDATE_PAGES=1 $(BIN)/pytest -q tests/test_console.py

# The whole pipeline, one command per line; make prints each before it runs it.
demo: build  ## prepare, train, parse and evaluate on the bundled treebank; results in demo/
	@mkdir -p demo
	$(BIN)/tsgkit prepare village:train --statistics -o demo/train.mrg
	$(BIN)/tsgkit prepare village:dev -o demo/dev.mrg
	$(BIN)/tsgkit train --force --model=cfg demo/train.mrg -o demo/cfg.model
	$(BIN)/tsgkit prepare --write=words demo/dev.mrg -o demo/dev.txt
	$(BIN)/tsgkit parse demo/cfg.model -i demo/dev.txt -o demo/dev.parsed.mrg
	$(BIN)/tsgkit train --force --model=tsg --iterations=300 --type-moves=1000 demo/train.mrg -o demo/tsg.model
	$(BIN)/tsgkit inspect demo/tsg.model --min-size=2 --examples --top=10
	$(BIN)/tsgkit parse demo/tsg.model -i demo/dev.txt -o demo/dev.tsg.mrg
	$(BIN)/tsgkit train --force demo/train.mrg -o demo/srtsg.model
	$(BIN)/tsgkit inspect demo/srtsg.model --subcategories=IN --top=4
	$(BIN)/tsgkit parse demo/srtsg.model -i demo/dev.txt -o demo/dev.srtsg.mrg
	$(BIN)/tsgkit eval demo/dev.mrg demo/dev.parsed.mrg demo/dev.tsg.mrg
	$(BIN)/tsgkit eval demo/dev.mrg demo/dev.tsg.mrg demo/dev.srtsg.mrg

bench-eval: build  ## measure sentence pairs scored per second
	$(RUN) -m tools.bench.eval

bench-parse: build  ## measure sentences parsed per second; with MODELS="FILE FILE", also of trained models beside other parsers
	$(RUN) -m tools.bench.parse
	$(if $(MODELS),$(RUN) -m tools.bench.models $(MODELS))

bench-train: build  ## measure node visits per second in training, and recovery of known fragments
	$(RUN) -m tools.bench.train
	$(RUN) -m tools.bench.sweeps

bench-stream: build  ## parse a million sentences with bounded memory, killed half-way and resumed (SENTENCES=N)
	$(RUN) -m tools.bench.stream $(if $(SENTENCES),--sentences=$(SENTENCES))

bench-scaling: build  ## measure the cost per sweep and sentence at growing sizes, and predict that of larger jobs
	$(RUN) -m tools.bench.scaling --measure

exp-pcfg: build  ## compute F1 of the PCFG for many settings
	$(RUN) -m tools.bench.markovisation

# SCALE=smoke|small|full, TREEBANK=nltk|village|FOLDER; PAGE=docs/results puts the page into the manual.
SCALE ?= small
TREEBANK ?= nltk
EXPERIMENT = $(RUN) -m tools.experiments.$(@:exp-%=%) --scale=$(SCALE) --treebank=$(TREEBANK) --jobs=$(JOBS) \
	$(if $(PAGE),--page=$(PAGE))

exp-cohn2010: $(VENV)/plot build  ## reproduce the results of Cohn & Blunsom (2010); continues after an interruption
	$(EXPERIMENT)

exp-shindo2011: $(VENV)/plot build  ## reproduce the results of Shindo, Fujino & Nagata (2011)
	$(EXPERIMENT)

SEEDS ?= 3
exp-headline: $(VENV)/plot build  ## train all models with their defaults on growing numbers of trees (BERKELEY_JAR=FILE)
	$(EXPERIMENT) --seeds=$(SEEDS) $(if $(SIZE_SEEDS),--size-seeds=$(SIZE_SEEDS))

exp-shindo2012: $(VENV)/plot build  ## reproduce the results of Shindo et al. (2012)
	$(EXPERIMENT)

clean:  ## remove everything that was built, except for .venv
	rm -rf build dist demo docs/_build docs/api/generated *.egg-info .hypothesis
	find tsgkit -name '*.so' -exec rm -f {} +
	find tsgkit tests tools docs -name __pycache__ -prune -exec rm -rf {} +
