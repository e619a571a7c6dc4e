# Two commands: `make all` sets everything up and runs the campaign; `make test` sets up and tests.
SHELL := /bin/bash
CORES ?= $(shell nproc)
SCALE ?=
CACHE ?=
SNAKEMAKE = source .venv/bin/activate && $(if $(CACHE),SNAKEMAKE_OUTPUT_CACHE=$(CACHE)) snakemake --cores $(CORES) $(if $(CACHE),--cache) $(if $(SCALE),--config scale=$(SCALE))

.DEFAULT_GOAL := help
.PHONY: help all artifact container report lab setup test test-fast test-slow bench lint lint-types lint-texts format lock clean doctor ns3

help:           ## Show this list
	@grep -hE '^[a-z0-9-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

all: setup      ## Set up, run the campaign (SCALE=smoke|quick|full), render the notebooks, write the site
	@$(SNAKEMAKE) -- all

setup:          ## Install what is missing: Debian packages, .venv, the guest kernel
	@envs/setup.sh

report: setup   ## Write the site of the results that are there, one's own or shipped (runs no experiment; executes notebooks where needed)
	@source .venv/bin/activate && bbrlab site --execute $(if $(SCALE),--scale $(SCALE))

artifact: setup ## Pack a finished campaign (SCALE=...) into one archive with sources, licences, provenance and checksums
	@.venv/bin/bbrlab artifact $(if $(SCALE),--scale $(SCALE))

container:      ## Build the image that has all of this in it, with docker, podman or buildah (config/container.yaml)
	@envs/setup.sh environment
	@$(SNAKEMAKE) -- container

LAB ?=
lab: setup      ## Open the notebooks in JupyterLab, 00_start first (LAB="--no-browser --port=8888": options of JupyterLab)
	@source .venv/bin/activate && cd notebooks && exec jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) \
	$(if $(LAB),$(LAB),00_start.ipynb)

test: setup     ## Set up, then lint, type-check and test (about half an hour from nothing)
	@source .venv/bin/activate && $(MAKE) --no-print-directory lint && pytest -n logical --dist loadfile -m "not slow"

test-fast: setup ## The tests that boot no guest and compile nothing
	@source .venv/bin/activate && pytest -n logical --dist loadfile -m "not slow and not guest and not compiles"

test-slow: setup ## The long tests: accuracy against published data, endurance, validators of an archive, Slurm, Kubernetes, the container and the site in a browser (as root, with their packages)
	@[ "$$(id -u)" != 0 ] || { DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$(grep -hv "^#" envs/slurm-packages.txt envs/browser-packages.txt envs/container-packages.txt) >/dev/null && \
	.venv/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r envs/slurm.txt -r envs/browser.txt && envs/kubernetes.sh test; }
	@cmp -s envs/citing.txt .venv-citing/installed || { rm -rf .venv-citing && python3 -m venv .venv-citing && \
	.venv-citing/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r envs/citing.txt && cp envs/citing.txt .venv-citing/installed; }
	@source .venv/bin/activate && pytest -m slow

AGAINST ?=
bench: setup    ## Measure speed and memory against the targets, or in turn with another commit (AGAINST=COMMIT); writes to the results folder
	@source .venv/bin/activate && $(if $(AGAINST),python -m tests.bench.against $(AGAINST),python -m tests.bench.speed)

lint:           ## Formatters, linters, types, spelling; changes nothing
	@source .venv/bin/activate && $(MAKE) --no-print-directory -j 2 -O lint-types lint-texts

lint-types:
	@mypy

lint-texts:
	@ruff check . && ruff format --check . && lint-imports --no-logo --no-cache && snakefmt --check Snakefile workflow/Snakefile rules && \
	codespell && codespell -D envs/words.txt docs courses config/README.md data/README.md *.md && nbstripout --verify --keep-id notebooks/*.ipynb && \
	snakemake --lint && bbrlab check scenarios/*/*.yaml data/*/claims.yaml

format:         ## Let the formatters decide the layout, and renew what is made: reference pages, schemas, tables, counts, .zenodo.json
	@source .venv/bin/activate && ruff check --fix . ; ruff format . && snakefmt Snakefile workflow/Snakefile rules && nbstripout --keep-id notebooks/*.ipynb && python -m docs._make

lock:           ## Renew envs/requirements.lock from pyproject.toml and envs/citing.txt from envs/citing.in
	@source .venv/bin/activate && pip install -q uv && cd envs && uv pip compile -q --upgrade --generate-hashes --universal \
	--all-extras --python-version 3.11 --no-emit-index-url --no-header ../pyproject.toml -o requirements.lock && \
	uv pip compile -q --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-header citing.in -o citing.txt

PAPER ?=
ns3: setup      ## Install ns-3 for the optional check by another engine (500 MB), and run in it what it can (or PAPER=...)
	@cmp -s envs/ns3.txt .venv-ns3/installed || { rm -rf .venv-ns3 && python3 -m venv .venv-ns3 && .venv-ns3/bin/pip install -q -r envs/ns3.txt && \
	cp envs/ns3.txt .venv-ns3/installed; }
	@.venv/bin/bbrlab ns3 $(PAPER) $(if $(SCALE),--scale $(SCALE))

doctor: setup   ## Say what this machine lacks
	@.venv/bin/bbrlab doctor

clean:          ## Remove results, but not the environments and the kernel
	@[ -z "$$BBRLAB_RESULTS" ] || { echo "bbrlab: make clean removes the checkout's own results only, and BBRLAB_RESULTS is $$BBRLAB_RESULTS; unset it, or remove that folder yourself" >&2; exit 2; }
	rm -rf results .snakemake
