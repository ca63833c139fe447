//! Traces of block I/O, fio's jobs and fio's results.

use ebbtide_catalog::calibrate::{FitOptions, fit};
use ebbtide_twin::fio::{Nothing, parse_file, parse_time, parse_words};
use ebbtide_twin::trace::{Device, Options, Trace};

use crate::text;

pub(super) fn trace(bytes: &[u8]) {
    for device in [Device::Only, Device::All] {
        let Ok(trace) = Trace::open(bytes, &Options { device, ..Options::default() }) else { continue };
        let mut before = None;
        for record in trace.map_while(Result::ok) {
            assert!(before <= Some(record.at), "time runs backwards: {before:?}, {record:?}");
            before = Some(record.at);
        }
    }
}

pub(super) fn fio_job(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let _ = parse_file(text, "job.fio", &Nothing);
    let _ = parse_words(text, &Nothing);
    let _ = parse_time("runtime", text);
}

pub(super) fn fio_result(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let options = FitOptions {
        kind: "gp3".into(),
        name: None,
        source: "x".into(),
        date: "2026-11-20".into(),
        iops_limit: Some(3_000),
        throughput_limit_mib_s: None,
    };
    let _ = fit(text, &options);
}
