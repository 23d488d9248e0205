# The front door: `make help` lists what there is. CMake does the work, in build/<preset>.
# Variables: PREFIX of install, SECONDS for each fuzz target and SEED for the same inputs again, WERROR=1 for warnings as
# errors, JOBS.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := build

PREFIX ?= /usr/local
SECONDS ?= 60
JOBS ?= $(shell nproc)
DIVISION := build/release/division

# $(call build,preset,options): configures build/preset, silently unless it fails, and builds it. A file that is compiled is named
# as it is in the tree, with a colour or without: CMake's own line is wider than many a terminal.
define build
	@cmake --preset $(1) -DDV_WERROR=$(if $(WERROR),ON,OFF) $(2) >/dev/null
	@cmake --build build/$(1) --parallel $(JOBS) | sed -u 's|Building C object \(.*\)CMakeFiles/[^/]*\.dir/\(.*\)\.o\([^.]*\)$$|\1\2\3|'
endef

# $(call test,preset): builds build/preset with its tests, runs them, and says why something was left out.
define test
	$(call build,$(1),-DDV_TESTS=ON)
	@ctest --preset $(1); code=$$?; tests/left_out build/$(1); exit $$code
endef

.PHONY: build
build: setup-build ## build the library and the program, optimised, in build/release
	$(call build,release,-DDV_TESTS=OFF)

.PHONY: demo
demo: build ## train a small ResNet with exact and with packed activations, and compare
	@scripts/demo $(DIVISION) build/demo

.PHONY: test
test: setup-test ## build and run the tests
	$(call test,release)

.PHONY: bench
bench: build ## measure the codec against memcpy, and training: its memory and its speed
	$(DIVISION) bench codec
	$(DIVISION) bench memory --model resnet18 --batch 32
	$(DIVISION) bench throughput --model resnet18 --batch 32 --rounds 3

.PHONY: install
install: build ## install into PREFIX (/usr/local); DESTDIR is honoured
	@cmake --install build/release --prefix $(PREFIX)

.PHONY: uninstall
uninstall: ## remove what the last `make install` installed; DESTDIR is honoured
	@scripts/uninstall build/release/install_manifest.txt

.PHONY: deb
deb: build ## make a Debian package in build/ (needs dpkg-dev and file)
	@cpack --config build/release/CPackConfig.cmake -B build
	@rm -rf build/_CPack_Packages

.PHONY: debug asan ubsan sanitize tsan clang
debug: setup-test ## build and run the tests without optimisation, in build/debug
	$(call test,debug)
asan: setup-test ## ... under the address and leak sanitizers
	$(call test,asan)
ubsan: setup-test ## ... under the undefined-behaviour sanitizer
	$(call test,ubsan)
sanitize: setup-test ## ... under both of them at once, but for scripts that tell no more
	$(call test,sanitize)
tsan: setup-check ## ... under the thread sanitizer (clang), but for scripts that start no other threads
	$(call test,tsan)
clang: setup-check ## ... built by clang, without the scripts
	$(call test,clang)

.PHONY: aarch64
aarch64: ## ... cross-built for AArch64 and run under qemu
	@scripts/setup --ask aarch64
	@scripts/aarch64-root
	$(call test,aarch64)

.PHONY: fuzz
fuzz: setup-check ## run every fuzz target for SECONDS (60)
	$(call build,fuzz)
	@fuzz/run build/fuzz/fuzz $(SECONDS) $(SEED)

.PHONY: format lint
format: setup-check ## lay out the sources with clang-format
	@scripts/format
lint: setup-check ## check the layout, and the code with clang-tidy and cppcheck
	@scripts/format --check
	@scripts/lint

.PHONY: clean
clean: ## remove all that was built
	rm -rf build

.PHONY: setup-%
setup-build setup-test setup-check: setup-%: # says what is missing: only `scripts/setup` installs
	@scripts/setup --ask $*

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12
