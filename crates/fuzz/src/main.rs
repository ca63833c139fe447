//! The program of the fuzzer: libFuzzer's, with the target that the environment names. Without one it lists the targets, each
//! with its folders of inputs, and ends.
#![no_main]
#![forbid(unsafe_code)]

use std::alloc::System;
use std::sync::OnceLock;

use cap::Cap;
use ebbtide_fuzz::{CANARY, TARGETS, Target};

/// Names the target.
const NAME: &str = "EBBTIDE_FUZZ_TARGET";
/// Bytes that a target and the fuzzer may have allocated together. An allocation beyond ends the program, and the fuzzer keeps
/// the input. AWS's models, which the requests need, have about 100 MiB.
const MOST_BYTES: usize = 512 << 20;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MOST_BYTES);

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

fn choose() {
    let Some(name) = std::env::var_os(NAME) else {
        for Target { name, samples, .. } in TARGETS {
            println!("{name} crates/fuzz/corpus/{name} {}", samples.join(" "));
        }
        std::process::exit(0);
    };
    let chosen = TARGETS.iter().chain([&CANARY]).find(|target| name == target.name);
    let Some(chosen) = chosen else {
        eprintln!("no target is called {}; without {NAME} this program lists them", name.display());
        std::process::exit(2);
    };
    TARGET.get_or_init(|| chosen.run);
}

libfuzzer_sys::fuzz_target!(init: choose(), |bytes: &[u8]| {
    (TARGET.get().expect("the fuzzer begins with choosing"))(bytes);
});
