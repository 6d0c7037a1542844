# SPDX-License-Identifier: BSD-2-Clause
#
# Goals that run something: the demo, the tests, the benchmarks, the format check.
# tests/unit/Kbuild has, for tests/unit/test_x.c, test_x-objs := the kernel sources that it tests,
# and test_x-cflags if it needs flags.

# Runs the demo, a program of the user (PROGRAM=), or a command in the shell (CMD=). DEBIAN= adds
# packages to the latter two. Instructions count as time, so runs repeat exactly and no sample is
# lost. REAL=1 (or ICOUNT=0) asks for wall time: then virtual CPUs beyond the host's own would wait
# for each other. A shell has a user, and KVM cannot count, so these have wall time by default.
default-icount = $(if $(filter-out 0,$(REAL))$(filter kvm,$(ACCEL)),0,1)
ICOUNT ?= $(default-icount)
icount = $(filter-out 0,$(ICOUNT))
host-cpus = $(shell nproc 2>/dev/null)
real-cpus = $(if $(filter 1 2 3,$(host-cpus)),$(host-cpus),4)
SMP ?= $(if $(icount),1,$(real-cpus))
runs-command := $(if $(value CMD),y)
INIT ?= $(if $(runs-command),/init,/bin/$(or $(notdir $(PROGRAM)),wordcount))
demo-text = /data/text
ARGS ?= $(if $(PROGRAM)$(runs-command),,-t 46 $(demo-text))
run-image := $(if $(runs-command),$(run-dir)/session.cpio,$(if $(PROGRAM),$(run-dir)/program.cpio, \
	$(BUILD)/initramfs.cpio))

# No sample is lost under icount, so the rate is higher there: measurements.md has its cost. APPEND=
# may set another one, as the last profile.hz= counts.
icount-samples = $(if $(CONFIG_PROFILE_HEATMAP),profile.hz=10007 profile.samples=2097152)
# The events of the critical path take 0.4 % more instructions.
run-path = $(if $(CONFIG_PROFILE_PATH),profile.path=on)
# Which code touches memory first takes 0.6 % more.
run-memory = $(if $(CONFIG_PROFILE_MEMORY_CHAINS),profile.memory_chains=on)
run-append = $(run-reports) $(run-path) $(run-memory) $(if $(icount),$(icount-samples)) $(APPEND)

# A line for a variable that has no effect.
unused = $(if $($1),@echo 'make: warning: $1= has no effect $2' >&2)

# The images of shells and of a user's programs have a directory whose files leave the guest.
has-host = $(filter shell,$@)$(PROGRAM)$(runs-command)

qemu-run = $(remove-run-dir) scripts/qemu-run --smp $(SMP) \
	$(if $(MEM),--mem $(MEM)) $(if $(ACCEL),--accel $(ACCEL)) \
	$(if $(icount),--icount) --log $(BUILD)/run.log \
	$(if $(EXPORT),--export '$(EXPORT)') \
	--get-folder $(BUILD)/files $(patsubst %,--get '%',$(GET)) $(if $(has-host),--host /host) \
	$(addprefix --host-path ,$(PROGRAM) $(FILES))

# One report of the whole run, or one of each process (REPORTS=each).
run-reports = $(if $(filter each,$(REPORTS)),,profile.on_exit=run)

.PHONY: run
run: $(vmlinux) $(run-image)
	$(if $(DEBIAN),$(if $(PROGRAM)$(runs-command),, \
		$(error DEBIAN= is for a command or a program of yours: add CMD='...' or PROGRAM=)))
	$(if $(PROGRAM)$(runs-command),,$(call unused,FILES,without PROGRAM= or CMD=))
	$(if $(runs-command),$(call unused,ARGS,with CMD=: write them into the command))
	$(if $(icount),$(call unused,REAL,with ICOUNT=1))
	$(call unused,BASE,here: perf-base and check-perf use it)
	@$(qemu-run) --page $(if $(PROGRAM)$(runs-command),--stdin) \
		--kernel $(vmlinux) --initrd $(run-image) \
		--append '$(strip $(run-append) init=$(INIT) $(if $(ARGS),-- $(ARGS)))'

# Runs the demo, and puts its report into README.md. tests/boot/test_readme.py compares them.
.PHONY: readme
readme: run
	@$(PYTHON) scripts/readme.py $(BUILD)/run.log README.md

# Exact comparison: under icount, two runs of the same tree are equal, so every difference is due to
# the code. The page allocator's memory begins at a fixed address, so the size of the image makes
# none. The program measures operations between ticks. A program of the user gets few ticks, as a
# change can move one from one call into another.
# git bisect needs the exit status of scripts/check-perf: make has one for all failures.
perf-append = memory_start=0x4000000 profile.hz=1 \
	$(if $(perf-own),tick_hz=2,tick_hz=100 profile.on_exit=none)
perf-own := $(PROGRAM)$(runs-command)
perf-image := $(if $(perf-own),$(run-image),$(BUILD)/operations.cpio)
.PHONY: perf-base check-perf
perf-base check-perf: INIT := $(if $(perf-own),$(INIT),/bin/operations)
perf-base check-perf: ARGS := $(if $(perf-own),$(ARGS))
perf-base check-perf: override ICOUNT := 1
perf-base check-perf: override APPEND := $(perf-append) $(APPEND)
perf-base: override EXPORT := $(BASE)
check-perf: override EXPORT := $(BUILD)/check-perf.lego
perf-base check-perf: $(vmlinux) $(perf-image)
	$(if $(BASE),,$(error $@ needs BASE=<export>))
	@$(if $(filter check-perf,$@),test -f '$(BASE)' || \
		{ echo "no base: make perf-base BASE=$(BASE)"; exit 2; })
	@$(qemu-run) --quiet --operations --kernel $(vmlinux) --initrd $(perf-image) \
		--append '$(strip $(APPEND) init=$(INIT) $(if $(ARGS),-- $(ARGS)))'
	@$(if $(filter check-perf,$@),scripts/legoprof diff '$(BASE)' '$(EXPORT)')

# A shell on this terminal. Reports are printed only on request.
has-own-shell := $(PROGRAM)$(FILES)$(DEBIAN)$(runs-command)
shell-cpio := $(if $(has-own-shell),$(run-dir)/session.cpio,$(BUILD)/shell.cpio)
.PHONY: shell
shell: default-icount := 0
shell: real-cpus := 4
shell: $(vmlinux) $(shell-cpio)
	$(call unused,ARGS,in a shell)
	$(call unused,BASE,here: perf-base and check-perf use it)
	@$(qemu-run) --interactive --kernel $(vmlinux) --initrd $(shell-cpio) \
		--append '$(strip profile.on_exit=none $(APPEND))'

# The same on a CD, for a PC with a serial line: scripts/qemu-run --cdrom build/lego.iso
.PHONY: iso
iso: $(BUILD)/lego.iso
$(BUILD)/lego.iso: scripts/mkiso $(vmlinux) $(shell-cpio) FORCE
	$(call say,ISO    ,$@)
	$(Q)$(remove-run-dir) $< $@ $(vmlinux) $(shell-cpio) \
		'$(strip profile.on_exit=none $(APPEND))'

# Unit tests: kernel sources compiled for this machine, with sanitizers. To optimize them would take
# as much time again; vmlinux shows what only an optimizing compiler warns of.
unit-y := $(basename $(notdir $(wildcard tests/unit/test_*.c)))
-include tests/unit/Kbuild
unit-programs := $(addprefix $(BUILD)/unit/,$(unit-y))
unit-cflags := -std=gnu11 -O0 -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare \
	-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
	-Iinclude -Ikernel/profile/include -I$(BUILD)/include -Itests/unit -DUNIT_TEST \
	-ffunction-sections
cmd-unit-cc = $(HOSTCC) -MMD -MP $(unit-cflags) $($(unit-group)-cflags) -c -o $@ $<
cmd-unit-ld = $(HOSTCC) $(unit-cflags) -Wl,--gc-sections -o $@ $(filter %.o,$^) -lcmocka \
	$($(unit-name)-ldflags)

unit-stamp := $(BUILD)/.unit-flags
$(unit-stamp): FORCE | $(BUILD)/
	$(call stamp,$(HOSTCC) $(value cmd-unit-cc) $(value cmd-unit-ld) $(unit-cflags) \
		$(foreach u,$(unit-y),$u $($u-objs) $($u-cflags) $($u-ldflags)))

# Tests with equal flags are a group, named after its first test. They share objects.
unit-group-of = $(firstword $(foreach u,$(unit-y), \
	$(if $(call same-text,$($u-cflags),$($1-cflags)),$u)))
unit-objs = $(patsubst %,$(BUILD)/unit/obj/$2/%.o,tests/unit/main tests/unit/$1 \
	$(basename $($1-objs)))
define unit-rules
$(BUILD)/unit/$1: unit-name := $1
$(BUILD)/unit/$1: $(unit-objs) $(unit-stamp)
	$$(call say,UNITLD ,$$@)
	$$(Q)$$(cmd-unit-ld)
-include $(patsubst %.o,%.d,$(unit-objs))
endef
define unit-group-rules
$(BUILD)/unit/obj/$1/%.o: unit-group := $1
$(BUILD)/unit/obj/$1/%.o: %.c $(unit-stamp) | $(headers)
	$$(call say,UNITCC ,$$< ($1))
	@mkdir -p $$(@D)
	$$(Q)$$(cmd-unit-cc)
endef
$(foreach u,$(unit-y),$(eval unit-group-$u := $(call unit-group-of,$u)))
$(foreach u,$(unit-y),$(eval $(call unit-rules,$u,$(unit-group-$u))))
$(foreach g,$(sort $(foreach u,$(unit-y),$(unit-group-$u))),$(eval $(call unit-group-rules,$g)))

.PHONY: unit
unit: $(unit-programs)

# A kernel with tail calls, whose call chains lack functions (tests/accuracy/).
.PHONY: tail-call-kernel
tail-call-kernel:
	$(Q)$(MAKE) BUILD=$(BUILD)/variants/tail-calls CONFIG=tail-calls debug-info=-g0 vmlinux

# The kernel with the tests of tests/kernel/ and the profiler of functions. Tests build further
# variants in $(BUILD)/variants.
.PHONY: functions-kernel
functions-kernel:
	$(Q)$(MAKE) BUILD=$(BUILD)/variants/functions CONFIG=functions debug-info=-g0 vmlinux

# A QEMU plugin counts all instructions, to check the accuracy of the heatmap (tests/accuracy/).
accuracy-tools := $(addprefix $(BUILD)/accuracy/,truth.so crossings.so pages.so user_calls.so draws)
accuracy-cflags := -std=gnu11 -O2 -Wall -Wextra -Werror -Wno-unused-parameter \
	-Wno-sign-compare
$(BUILD)/accuracy/truth.so: $(addprefix tests/accuracy/,truth.c truth_input.c truth_output.c \
		truth_waits.c truth.h truth_count.h plugin_api.h plugin_args.h)
	$(call say,HOSTCC ,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(accuracy-cflags) -fPIC -shared -fvisibility=hidden -o $@ $(filter %.c,$^)
$(addprefix $(BUILD)/accuracy/,crossings.so pages.so user_calls.so): $(BUILD)/accuracy/%.so: \
		tests/accuracy/%.c $(addprefix tests/accuracy/plugin_,api.h args.h)
	$(call say,HOSTCC ,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(accuracy-cflags) -fPIC -shared -fvisibility=hidden -o $@ $<
$(BUILD)/accuracy/draws: tests/accuracy/draws.c
	$(call say,HOSTCC ,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(accuracy-cflags) -o $@ $< -lm

# The environment of tests. A make that they start gets the variables of this make, but not its job
# slots, which do not pass through Python.
quote := '
overrides := $(subst $(quote),$(quote)\$(quote)$(quote),$(MAKEOVERRIDES))
test-env := BUILD='$(BUILD)' MAKELEVEL= MFLAGS= MAKEFLAGS='$(if $(overrides),-- $(overrides))'

# Tests. The last line printed is `N passed, M failed`.
test-summary = $(test-env) $(PYTHON) scripts/test-summary.py --build $(BUILD) \
	--pytest-args='$(PYTEST_ARGS)'
unit-suites = --unit $(unit-programs) --pytest $(wildcard tests/unit/test_*.py)
boot-needs = $(vmlinux) functions-kernel $(accuracy-tools) $(addprefix $(BUILD)/, \
	$(addsuffix .cpio,accuracy initramfs tests diagnosis operations))

.PHONY: test test-unit test-boot bench soak check-perf-proof
test: $(unit-programs) $(boot-needs)
	@$(test-summary) $(unit-suites) tests/boot
test-unit: $(unit-programs)
	@$(test-summary) $(unit-suites)
test-boot: $(boot-needs)
	@$(test-summary) --pytest tests/boot
bench: $(boot-needs)
	@$(test-env) tests/bench/run
soak: $(vmlinux) $(BUILD)/tests.cpio
	@$(test-env) tests/soak/run $(SOAK_ARGS)
# A NOP on each path by itself, and dead code and data: what check-perf says.
check-perf-proof:
	@$(test-env) $(PYTHON) tests/soak/check_perf.py

# What to run before each commit: two minutes on a built tree. All suites in one boot, and the demo,
# an exact run, which must print the report in README.md.
.PHONY: check lint
check: $(unit-programs) $(vmlinux) functions-kernel $(BUILD)/initramfs.cpio format-check lint
	@$(test-summary) $(unit-suites) 'tests/boot/test_selftest.py::test_all_suites[4]' \
		tests/boot/test_readme.py

# mypy reads the tools, pyflakes all Python; test_function_tracers.py takes over a fixture by name.
lint:
	$(call say,LINT   ,scripts tests)
	@mypy --no-error-summary --cache-dir $(BUILD)/.mypy --ignore-missing-imports \
		scripts/*.py scripts/profiles/*.py
	@! pyflakes3 scripts tests | \
		grep -v "^tests/boot/test_function_tracers.py:.*'\(test_functions\.\)\?kernel'"

# perf, pprof and others read what legoprof writes. `make deps test-consumers` installs them.
.PHONY: test-consumers
test-consumers: $(vmlinux) functions-kernel $(addprefix $(BUILD)/, \
		$(addsuffix .cpio,initramfs shell diagnosis))
	@$(test-summary) --pytest tests/consumers

# kernel/profile/ for other architectures. `make deps test-ports` installs compilers and QEMU.
.PHONY: test-ports
test-ports:
	@$(test-summary) --pytest tests/seam

# kernel/profile/ for other kernels, with its tools and examples: scripts/dist.py.
.PHONY: dist
dist: | $(BUILD)/
	$(call say,DIST   ,$(BUILD)/lego-profile-$(VERSION).tar.gz)
	$(Q)$(PYTHON) scripts/dist.py pack $(VERSION) $(BUILD)/lego-profile-$(VERSION).tar.gz

.PHONY: accuracy
accuracy: $(accuracy-tools) $(vmlinux) tail-call-kernel functions-kernel $(BUILD)/accuracy.cpio
	@$(test-env) $(PYTHON) tests/accuracy/table.py

# Tests and demo under KVM and emulated. The file it writes is for those who have no KVM.
.PHONY: kvm-check
kvm-check: $(vmlinux) functions-kernel $(BUILD)/initramfs.cpio
	@$(PYTHON) scripts/kvm_check.py $(BUILD)

# Formatting.
.PHONY: format format-check
format format-check:
	@$(PYTHON) scripts/format.py --clang-format $(CLANG_FORMAT) $(if $(filter format,$@),--fix)
