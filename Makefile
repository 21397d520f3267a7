# Two commands on a fresh machine: `make demo` and `make test`. Neither needs root.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2

.PHONY: demo test pytest lint check-all bench clean

demo: $(STAMP)
	@mkdir -p out
	@$(BIN)/edgewright sample resnet8_int8 -o out
	@$(BIN)/edgewright inspect out/resnet8_int8.onnx
	@$(BIN)/edgewright plan out/resnet8_int8.onnx --board nucleo-f446re --minimise ram --max-overhead 5% -o out/plan.json --page out/plan.html
	@$(BIN)/edgewright plan out/resnet8_int8.onnx --quantised-input --board nucleo-f446re --pareto -o out/front.json --page out/front.html
	@$(BIN)/edgewright compile out/resnet8_int8.onnx --plan out/plan.json -o out/resnet8_int8
	@$(BIN)/edgewright hal src/edgewright/hal/examples/gpio.c src/edgewright/hal/examples/spi.c --max-map 312 --relock --verify -o out/drivers
	@echo ""
	@echo "Open in a browser:  file://$(CURDIR)/out/plan.html, file://$(CURDIR)/out/front.html and"
	@echo "                    file://$(CURDIR)/out/resnet8_int8/report.html, file://$(CURDIR)/out/drivers/gpio.html"

# Tests start many Pythons: they find their modules compiled.
test pytest check-all: export PYTHONDONTWRITEBYTECODE =

# The types are checked meanwhile: that takes one core.
test: $(STAMP)
	@$(MAKE) --no-print-directory -j 2 lint pytest

pytest: $(STAMP)
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m "not slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Everything, also what takes long: the largest networks, long fuzzing, more random networks.
check-all: $(STAMP) lint
	EDGEWRIGHT_THOROUGH=1 $(BIN)/pytest -n $(JOBS)

bench: $(STAMP)
	$(BIN)/pip install --quiet -e ".[benchmark]"
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/layout.py
	$(BIN)/python benchmarks/ordering.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/chip.py
	$(BIN)/python benchmarks/host.py
	$(BIN)/python benchmarks/phases.py
	$(BIN)/python benchmarks/dataflow.py
	$(BIN)/python benchmarks/tiling.py
	$(BIN)/python benchmarks/slowdown.py
	$(BIN)/python benchmarks/lanes.py
	$(BIN)/python benchmarks/cost_model.py
	$(BIN)/python benchmarks/application.py
	$(BIN)/python benchmarks/hal.py
	$(BIN)/python benchmarks/hal_random.py
	$(BIN)/python benchmarks/search_pricing.py
	$(BIN)/python benchmarks/micronet.py
	@mkdir -p out
	$(BIN)/python benchmarks/search_growth.py --plot out/search_growth.svg
	$(BIN)/python benchmarks/cluster_simulation.py
	$(BIN)/python benchmarks/transport.py

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "edgewright needs Python 3.11 or newer"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -e ".[test]"
	@touch $@

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
