# Everything runs in .venv, which hash-pinned locks fill; nothing else on the machine is touched, and no server has to be
# installed: Postgres and Valkey come in wheels.
# A different interpreter: make PY=python3.12.  More options for pytest: make test ARGS="-k ledger".
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

PY ?= python3
ARGS ?=
PIP := .venv/bin/python -m pip --disable-pip-version-check
LOCK := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header
PYTEST := .venv/bin/python -m pytest
# A module stays in one worker, where its servers are made once. A quarter of the time is spent waiting for servers and
# for the disk, so that there is a worker more than cores.
ON_ALL_CORES := -n $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) --dist loadfile --no-loadscope-reorder
# Tests that must reach each branch of what they test.
COVERED := tests/core tests/accounting tests/test_arrays.py clients/python/tests/research
PAGES := clients/dashboard
GUIDE := clients/guide
GUIDE_BUILT := $(GUIDE)/build/index.html
BUILD_GUIDE = NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict --config-file $(GUIDE)/mkdocs.yml || { rm -rf $(GUIDE)/build; exit 1; }
PAGES_TOOLS := $(PAGES)/node_modules/.ok
# The scripts of the pages are checked by tools from npm's lock; the service itself needs no Node.js.
PAGES_RUN = if command -v npm > /dev/null; then $(MAKE) --silent $(PAGES_TOOLS) && npm --prefix $(PAGES) run --silent $(1); else echo "NO NPM: the scripts of the pages were not looked at; install Node.js 20 or newer"; fi
# Compiled tests are kept in every environment: rewriting their assertions takes each worker five seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo run figures docs wheels test unit mutants golden check format bench bench-peers attack attack-http attack-load soak surroundings lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.ok ## Start everything, register demo data, answer a query, show who was charged, stop
	@.venv/bin/sparing demo --home .sparing

run: .venv/.ok $(GUIDE_BUILT) ## The same, with the guide, then stay up until Ctrl-C
	@.venv/bin/sparing demo --home .sparing --stay

# With one thread of BLAS sums of products are equal bit by bit, however many cores there are. The table is in a package
# of the tests' lock.
figures: .venv/.dev-ok ## Draw the papers' figures into build/figures; ARGS="--only koskela-5", "--quick", "--digits mnist.npz"
	@OPENBLAS_NUM_THREADS=1 .venv/bin/python -m sparing_papers $(ARGS)

docs: .venv/.dev-ok ## Build the guide that the service serves at /guide; a link that leads nowhere is an error
	@$(BUILD_GUIDE)

wheels: docs ## Build the wheels of the service with its guide, the client and the local model into dist/
	@.venv/bin/python -m hatchling build --target wheel --directory $(CURDIR)/dist
	@for project in clients/python clients/local; do (cd $$project && $(CURDIR)/.venv/bin/python -m hatchling build --target wheel --directory $(CURDIR)/dist); done

# Coverage slows every function of a process by half, so that it is measured where the gate is.
test: .venv/.dev-ok ## The tests of core, accounting and research, which must reach each of their branches, then all others
	@$(PYTEST) $(ON_ALL_CORES) --quiet --cov --cov-report=term --cov-fail-under=100 $(COVERED)
	@$(PYTEST) $(ON_ALL_CORES) $(COVERED:%=--ignore=%) $(ARGS)

unit: .venv/.dev-ok ## The fast inner loop: all modules of which no seconds are recorded
	@$(PYTEST) $(ON_ALL_CORES) --quick -m "not browser" $(ARGS)

mutants: .venv/.dev-ok ## Seed every known bug in a copy of the code, one at a time, and see a test of it fail; ARGS=settle, "--only NAME"
	@.venv/bin/python -m tests.mutants $(ARGS)

golden: .venv/.dev-ok ## Compare plans, ledger entries and responses with the recorded ones; ARGS=renew records them anew
	@.venv/bin/python -m tests.golden $(or $(ARGS),compare)

check: .venv/.dev-ok ## Lint, formatting and types, and a report of the longest modules and functions
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy $(wildcard service clients/python clients/demo clients/audit clients/papers clients/local clients/ray clients/guide migrations loadtests tests .ci/install_lock.py .ci/report_sizes.py) conftest.py
	@$(call PAGES_RUN,check)
	@.venv/bin/python clients/python/sync_resources.py --check
	@.venv/bin/python .ci/report_sizes.py

format: .venv/.dev-ok ## Format the code
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .
	@.venv/bin/python clients/python/sync_resources.py
	@$(call PAGES_RUN,format)

attack: .venv/.dev-ok ## Try to distinguish neighbours by time: AUCs for all pairs and probes; ARGS="--quick --people 300000"
	@.venv/bin/python -m loadtests.attack_timing $(ARGS)

attack-http: .venv/.dev-ok ## Every known form of request smuggling beside honest principals, through nginx and haproxy too; ARGS="--quick"
	@.venv/bin/python -m loadtests.attack_http $(ARGS)

attack-load: .venv/.dev-ok ## What others wait, and what memory grows, while one principal asks for too much; ARGS="--only resumes", "--quick"
	@.venv/bin/python -m loadtests.attack_load $(ARGS)

bench: .venv/.dev-ok ## Run every benchmark under loadtests/; it fails at the end if work exceeds its public price
	@status=0; for script in $(filter-out loadtests/bench_peers.py,$(wildcard loadtests/bench_*.py)); do echo "== $$script"; .venv/bin/python -m "loadtests.$$(basename "$$script" .py)" || status=1; done; exit $$status

bench-peers: .venv/.dev-ok ## The same tasks by Sparing, OpenDP, SmartNoise-SQL and diffprivlib, each in its own environment
	@.venv/bin/python -m loadtests.peers.install
	@.venv/bin/python -m loadtests.bench_peers

soak: .venv/.dev-ok ## All tests with all repetitions, a suite of others, attacks on clip by time, then faults for an hour, or ARGS="--minutes N"; see tests/records
	@turn=$$(( $$(date +%s) % 1000000 )); \
	  SPARING_TEST_TURN=$$turn SPARING_TEST_WHOLE=1 $(PYTEST) $(ON_ALL_CORES) -m "not browser" --hypothesis-seed=$$turn
	@.venv/bin/python -m loadtests.compliance
	@.venv/bin/python -m loadtests.sql_magic
	@.venv/bin/python -m loadtests.attack_timing --people 300000 --probes clips
	@.venv/bin/python -m loadtests.soak $(ARGS)

surroundings: .venv/.dev-ok ## The gate in the background, beside busy loops, in random order, as another account, next year, in Turkish, offline, twice at once, and three times the same
	@.venv/bin/python -m loadtests.surroundings $(ARGS)

lock: .venv/.dev-ok ## Resolve the locks again after a change of pyproject.toml or requirements*.in
	@$(LOCK) --output-file requirements-uv.lock requirements-uv.in
	@$(LOCK) --output-file requirements.lock pyproject.toml requirements.in
	@$(LOCK) --output-file requirements-demo.lock --extra demo pyproject.toml requirements.lock
	@$(LOCK) --output-file requirements-docs.lock requirements-docs.in
	@$(LOCK) --output-file requirements-ray.lock --extra ray pyproject.toml requirements-ray.in
	@$(LOCK) --output-file requirements-dev.lock requirements-dev.in
	@for name in build compliance diffprivlib magic opendp smartnoise; do $(LOCK) --output-file loadtests/peers/$$name.lock loadtests/peers/$$name.in; done

clean: ## Remove .venv and caches; .sparing stays, because it holds data and a ledger
	@rm -rf .venv $(PAGES)/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov build dist $(GUIDE)/build
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The editable installs need no hashes: --no-deps and --no-build-isolation let nothing in that the lock did not bring.
.venv/.ok: requirements-demo.lock requirements-uv.lock pyproject.toml clients/python/pyproject.toml .ci/install_lock.py
	@command -v "$(PY)" > /dev/null || { echo "Python 3.11 or newer is needed, and '$(PY)' was not found."; exit 1; }
	@"$(PY)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; '$(PY)' is $$("$(PY)" --version 2>&1). Name another: make PY=python3.12"; exit 1; }
	@.venv/bin/python -m pip --version > /dev/null 2>&1 || "$(PY)" -m venv --clear .venv || \
	  { rm -rf .venv; echo "This Python cannot make virtual environments. On Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "Filling .venv with the $$(grep -c '==' requirements-demo.lock) pinned packages (once; each is checked against its hash)"
	@.venv/bin/python .ci/install_lock.py requirements-demo.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable . --editable clients/python
	@touch $@

.venv/.docs-ok: .venv/.ok requirements-docs.lock
	@echo "Adding what the guide is built with (once)"
	@.venv/bin/python .ci/install_lock.py requirements-docs.lock
	@touch $@

$(GUIDE_BUILT): .venv/.docs-ok
	@$(BUILD_GUIDE)

.venv/.dev-ok: .venv/.ok requirements-dev.lock
	@echo "Adding what the tests and checks need (once)"
	@.venv/bin/python .ci/install_lock.py requirements-dev.lock
	@touch $@

$(PAGES_TOOLS): $(PAGES)/package-lock.json
	@echo "Adding the tools that check the pages (once; each is checked against its hash)"
	@npm --prefix $(PAGES) ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@
