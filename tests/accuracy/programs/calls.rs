// SPDX-License-Identifier: BSD-2-Clause

// Calls in Rust, for user_chains.py: recursion, traits, closures, panics, threads, collections.
use std::collections::BTreeMap;
use std::io::Write;

/// As std::hint::black_box(), which Debian's rustc 1.63 does not have.
fn black_box<T>(value: T) -> T {
    let value = std::mem::ManuallyDrop::new(value);
    unsafe { std::ptr::read_volatile(&*value) }
}

trait Shape {
    fn area(&self, depth: u32) -> u32;
}

struct Square(u32);

impl Shape for Square {
    #[inline(never)]
    fn area(&self, depth: u32) -> u32 {
        if depth == 0 {
            return spin(self.0);
        }
        black_box(self.area(depth - 1)) + depth
    }
}

#[inline(never)]
fn spin(nr: u32) -> u32 {
    (0..nr * 200).fold(0u32, |sum, i| black_box(sum.wrapping_add(i)))
}

#[inline(never)]
fn words(nr: u32) -> String {
    let mut counts = BTreeMap::new();
    for i in 0..60 {
        *counts.entry(format!("word {}", i * nr % 23)).or_insert(0) += 1;
    }
    let mut names: Vec<String> = counts.into_keys().collect();
    names.sort_by(|a, b| black_box(a.len()).cmp(&b.len()).then(b.cmp(a)));
    names.join(" ")
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut null = std::fs::File::create("/dev/null").unwrap();
    let shape: Box<dyn Shape> = Box::new(Square(3));
    let thread = std::thread::spawn(|| (0..80).map(|i| words(i).len()).sum::<usize>());
    for i in 0..80 {
        writeln!(null, "{} {}", shape.area(i % 20), words(i).len()).unwrap();
        let _ = std::panic::catch_unwind(|| assert!(spin(i % 5) == 1, "a panic"));
    }
    black_box(thread.join().unwrap());
}
