/* SPDX-License-Identifier: BSD-2-Clause */
/* Needed by images, besides samples.h and export.h. Files have no names here. */
typedef struct file os_file_t;
#define os_area_is_code(area)		((area)->is_code)
#define os_area_start(area)		((area)->begin)
#define os_area_end(area)		((area)->end)
#define os_area_file(area)		((area)->file)
#define os_area_file_offset(area)	((area)->offset)
#define os_file_bytes(file)		file_bytes(file)
#define os_file_changed_ns(file)	((void)(file), 0ull)
#define os_file_path(file, buf, size)	((void)(file), (void)(buf), (void)(size), "")
#define os_file_read(file, buf, n, pos) file_read(file, buf, n, pos)
#define os_change_task_keys()		profile_task_changed(this_thread())
#define os_task_code_map(task)		profile_code_map(&(task)->program->mm)
#define os_process_code_map(proc)	profile_code_map(&(proc)->mm)
