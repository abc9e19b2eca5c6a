# Two commands do all the set-up: `make demo` runs the main job, `make test` passes all tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check format simulate clean

# pip 25.1 is the first that reads dependency groups.
$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Minutewheel needs Python 3.11 or later") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/minutewheel demo

# Lint, types, import contracts and the pure unit tests.
check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q -m pure -n 2

test: check
	$(BIN)/pytest -q -m "not pure"

# Replay one history of the simulation: make simulate SEED=123
simulate: $(STAMP)
	$(BIN)/python -m tests.simulation $(SEED)

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
