SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help install clients up down status models check test test-slow clean-venv
# What `make up` deploys.
CONFIG ?= configs/local.serve.yaml

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install:
	@requirements/install

clients: install
	@requirements/side clients

up: install ## install, start a local cluster, deploy CONFIG and ask each model one question
	@.venv/bin/modelyard up --config "$(CONFIG)"

down: ## stop what `make up` started
	@if [ -x .venv/bin/modelyard ]; then .venv/bin/modelyard down; else echo "nothing is installed, so nothing runs"; fi

status: install ## show the fleet
	@.venv/bin/modelyard status

models: install ## build the starter models
	@.venv/bin/modelyard models prepare --verify

check: install ## lint, formatting, types, layer contract
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

test: check clients ## check, then the unit and integration tests
	@.venv/bin/pytest

test-slow: install ## the tests that take minutes
	@.venv/bin/pytest -m slow

clean-venv: ## remove .venv; the next target installs it again
	rm -rf .venv
