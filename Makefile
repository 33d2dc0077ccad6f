# The commands of this repository. `make help` lists them.
#
# A fresh machine needs cargo, Python 3.10 or later with venv, and a C++ compiler; everything else
# is installed into .venv by `make setup`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MDBOOK_VERSION := 0.5.4
# Processes that run the Python tests. Each loads torch: about 2 GB of memory.
JOBS ?= 2
# Maturin refuses to guess between two environments.
unexport CONDA_PREFIX
export VIRTUAL_ENV := $(abspath $(VENV))

.DEFAULT_GOAL := help
.PHONY: help setup build demo test attack zoo matrix check docs bench parity-sweep screenshots format fuzz deny

help: ## List the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/.ready: requirements.lock requirements-alone.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-alone.lock
	touch $@

setup: $(VENV)/.ready ## Create .venv with the pinned packages

build: setup ## Build the command line and the Python package
	cargo build --locked -p veracity-cli
	$(BIN)/maturin develop --quiet --locked

demo: build ## Make an example pipeline, export it, prove it, run it
	$(BIN)/python examples/gru_policy/demo.py --veracity target/debug/veracity --out demo-output

# Ends with what was skipped, why, and the command that brings it (without Chromium the tests of the
# pages in a browser are: apt-get install chromium).
test: build ## Run every test: Rust, Python, interop, documentation
	cargo test --locked --workspace --exclude veracity-py --quiet
	$(BIN)/python -m pytest -q --numprocesses $(JOBS) --dist loadfile python/tests

attack: build ## Run every attack program; fails at one false proof, or alarms on clean code
	PYTHONPATH=python/tests $(BIN)/python -m attacks --jobs $(JOBS)
	PYTHONPATH=python/tests $(BIN)/python -m attacks --jobs $(JOBS) --script

# The public libraries that policies come from, in an environment of their own that stands on .venv.
ZOO := .venv-zoo
$(ZOO)/.ready: requirements-zoo.lock $(VENV)/.ready
	$(PYTHON) -m venv $(ZOO)
	echo "import site; site.addsitedir('$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')')" \
		> "$$($(ZOO)/bin/python -c 'import site; print(site.getsitepackages()[0])')/base.pth"
	$(ZOO)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-zoo.lock
	touch $@

zoo: build $(ZOO)/.ready ## Export, prove and run every policy of the zoo with every backend
	PYTHONPATH=python/tests $(ZOO)/bin/python -m zoo --jobs $(JOBS)

# Pythons are found on the path, or where pyenv and uv keep them. CELLS="--cell newest" takes one.
matrix: build ## Run the tests with every torch, NumPy, Python and ONNX Runtime; writes docs/compatibility.md
	$(BIN)/python -m matrix --jobs $(JOBS) $(CELLS)

check: setup ## Format, lints, floors, types: what CI runs before the tests
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	cargo xtask layers
	cargo xtask schema --check
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

bench: setup ## Measure against the peers; prints ratios
	cargo build --locked --release -p veracity-cli -p veracity-compare -p veracity-prove --bins \
		--example bench_compare --example bench_proof
	$(BIN)/maturin develop --quiet --locked --release
	$(BIN)/python bench/run.py

parity-sweep: setup ## Compare every network of the zoo with its export; writes docs/parity-sweep.md
	$(BIN)/maturin develop --quiet --locked --release
	$(BIN)/python -m veracity.drift.sweep --out docs/parity-sweep.md

screenshots: build ## Make the pictures of the documentation anew; needs chromium
	PYTHONPATH=python/tests $(BIN)/python -m support.screenshots --out docs/pictures

# Pinned, and built once into target/: it is no part of the product.
MDBOOK := target/tools/bin/mdbook
$(MDBOOK):
	cargo install --quiet --locked --root target/tools --no-default-features --features search mdbook@$(MDBOOK_VERSION)

docs: $(MDBOOK) ## Build the documentation as a site, with Rust's, into target/book
	cargo xtask book
	$(MDBOOK) build
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --no-deps --lib -p veracity
	rm -rf target/book/rust && cp -r target/doc target/book/rust
	cargo xtask book --check

format: setup ## Format Rust and Python
	cargo fmt
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

fuzz: ## The long run of the fuzz tests of all file readers
	VERACITY_FUZZ_CASES=$(or $(CASES),200000) cargo test --locked --release \
		-p veracity-tensor --test fuzz_files -p veracity-spec --test fuzz_yaml -p veracity-onnx --test properties

deny: ## Licences and sources of dependencies; needs cargo-deny
	cargo deny check bans licenses sources
