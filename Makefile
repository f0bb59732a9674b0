# make figures: every figure, computed again. make test: everything that must hold.
# Both need Python 3.11 to 3.14 and nothing else; they install into .venv.
#
# Without make:
#   python3 -m venv .venv && .venv/bin/pip install -e ".[dev]"
#   .venv/bin/lsa-lab run all --tier quick
#   .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/lint-imports && \
#       .venv/bin/mypy && .venv/bin/python -m pytest -n 2

PYTHON ?= python3
BIN := .venv/bin
# Processes that run tests, and experiments at a time.
JOBS ?= 2

.PHONY: help test tests soak mutants lint style types figures reproduce smoke bench explore lesson notebooks docs pages install cuda clean

help:
	@echo "make figures   compute the quick tier of every experiment beside the committed verdicts"
	@echo "make reproduce the same with the full tier; Ctrl-C is safe, the same command resumes"
	@echo "make test      lint and run the tests, the smoke tier of one experiment a theme included"
	@echo "make soak      a thousand draws for every theorem instead of ten, ten minutes"
	@echo "make mutants   change the library by small steps, each of which a test must notice; hours"
	@echo "make smoke     run the smoke tier of every experiment, and the slow tests"
	@echo "make bench     measure the library beside plain JAX, a quarter of an hour on a quiet machine;"
	@echo "               ONLY=gradient shows the cases with this word in their names"
	@echo "make explore   sliders and live plots of one model, in the browser"
	@echo "make lesson NAME=first_theorem   build a lesson and open it in Jupyter"
	@echo "make notebooks build and execute all lessons, two minutes, into .cache/notebooks"
	@echo "make docs      build the documentation, offline, into .cache/docs/html"
	@echo "make install   the environment alone, .venv"
	@echo "make cuda      the same for NVIDIA's GPUs, gigabytes, until make clean"
	@echo "make lint      ruff, import-linter and mypy alone"
	@echo "make clean     remove .venv and the caches; figures and their data stay"
	@echo "PYTHON=python3.12 make ...   another Python, from 3.11 to 3.14"

# Types are checked while the tests run.
test: style
	@$(MAKE) --no-print-directory -j 2 types tests

# The tests of a file share compiled programs and stay in one process, in the order of conftest.py.
tests: .venv/installed
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

soak: .venv/installed
	$(BIN)/python -m pytest -n $(JOBS) --hypothesis-profile=soak tests/theorems tests/test_estimators.py

# Interrupted, it resumes; cr-report .cache/mutants.sqlite lists the changes that no test noticed.
mutants: .venv/installed
	@$(BIN)/python -c "import cosmic_ray" 2> /dev/null || { \
	    echo 'make mutants needs cosmic-ray: $(BIN)/pip install -e ".[mutants]"'; exit 1; }
	@mkdir -p .cache
	test -e .cache/mutants.sqlite || { $(BIN)/cosmic-ray init tools/cosmic-ray.toml .cache/mutants.sqlite && \
	    $(BIN)/cr-filter-operators .cache/mutants.sqlite tools/cosmic-ray.toml; }
	$(BIN)/cosmic-ray exec tools/cosmic-ray.toml .cache/mutants.sqlite
	$(BIN)/cr-rate .cache/mutants.sqlite

lint: style types

style: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: .venv/installed
	$(BIN)/mypy

# Results go to .cache/figures; the command prints them beside the committed ones, and the index.
figures: .venv/installed
	$(BIN)/lsa-lab run all --tier quick --jobs $(if $(CUDA),1,$(JOBS))

# Each training uses all cores already.
reproduce: .venv/installed
	$(BIN)/lsa-lab run all --tier full

smoke: .venv/installed
	$(BIN)/python -m pytest -n $(JOBS) --every tests/experiments/test_scripts.py
	$(BIN)/python -m pytest -n $(JOBS) --every -m slow --ignore tests/experiments/test_scripts.py \
	    --ignore tests/notebooks

bench: .venv/installed
	$(BIN)/python -m benchmarks.benchmark $(if $(ONLY),"$(ONLY)")

# It prints its address, and opens it where there is a browser.
explore: .venv/installed
	$(BIN)/marimo run explorer/app.py --host 127.0.0.1

lesson: .venv/installed
	@$(BIN)/python tools/lessons.py $(NAME)

notebooks: .venv/installed
	$(BIN)/python -m pytest -n $(JOBS) --every tests/notebooks/test_notebooks.py

docs: notebooks
	$(MAKE) pages

# The documentation with the notebooks as they were built last.
pages: .venv/installed
	$(BIN)/python -m sphinx -b html -n -W --keep-going -c docs -d .cache/docs/pages . .cache/docs/html
	$(BIN)/python docs/check.py .cache/docs/html
	@echo "Open .cache/docs/html/index.html"

install: .venv/installed

# A file in .venv records that the environment is for GPUs; later installations follow it.
cuda:
	@test -e .venv/cuda || { mkdir -p .venv && touch .venv/cuda; }
	$(MAKE) install

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# The versions are those of the lock file for this Python. To renew it:
#   uv pip compile --generate-hashes --no-header --no-annotate --extra dev --python-version 3.11 \
#       pyproject.toml -o requirements/py311.txt      (and 3.12 to 3.14)
# and, for the same versions with CUDA's,
#   uv pip compile --generate-hashes --no-header --no-annotate --extra dev --extra cuda --python-version 3.11 \
#       -c requirements/py311.txt pyproject.toml -o requirements/cuda-py311.txt
CUDA := $(wildcard .venv/cuda)
.venv/installed: pyproject.toml $(wildcard requirements/*.txt) $(CUDA)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' || { \
	    echo "$(PYTHON) is $$($(PYTHON) --version 2>&1): lsa_lab needs Python 3.11 to 3.14;" \
	        "name one, for example: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(if $(CUDA),@touch $(CUDA))
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    -r requirements/$(if $(CUDA),cuda-)py$$($(BIN)/python -c 'import sys; print("%d%d" % sys.version_info[:2])').txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@
