# `make demo` and `make test` do all the set-up themselves, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lowest lint cpp java clean help

help:
	@echo "make demo   run the embedded model"
	@echo "make test   run all tests"
	@echo "make lowest run a part of the tests with the oldest packages that pyproject.toml allows"
	@echo "make lint   ruff, mypy, clang-format, sizes"
	@echo "make cpp    build the C++ library with CMake and run its tests; SANITIZE=thread for a sanitizer"
	@echo "make java   build the jar of the Java library with javac and run its tests; TESTS=word for some"
	@echo "make clean  remove .venv and caches"

$(BIN)/python:
	@$(PYTHON) scripts/python_version.py
	@$(TELL) "making the environment $(VENV); once"
	@$(PYTHON) -m venv $(VENV)

# one stamp per set of packages; pip runs again only when what it reads changes
# on a terminal pip shows what it downloads; in a pipe nothing is said
QUIET := $(shell test -t 2 || echo --quiet)
TELL := $(if $(QUIET),:,echo)
PIP := pip install $(QUIET) --disable-pip-version-check
$(VENV)/.run: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/$(PIP) --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/$(PIP) --constraint constraints.txt --editable '.[test]' torch==2.13.0
	$(BIN)/$(PIP) --no-deps kserve==0.21.0 # its client; its server needs much more, and another protobuf
	@touch $@ $(VENV)/.run

demo: $(VENV)/.run
	$(BIN)/mslite demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -q -n auto

LOWEST := .venv-lowest
LOWEST_TESTS := tests/core tests/mindir tests/ops tests/weights tests/engines/openvino \
  tests/conversion/test_images.py tests/test_converter.py tests/test_model.py tests/test_runner.py \
  tests/cli/test_convert.py tests/cli/test_inspect.py tests/cli/test_main.py tests/cli/test_run.py
lowest:
	@$(PYTHON) scripts/python_version.py
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) scripts/lowest.py > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/$(PIP) --constraint $(LOWEST)/lowest.txt --editable '.[crypto,images,openvino]' \
	  pytest pytest-xdist hypothesis
	$(LOWEST)/bin/python -m pytest -q -n auto $(LOWEST_TESTS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	git ls-files '*.c' '*.cc' '*.h' '*.java' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/python scripts/size.py

CPP_BUILD := build/cpp$(addprefix -,$(SANITIZE))
cpp: $(VENV)/.test
	cmake -S bindings/cpp -B $(CPP_BUILD) -DMSLITE_TESTS=ON -DMSLITE_SANITIZE=$(SANITIZE)
	cmake --build $(CPP_BUILD) -j $$(nproc)
	PYTHONPATH=tests $(BIN)/python -m support.binding_models $(CPP_BUILD)/models
	cd $(CPP_BUILD) && MSLITE_PYTHON=$(CURDIR)/$(BIN)/python MSLITE_MODELS=$(CURDIR)/$(CPP_BUILD)/models \
	  ctest --output-on-failure

JAVA_BUILD := build/java
JAVA_JAR := $(JAVA_BUILD)/mindspore-lite-java.jar
JAVAC := javac --release 17 -encoding UTF-8 -Xlint:all -Werror
JAVADOC := -Xdoclint:all/protected -Xdoclint/package:com.mindspore,com.mindspore.config
java: $(VENV)/.test
	rm -rf $(JAVA_BUILD)
	$(JAVAC) $(JAVADOC) -d $(JAVA_BUILD)/classes $$(find bindings/java/src -name '*.java')
	jar --create --file $(JAVA_JAR) -C $(JAVA_BUILD)/classes .
	$(JAVAC) -cp $(JAVA_JAR) -d $(JAVA_BUILD)/tests $$(find bindings/java/tests -name '*.java')
	PYTHONPATH=tests $(BIN)/python -m support.binding_models $(JAVA_BUILD)/models
	MSLITE_PYTHON=$(CURDIR)/$(BIN)/python MSLITE_MODEL=$(CURDIR)/mindspore_lite/cli/data/digits.mindir \
	  MSLITE_MODELS=$(CURDIR)/$(JAVA_BUILD)/models MSLITE_VECTORS=$(CURDIR)/tests/remote/wire/vectors \
	  java -ea -cp $(JAVA_JAR):$(JAVA_BUILD)/tests com.mindspore.check.Main $(TESTS)

clean:
	rm -rf $(VENV) $(LOWEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
