# make           lists what there is
# Needs Python 3.11 or newer and make. No root, no service: everything lands in .venv beside this file.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP := -m pip install --quiet --disable-pip-version-check --no-input
POSTGRESQL = .venv/bin/python -m pytest --store postgresql tests/services tests/stories
STORY ?= dispatch
ARGS ?=

.DEFAULT_GOAL := list
.PHONY: list setup demo test postgresql fuzz simulate soak check bench docs

list:  ## this list
	@echo "Tasuki: event-driven batch pipelines with the AWS APIs, as one durable program"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  make demo STORY=dispatch ARGS=--crash     a story with options; ARGS=--help lists them"
	@echo "  make demo STORY=clock                     thirty nights in seconds, and a crash in each of them"

setup: .venv/.ready  ## a virtual environment with exactly the locked packages

demo: .venv/.ready  ## play a story end to end: real routing jobs, from a queue to their results
	@.venv/bin/tasuki demo $(STORY) $(ARGS)

test: .venv/.ready .venv-awscli/.ready  ## all tests, then those of the API once more on PostgreSQL; with ARGS: pytest ARGS
ifeq ($(strip $(ARGS)),)
	@.venv/bin/python -m tests.everything
else
	@.venv/bin/python -m pytest $(ARGS)
endif

postgresql: .venv/.ready  ## the tests of the API on PostgreSQL: a server that is there, or one of their own
	@$(POSTGRESQL) $(ARGS)

fuzz: .venv/.ready  ## random definitions, paths and queries for FUZZ_SECONDS (300)
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-300} .venv/bin/python -m pytest tests/fuzz -m fuzz -s $(ARGS)

simulate: .venv/.ready  ## the house under faults, from one seed: SECONDS=600 SEED=7; SEED=7 STEPS=120 plays one again
	@.venv/bin/python -m tasuki.testing.simulation.command $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(STEPS),--steps $(STEPS)) $(if $(STORE),--store $(STORE)) $(ARGS)

soak: .venv/.ready  ## a task of 61 minutes, its node killed twice; MINUTES=3 for a short one, STORE=postgresql://...
	@.venv/bin/python -m bench.soak

check: .venv/.ready  ## lint, format and types
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

bench: .venv/.ready  ## measure, and print one table
	@.venv/bin/python bench/run.py $(ARGS)

docs: .venv/.ready  ## check the documentation: links, names and the snippets that can be run
	@.venv/bin/python -m pytest --quiet tests/test_readme.py

# Packages first, exactly as locked and by hash. Each marker comes last, so that an interrupted set-up starts over.
.venv/.packages: requirements.lock
	@$(call environment,.venv)
	@.venv/bin/python $(PIP) --require-hashes -r requirements.lock
	@touch $@

.venv/.ready: .venv/.packages pyproject.toml
	@.venv/bin/python $(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# The AWS CLI pins its own botocore, so it lives by itself. Only the tests use it.
.venv-awscli/.ready: tests/clients/awscli.lock
	@$(call environment,.venv-awscli)
	@.venv-awscli/bin/python $(PIP) --require-hashes -r tests/clients/awscli.lock
	@touch $@

define environment
	if [ -z "$(PYTHON)" ]; then \
		echo "Tasuki needs Python 3.11 or newer; none found. Install it, or name one: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	echo "Setting up $(1) with $$($(PYTHON) --version) ..."; \
	$(PYTHON) -m venv --clear $(1) || { \
		echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
endef
