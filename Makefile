# Two commands do all the set-up: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Two at a time, a file's tests one after the other: most of them wait for processes of their own.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile

.PHONY: demo test test-all check bench clean

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "klinic needs Python 3.11 or newer: make PYTHON=python3.11 " or 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	@$(BIN)/klinic diagnose src/klinic/demo/trl-entropy-collapse || test $$? -eq 1
	@echo
	@printf 'the eight curves: '
	@$(BIN)/klinic plot src/klinic/demo/trl-entropy-collapse -o klinic-demo.png

test: $(READY)
	$(PYTEST) -m 'not torch and not browser'

# Everything: what "test" runs, then what needs torch, the trackers' libraries and Chromium.
test-all: test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,torch,browser]'
	sh tools/get_chromium.sh
	$(PYTEST) -m 'torch or browser'

check: $(READY)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -m 'not torch and not browser'

bench: $(READY)
	$(BIN)/python benchmarks/speed.py

clean:
	rm -rf $(VENV) klinic-demo.png
