# SPDX-License-Identifier: BSD-2-Clause
#
# Configuration: $(BUILD)/.config, and its forms for make and C (auto.conf, autoconf.h).
# A missing .config is made from Kconfig's defaults, and for CONFIG=<variant> from the options in
# arch/x86/variants.

export KCONFIG_CONFIG := $(BUILD)/.config
generated := $(BUILD)/include/generated
autoconf := $(generated)/autoconf.h
auto.conf := $(BUILD)/include/config/auto.conf
variants := arch/x86/variants
ifneq ($(CONFIG),)
$(if $(shell grep '^$(CONFIG) ' $(variants)),,$(error CONFIG=$(CONFIG): not in $(variants)))
endif

# Refuses to build if .config was made from another variant, so that CONFIG= would have no effect.
variant-stamp := $(BUILD)/.variant
made-from := $(and $(CONFIG),$(build-goals),$(wildcard $(BUILD)/.config),$(file <$(variant-stamp)))
$(if $(filter-out $(CONFIG),$(made-from)),$(error $(BUILD)/.config was made from the variant \
	$(made-from): give CONFIG=$(CONFIG) its own directory, `make $(strip $(MAKECMDGOALS) \
	CONFIG=$(CONFIG)) BUILD=build/$(CONFIG)`; or replace it, `make defconfig CONFIG=$(CONFIG)`))

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
$(call say,CONFIG ,$(or $(CONFIG),default) -> $(BUILD)/.config)
@sed -n 's/^$(or $(CONFIG),default) //p' $(variants) | tr -s ' ' '\n' | \
	sed -e 's/^+\(.*\)/CONFIG_\1=y/' -e 's/^-\(.*\)/CONFIG_\1=n/' >$(BUILD)/.defconfig
@$(PYTHON) -m defconfig --kconfig Kconfig $(BUILD)/.defconfig >/dev/null
@echo $(or $(CONFIG),default) >$(variant-stamp)
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
