# SPDX-License-Identifier: BSD-2-Clause
#
# One make builds everything: no recursion, one dependency graph, output only below $(BUILD).
# The parts: scripts/variables.mk (what can be set), config.mk (Kconfig), kernel.mk (vmlinux),
# user.mk (programs, initramfs), tests.mk (run, test, bench). Try `make help`.

VERSION := 0.5

MAKEFLAGS += --no-builtin-rules --no-builtin-variables --no-print-directory
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
SHELL := /bin/sh
export LC_ALL := C

# Where output goes. A trailing slash or a leading ./ would make two names of one file.
BUILD ?= build
override BUILD := $(patsubst ./%,%,$(patsubst %/,%,$(BUILD)))
source-dirs := / $(addprefix $(CURDIR)/,arch kernel include scripts tests)
ifneq ($(filter $(source-dirs),$(abspath $(BUILD)))$(filter $(abspath $(BUILD))/%,$(CURDIR)/),)
$(error BUILD=$(BUILD) would mix output with the sources: name a directory of its own)
endif
# Bytecode goes there, too: without it, each script would compile Python's own library again.
export PYTHONPYCACHEPREFIX := $(abspath $(BUILD))/.pycache
unexport PYTHONDONTWRITEBYTECODE
PYTHON := /usr/bin/python3
include scripts/variables.mk

# What is printed: one line for each step, whole commands with V=1, nothing with -s.
Q := $(if $(filter 1,$(V)),,@)
short-options := $(filter-out --%,$(firstword -$(MAKEFLAGS)))
silent := $(findstring s,$(short-options))
dry-run := $(findstring n,$(short-options))
say = $(if $(Q),$(if $(silent),,$(info $(empty)  $(1) $(2))))

.PHONY: all help help-params deps clean distclean FORCE
FORCE:

# Goals that change what the others are made from run one after the other, in the order given,
# each in a fresh make: `make -j2 deps run` looks for the compiler after deps has installed it.
# Tests need much to be built, so they use all CPUs unless -j says otherwise.
serial-goals := deps clean distclean defconfig olddefconfig savedefconfig menuconfig
ifneq ($(and $(filter $(serial-goals),$(MAKECMDGOALS)),$(word 2,$(MAKECMDGOALS))),)

.PHONY: $(MAKECMDGOALS) one-after-the-other
$(MAKECMDGOALS): one-after-the-other ; @:
one-after-the-other:
	@set -e; for goal in $(MAKECMDGOALS); do \
		jobs=; \
		case $$goal in check|test*) \
			jobs=$(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc)); \
		esac; \
		all_goals='$(MAKECMDGOALS)' $(MAKE) $$jobs "$$goal"; done

else

deps:
	@scripts/install-deps $(filter check test-consumers test-ports,$(all_goals))

include scripts/toolchain.mk
include scripts/config.mk
include scripts/kernel.mk
include scripts/user.mk
include scripts/tests.mk

help:
	@cat scripts/help.txt

# `make -s help-params > kernel/parameters.md` renews the page.
help-params:
	@$(PYTHON) scripts/params.py

# clean keeps the configuration; both refuse a directory that is not a build directory.
clean distclean: check-is-build
	@[ ! -e $(BUILD) ] || find $(BUILD) -mindepth 1 -maxdepth 1 $(kept-by-$@) -exec rm -rf {} +
	@[ $@ = clean ] || rm -rf $(BUILD)
kept-by-clean := ! -name .config ! -name .variant
.PHONY: check-is-build
check-is-build:
	@[ ! -e $(BUILD) ] || [ -e $(BUILD)/.config ] || { \
		echo 'not removed: $(BUILD) is no build directory (no .config in it)' >&2; exit 1; }

endif
