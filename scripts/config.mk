# SPDX-License-Identifier: BSD-2-Clause
#
# Configuration: $(BUILD)/.config, and its forms for make and C (auto.conf, autoconf.h).
# CONFIG=<variant> names arch/x86/configs/<variant>_defconfig; a missing .config is made from it.

export KCONFIG_CONFIG := $(BUILD)/.config
generated := $(BUILD)/include/generated
autoconf := $(generated)/autoconf.h
auto.conf := $(BUILD)/include/config/auto.conf
defconfig-file := arch/x86/configs/$(if $(CONFIG),$(CONFIG)_)defconfig
$(if $(wildcard $(defconfig-file)),,$(error CONFIG=$(CONFIG): $(defconfig-file) does not exist))

# Tells the user if .config was made from another variant, so CONFIG= has no effect.
variant-stamp := $(BUILD)/.variant
made-from := $(and $(CONFIG),$(build-goals),$(wildcard $(BUILD)/.config),$(file <$(variant-stamp)))
$(if $(filter-out $(defconfig-file),$(made-from)),$(info note: $(BUILD)/.config was made from \
	$(made-from); `make defconfig CONFIG=$(CONFIG)` replaces it))

.PHONY: defconfig olddefconfig savedefconfig menuconfig
defconfig: | $(BUILD)/
	$(make-config)
olddefconfig: $(BUILD)/.config
	@$(PYTHON) -m olddefconfig Kconfig
menuconfig: $(BUILD)/.config
	@$(PYTHON) -m menuconfig Kconfig
savedefconfig: $(BUILD)/.config
	@$(PYTHON) -m savedefconfig --kconfig Kconfig --out $(BUILD)/defconfig
	@echo 'Saved to $(BUILD)/defconfig'

%/:
	@mkdir -p $@

$(BUILD)/.config: | $(BUILD)/
	$(make-config)
define make-config
$(call say,CONFIG ,$(defconfig-file) -> $(BUILD)/.config)
@$(PYTHON) -m defconfig --kconfig Kconfig $(defconfig-file) >/dev/null
@echo $(defconfig-file) >$(variant-stamp)
endef

# genconfig does not touch autoconf.h if its contents stay the same, so that nothing is rebuilt.
genconfig = $(PYTHON) -m genconfig --header-path $(autoconf) --config-out $(auto.conf) \
	    --file-list $(auto.conf).files Kconfig

$(auto.conf): $(BUILD)/.config $(or $(wildcard $(strip $(file <$(auto.conf).files))),Kconfig)
	$(call say,GEN    ,$(autoconf))
	@mkdir -p $(@D) $(generated)
	@$(genconfig) && touch $@

$(autoconf): $(auto.conf)
	@[ -e $@ ] || $(genconfig)

ifneq ($(build-goals),)
include $(auto.conf)
endif
