# SPDX-License-Identifier: BSD-2-Clause
#
# The variables that can be set on make's command line. make accepts any name there, so `make run
# PROGAM=./a.out` would run the demo. Warn of names in capitals that are not in this list.

known-variables := V BUILD CONFIG LLVM CROSS_COMPILE CC LD NM OBJCOPY HOSTCC USERCC USERCXX \
	MUSLCC CLANG_FORMAT PYTHON SHELL MAKEFLAGS MENUCONFIG_STYLE READELF \
	REAL ICOUNT SMP MEM ACCEL QEMU INIT ARGS APPEND EXPORT GET BASE PROGRAM FILES DEBIAN CMD \
	REPORTS PYTEST_ARGS SOAK_ARGS LEGO_BUILD

unknown-variables := $(if $(filter-out 0,$(MAKELEVEL)),,$(strip \
	$(foreach v,$(filter-out $(known-variables),$(.VARIABLES)), \
		$(if $(filter command%,$(origin $v)),$v))))
ifneq ($(unknown-variables),)
ignored := $(shell $(PYTHON) scripts/unknown-variables.py \
	"$(unknown-variables)" "$(known-variables)")
endif
