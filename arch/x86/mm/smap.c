// SPDX-License-Identifier: BSD-2-Clause
/* Patches each site once, before any other CPU runs. */

#include <asm/smap.h>

#include <asm/cpufeature.h>
#include <lego/kernel.h>

bool smap_enabled;

extern const struct smap_site __start_smap_sites[], __stop_smap_sites[];

void smap_init(void)
{
	const struct smap_site *site;

	if (!cpu_has_smap())
		return;
	smap_enabled = true;
	for (site = __start_smap_sites; site < __stop_smap_sites; site++) {
		volatile u8 *insn = (u8 *)&site->offset + site->offset;

		insn[0] = 0x0f;
		insn[1] = 0x01;
		insn[2] = site->byte;
	}
}
