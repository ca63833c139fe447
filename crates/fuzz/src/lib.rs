//! The readers of strangers' bytes, each as a function of bytes: for a fuzzer, and for the inputs that are kept.
//!
//! A target must end, and must neither panic nor use much memory, whatever the bytes are. What it reads is dropped. Where a
//! reader promises something of what it read, the target asserts that, too.
//!
//! `./dev fuzz` runs the targets in the program `ebbtide-fuzz`, which is compiled for libFuzzer. `tests/kept.rs` runs them on
//! the files of `corpus` and on the samples of other tests, without a fuzzer.
#![forbid(unsafe_code)]

mod captures;
mod experiments;
mod nbd;
mod requests;
mod server;
mod traces;

/// A reader, and inputs from which a fuzzer begins.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is that of its folder in `corpus`.
    pub name: &'static str,
    /// Folders of the repository with more inputs.
    pub samples: &'static [&'static str],
    /// Reads bytes.
    pub run: fn(&[u8]),
}

const CAPTURED: &str = "crates/captured/tests/fixtures";
const SYSSTAT: &str = "crates/captured/tests/fixtures/sysstat";
const STALK: &str = "crates/captured/tests/fixtures/stalk";

/// Every target, by name.
pub const TARGETS: [Target; 17] = [
    Target { name: "binlog", samples: &[], run: server::binlog },
    Target { name: "capture", samples: &[], run: captures::capture },
    Target { name: "captured", samples: &[CAPTURED, STALK], run: captures::captured },
    Target { name: "experiment", samples: &["crates/lab/experiments"], run: experiments::experiment },
    Target { name: "fio-job", samples: &["crates/twin/src/fio/samples"], run: traces::fio_job },
    Target { name: "fio-result", samples: &["crates/catalog/tests/fixtures"], run: traces::fio_result },
    Target { name: "load", samples: &[CAPTURED, SYSSTAT, STALK], run: captures::load },
    Target { name: "mysql", samples: &[], run: server::mysql },
    Target { name: "nbd", samples: &[], run: nbd::nbd },
    Target { name: "option-file", samples: &[], run: captures::option_file },
    Target { name: "page", samples: &[], run: server::page },
    Target { name: "policy", samples: &[], run: requests::policy },
    Target { name: "price-list", samples: &[], run: experiments::price_list },
    Target { name: "profile", samples: &["examples/profiles"], run: experiments::profile },
    Target { name: "request", samples: &[], run: requests::request },
    Target { name: "spec", samples: &[], run: experiments::spec },
    Target { name: "trace", samples: &["crates/twin/src/trace/samples"], run: traces::trace },
];

/// A target with a fault: it panics on `ebb`. A fuzzer that does not find that finds nothing.
pub const CANARY: Target = Target { name: "canary", samples: &[], run: canary };

fn canary(bytes: &[u8]) {
    assert!(!bytes.starts_with(b"ebb"), "the planted fault was found");
}

/// The text of an input; None where it is none.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
