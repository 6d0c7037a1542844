/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_IMAGES_OS_H
#define PROFILE_IMAGES_OS_H

/*
 * Besides ../os.h, the profiler of images needs from the kernel: os_area_t, a VMA of an address
 * space; os_file_t, the file that is mapped there, NULL if there is none. os_file_path() returns a
 * pointer into buf. os_file_read() returns the number of bytes that it has read, or a negative
 * number. Both may sleep.
 */

#include "../os.h"

#ifndef os_area_is_code
#error "profile: define os_area_is_code(area): whether a VMA is executable"
#endif
#ifndef os_area_start
#error "profile: define os_area_start(area): its first address"
#endif
#ifndef os_area_end
#error "profile: define os_area_end(area): the address behind it"
#endif
#ifndef os_area_file
#error "profile: define os_area_file(area): the file mapped there, or NULL"
#endif
#ifndef os_area_file_offset
#error "profile: define os_area_file_offset(area): where in the file it begins"
#endif
#ifndef os_file_bytes
#error "profile: define os_file_bytes(file): size of a file"
#endif
#ifndef os_file_changed_ns
#error "profile: define os_file_changed_ns(file): when its content was changed last"
#endif
#ifndef os_file_path
#error "profile: define os_file_path(file, buf, size): path of a file"
#endif
#ifndef os_file_read
#error "profile: define os_file_read(file, buf, n, pos): reads a file; bytes or an error"
#endif
/*
 * A number below 2^54 that only this content of this file has; 0: somebody may be changing the
 * content. With it, a build id is read once, not each time the file is mapped.
 */
#ifndef os_file_version
#define os_file_version(file) ((void)(file), 0ull)
#endif
/*
 * Opens the regular file with this path for reading, as the current process may. Returns NULL if
 * there is none, or where sleeping is forbidden. Any context. Without it, user code has no names.
 */
#ifndef os_file_open
#define os_file_open(path) ((void)(path), (os_file_t *)NULL) /* user code has no names */
#endif
#ifndef os_file_close
#define os_file_close(file) ((void)(file))
#endif
/* Calls profile_task_changed() for all threads of the current process. */
#ifndef os_change_task_keys
#error "profile: define os_change_task_keys(): profile_task_changed() for all its threads"
#endif

#endif
