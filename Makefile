# make quickstart | test | nightly | check | bench | docs | release: each installs what it needs first, into .venv.

VENV := .venv
BIN := $(VENV)/bin
# To compile all that packages hold takes as long as to bring it; what is imported is compiled then.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --no-compile
# Bytecode is kept whatever the shell says: without it each process compiles all that it imports anew.
KEEP := PYTHONDONTWRITEBYTECODE=
# Some of all tests wait for other processes: there is room for one more of them than there are cores.
PYTEST := $(KEEP) OMP_NUM_THREADS=1 $(BIN)/python -m pytest --dist worksteal
# Further options of pytest for make test.
OPTIONS :=
OUT := runs/quickstart
N := 1000000

.DEFAULT_GOAL := help
.PHONY: help quickstart install test nightly check near lint fast fuzz bench performance docs site release clean

help: ## Say what there is
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

quickstart: $(VENV)/.installed ## Show the main job on the built-in languages (one to three minutes)
	@$(KEEP) $(BIN)/isogloss quickstart --out $(OUT)

install: $(VENV)/.installed ## Install the package into .venv
	@echo "isogloss is installed: $(BIN)/isogloss --help"

test: $(VENV)/.installed-dev ## Run every test, and a sample of its cases where they are many
	@$(PYTEST) -n 3 $(OPTIONS)

nightly: $(VENV)/.installed-dev ## Run all cases, of which make test takes a sample (a night)
	@$(PYTEST) -n 2 --nightly -m "nightly or hypothesis" --hypothesis-profile night $(OPTIONS)

check: lint fast ## Check form, types, floors and the fast tests (what a commit must pass)

near: $(VENV)/.installed-dev ## Run the fast tests near what changed since the last commit (seconds)
	@$(PYTEST) -n 0 -m "not slow" $$($(BIN)/python tests/near.py)

lint: $(VENV)/.installed-dev ## Check form and types alone
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

fast: $(VENV)/.installed-dev ## Run the fast tests alone
	@$(PYTEST) -n 2 -m "not slow"

fuzz: $(VENV)/.installed-dev ## Mutate files for every reader (N=1000000 of them: some twenty minutes)
	@OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/fuzzing.py --mutations $(N)

bench: $(VENV)/.installed-dev ## Compare speed with Hugging Face's Trainer (about six minutes)
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/bench.py

performance: $(VENV)/.installed-dev ## Measure starts, points and steps anew, and write docs/measurements.md
	@for part in start point_parts:points step_parts:steps-small; do \
		OMP_NUM_THREADS=1 $(BIN)/python benchmarks/$${part%%:*}.py --out benchmarks/results/$${part##*:}.json || exit 1; \
	done
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/step_parts.py --shape base --out benchmarks/results/steps-base.json
	@$(BIN)/python docs/generate.py

docs: $(VENV)/.installed ## Write the pages that are made from the code again, and build the site
	@$(BIN)/python docs/generate.py
	@$(MAKE) --no-print-directory site

site: $(VENV)/.installed-dev ## Build the documentation site (build/site); a warning is an error
	@$(KEEP) $(BIN)/python -m sphinx -q -W --keep-going -b html docs build/site
	@$(BIN)/python docs/finished.py build/site/reports
	@echo "The site is in build/site/index.html"

release: $(VENV)/.installed-dev ## Build and check what is released: wheel, source distribution, checksums
	@version=$$($(BIN)/python -c "import isogloss; print(isogloss.__version__)"); \
	grep -q "^## \[$$version\] - 20" CHANGELOG.md || { echo "CHANGELOG.md gives $$version no date: ## [$$version] - YYYY-MM-DD" >&2; exit 1; }; \
	tag=$$(git describe --exact-match --tags 2>/dev/null || true); \
	[ "$$tag" = "v$$version" ] || { echo "Found tag '$$tag'; expected v$$version: git tag v$$version" >&2; exit 1; }
	@rm -rf build/dist
	@$(PIP) -c constraints.txt build twine
	@$(BIN)/python -m build --outdir build/dist
	@$(BIN)/python -m twine check --strict build/dist/*
	@cd build/dist && sha256sum *.whl *.tar.gz > SHA256SUMS && cat SHA256SUMS

clean: ## Remove .venv and caches; runs are kept
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The first of these that will do is found by running it: a name alone may be a shim without a Python.
$(BIN)/python:
	@for python in $(PYTHON) python3.13 python3.12 python3.11 python3.14 python3; do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "Making $(VENV) with $$("$$python" --version)"; \
			"$$python" -m venv --clear $(VENV) && exit 0; \
			echo "$$python cannot make a virtual environment. On Debian and Ubuntu: apt install python3-venv." >&2; \
			exit 1; \
		fi; \
	done; \
	echo "isogloss needs Python 3.11 or later, and none was found." \
		"Install one, or name it: make quickstart PYTHON=/path/to/python" >&2; \
	exit 1

# torch goes first, and by itself: then pip takes the build the package index offers at this version (where
# that is one for CPUs, no GPU libraries come along), and nothing installed later can move it.
$(VENV)/.installed: constraints.txt pyproject.toml | $(BIN)/python
	@echo "Installing torch"
	@$(PIP) "$$(grep '^torch==' constraints.txt)"
	@echo "Installing isogloss and what it needs"
	@$(PIP) -c constraints.txt setuptools
	@$(PIP) -c constraints.txt --no-build-isolation --editable ".[torch]"
	@$(KEEP) $(BIN)/python -c "import isogloss.reports, isogloss.runs.execute, transformers.models.bert.modeling_bert"
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Installing what tests and checks need"
	@$(PIP) -c constraints.txt --editable ".[dev]"
	@touch $@
