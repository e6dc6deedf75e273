# Everything runs in .venv, which tools/setup makes from the hash-locked requirements.
# ARGS="..." is passed on: make test ARGS="tests/cli -k help"

SHELL := /bin/bash
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYTHON
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench bench-gateway bench-verdicts conformance-gateway mutation lock clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 27

setup: ## Make .venv with everything for development
	@tools/setup dev

demo: ## Run the demonstration (needs Python 3.11 or newer, nothing else)
	@tools/setup runtime
	@hotplug demo $(ARGS)

test: ## Run the tests
	@tools/setup dev
	@pytest -n auto --dist worksteal -m "not soak" $(ARGS)
	@pytest -m soak $(ARGS) || [ $$? -eq 5 ] # 5: nothing of it was asked for

check: ## Formatting, lint, types, and which folder may import which
	@tools/setup dev
	ruff format --check .
	ruff check .
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 pyright
	lint-imports --no-cache

format: ## Rewrite the sources as `make check` wants them
	@tools/setup dev
	@ruff check --fix-only --quiet .
	@ruff format .

bench: ## Measure, against the aims written beside each number (JSON=FILE for a document)
	@tools/setup dev
	@PYTHONPATH=src python -m benchmarks $(if $(JSON),--json "$(JSON)") $(ARGS)

bench-verdicts: ## Judge planted defects: Hotplug's verdict, a tool's own flag, the screen (JSON=FILE, DOC=FILE)
	@tools/setup dev
	@PYTHONPATH=src python -m benchmarks.verdicts $(if $(JSON),--json "$(JSON)") $(if $(DOC),--doc "$(DOC)") $(ARGS)

bench-gateway: ## Measure the gateway against the direct call and FastMCP's proxy (JSON=FILE, DOC=FILE)
	@tools/setup dev
	@PYTHONPATH=src python -m benchmarks.gateway $(if $(JSON),--json "$(JSON)") $(if $(DOC),--doc "$(DOC)") $(ARGS)

conformance-gateway: ## Run the official MCP suite at our upstream, then behind the gateway (JSON=FILE)
	@tools/setup dev
	@PYTHONPATH=src python -m benchmarks.conformance $(if $(JSON),--json "$(JSON)") $(ARGS)

mutation: ## Change what decides, a place at a time, and see whether the tests notice (minutes)
	@tools/setup dev
	@rm -rf mutants
	@PYTHONPATH=src mutmut run --max-children $$(nproc) $(ARGS)
	@PYTHONPATH=src mutmut results

lock: ## Write requirements/*.txt anew from pyproject.toml
	@tools/setup dev
	@ARGS="$(ARGS)" tools/lock

clean: ## Remove .venv and what tools left behind
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist mutants
