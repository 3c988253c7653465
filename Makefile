# Every target works on a fresh machine with Python 3.11, a C++ compiler and git: it makes the environment it
# needs from the lock, installs the package and does its job. Nothing is prepared by hand.

PYTHON ?= python3
# Workers of the test suite; pytest's own arguments: make test ARGS="-k ndcg -x"
JOBS ?= 2
ARGS ?=

# A C++ build that fails is an error here, not a quiet install of the pure-Python wheel.
# Without a compiler: make test RECSYS_NATIVE=0
export RECSYS_NATIVE ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests and packages are compiled once, whatever the shell says: collecting the suite takes 6 seconds of CPU
# time with the compiled files and 20 without.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin
NATIVE := $(wildcard CMakeLists.txt src/recsys/kernels/native/*)
CPP := $(wildcard src/recsys/kernels/native/*.cpp src/recsys/kernels/native/*.hpp tests/kernels/native/*.cpp)
SOURCES := $(shell find src -name '*.py' -o -name '*.pyi' -o -name 'py.typed' -o -name '*.html' -o -name '*.css' -o -name '*.js' -o -name '*.json' \
    -o -name '*.txt')

.PHONY: help demo test quick check parity bench tidy sanitize coverage mutants fuzz faults same-bytes load nominal \
    nightly cross wheels matrix sbom audit restate docs lock clean browser
.DELETE_ON_ERROR:

help:
	@echo "make demo    evaluate the embedded demo world and print the table"
	@echo "make test    the whole test suite, then make parity; the end says what was left out and how to have it"
	@echo "make quick   a selection of the tests, under two minutes, between two edits"
	@echo "make check   ruff, mypy, import layers, doctests, clang-format and clang-tidy"
	@echo "make parity  meet the installed peer libraries and trackers, in an environment of their own"
	@echo "make bench   run the benchmarks"
	@echo "make tidy    clang-tidy on the C++ kernels"
	@echo "make sanitize  the kernel tests on an AddressSanitizer and UBSan build"
	@echo "make nightly   all of what follows up to wheels, one after the other; hours, and it goes on where it was cut off"
	@echo "make coverage  which branches and lines of C++ the tests run; the exit status says if it is 95%"
	@echo "make mutants   whether the tests notice small changes of the source; SAMPLE=1000 of them, or a night"
	@echo "make fuzz      random hostile values and damaged files, for SECONDS=60; the exit status says if all ended well"
	@echo "make faults    what is left after kills, full and failing disks, memory limits; about half an hour"
	@echo "make same-bytes  the same numbers on other threads, processors, engines, Pythons and libraries"
	@echo "make load      mixed calls from eight threads for SECONDS, then small ones by the thousand"
	@echo "make nominal   how often tests, gates and intervals are wrong in simulated worlds; under an hour on two cores"
	@echo "make wheels    build source and wheels twice, compare their bytes, test them in clean environments"
	@echo "make matrix    the quick tests on every Python at hand, lowest and newest dependencies, compiled and pure"
	@echo "make sbom, make audit  what the package consists of; its known vulnerabilities (asks the network)"
	@echo "make cross   the kernels' answers on this CPU and, in an emulator, on aarch64"
	@echo "make docs    write the generated pages of docs/ and build the site into site/"
	@echo "make restate write every stored number, transcript, finding and page anew; its diff is to be read"
	@echo "make lock    resolve the locks anew"
	@echo "make clean   remove environments, builds and caches"

demo: $(VENV)/.installed
	$(BIN)/recsys demo

# Each part says in one line which tests were left out for want of something; at the end all lines come once more.
LEFT_OUT = build/left-out
test: $(VENV)/.installed browser
	@mkdir -p build && rm -f $(LEFT_OUT)
	RECSYS_LEFT_OUT=$(abspath $(LEFT_OUT)) $(BIN)/python -m pytest -n $(JOBS) --ignore=tests/parity --ignore=tests/ecosystem \
	    --ignore=tests/nightly $(ARGS)
	RECSYS_LEFT_OUT=$(abspath $(LEFT_OUT)) $(MAKE) parity ARGS=
	@cat $(LEFT_OUT) 2>/dev/null || true

# Pages are tested in a real browser: the distribution's Chromium, installed where this may be done. Without it those
# tests are left out.
browser:
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
	if command -v apt-get && [ "$$(id -u)" = 0 ]; then \
	    export DEBIAN_FRONTEND=noninteractive; \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null || true; \
	fi

# One or two files of each room that say most in little time; Hypothesis tries 10 examples of each property.
QUICK = $(addprefix tests/,conventions metrics/test_oracle.py metrics/test_published.py ranks inputs \
    kernels/test_match.py splits/test_strategies.py stats/test_paired_tests.py evaluation/test_engine.py \
    evaluation/test_results.py evaluation/test_bad_input.py comparison/test_gate.py comparison/test_compare.py \
    audits cli/test_command.py)
quick: $(VENV)/.installed
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -q -n $(JOBS) -m "not slow and not shared" $(QUICK) $(ARGS)

# The Triton kernels can only be imported where Triton is, on a machine with a GPU.
check: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/house.py --check
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/python -m pytest -q -p no:randomly --doctest-modules src/recsys --ignore=src/recsys/kernels/cuda/triton_kernels.py
	$(MAKE) tidy

# -W ignore: the warnings of peers are theirs.
parity: $(PEERS)/.installed
	$(PEERS)/bin/python -m pytest -n $(JOBS) -W ignore tests/parity tests/ecosystem $(ARGS)

bench: $(PEERS)/.installed
	@for script in benchmarks/*.py; do [ -e "$$script" ] || continue; \
	echo "$$script"; $(PEERS)/bin/python "$$script" || exit 1; done

# The compile commands are those of an ordinary build.
tidy: $(VENV)/.installed
	$(BIN)/cmake -S . -B build/tidy -DPython_EXECUTABLE=$(abspath $(BIN)/python) >/dev/null
	printf '%s\n' src/recsys/kernels/native/*.cpp | xargs -P $(JOBS) -n 1 $(BIN)/clang-tidy --quiet -p build/tidy

sanitize: $(VENV)/.installed
	scripts/sanitize.sh $(BIN)/python

# The long proofs. Each keeps what is finished in build/ and goes on from there; with ARGS=--table
# it writes its section of docs/reliability.md.
# One measured run of the tests serves both: which branches they run, and which tests run which lines.
coverage: $(VENV)/.installed
	$(BIN)/python scripts/coverage_report.py --jobs $(JOBS) $(ARGS)

# Every mutant of the core and 600 of the rest, or SAMPLE of them: make mutants SAMPLE=1000 JOBS=1
SAMPLE ?= 0
mutants: $(VENV)/.installed
	$(BIN)/python scripts/measured_tests.py --missing --jobs $(JOBS)
	$(BIN)/python scripts/mutants.py build/mutants.jsonl --sample $(SAMPLE) --jobs $(JOBS) $(ARGS)

# The seed of the cases and how long: make fuzz SECONDS=600 SEED=7 ARGS="--only files"
SECONDS ?= 60
SEED ?= 0
fuzz: $(VENV)/.installed
	$(BIN)/python scripts/fuzz.py --seconds $(SECONDS) --seed $(SEED) $(ARGS)

# Fewer points, or a part: make faults ARGS='--points 10 --only "save|report"'
faults: $(VENV)/.installed
	$(BIN)/python scripts/faults.py build/faults.jsonl $(ARGS)

same-bytes: $(VENV)/.installed
	$(BIN)/python scripts/same_bytes.py $(ARGS)

load: $(VENV)/.installed
	$(BIN)/python scripts/load.py build/load.jsonl --seconds $(SECONDS) $(ARGS)

# What people decide by is run in ten times as many worlds. Coarser, or a part: make nominal WORLDS=20 ARGS='--cells "gate|hit"'.
WORLDS ?= 200
nominal: $(VENV)/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python scripts/nominal.py build/nominal.jsonl --worlds $(WORLDS) --jobs $(JOBS) --table $(ARGS)

# A proof that does not hold does not keep the others from running; the exit status is that of all.
nightly: $(VENV)/.installed
	$(MAKE) --keep-going $(addprefix night-,tests coverage same-bytes faults sanitize fuzz load nominal mutants)

# In one process: each session of Spark has a JVM, and the last one two executors besides.
night-tests:
	$(BIN)/python -m pytest tests/nightly
night-sanitize:
	FUZZ=1800 $(MAKE) sanitize
night-nominal:
	$(MAKE) nominal
night-coverage night-same-bytes night-faults night-mutants: night-%:
	$(MAKE) $* ARGS=--table
night-load:
	$(MAKE) load SECONDS=3600 ARGS=--table
night-fuzz:
	$(MAKE) fuzz SECONDS=3600 ARGS=--table

# What is published: an environment of its own has the tools.
RELEASE := .venv-release
wheels matrix: $(RELEASE)/.locked
	$(RELEASE)/bin/python scripts/releases.py $@ --jobs $(JOBS) $(ARGS) --tests $(QUICK)
sbom audit: $(RELEASE)/.locked
	$(RELEASE)/bin/python scripts/releases.py $@ $(ARGS)

# Needs a cross compiler and an emulator (Debian: g++-aarch64-linux-gnu qemu-user).
cross:
	scripts/cross.sh

# Strict: a link that leads nowhere, or a page outside the navigation, is an error; with --quiet it is none.
docs: $(VENV)/.installed
	$(BIN)/python scripts/write_docs.py
	$(BIN)/python scripts/house.py --write
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Whatever the tests compare with a stored text: a difference is a change of what users get, so read it.
RESTATED = tests/stats/test_stored_numbers.py tests/audits/test_audit.py tests/cli/test_transcripts.py \
    tests/golden/page.py
restate: $(VENV)/.installed
	@for file in $(RESTATED); do echo "$$file"; PYTHONPATH=tests $(BIN)/python "$$file" || exit 1; done
	$(BIN)/python scripts/same_values.py --digest --store
	$(BIN)/python scripts/write_docs.py
	$(BIN)/python scripts/house.py --write
	@git diff --stat
	@echo "Read git diff: each line of it is a change of what users get."

# The locks carry hashes and no addresses, so any index that serves the same files will do.
# PySpark is published as source only: 456 MB, half a minute to fetch and build where pip has no wheel of it.
# cwl-eval's last wheel is 1.0.8, and ir_measures asks for 1.0.10; it is Python only.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
    --upgrade --only-binary :all: --no-binary pyspark --no-binary cwl-eval
# The extras the tests use; torch comes in a pip call of its own (below).
EXTRAS = polars arrow duckdb cli report plot implicit spark safetensors embed
lock: $(VENV)/.locked
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) $(foreach extra,$(EXTRAS),--extra $(extra)) --group dev pyproject.toml -o requirements/lock.txt
	$(COMPILE) --group peers --overrides requirements/peers-overrides.txt \
	    --excludes requirements/peers-excludes.txt pyproject.toml -o requirements/peers.txt
	$(COMPILE) --group release --constraint requirements/lock.txt -o requirements/release.txt

clean:
	rm -rf $(VENV) $(PEERS) $(RELEASE) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The third-party packages, redone when the lock changes. --no-deps: the lock is complete, so nothing is left
# to resolve. --no-compile: most of these files are never imported, and compiling them all takes longer than
# unpacking them.
INSTALL = -m pip install --quiet --no-deps --no-compile
$(VENV)/.locked: requirements/lock.txt requirements/constraints.txt
	$(call new-venv,$(VENV))
	$(BIN)/python $(INSTALL) --require-hashes -r requirements/lock.txt
	$(BIN)/python $(INSTALL) --constraint requirements/constraints.txt torch
	@touch $@

$(RELEASE)/.locked: requirements/release.txt
	$(call new-venv,$(RELEASE))
	$(RELEASE)/bin/python $(INSTALL) --require-hashes -r requirements/release.txt
	@touch $@

# The package itself, editable: Python sources are read in place, so only what is compiled or declared
# (entry points, build settings) asks for a reinstall.
$(VENV)/.installed: $(VENV)/.locked pyproject.toml $(NATIVE)
	$(BIN)/python $(INSTALL) --no-build-isolation --editable .
	@touch $@

# torch comes in a call of its own: its CPU build has another hash than the one a lock would record, and
# hash checking is all or nothing within a call.
$(PEERS)/.locked: requirements/peers.txt requirements/constraints.txt
	$(call new-venv,$(PEERS))
	$(PEERS)/bin/python $(INSTALL) --require-hashes -r requirements/peers.txt
	$(PEERS)/bin/python -m pip install --quiet --no-compile --no-warn-conflicts \
	    --constraint requirements/constraints.txt torch
	@touch $@

# Peers meet the wheel a user would get, not the source tree.
$(PEERS)/.installed: $(PEERS)/.locked $(VENV)/.installed $(SOURCES)
	rm -rf build/wheels
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/wheels .
	$(PEERS)/bin/python $(INSTALL) --force-reinstall --no-index build/wheels/*.whl
	@touch $@

define new-venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "recsys needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(1)
endef
