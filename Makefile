.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RELEASE := .release

# Parallel test processes; 0 is none of them, for --pdb.
JOBS ?= auto
PARALLEL := -n $(JOBS) --dist loadfile --no-loadscope-reorder
# yes: tests that failed beside others are asked once more, alone. A run that broke off is not.
ONCE_MORE ?=
# Many tests start kopylite as a process; without its byte code each would compile it anew.
export PYTHONDONTWRITEBYTECODE :=
# The pure core and the rooms of the runtime; see docs/testing.md.
RUNTIME := tests/test_leftovers.py tests/properties tests/unit --ignore-glob='tests/properties/test_apiserver_*' \
	$(addprefix --ignore=tests/unit/,apiserver app cli codegen crds deploy devcluster doctor migration starter supervision \
	sweep testing webhooks)
# Of them, what starts processes, opens sockets or waits for real time.
TOUCHING := $(addprefix --ignore=tests/unit/,client/test_client_connections.py client/test_client_credentials.py \
	diagnostics/test_diagnostics_stall.py reconcile/test_reconcile_threads.py serving)

.PHONY: help setup check test test-quick test-rooms test-all mutants conformance conformance-upstream conformance-testcmd zoo sweep-samples sweep-real fmt demo dev bench docs api release-check matrix lock clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

setup: $(STAMP) ## create .venv with the locked dependencies

$(STAMP): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "kopylite needs Python 3.11 or newer; $(PYTHON) is older: make PYTHON=python3.13 ..."; exit 1; }
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@echo "installing the locked dependencies into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $(STAMP)

check: setup docs-check ## format and lint (ruff), types (mypy strict), architecture, the docs site
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_architecture.py tests/test_exports.py

test: setup ## the tests that need nothing but Python (real-server tests skip without KUBEBUILDER_ASSETS)
	@$(BIN)/pytest -q $(PARALLEL) || { code=$$?; [ "$(ONCE_MORE)$$code" = yes1 ] || exit $$code; \
		echo "== what failed, once more, alone: what passes now flickers, and is listed here"; \
		$(BIN)/pytest -v -rA --tb=short --show-capture=no --last-failed --last-failed-no-failures none; }

test-quick: ## half a minute: the pure core and the rooms of the runtime, on one event loop, without server or process
test-rooms: ## the same with their processes and sockets; what `make matrix` runs
test-quick: RUNTIME += $(TOUCHING) -k "not uvloop"
test-quick: PROFILE := quick
test-rooms: RUNTIME += tests/test_architecture.py tests/test_exports.py
test-rooms: PROFILE := default
test-quick test-rooms: setup
	HYPOTHESIS_PROFILE=$(PROFILE) $(BIN)/pytest -q $(PARALLEL) -m "not slow and not server" $(RUNTIME)

mutants: setup ## do a room's own tests notice faults in it? ROOM=workqueue; LIMIT=0 for all of them, SEED=2, JOBS=2
	@$(BIN)/python -m tests.mutants $(ROOM) $(if $(LIMIT),--limit $(LIMIT)) $(if $(SEED),--seed $(SEED)) $(if $(filter-out auto,$(JOBS)),--jobs $(JOBS))

zoo: setup ## sweep the zoo: is each bug found, and no twin? (an hour; python -m tests.bugzoo --help)
	@$(BIN)/python -m tests.bugzoo

test-all: setup ## everything; a missing real API server is a failure, not a skip
	KOPYLITE_REQUIRE_REAL=1 $(BIN)/pytest -q $(PARALLEL)

conformance-upstream: setup ## Kubernetes' own end-to-end tests on the embedded server; E2E_TEST names their binary
	@$(BIN)/python -m tests.conformance.upstream

conformance-testcmd: setup ## upstream's test/cmd functions on a real and the embedded server (needs Kubernetes' sources)
	@$(BIN)/python -m tests.conformance.testcmd

demo: setup ## the MyApp sample on a cluster in the process: what it does, step by step, checked
	@$(BIN)/python -m samples.myapp.demo

dev: setup ## the MyApp sample and a cluster for it, for kubectl, until Ctrl-C
	@$(BIN)/python -m kopylite run samples.myapp.operator:app --dev

conformance: setup ## how like a real API server the embedded one is (needs KUBEBUILDER_ASSETS)
	$(BIN)/python -m tests.conformance.likeness

bench: setup ## beside kubernetes_asyncio, asyncio.Queue and a real API server: ratios of one run
	$(BIN)/python -m tests.bench.bench_ingest
	$(BIN)/python -m tests.bench.bench_relist
	$(BIN)/python tests/bench/bench_queue.py
	$(BIN)/python -m tests.bench.bench_apiserver --quick
	$(BIN)/python -m tests.bench.bench_stalls
	$(BIN)/python -m tests.bench.bench_growth

bench-check: setup ## has a step of the runtime become dearer? counts calls, which no busy machine changes (a minute)
	@$(BIN)/python -m tests.bench.check

sweep-samples: setup ## each sample through all plans of its sweep.yaml (some minutes)
	@$(BIN)/python -m kopylite sweep samples.hello.operator:app --scenario samples/hello/sweep.yaml --budget 30m
	@$(BIN)/python -m kopylite sweep samples.myapp.operator:app --scenario samples/myapp/sweep.yaml --budget 30m
	@$(BIN)/python -m kopylite sweep samples.bucket.sweep:app --scenario samples/bucket/sweep.yaml --budget 30m
	@$(BIN)/python -m kopylite sweep samples.shop.operator:app --scenario samples/shop/sweep.yaml --budget 30m
	@$(BIN)/python -m kopylite sweep samples.website.operator:app --scenario samples/website/sweep.yaml --budget 30m
	@$(BIN)/python -m kopylite sweep samples.alerts.operator:app --scenario samples/alerts/sweep.yaml --budget 30m
	@$(BIN)/python -m kopylite sweep samples.mailbox.sweep:app --scenario samples/mailbox/sweep.yaml --budget 30m
	@$(BIN)/python -m kopylite sweep samples.devices.operator:app --scenario samples/devices/sweep.yaml --budget 30m

CONTEXT ?=
sweep-real: setup ## three samples through all plans, on the real API server of a kubeconfig CONTEXT, too (half an hour)
	@test -n "$(CONTEXT)" || { echo "name a context of your kubeconfig: make sweep-real CONTEXT=kind-dev"; exit 2; }
	@$(BIN)/python -m kopylite sweep samples.hello.operator:app --scenario samples/hello/sweep.yaml --budget 30m --real $(CONTEXT)
	@$(BIN)/python -m kopylite sweep samples.bucket.sweep:app --scenario samples/bucket/sweep.yaml --budget 30m --real $(CONTEXT)
	@$(BIN)/python -m kopylite sweep samples.myapp.operator:app --scenario samples/myapp/sweep.yaml --budget 30m --real $(CONTEXT)

fmt: setup ## format and apply the safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

api: setup ## write tests/public_api.txt anew, and say what has changed for programs
	@$(BIN)/python -m tests.publicapi --write

$(RELEASE)/.installed: requirements-release.lock
	@test -d $(RELEASE) || $(PYTHON) -m venv $(RELEASE)
	@echo "installing the locked tools for releases into $(RELEASE) ..."
	@$(RELEASE)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-release.lock
	@touch $@

release-check: $(RELEASE)/.installed ## build wheel, sdist and SBOM, look into them, use them in new environments (minutes)
	@$(RELEASE)/bin/python scripts/release_check.py $(ARGS)

matrix: $(RELEASE)/.installed ## test-rooms on Python 3.11 to 3.14 and with the lowest dependencies (ARGS="3.13 lowest")
	@$(RELEASE)/bin/python scripts/matrix.py $(ARGS)

lock: setup ## resolve the two locks anew from pyproject.toml
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --group dev --group docs --group interop --extra dev --extra fast --extra socks \
		--generate-hashes --no-emit-index-url -q pyproject.toml -o requirements-dev.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --group release \
		--generate-hashes --no-emit-index-url -q --no-annotate -o requirements-release.lock

docs: setup ## the docs site, in build/docs; a dead link or a page in no list ends it
	@$(BIN)/sphinx-build -q -W --keep-going -d build/doctrees docs build/docs && echo "build/docs/index.html"

docs-check: setup ## the same without writing it: does every link lead somewhere, is every page in a list?
	@$(BIN)/sphinx-build -q -W --keep-going -b dummy -d build/doctrees-check docs build/docs-check

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) $(RELEASE) .matrix dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
