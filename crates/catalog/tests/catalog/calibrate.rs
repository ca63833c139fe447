//! Service times read off fio's own results (fio 3.33, JSON as it came, less `disk_util`).

use ebbtide_catalog::{
    Catalog,
    calibrate::{CalibrateError, FitOptions, fit},
};

use crate::support::{resolve, spec};

/// 16 KiB random reads and writes at depth 1 with fdatasync, `json+`.
const DEPTH_1: &str = include_str!("../fixtures/fio-depth1.json");
/// 16 KiB random reads at depth 32 against a throttle of 3,000 IOPS.
const THROTTLED: &str = include_str!("../fixtures/fio-throttled.json");
/// 16 KiB random reads at depth 4 on a disk without a throttle.
const DEPTH_4: &str = include_str!("../fixtures/fio-depth4.json");

fn options() -> FitOptions {
    FitOptions {
        kind: "gp3".into(),
        name: Some("my-gp3".into()),
        source: "fio on a \"local\" disk".into(),
        date: "2026-11-20".into(),
        iops_limit: None,
        throughput_limit_mib_s: None,
    }
}

#[test]
fn a_fitted_entry_is_an_override_that_reads_back() {
    let fitted = fit(DEPTH_1, &options()).unwrap();
    let catalog = Catalog::with_overrides_text("fitted", &fitted.toml).unwrap();
    let mine = catalog.resolve(&spec("my-gp3:size=100GiB")).unwrap();
    let service = &mine.members[0].service;
    for (name, curve, points) in [
        ("read", &service.read, fitted.read.as_ref().unwrap()),
        ("write", &service.write, fitted.write.as_ref().unwrap()),
        ("flush", &service.flush, fitted.flush.as_ref().unwrap()),
    ] {
        for &(percent, us) in points {
            let ppm = format!("{:.0}", percent * 1e4).parse().unwrap();
            let read_back = curve.quantile(ppm).0 as f64 / 1e3;
            assert!((read_back - us).abs() < 0.01, "{name} p{percent}: {read_back} for {us}");
        }
    }
    let gp3 = resolve("gp3:size=100GiB");
    assert_eq!(mine.members[0].iops, gp3.members[0].iops, "the limits are gp3's");
    assert_eq!(service.transfer_ps_per_byte, gp3.members[0].service.transfer_ps_per_byte);
    assert_eq!(mine.service_provenance.source, "fio on a \"local\" disk");
    assert!(mine.service_provenance.overridden.unwrap().starts_with("calibrated with fio: randrw of 16KiB"));
}

#[test]
fn an_io_of_the_measured_size_takes_as_long_as_measured() {
    let fitted = fit(DEPTH_1, &options()).unwrap();
    let json: serde_json::Value = serde_json::from_str(DEPTH_1).unwrap();
    for (direction, points) in [("read", fitted.read.unwrap()), ("write", fitted.write.unwrap())] {
        let latency = &json["jobs"][0][direction]["clat_ns"];
        let transfer_us = 16_384.0 / (1_000.0 * 1_048_576.0) * 1e6; // gp3: 1,000 MiB/s
        for percent in [50.0, 90.0, 99.0] {
            let measured = latency["percentile"][format!("{percent:.6}")].as_f64().unwrap() / 1e3;
            let fitted = points.iter().find(|point| point.0 == percent).unwrap().1 + transfer_us;
            assert!(
                (fitted / measured - 1.0).abs() < 0.01,
                "{direction} p{percent}: {fitted} for {measured}"
            );
        }
        let extremes = [latency["min"].as_f64().unwrap(), latency["max"].as_f64().unwrap()];
        let ends = [points[0].1, points[points.len() - 1].1].map(|us| (us + transfer_us) * 1e3);
        assert!((ends[0] - extremes[0]).abs() < 2.0 && (ends[1] - extremes[1]).abs() < 2.0, "{direction}");
    }
}

#[test]
fn the_whole_histogram_gives_what_the_percentiles_give() {
    let mut json: serde_json::Value = serde_json::from_str(DEPTH_1).unwrap();
    let with_bins = fit(DEPTH_1, &options()).unwrap();
    for part in ["read", "write"] {
        json["jobs"][0][part]["clat_ns"].as_object_mut().unwrap().remove("bins").expect("json+ has bins");
    }
    let without = fit(&json.to_string(), &options()).unwrap();
    for (bins, percentiles) in [(with_bins.read, without.read), (with_bins.write, without.write)] {
        let (bins, percentiles) = (bins.unwrap(), percentiles.unwrap());
        for (percent, us) in bins {
            let other = percentiles.iter().find(|point| point.0 == percent);
            assert!(
                other.is_none_or(|point| (us / point.1 - 1.0).abs() < 0.03),
                "p{percent}: {us} and {other:?}"
            );
        }
    }
}

#[test]
fn a_throttled_run_is_refused_without_knowing_the_limit() {
    let error = fit(THROTTLED, &options()).unwrap_err();
    assert!(matches!(error, CalibrateError::Throttled { .. }), "{error}");
    assert!(error.to_string().contains("of depth 32 / 3059 IOPS = 10461 us"), "{error}");
    assert!(error.to_string().contains("iodepth=1"), "{error}");
}

#[test]
fn a_run_at_some_depth_passes_with_a_warning() {
    let fitted = fit(DEPTH_4, &options()).unwrap();
    assert_eq!((fitted.write, fitted.flush), (None, None));
    assert!(fitted.warnings.iter().any(|warning| warning.contains("depth 4")), "{:?}", fitted.warnings);
}

#[test]
fn a_run_at_a_known_limit_is_refused() {
    let json: serde_json::Value = serde_json::from_str(DEPTH_1).unwrap();
    let of =
        |key: &str| ["read", "write"].iter().map(|d| json["jobs"][0][d][key].as_f64().unwrap()).sum::<f64>();
    let whole = |figure: f64| format!("{figure:.0}").parse::<u64>().unwrap();
    let (iops, mib_s) = (whole(of("iops")), whole(of("bw_bytes") / 1_048_576.0));
    let at =
        |iops_limit, throughput_limit_mib_s| FitOptions { iops_limit, throughput_limit_mib_s, ..options() };
    for refused in [at(Some(iops), None), at(None, Some(mib_s))] {
        let error = fit(DEPTH_1, &refused).unwrap_err();
        assert!(matches!(error, CalibrateError::Throttled { .. }), "{error}");
    }
    fit(DEPTH_1, &at(Some(iops * 11 / 10), Some(mib_s * 11 / 10))).unwrap();
}

#[test]
fn warnings_report_what_the_run_cannot_show() {
    let warnings = fit(DEPTH_1, &options()).unwrap().warnings;
    assert!(
        warnings.iter().any(|warning| warning.contains("flushes went through a file system")),
        "{warnings:?}"
    );
    assert!(
        warnings.iter().any(|warning| warning.contains("the points above 99 % are a few I/Os")),
        "{warnings:?}"
    );
    let buffered = DEPTH_1.replace("\"direct\":\"1\"", "\"direct\":\"0\"");
    let warnings = fit(&buffered, &options()).unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("page cache")), "{warnings:?}");
}

#[test]
fn what_is_no_usable_result_is_refused() {
    let not_fio = fit("{}", &options()).unwrap_err();
    assert!(not_fio.to_string().contains("--output-format=json"), "{not_fio}");
    let mut json: serde_json::Value = serde_json::from_str(DEPTH_1).unwrap();
    let job = json["jobs"][0].clone();
    json["jobs"].as_array_mut().unwrap().push(job);
    assert_eq!(fit(&json.to_string(), &options()), Err(CalibrateError::Jobs(2)));
    let mut json: serde_json::Value = serde_json::from_str(DEPTH_1).unwrap();
    for part in ["read", "write"] {
        json["jobs"][0][part]["total_ios"] = 99.into();
    }
    assert_eq!(fit(&json.to_string(), &options()), Err(CalibrateError::TooFew(99, 99)));
    let unknown = FitOptions { kind: "gp9".into(), ..options() };
    assert_eq!(fit(DEPTH_1, &unknown), Err(CalibrateError::UnknownType("gp9".into())));
    let undated = FitOptions { date: "yesterday".into(), ..options() };
    assert!(matches!(fit(DEPTH_1, &undated), Err(CalibrateError::Entry(_))));
}
