# SPDX-License-Identifier: BSD-2-Clause
#
# vmlinux: its objects (from Kbuild fragments), how they are compiled, and how they are linked.

vmlinux := $(BUILD)/vmlinux
.PHONY: all vmlinux
all: vmlinux
vmlinux: $(vmlinux)

# Allows tail calls, for objects with hot paths. Not with PROFILE_FUNCTIONS: a function that is
# entered by a jump finds the return address of its caller, which may have been replaced.
tail-calls := $(if $(CONFIG_PROFILE_FUNCTIONS),,-foptimize-sibling-calls)

# Objects. A Kbuild fragment lists the objects of its directory: obj-y += a.o b.o sub/,
# obj-$(CONFIG_X) += c.o. cflags-a.o := -fno-builtin gives flags to one object.
kernel-dirs := arch/x86/ kernel/ $(if $(CONFIG_SELFTEST),tests/kernel/ tests/bench/)
kernel-objs :=
define read-kbuild
obj-y :=
$(if $(wildcard $1Kbuild),include $1Kbuild,missing-kbuild += $1Kbuild)
kernel-objs += $$(addprefix $(BUILD)/$1,$$(filter %.o,$$(obj-y)))
$$(foreach o,$$(filter %.o,$$(obj-y)),$$(if $$(cflags-$$o), \
	$$(eval cflags-of-$1$$o := $$(cflags-$$o))$$(eval cflags-$$o :=)))
$$(foreach d,$$(filter %/,$$(obj-y)),$$(eval $$(call read-kbuild,$1$$d)))
endef
$(foreach d,$(kernel-dirs),$(eval $(call read-kbuild,$d)))
kernel-objs := $(strip $(kernel-objs))

# Flags.
lego-includes := -Iinclude -Ikernel/profile/include -Iarch/x86/include -I$(BUILD)/include \
	-include $(autoconf)
# Paths in debug info and __FILE__ do not depend on where the tree and $(BUILD) are (clang's
# assembler knows no prefix map: for it, -fdebug-compilation-dir below). So objects stay up to date
# if both are copied to another place.
prefix-map := -ffile-prefix-map=$(BUILD)/=build/ -ffile-prefix-map=$(abspath $(BUILD))/=build/ \
	      -ffile-prefix-map=$(CURDIR)=.
# With a guard in a variable, as GCC's own place of it, %gs:40, belongs to a per-CPU variable.
stack-flags := $(if $(CONFIG_DEBUG_STACK),-fstack-protector-strong -mstack-protector-guard=global,\
	-fno-stack-protector)
codegen-flags := -m64 -mcmodel=kernel -mno-red-zone -mgeneral-regs-only -mno-sse -mno-mmx -mno-avx \
	-fno-pic -fno-pie -fno-strict-aliasing -fno-common $(stack-flags) \
	-fasynchronous-unwind-tables -fno-delete-null-pointer-checks \
	-fcf-protection=none
# With these flags, every function has a frame when it calls another one, so call chains have no
# gaps; scripts/frameless.py finds the instructions without one. A function that ended in a tail
# call would be missing from the callee's chains. The scheduler would put other instructions between
# those that make the frame. Partitioning would give parts of a function their own symbols.
# `make bench` also compiles a kernel without profilers in this way.
frame-flags = -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer \
	$(if $(CONFIG_DEBUG_TAIL_CALLS),,-fno-optimize-sibling-calls) \
	$(if $(findstring clang,$(cc-version)),,-fno-schedule-insns2 \
	-fno-reorder-blocks-and-partition)
callchain-flags = $(if $(CONFIG_PROFILE_CALLCHAIN),$(frame-flags))
# Reserves five bytes at the start of each function, for a call: see scripts/function_places.py.
function-flags = $(if $(CONFIG_PROFILE_FUNCTIONS),-fpatchable-function-entry=5 \
	$(if $(findstring clang,$(cc-version)),,-fno-ipa-ra))
warning-flags := -Wall -Wextra -Werror -Wno-unused-parameter -Wmissing-prototypes \
	-Wstrict-prototypes -Wvla -Wno-sign-compare -Wno-override-init \
	-Wno-missing-field-initializers -Wdate-time
# debug-info=-g0 saves 15 % of a build's time. The code is the same.
debug-info := -g
# Tests build two variants with optimize=-O1, which saves as much again. The profilers have -O2.
optimize := -O2
kernel-cflags = -std=gnu11 $(if $(filter kernel/profile/%,$<),-O2,$(optimize)) $(debug-info) \
	-ffreestanding -nostdinc -isystem $(cc-include) $(lego-includes) \
	$(codegen-flags) $(callchain-flags) $(function-flags) $(warning-flags) $(prefix-map)
kernel-aflags = -m64 $(debug-info) -nostdinc $(lego-includes) -D__ASSEMBLY__ $(prefix-map) \
	$(if $(findstring clang,$(cc-version)),-fdebug-compilation-dir=.)
kernel-ldflags = -m elf_x86_64 -nostdlib -static --build-id=sha1 -z noexecstack \
	-z max-page-size=0x1000
cc-include := $(if $(build-goals),$(shell $(CC) -print-file-name=include))
cc-version := $(if $(build-goals),$(shell $(CC) --version | head -n 1))

cmd-cc = $(CC) -MMD -MP $(kernel-cflags) $(cflags-of-$(patsubst $(BUILD)/%.o,%.o,$@)) -c -o $@ $<
cmd-as = $(CC) -MMD -MP $(kernel-aflags) -c -o $@ $<

# A stamp is a file with a command line, which is written only if the command line has changed. So
# targets that depend on it are rebuilt if flags, tools or lists change. $(call stamp,text)
stamp = $(if $(dry-run)$(call same-text,$(file <$@),$1),,$(file >$@,$1))@:
same-text = $(and $(call contains,$1,$2),$(call contains,$2,$1))
contains = $(findstring <$(strip $1)>,<$(strip $2)>)
kernel-stamp := $(BUILD)/.kernel-flags
$(kernel-stamp): FORCE | $(BUILD)/
	$(call stamp,$(cc-version) $(value cmd-cc) $(CC) \
		$(subst $(CURDIR),.,$(kernel-cflags) $(kernel-aflags)) \
		$(foreach v,$(sort $(filter cflags-of-%,$(.VARIABLES))),$v=$($v)))
objects-stamp := $(BUILD)/.kernel-objects
$(objects-stamp): FORCE | $(BUILD)/
	$(call stamp,$(LD) $(NM) $(OBJCOPY) $(kernel-ldflags) $(kernel-objs))

# The profilers with hooks of their own, for <profile/profile.h>: porting.md describes this header.
profile-folders := $(BUILD)/include/profile/folders.h
profile-hooks := $(sort $(wildcard kernel/profile/*/hooks.h)) \
	$(if $(CONFIG_SELFTEST),$(wildcard tests/kernel/*/hooks.h))
define profile-folders-text
#ifdef PROFILE_FOLDER
$(foreach h,$(profile-hooks),PROFILE_FOLDER($(notdir $(h:/hooks.h=))))
#else
$(foreach h,$(profile-hooks),$(newline)#include <../../../$h>)
#endif
endef
define newline


endef

# Generated headers.
syscall-table := $(wildcard arch/x86/entry/syscalls.tbl)
headers := $(autoconf) $(generated)/version.h $(generated)/config_gz.h $(profile-folders) \
	$(if $(syscall-table),$(generated)/syscalls.h)

$(generated)/version.h: FORCE | $(generated)/
	$(call stamp,#define LEGO_VERSION "$(VERSION)")

$(profile-folders): FORCE | $(BUILD)/include/profile/
	$(call stamp,$(profile-folders-text))

$(generated)/config_gz.h: scripts/config_gz.py $(BUILD)/.config
	$(call say,GEN    ,$@)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) $< $(BUILD)/.config $@

$(generated)/syscalls.h: scripts/syscalltbl.py $(syscall-table)
	$(call say,GEN    ,$@)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) $< $(syscall-table) $@

# Struct offsets for assembly: compile DEFINE(sym, value) lines, pick them out of the output.
asm-offsets-c := $(wildcard arch/x86/kernel/asm-offsets.c)
asm-offsets := $(if $(asm-offsets-c),$(generated)/asm-offsets.h)
$(generated)/asm-offsets.h: $(asm-offsets-c) $(kernel-stamp) | $(headers)
	$(call say,GEN    ,$@)
	$(Q)$(CC) -MMD -MP -MF $@.d -MT $@ $(kernel-cflags) -g0 -S -o $@.s $<
	$(Q)sed -n 's/^.*"->\([A-Za-z0-9_]*\) \$$*\([-0-9]*\) .*/#define \1 \2/p' $@.s >$@

# Compile.
$(BUILD)/%.o: %.c $(kernel-stamp) | $(headers)
	$(call say,CC     ,$<)
	@mkdir -p $(@D)
	$(Q)$(cmd-cc)

$(BUILD)/%.o: %.S $(kernel-stamp) | $(headers) $(asm-offsets)
	$(call say,AS     ,$<)
	@mkdir -p $(@D)
	$(Q)$(cmd-as)

$(BUILD)/%.s: %.c $(kernel-stamp) | $(headers)
	@mkdir -p $(@D)
	$(Q)$(CC) $(kernel-cflags) $(cflags-of-$(patsubst $(BUILD)/%.s,%.o,$@)) -g0 -S -o $@ $<

# `make kernel/main.o` means the one in $(BUILD).
single-goals := $(filter-out $(BUILD)/%,$(filter %.o %.s,$(MAKECMDGOALS)))
.PHONY: $(single-goals)
$(single-goals): %: $(BUILD)/% ; @:

# Links with an empty symbol table, then with the table of the result, until it is stable. The table
# in the final file is then compared with the file's own symbols.
linker-script := $(BUILD)/arch/x86/kernel.lds
$(linker-script): arch/x86/kernel.lds.S $(kernel-stamp) | $(headers) $(asm-offsets)
	$(call say,LDS    ,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -E -P -x assembler-with-cpp -MMD -MP -MF $@.d -MT $@ $(kernel-aflags) -g0 -o $@ $<

# kernel/profile/ is linked as one object that shows only its hooks, so the other names in it cannot
# clash with those of the kernel around it. The tests in the kernel look inside.
profile-objs := $(if $(CONFIG_SELFTEST),,$(filter $(BUILD)/kernel/profile/%,$(kernel-objs)))
linked-objs := $(filter-out $(profile-objs),$(kernel-objs)) \
	$(if $(profile-objs),$(BUILD)/kernel/profile.o)
$(BUILD)/kernel/profile.o: $(profile-objs) $(objects-stamp)
	$(call say,LD     ,$@)
	$(Q)$(LD) -m elf_x86_64 -r -o $@ $(profile-objs)
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='profile_*' \
		--keep-global-symbol=print_profile_points $@

$(vmlinux): $(linked-objs) $(linker-script) $(objects-stamp)
$(vmlinux): $(addprefix scripts/,kallsyms.py link-vmlinux frameless.py function_places.py)
	$(if $(missing-kbuild),$(error no such file: $(missing-kbuild)))
	$(call say,LD     ,$@)
	$(Q)CC='$(CC)' LD='$(LD) $(kernel-ldflags)' NM='$(NM)' PYTHON='$(PYTHON)' \
		FRAMELESS='$(CONFIG_PROFILE_CALLCHAIN)' \
		FUNCTION_PLACES='$(CONFIG_PROFILE_FUNCTIONS)' \
		scripts/link-vmlinux $@ $(linker-script) $(linked-objs)

-include $(kernel-objs:.o=.d) $(linker-script).d $(generated)/asm-offsets.h.d

# For editors and clang tools.
.PHONY: compile_commands.json
compile_commands.json: $(BUILD)/compile_commands.json
$(BUILD)/compile_commands.json: $(kernel-stamp) $(objects-stamp) | $(headers)
	$(call say,GEN    ,$@)
	$(file >$@,[)
	$(foreach c,$(compdb-sources),$(file >>$@,$(compdb-entry)))
	$(file >>$@,])
	@:
compdb-sources = $(wildcard $(kernel-objs:$(BUILD)/%.o=%.c))
compdb-entry = {"directory": "$(CURDIR)", "file": "$c", "command": "$(CC) $(kernel-cflags) \
	$(cflags-of-$(c:.c=.o)) -c $c"}$(if $(filter $c,$(lastword $(compdb-sources))),,$(comma))
comma := ,
