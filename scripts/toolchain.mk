# SPDX-License-Identifier: BSD-2-Clause
#
# The tools, and the error message if one is missing.

# $(call pick,VAR,value): the default of a tool, unless the user names another.
pick = $(if $(filter default undefined,$(origin $1)),$(eval $1 := $2))
# The first of the given commands that exists; if none does, the first.
first-found = $(firstword $(foreach t,$1,$(if $(shell command -v $t),$t)) $1)

ifeq ($(LLVM),1)
$(call pick,CC,$(call first-found,clang clang-14))
$(call pick,LD,$(call first-found,ld.lld ld.lld-14))
$(call pick,NM,$(call first-found,llvm-nm llvm-nm-14 nm))
$(call pick,OBJCOPY,$(call first-found,llvm-objcopy llvm-objcopy-14 objcopy))
else
$(call pick,CC,$(CROSS_COMPILE)gcc)
$(call pick,LD,$(CROSS_COMPILE)ld)
$(call pick,NM,$(CROSS_COMPILE)nm)
$(call pick,OBJCOPY,$(CROSS_COMPILE)objcopy)
endif
# Programs that run on this machine, and programs that run on the kernel.
$(call pick,HOSTCC,gcc)
$(call pick,USERCC,gcc)
$(call pick,USERCXX,g++)
$(call pick,MUSLCC,musl-gcc)
$(call pick,CLANG_FORMAT,$(call first-found,clang-format-14 clang-format))

# $(call need,commands and /files): stops with one line if any is missing.
need = $(call need-report,$(strip $(foreach t,$1,$(if $(call exists,$t),,$t))))
need-report = $(if $1,$(error not found: $1; run `make deps` to install it))
exists = $(if $(filter /%,$1),$(wildcard $1),$(shell command -v $1))

kconfig-tools := $(PYTHON) /usr/lib/python3/dist-packages/kconfiglib.py
kernel-tools := $(CC) $(LD) $(NM) $(OBJCOPY)
user-tools := $(USERCC) $(USERCXX) $(MUSLCC) /usr/lib/x86_64-linux-gnu/libc.a
unit-tools := $(HOSTCC) /usr/include/cmocka.h
qemu-tools := qemu-system-x86_64
iso-tools := grub-mkrescue grub-file xorriso mformat /usr/lib/grub/i386-pc
pytest-tools := /usr/lib/python3/dist-packages/pytest /usr/lib/python3/dist-packages/pexpect

# The goals on the command line decide which tools are needed.
goals := $(or $(MAKECMDGOALS),all)
no-config-goals := help deps clean distclean format format-check lint
config-goals := defconfig olddefconfig savedefconfig menuconfig
build-goals := $(filter-out $(no-config-goals) $(config-goals),$(goals))

$(if $(filter $(config-goals),$(goals))$(build-goals),$(call need,$(kconfig-tools)))
$(if $(filter-out test-unit,$(build-goals)),$(call need,$(kernel-tools)))
perf-goals := perf-base check-perf
$(if $(filter run $(perf-goals) \
	check test test-boot test-consumers bench accuracy initramfs,$(goals)),\
	$(call need,$(user-tools)))
$(if $(filter check test test-unit,$(goals)),$(call need,$(unit-tools)))
$(if $(filter run $(perf-goals) shell check test test-boot test-consumers bench accuracy,$(goals)),\
	$(call need,$(qemu-tools)))
$(if $(filter iso test test-boot,$(goals)),$(call need,$(iso-tools)))
$(if $(filter check test test-unit test-boot test-consumers test-ports bench,$(goals)),\
	$(call need,$(pytest-tools)))
$(if $(filter test-ports,$(goals)),$(call need,aarch64-linux-gnu-gcc riscv64-linux-gnu-gcc))
$(if $(filter check lint,$(goals)),$(call need,mypy pyflakes3))
$(if $(filter check format format-check,$(goals)),$(call need,$(CLANG_FORMAT)))
