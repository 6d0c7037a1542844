// SPDX-License-Identifier: BSD-2-Clause
//! A kernel in Rust that calls the hooks, in a program on the host: see hooks.c and test_rust.py.
#![no_std]
#![no_main]

pub enum Task {}
pub enum Process {}

/// The start of a pair of a point.
#[repr(C)]
pub struct Start {
    cycles: u64,
    off_bits: u64,
}

extern "C" {
    fn profile_set(words: *const u8) -> i32;
    fn profile_init();
    fn profile_report(why: *const u8);
    fn profile_end_reports();
    fn profile_process_init(process: *mut Process);
    fn profile_process_exit(process: *mut Process);
    fn profile_process_release(process: *mut Process);
    fn profile_task_init(task: *mut Task);
    fn profile_task_exit(task: *mut Task);
    fn profile_begin_add_up(start: *mut Start);
    fn profile_end_add_up(start: *mut Start);
}

// What C inlines, and the structures that have the profiler's members: hooks.c.
extern "C" {
    fn task_runs(task: *mut Task);
    fn syscall_enter(nr: u64);
    fn syscall_exit(ret: i64);
    fn the_task() -> *mut Task;
    fn the_process() -> *mut Process;
    fn abort() -> !;
}

/// Measures from its creation to the end of its block.
struct AddUp(Start);

impl AddUp {
    fn new() -> Self {
        let mut start = Start { cycles: 0, off_bits: 0 };
        unsafe { profile_begin_add_up(&mut start) };
        AddUp(start)
    }
}

impl Drop for AddUp {
    fn drop(&mut self) {
        unsafe { profile_end_add_up(&mut self.0) };
    }
}

fn add_up(n: u64) -> i64 {
    let _pair = AddUp::new();
    if n == 0 {
        return -9; // EBADF. The pair ends here, too.
    }
    (0..n).map(|x| x as i64).sum()
}

#[no_mangle]
pub extern "C" fn main() -> i32 {
    unsafe {
        let (task, process) = (the_task(), the_process());
        if profile_set(b"profile.top=all\0".as_ptr()) != 0 {
            return 1;
        }
        profile_init();
        profile_process_init(process);
        profile_task_init(task);
        task_runs(task);
        for i in 0..100 {
            syscall_enter(i % 2);
            syscall_exit(add_up(i % 2 * 100));
        }
        profile_task_exit(task);
        profile_process_exit(process);
        profile_process_release(process);
        profile_report(b"end\0".as_ptr());
        profile_end_reports();
    }
    0
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unsafe { abort() }
}
