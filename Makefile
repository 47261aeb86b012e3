# Makefile - the front door to CMake. `make help` lists the commands.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
CTEST = ctest --output-on-failure -j $(JOBS)
BUILDER = cmake --build

.PHONY: all run model test check schedules kern cross bench lint format install fuzz deps clean help
all: $(BUILD)/build.ninja ## build/loam, build/libloam.so, build/libloam.a
	@$(BUILDER) $(BUILD) -j $(JOBS)

run: all ## build, then write a text with the default model
	@$(BUILD)/loam run

model: all ## train Loam's own model again, from nothing (hours; goes on where it was)
	@scripts/train-stories $(BUILD)

# Shows how far each trait of a recipe, switched off, moves the expected logits (tests/golden/arch_mutations.c).
test: all ## build, then all tests
	@$(CTEST) --test-dir $(BUILD); status=$$?; \
	awk '/^  mutation  /{p=1} p{print} /^  head taken/{p=0}' $(BUILD)/Testing/Temporary/LastTest.log; exit $$status

check: test schedules build-asan/build.ninja build-tsan/build.ninja ## the tests, again under sanitizers (faults, fuzz replay too)
	$(BUILDER) build-asan -j $(JOBS)
	$(CTEST) --test-dir build-asan
	$(BUILDER) build-tsan -j $(JOBS)
	$(CTEST) --test-dir build-tsan -R "$$(cat tests/threaded)"

schedules: all ## ten thousand random schedules against a slow memory, SEED=1
	$(BUILD)/test_golden_schedules 10000 $(or $(SEED),1)

kern: all ## kernel tests, then their timings
	@$(CTEST) --test-dir $(BUILD) -L '^kern$$' -V
	@$(BUILDER) $(BUILD) -j $(JOBS) --target benches
	@for b in $(BUILD)/bench_kern*; do if [ -x $$b ]; then echo "== $$b"; $$b || exit 1; fi; done

cross: ## kernel tests, tokenizers and tiny models on ARM, RISC-V and POWER under qemu-user
	@JOBS=$(JOBS) CMAKE_FLAGS="$(CMAKE_FLAGS)" scripts/cross

bench: all ## every program of bench/
	@$(BUILDER) $(BUILD) -j $(JOBS) --target benches
	@for b in $(BUILD)/bench_*; do if [ -x $$b ]; then echo "== $$b"; $$b || exit 1; fi; done

lint: deps ## arrows, budgets, banned functions, headers, symbols
	@tools/lint $(BUILD)

format: ## clang-format on all C files
	clang-format -i $$(git ls-files '*.c' '*.h' '*.hpp' | grep -v '\.tab\.h$$')

install: all ## PREFIX=/usr/local, DESTDIR is honoured
	cmake --install $(BUILD) --prefix $(PREFIX)

fuzz: build-fuzz/build.ninja ## each fuzz target for FUZZ_SECONDS=60
	@$(BUILDER) build-fuzz -j $(JOBS)
	@scripts/fuzz build-fuzz $(FUZZ_SECONDS)

deps: ## install missing Debian packages
	@scripts/deps

clean: ## remove all build folders
	rm -rf $(BUILD) build-asan build-tsan build-debug build-clang build-fuzz build-cross

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /make \1|/p' Makefile | column -t -s '|'

# A build folder: build is the release preset, build-NAME the preset NAME.
$(BUILD)/build.ninja: | deps
	@cmake --preset release -B $(BUILD) $(CMAKE_FLAGS) >/dev/null
build-%/build.ninja: | deps
	@cmake --preset $* $(CMAKE_FLAGS) >/dev/null
