# Two commands do all the set-up: `make demo` runs the main job, `make test` passes all tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JAVA := openjdk-17-jre-headless maven
# Folders without a pure test: not even read for them.
IMPURE := acceptance conformance interop simulation

.PHONY: demo test check format simulate services java browser clean

# pip 25.1 is the first that reads dependency groups.
$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Minutewheel needs Python 3.11 or later") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[fleet]' --group dev
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/minutewheel demo

# Lint, types, import contracts and the pure unit tests.
check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q -m pure -n 2 $(IMPURE:%=--ignore=tests/%)

test: check java browser
	$(BIN)/pytest -q -m volume -n 2
	$(BIN)/pytest -q -m "not pure and not volume"

# Cassandra, Kafka and ZooKeeper from Maven's packages, on ports of their own; `... services down` ends them.
services: $(STAMP) java
	$(BIN)/python -m minutewheel.deploy.services up

# Java and Maven for them, from apt where they lack and it may be asked; without, the tests say what to install.
java:
	@if ! { command -v java && command -v mvn; } > /dev/null && command -v apt-get > /dev/null; then \
	  if [ "$$(id -u)" = 0 ]; then as_root=; else as_root='sudo -n'; fi; \
	  $$as_root apt-get -qq update && $$as_root apt-get -qq install --yes $(JAVA) > /dev/null || true; \
	fi

# Chromium for the page of the load test, in the same way; `.venv/bin/playwright install chromium` is another.
browser:
	@if ! { command -v chromium || command -v chromium-browser || command -v google-chrome; } > /dev/null \
	    && command -v apt-get > /dev/null; then \
	  if [ "$$(id -u)" = 0 ]; then as_root=; else as_root='sudo -n'; fi; \
	  $$as_root apt-get -qq update && $$as_root apt-get -qq install --yes --no-install-recommends chromium > /dev/null || true; \
	fi

# Replay one history of the simulation: make simulate SEED=123
simulate: $(STAMP)
	$(BIN)/python -m tests.simulation $(SEED)

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
