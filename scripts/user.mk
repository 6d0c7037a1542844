# SPDX-License-Identifier: BSD-2-Clause
#
# What runs on the kernel: programs from tests/user/, their data, and the initramfs images.
# tests/user/Kbuild says user-y += name (static, glibc), user-musl-y += name (name.musl), and
# for one program name-cflags and name-ldflags.

user-y :=
user-musl-y :=
-include tests/user/Kbuild
user-programs := $(addprefix $(BUILD)/user/,$(user-y) $(addsuffix .musl,$(user-musl-y)))

user-cflags := -std=gnu11 -O2 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare \
	-ffile-prefix-map=$(CURDIR)=.
cmd-user = -MMD -MP -MF $@.d -MT $@ $(user-cflags) $(call user-flags,cflags) -o $@ $< \
	$(if $(filter -static-pie,$(call user-flags,ldflags)),,-static) $(call user-flags,ldflags)
user-flags = $($(basename $(@F))-$1)

user-stamp := $(BUILD)/.user-flags
$(user-stamp): FORCE | $(BUILD)/
	$(call stamp,$(USERCC) $(MUSLCC) $(value cmd-user) $(user-cflags) \
		$(foreach p,$(sort $(user-y) $(user-musl-y)),$p $($p-cflags) $($p-ldflags)))

.PHONY: user
user: $(user-programs)

$(BUILD)/user/%.musl: tests/user/%.c $(user-stamp)
	$(call say,MUSLCC ,$@)
	@mkdir -p $(@D)
	$(Q)$(MUSLCC) $(cmd-user)
$(BUILD)/user/%: tests/user/%.c $(user-stamp)
	$(call say,USERCC ,$@)
	@mkdir -p $(@D)
	$(Q)$(USERCC) $(cmd-user)
$(BUILD)/user/%: tests/user/%.S $(user-stamp)
	$(call say,USERCC ,$@)
	@mkdir -p $(@D)
	$(Q)$(USERCC) $(cmd-user)

-include $(addsuffix .d,$(user-programs))

# Something to read: the tree's own sources, repeated.
text-names := *.[chS] *.py *.md Kbuild Kconfig
text-sources := $(if $(build-goals),$(sort $(shell \
	find arch kernel include scripts tests README.md -type f \
		\( -name Makefile $(text-names:%=-o -name '%') \) 2>/dev/null)))
$(BUILD)/data/text: text-bytes := 33554432
$(BUILD)/data/small: text-bytes := 262144
$(BUILD)/data/text $(BUILD)/data/small: scripts/mktext.py $(text-sources)
	$(call say,DATA   ,$@)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) $< $@ $(text-bytes) $(text-sources)

# The image of `make run`, and that of the boot tests with every program.
.PHONY: initramfs
initramfs: $(BUILD)/initramfs.cpio $(BUILD)/tests.cpio

cpio-files = $(foreach p,$(filter $(BUILD)/user/%,$1),bin/$(notdir $p)=$p) \
	     $(foreach d,$(filter $(BUILD)/data/%,$1),data/$(notdir $d)=$d)
$(BUILD)/initramfs.cpio: scripts/mkcpio.py $(BUILD)/user/wordcount $(BUILD)/data/text
	$(call say,CPIO   ,$@)
	$(Q)$(PYTHON) $< $@ $(call cpio-files,$^)
# The image of `make run PROGRAM=path FILES='path path'`: a program of the user's own.
$(BUILD)/program.cpio: scripts/mkcpio.py $(PROGRAM) $(FILES) FORCE
	$(call say,CPIO   ,$@)
	$(Q)$(PYTHON) $< $@ bin/$(notdir $(PROGRAM))=$(PROGRAM) \
		$(foreach f,$(FILES),data/$(notdir $f)=$f) tmp/

cpio-stamp := $(BUILD)/.tests-cpio
$(cpio-stamp): FORCE | $(BUILD)/
	$(call stamp,$(user-programs))
$(BUILD)/tests.cpio: scripts/mkcpio.py $(user-programs) $(BUILD)/data/small $(cpio-stamp)
	$(call say,CPIO   ,$@)
	$(Q)$(PYTHON) $< $@ $(call cpio-files,$^) tmp/
