# Everything runs in .venv, made once and again whenever pyproject.toml changes. Needed: Python 3.11 or newer, bash.
# PySpark comes as sources: its wheel is built once, for .venv and for the environments of wheel-check.

SHELL := /bin/bash
# Without files of byte code every process compiles the sources of all that it imports, for seconds.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
# What stands when the environment, all packages but PySpark, PySpark's wheel, and all of it are made.
MADE := $(VENV)/made
PACKAGES := $(VENV)/packages
PYSPARK := $(VENV)/pyspark
STAMP := $(VENV)/stamp
UV_INSTALL = $(VENV)/bin/uv pip install --quiet --system-certs --python $(VENV)/bin/python
IN_VENV := . $(VENV)/env && $(VENV)/bin/python
# Of these, byte code is written once: suites that begin side by side would each compile most of it.
IMPORTED := hypothesis.strategies, pandas, pyspark.sql.functions, pyspark.worker, pytest
# PySpark's jars, most of its wheel, are compressed already.
STORED := --config-settings=--build-option=--compression=stored
PYTEST_ARGS ?=
# How many of these suites run side by side, each in one process: the longest first.
JOBS ?= 4
SUITES := test-spark test-rest test-connect test-kernels test-engine test-simulator test-conformance
AWKWARD := tests/conformance tests/api $(addprefix tests/spark/test_,contract.py intervals.py matching.py)
APART := tests/conformance tests/spark tests/engine tests/kernels
# The tests of Spark, the longest suite, often wait for the JVM: all others yield to them, so that they do not end last.
ON_SPARK = $(IN_VENV) -m pytest $(FULL) $(PYTEST_ARGS)
PYTEST = . $(VENV)/env && nice $(VENV)/bin/python -m pytest $(FULL) $(PYTEST_ARGS)
BENCH_ARGS ?=
KINDS_ARGS ?=
RIVALS_ARGS ?=
COMPARE_ARGS ?=
GPU_CHECK_ARGS ?=
PYTHONS ?= $(PYTHON)
FUZZ_EXAMPLES ?= 50000
MUTANTS_ARGS ?=

.PHONY: venv check test test-full $(SUITES) test-awkward compiled-kernels mutants lint demo docs pages bench bench-full bench-compare gpu-check fuzz wheel wheel-check browser clean

venv: $(STAMP)

$(MADE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install -qq --disable-pip-version-check 'uv>=0.13'
	touch $@

$(PACKAGES): $(MADE)
	$(UV_INSTALL) --editable '.[dev,docs]'
	touch $@

$(PYSPARK): $(MADE)
	$(VENV)/bin/python -m pip wheel -qq --disable-pip-version-check --no-deps --wheel-dir $(VENV)/wheels $(STORED) pyspark
	touch $@

# The requirements alone: kernels may be compiled meanwhile, by the package as it is installed already.
$(STAMP): $(PACKAGES) $(PYSPARK) .ci/java
	$(UV_INSTALL) --find-links $(VENV)/wheels --requirements pyproject.toml --extra spark
	.ci/java $(VENV)
	$(IN_VENV) -c 'import $(IMPORTED)'
	touch $@

# The fast suite: it catches the faults that `make mutants` plants.
test: compiled-kernels
	$(MAKE) --jobs=$(JOBS) --keep-going --output-sync $(SUITES)

# The same beside the lint, the site and the wheel, which need no kernels: what a change must pass.
check:
	$(MAKE) --jobs=$(JOBS) --keep-going --output-sync FIRST=compiled-kernels $(SUITES) lint docs wheel-check

# Everything: all examples and sizes, all of Spark behind a Connect server, every kernel for every architecture, awkward settings.
test-full: compiled-kernels
	$(MAKE) --jobs=$(JOBS) --keep-going --output-sync FULL=--full $(SUITES)
	$(MAKE) test-awkward

# Also what suites that begin side by side would each do: the package's byte code, and the constants of its sources that Hypothesis tries.
compiled-kernels: $(PACKAGES)
	$(VENV)/bin/python -m tests.compile_kernels
	@found=$$($(VENV)/bin/python -m pytest --collect-only --quiet tests/conformance 2>&1) || { echo "$$found"; exit 1; }

# What all suites wait for where they run side by side.
FIRST ?=
$(SUITES): $(FIRST)

test-conformance test-engine test-kernels: test-%: $(STAMP)
	$(PYTEST) tests/$*

test-spark: $(STAMP)
	$(ON_SPARK) tests/spark

# .ci/run says BROWSER=browser.
BROWSER :=
test-rest: $(STAMP) $(BROWSER)
	$(PYTEST) tests $(APART:%=--ignore=%)

test-connect: $(STAMP)
	export CEP_SPARK_CONNECT=1 && $(PYTEST) tests/spark

# With tiny batches, one thread, no pruning, and on Spark batches of one row and spilled events: the same matches.
test-awkward: $(STAMP)
	$(PYTEST) --awkward $(AWKWARD)

test-simulator: $(STAMP)
	export NUMBA_ENABLE_CUDASIM=1 && $(PYTEST) tests/gpu

# Whether the tests notice faults that are planted one by one: make mutants MUTANTS_ARGS="--only NAME … --suite full"
mutants: compiled-kernels
	$(IN_VENV) -m tests.mutants $(MUTANTS_ARGS)

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/mypy

demo: $(STAMP)
	$(IN_VENV) examples/demo.py

# The site, in site/; the switch silences an advertisement for mkdocs-material's successor.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

# The parser's tables and the page of the grammar; the jar of Spark's extension; what docs and the notebook show of recipes, matches
# and records.
pages: $(STAMP)
	$(IN_VENV) -m gpu_cep.lang.grammar_tables
	$(IN_VENV) examples/grammar_page.py
	$(IN_VENV) spark_glue/java/build_jar.py
	$(IN_VENV) examples/recipe_pages.py
	$(IN_VENV) examples/pictures.py
	$(IN_VENV) examples/tour_outputs.py
	$(IN_VENV) -m benchmarks.gpu.versus_cpu
	$(IN_VENV) -m benchmarks.record.headline

# Five minutes; fails if a stage is slower than its recorded ratio to the floor.
bench: $(STAMP)
	$(IN_VENV) -m benchmarks.suite.run $(BENCH_ARGS)

# All sizes, curves and kinds of questions; the rivals run in environments of their own, which the first run makes.
bench-full: $(STAMP)
	$(IN_VENV) -m benchmarks.suite.run --extent full $(BENCH_ARGS)
	$(IN_VENV) -m benchmarks.kinds.run $(KINDS_ARGS)
	$(IN_VENV) -m benchmarks.rivals.run $(RIVALS_ARGS)

# Two records of bench: make bench-compare BEFORE=benchmarks/results/….json AFTER=….json
bench-compare: $(STAMP)
	$(IN_VENV) -m benchmarks.suite.compare $(BEFORE) $(AFTER) $(COMPARE_ARGS)

# With the Python at hand, for machines without a network: it needs CuPy, numba-cuda, pyarrow, hypothesis and lark.
# numba-cuda without the wheel of NVVM takes the toolkit's, if it is told where that is. The docs' page on cards is made of what was measured.
gpu-check:
	if [ -z "$$CUDA_HOME$$CUDA_PATH" ] && [ -d /usr/local/cuda/nvvm ]; then export CUDA_HOME=/usr/local/cuda; fi; \
	export PYTHONPATH=.:kernels$${PYTHONPATH:+:$$PYTHONPATH}; \
	$(PYTHON) -m benchmarks.gpu.check $(GPU_CHECK_ARGS); status=$$?; \
	if [ $$status != 2 ]; then $(PYTHON) -m benchmarks.gpu.versus_cpu || exit; fi; exit $$status

# Random queries against the oracle: so many examples for each property.
fuzz: $(STAMP)
	export CEP_EXAMPLES=$(FUZZ_EXAMPLES) && $(IN_VENV) -m pytest --numprocesses $(JOBS) --dist worksteal tests/conformance $(PYTEST_ARGS)

wheel: $(STAMP)
	rm -rf build dist
	$(VENV)/bin/python -m build --wheel --outdir dist .

browser:
	.ci/browser

# In a bare environment of each Python: make wheel-check PYTHONS='python3.11 python3.13' RESOLUTION=lowest-direct
wheel-check: wheel
	. $(VENV)/env && .ci/wheel dist/*.whl $(PYTHONS)

clean:
	rm -rf $(VENV) build dist site
