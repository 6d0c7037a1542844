# SPDX-License-Identifier: BSD-2-Clause
#
# Programs that run on the kernel, from scripts/guest/, tests/user/ and tests/diagnosis/, and their
# data; the initramfs images. The tests' Kbuilds have user-y += name (static, glibc), user-musl-y +=
# name (name.musl), and name-cflags and name-ldflags for one program.

profile := $(BUILD)/user/profile
user-y := profile
user-musl-y :=
diagnosis-y :=
-include tests/user/Kbuild tests/diagnosis/Kbuild
user-programs := $(addprefix $(BUILD)/user/,$(user-y) $(addsuffix .musl,$(user-musl-y)))

user-cflags := -Itests/user -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare \
	-ffile-prefix-map=$(CURDIR)=.
cmd-user = -MMD -MP -MF $@.d -MT $@ $(user-std) $(user-cflags) $(call user-flags,cflags) -o $@ $< \
	$(if $(filter -static-pie,$(call user-flags,ldflags)),,-static) $(call user-flags,ldflags)
user-std = $(if $(filter %.cc,$<),-std=gnu++17,-std=gnu11 -D_GNU_SOURCE) $(user-optimize)
# Half of the time to compile all programs would be to optimize those that only make system calls.
user-optimize = $(if $(filter tests/user/abi/%,$<),-O0,-O2)
user-flags = $($(basename $(@F))-$1)

user-stamp := $(BUILD)/.user-flags
$(user-stamp): FORCE | $(BUILD)/
	$(call stamp,$(USERCC) $(USERCXX) $(MUSLCC) $(value cmd-user) $(value user-std) \
		$(value user-optimize) \
		$(user-cflags) \
		$(foreach p,$(sort $(user-y) $(user-musl-y)),$p $($p-cflags) $($p-ldflags)))

.PHONY: user
user: $(user-programs)

# $(call user-rule,pattern of targets,pattern of sources,compiler)
define user-rule
$(BUILD)/user/$1: $2 $(user-stamp)
	$$(call say,$3,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$($(strip $3)) $$(cmd-user)

endef
user-dirs := scripts/guest tests/diagnosis tests/user $(patsubst %/,%,$(wildcard tests/user/*/))
$(eval $(foreach dir,$(user-dirs),$(call user-rule,%.musl,$(dir)/%.c,MUSLCC ) \
	$(call user-rule,%,$(dir)/%.cc,USERCXX) $(call user-rule,%,$(dir)/%.c,USERCC )))

-include $(addsuffix .d,$(user-programs))

# The text that the demo reads. It is the same in every version of the tree.
$(BUILD)/data/text: text-bytes := 33554432
$(BUILD)/data/small: text-bytes := 262144
$(BUILD)/data/text $(BUILD)/data/small: scripts/mktext.py
	$(call say,DATA   ,$@)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) $< $@ $(text-bytes)

# The images of `make run` and of the boot tests. The programs of tests/diagnosis/ have an image of
# their own, because some tests boot tests.cpio with little memory.
.PHONY: initramfs
initramfs: $(addprefix $(BUILD)/,initramfs.cpio tests.cpio diagnosis.cpio shell.cpio)

cpio-files = $(filter $(BUILD)/user/%,$1) $(addprefix /data/=,$(filter $(BUILD)/data/%,$1))
$(BUILD)/initramfs.cpio: scripts/mkinitramfs $(BUILD)/user/wordcount $(profile) $(BUILD)/data/text
	$(call say,CPIO   ,$@)
	$(Q)$< -o $@ $(call cpio-files,$^)

# The image of `make check-perf`: nothing but its program, so it changes only with that.
$(BUILD)/operations.cpio: scripts/mkinitramfs $(BUILD)/user/operations
	$(call say,CPIO   ,$@)
	$(Q)$< -o $@ $(call cpio-files,$^) --dir /data

# The programs that run with the plugin of tests/accuracy/. It makes unpacking expensive, so the
# image has no others.
accuracy-programs := $(addprefix $(BUILD)/user/,accuracy crowd herds offcpu owners)
$(BUILD)/accuracy.cpio: scripts/mkinitramfs $(accuracy-programs)
	$(call say,CPIO   ,$@)
	$(Q)$< -o $@ $(call cpio-files,$^) --dir /tmp

# The image of the fuzzer, for machines with little memory.
$(BUILD)/fuzz.cpio: scripts/mkinitramfs $(BUILD)/user/fuzz $(BUILD)/data/small
	$(call say,CPIO   ,$@)
	$(Q)$< -o $@ $(call cpio-files,$^) --dir /tmp

# An image with PROGRAM=, FILES=, DEBIAN= or CMD= belongs to one run, as two may go on at a time. So
# it is in a directory with this make's process number, which the recipe that uses it removes.
run-dir := $(BUILD)/run-$(shell echo $$PPID)
remove-run-dir = trap 'rm -rf $(run-dir)' EXIT; trap : INT TERM;
fail-run = { rm -rf $(run-dir); exit 1; }

# The image of `make run PROGRAM=path FILES='path path' DEBIAN='package package'`: a program of the
# user, files for it, and Debian packages with their dependencies. mkinitramfs reports any problem
# with them, so only files that make can build are prerequisites.
program-files = $(addprefix --program ,$(PROGRAM)) $(addprefix /data/=,$(FILES)) \
	$(addprefix --debian ,$(DEBIAN)) --cache $(BUILD)/packages
built-files = $(filter $(BUILD)/%,$(PROGRAM) $(FILES))
$(run-dir)/program.cpio: scripts/mkinitramfs $(built-files) $(profile)
	$(call say,CPIO   ,$@)
	@mkdir -p $(@D)
	$(Q)$< -o $@ $(profile) $(program-files) $(addprefix --dir /,host run tmp) \
		--symlink /var/run=/run || $(fail-run)

# The image of `make shell`: busybox, and an init that runs a shell. session.cpio, for `make run
# CMD='...'` or a shell with PROGRAM=, FILES= or DEBIAN=, has these, too. make never expands CMD,
# which is for the shell.
shell-root := scripts/shell
shell-files := $(shell-root)/init $(wildcard $(shell-root)/etc/*)
shell-image = --busybox $(shell-root) $(profile) --symlink /var/run=/run \
	$(addprefix --dir /,dev home/user:1000 host proc root run tmp)
unexport CMD
$(BUILD)/shell.cpio: scripts/mkinitramfs $(shell-files) $(profile)
	$(call say,CPIO   ,$@)
	$(Q)$< -o $@ $(shell-image)
$(run-dir)/session.cpio: scripts/mkinitramfs $(shell-files) $(profile) $(built-files)
	$(call say,CPIO   ,$@)
	@mkdir -p $(@D)
	$(if $(dry-run),,$(if $(value CMD), \
		$(shell mkdir -p $(@D))$(file >$(@D)/command,$(value CMD))))
	$(Q)$< -o $@ $(shell-image) $(program-files) $(if $(value CMD),/command=$(@D)/command) \
		|| $(fail-run)

cpio-stamp := $(BUILD)/.tests-cpio
$(cpio-stamp): FORCE | $(BUILD)/
	$(call stamp,$(user-programs))
diagnosis-programs := $(addprefix $(BUILD)/user/,$(diagnosis-y))
$(BUILD)/tests.cpio: $(filter-out $(diagnosis-programs),$(user-programs)) $(BUILD)/data/small
$(BUILD)/diagnosis.cpio: $(diagnosis-programs)
$(BUILD)/tests.cpio $(BUILD)/diagnosis.cpio: scripts/mkinitramfs $(cpio-stamp)
	$(call say,CPIO   ,$@)
	$(Q)$< -o $@ $(call cpio-files,$^) --dir /tmp
