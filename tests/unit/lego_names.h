/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_LEGO_NAMES_H
#define TESTS_LEGO_NAMES_H

#include <features.h>
#undef __always_inline /* <lego/compiler.h> defines it */

/*
 * Renames kernel/lib's functions, so that they can be linked with the host's of the same name. Must
 * be the first header.
 */

#define memcpy	  lego_memcpy
#define memmove	  lego_memmove
#define memset	  lego_memset
#define memcmp	  lego_memcmp
#define strlen	  lego_strlen
#define strnlen	  lego_strnlen
#define strcmp	  lego_strcmp
#define strncmp	  lego_strncmp
#define strchr	  lego_strchr
#define strrchr	  lego_strrchr
#define vsnprintf lego_vsnprintf
#define snprintf  lego_snprintf
#define scnprintf lego_scnprintf

#endif
