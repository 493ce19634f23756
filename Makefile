# Every command of the project; `make help` lists them. Needs only Python 3.11 to 3.14 (with venv), make and git.
PYTHON ?= python3
PY     := .venv/bin/python
CLOUD  := .state/venv/bin/python -m localstack
# What `make test` runs: tests without a cloud, and those that start one or two. Kills at every
# commit point over the journal in memory are quick; those of a deployed cloud's processes are not (`make crash-tests`).
QUICK    := tests/unit tests/property tests/contract tests/asl tests/infra $(wildcard tests/crash/test_*.py)
DEPLOYED := tests/integration tests/e2e
# Seconds for each of the two, so that CI ends within 25 minutes on two cores.
QUICK_S    ?= 540
DEPLOYED_S ?= 700
# Kills of `make crash`.
KILLS ?= 60

.DEFAULT_GOAL := help
.PHONY: help setup up down status logs demo deploy test crash crash-tests bench fuzz coverage-spec check format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install everything that the checkout needs (nothing when nothing changed)
	@$(PYTHON) localstack/bootstrap.py

up: setup ## start the local cloud and deploy Nodus to it
	@$(CLOUD) up

down: ## stop the local cloud; what it holds is kept
	@[ ! -x .state/venv/bin/python ] || $(CLOUD) down

status: setup ## what runs, and where
	@$(CLOUD) status

logs: setup ## follow the logs of the local cloud, its sandboxes and the functions
	@$(CLOUD) logs --follow

demo: up ## apply an agent, run it, and watch the steps
	@.state/venv/bin/python -m localstack.demo

deploy: setup ## deploy again to the running local cloud, if anything changed
	@$(CLOUD) deploy

test: setup ## all tests but crash/deployed and bench; those that need a cloud get one of their own
	@$(PY) -m localstack.tiers --limit $(QUICK_S) --dist load $(QUICK)
	@$(PY) -m localstack.tiers --limit $(DEPLOYED_S) --dist loadfile $(DEPLOYED)

crash: setup ## a campaign of random kills over a deployed local cloud; KILLS=2000 takes one to two hours, SEED=N repeats its dice, PAUSE=S between kills
	@$(PY) -m tests.crash.campaign --kills $(KILLS) $(if $(SEED),--seed $(SEED)) $(if $(PAUSE),--pause $(PAUSE))

crash-tests: setup ## a kill at every commit point and of every process, each by itself
	@$(PY) -m localstack.tiers --limit 3600 tests/crash

bench: setup ## what a step costs, in time, billed operations and USD; BENCH="loop --json FILE" for parts
	@PYTHONPATH=layers/core/python $(PY) -m tests.bench $(BENCH)

fuzz: setup ## 5,000 generated calls to the API, judged by its own document (some ten minutes)
	@NODUS_API_CASES=$(or $(CASES),70) $(PY) -m pytest -q -n 2 --timeout 3600 tests/property/test_api_schema.py

coverage-spec: ## rows of the catalogues with a passing test; MISSING=1 lists those without
	@$(PY) -m tests.catalogue.coverage $(if $(MISSING),--missing)

check: setup ## format, lint, types, imports
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m pyright
	@PYTHONPATH=layers/core/python:.:clients/python .venv/bin/lint-imports --no-logo

format: setup ## write the format, fix what lint can fix
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

clean: ## stop the local cloud and remove all it holds, and what was installed
	@[ ! -x .state/venv/bin/python ] || $(CLOUD) clean
	@rm -rf .state .venv node_modules cdk.out
