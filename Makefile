# `make demo` and `make test` do all the set-up themselves, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint cpp clean help

help:
	@echo "make demo   run the embedded model"
	@echo "make test   run all tests"
	@echo "make lint   ruff, mypy, clang-format, sizes"
	@echo "make cpp    build the C++ library with CMake and run its tests; SANITIZE=thread for a sanitizer"
	@echo "make clean  remove .venv and caches"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# one stamp per set of packages; pip runs again only when pyproject.toml changes
$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]' torch==2.13.0
	@touch $@ $(VENV)/.run

demo: $(VENV)/.run
	$(BIN)/mslite demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -q -n auto

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	git ls-files '*.cc' '*.h' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/python scripts/size.py

CPP_BUILD := build/cpp$(addprefix -,$(SANITIZE))
cpp: $(VENV)/.test
	cmake -S bindings/cpp -B $(CPP_BUILD) -DMSLITE_TESTS=ON -DMSLITE_SANITIZE=$(SANITIZE)
	cmake --build $(CPP_BUILD) -j $$(nproc)
	PYTHONPATH=tests $(BIN)/python -m support.cpp_models $(CPP_BUILD)/models
	cd $(CPP_BUILD) && MSLITE_PYTHON=$(CURDIR)/$(BIN)/python MSLITE_MODELS=$(CURDIR)/$(CPP_BUILD)/models \
	  ctest --output-on-failure

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
