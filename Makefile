# Two commands matter: `make demo` runs the main job, `make test` passes the tests. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LAB_STAMP := $(VENV)/.lab

.DEFAULT_GOAL := help
.PHONY: help demo test lint types unit conformance bench fuzz docs clean

help: ## What can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | sort

$(STAMP): pyproject.toml scripts/setup.sh
	@PYTHON="$(PYTHON)" sh scripts/setup.sh $(VENV)
	@touch $@

demo: $(STAMP) ## The incident from finding to proven fix
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh scripts/demo.sh

test: lint types unit ## Everything CI runs

lint: $(STAMP)
	$(BIN)/ruff check src tests scripts
	$(BIN)/ruff format --check src tests scripts
	$(BIN)/lint-imports

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	$(BIN)/pytest

COUNT ?= 10000
VECTORS ?= tests/conformance/vectors
conformance: $(STAMP) ## Verdicts against the real engines' (VECTORS=DIR)
	$(BIN)/python tests/conformance/run.py $(VECTORS)

bench: $(STAMP) ## Figures: start-up, reading, scale, the lab
	@for script in tests/bench/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

fuzz: $(STAMP) ## 10,000 mutated manifests through the whole pipeline (COUNT=N)
	$(BIN)/python tests/bench/fuzz.py --count $(COUNT)

docs: $(STAMP) ## Regenerate the generated pages
	$(BIN)/python scripts/gen_docs.py
	$(BIN)/python scripts/gen_reports.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
