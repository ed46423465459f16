# Nothing but make and Python 3.11 to 3.13 is needed; everything else goes into .venv.
#   make demo    the algorithms on real graphs, each verified
#   make test    lint, types, layers, tests
#   make docs    the documentation site, in out/site
#   make bench   CPU figures beside peers; DATA=dir holds graphs that the project may not ship

VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
# Tests start many processes, which would compile every module anew.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile

.DEFAULT_GOAL := help
.PHONY: help demo test lint test-gpu check-gpus test-suites bench bench-gpu bench-compare docs clean

help:
	@sed -n '2,5s/^# *//p' Makefile
	@echo 'also: make lint | test-gpu | check-gpus | test-suites | bench-gpu | bench-compare BASE=commit | clean'

# The newest Python that really runs and has venv (a name on the PATH may be a shim that only prints an error). The pip
# that it brings may be years old, and takes longer to choose among wheels than it takes to install a new one.
$(BIN)/python:
	@for python in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
	  $$python -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	    >/dev/null 2>&1 || continue; \
	  echo "making $(VENV) with $$($$python --version)"; \
	  $$python -m venv --clear $(VENV) && exec $(PIP) --upgrade pip; \
	done; \
	echo 'gbgpu needs Python 3.11, 3.12 or 3.13 with its venv module; none of them was found (PYTHON=/path/to/python names one)' >&2; \
	exit 1

# One stamp a set of extras: installed again when pyproject.toml changes.
$(VENV)/installed-%: pyproject.toml | $(BIN)/python
	@echo "installing gbgpu[$*] into $(VENV)"
	@$(PIP) -e '.[$*]'
	@touch $@

demo: $(VENV)/installed-plot
	@$(BIN)/python tools/demo.py

STYLE = $(BIN)/ruff check gbgpu algos tests bench tools examples _gbgpu_nx.py _gbgpu_nx_costs.py _gbgpu_pytest.py
LAYERS = $(BIN)/python -m pytest -q -p no:xdist tests/test_layers.py

lint: $(VENV)/installed-test
	$(STYLE)
	$(BIN)/mypy & types=$$!; $(LAYERS) && wait $$types

# Kernels are kept apart from those that are in use, and compiled fast: the long run, and `make test-gpu`, have fast ones.
# mypy takes half a minute of one core. It runs beside the tests, which leave cores idle, and its report comes last.
test: $(VENV)/installed-test
	$(STYLE)
	nice $(BIN)/mypy >$(VENV)/types.txt 2>&1 & types=$$!; \
	  $(LAYERS) && GBGPU_OPTIMIZE=0 GBGPU_CACHE_DIR='$(CURDIR)/$(VENV)/kernels' \
	  $(BIN)/python -m pytest -q -n $(JOBS) --ignore=tests/test_layers.py; tests=$$?; \
	  wait $$types; types=$$?; cat $(VENV)/types.txt; exit $$((tests | types))

# The same tests on the GPUs of this machine. PYTHON=... uses an interpreter that has everything, else .venv is made.
GPU_DEVICES ?= cuda:0 cuda:0*3
ifdef PYTHON
test-gpu:
	GBGPU_TEST_DEVICES='$(GPU_DEVICES)' $(PYTHON) -m pytest -q $(TESTS)
else
test-gpu: $(VENV)/installed-test,cuda12
	GBGPU_TEST_DEVICES='$(GPU_DEVICES)' $(BIN)/python -m pytest -q $(TESTS)
endif

# Tests, random loops, compute-sanitizer's tools: side by side on all GPUs of this machine.
ifdef PYTHON
check-gpus:
	$(PYTHON) tools/check_gpus.py $(ARGS)
else
check-gpus: $(VENV)/installed-test,cuda12
	$(BIN)/python tools/check_gpus.py $(ARGS)
endif

test-suites: $(VENV)/installed-test,suites
	GBGPU_TEST_PROFILE=long $(BIN)/python -m pytest -q -n $(JOBS) --ignore=tests/suites
	GBGPU_TEST_PROFILE=long $(BIN)/python -m pytest -q -rP -n $(JOBS) tests/suites

bench: $(VENV)/installed-bench
	DATA='$(DATA)' $(BIN)/python -m pytest bench --benchmark-enable --benchmark-columns=median,iqr,rounds -q $(ARGS)

# GPU figures: graphs made on the GPU, results checked, cuSPARSE beside. GRAPHS="rmat22 road24m" takes some of them.
ifdef PYTHON
bench-gpu:
	$(PYTHON) -m bench.gpu $(GRAPHS) $(ARGS)
else
bench-gpu: $(VENV)/installed-test,cuda12
	$(BIN)/python -m bench.gpu $(GRAPHS) $(ARGS)
endif

# This checkout beside the commit BASE, by turns; fails where it is surely slower than THRESHOLD times.
DEVICES ?= cpu:2
THRESHOLD ?= 1.1
bench-compare: $(VENV)/installed-bench
	$(BIN)/python -m bench.compare '$(BASE)' --devices '$(DEVICES)' --threshold $(THRESHOLD) $(ARGS)

docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .hypothesis .ruff_cache .mypy_cache .benchmarks out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
