# Two commands do all set-up: `make demo` (the main job; no GPU, no key) and `make test`.
# VENV: where the environment goes. CUDA: which CuPy wheel (cuda12 or cuda13).
VENV ?= .venv
CUDA ?= cuda13
BIN := $(VENV)/bin

.PHONY: help demo test test-gpu bench lint clean

help:
	@sed -n 's/^# //p;s/^\([a-z-]*\):.*## /  \1: /p' Makefile

$(BIN)/.installed: pyproject.toml .ci/venv
	@bash .ci/venv "$(VENV)"
	@echo "Installing cuda-lsp and its tools into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(CUDA),dev]'
	@touch $@

demo: $(BIN)/.installed ## optimize and refuse the fixtures on the CPU emulator
	@PATH="$(abspath $(BIN)):$$PATH" bash fixtures/demo

test: $(BIN)/.installed lint ## every test that needs no GPU
	@$(BIN)/python -m pytest -n auto

lint: $(BIN)/.installed
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet . && $(BIN)/mypy && $(BIN)/lint-imports

test-gpu: $(BIN)/.installed ## tests that need an NVIDIA GPU; says why when there is none
	@$(BIN)/python -m pytest -m gpu -rs

bench: $(BIN)/.installed ## design figures, as ratios
	@$(BIN)/python -m tests.benchmarks

clean: ## remove the environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
