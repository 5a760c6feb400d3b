# Every target works on a fresh clone with Python 3.11 or later and make: what
# is missing, uv included, is installed below .tools and .venv.
.DEFAULT_GOAL := help
.PHONY: help setup demo check test bench vectors clean

PYTHON ?= python3
UV_VERSION := 0.13.9
UV := $(shell if uv --version >/dev/null 2>&1; then echo uv; else echo .tools/bin/uv; fi)
export UV_PROJECT_ENVIRONMENT := .venv
BIN := .venv/bin
SYNCED := .venv/.synced
PROBEBENCH := $(BIN)/probebench

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile

.tools/bin/uv:
	$(PYTHON) -m venv .tools
	.tools/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# `uv sync` writes uv.lock where it is missing or older than the pins; the lock
# is what `uv run --locked` then uses.
$(SYNCED): pyproject.toml $(filter .tools/bin/uv,$(UV))
	$(UV) sync --quiet
	@touch $@

setup: $(SYNCED)  ## install everything and print how to call it
	@if [ "$(UV)" = uv ]; then \
	  echo 'Ready. The commands in the docs work as they stand.'; \
	else \
	  echo 'Ready. For the commands in the docs, in this shell:'; \
	  echo '  export PATH="$(CURDIR)/.tools/bin:$$PATH"'; \
	fi

demo: $(SYNCED)  ## run and verify the scripted control in both tracks, in work/demo
	@rm -rf work/demo
	@mkdir -p work/demo
	$(PROBEBENCH) control --config configs/agent_protocol_development.json --output work/demo/assisted
	$(PROBEBENCH) verify work/demo/assisted
	$(PROBEBENCH) control --config configs/agent_protocol_development_direct.json --output work/demo/direct
	$(PROBEBENCH) verify work/demo/direct

check: $(SYNCED)  ## lint, format, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest --quiet tests/architecture

# Two workers: most of the suite waits for short processes and for the disk.
test: check  ## what CI runs: check, then all tests with branch coverage
	$(BIN)/pytest --numprocesses 2 --dist worksteal --cov

bench: $(SYNCED)  ## run every benchmark, beside its peers, and write docs/benchmarks.md
	$(UV) run --quiet --group bench python scripts/benchmarks/report.py

vectors: $(SYNCED)  ## regenerate the generated documents and the golden vectors
	@for script in scripts/generate_*.py scripts/regenerate_*.py; do \
	  [ ! -e "$$script" ] || { echo "$$script"; $(BIN)/python "$$script"; } || exit 1; \
	done

clean:  ## remove what the targets installed and cached, never a session
	rm -rf .tools .venv uv.lock .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.*
