//! `--trace`: what a volume does with the requests of another one.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::support::{assert_near, json, simulate, text};

const GP3: &str = "gp3:size=100GiB";

/// Writes a trace in SPC's format: `rate` reads of 16 KiB a second for `seconds`, evenly.
fn reads(dir: &Path, rate: u64, seconds: u64) -> PathBuf {
    let path = dir.join("reads.spc");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    for number in 0..rate * seconds {
        // Far apart, so that no two merge.
        let sector = number * 7_919 % 6_000_000 * 32;
        writeln!(file, "0,{sector},16384,r,{:.6}", number as f64 / rate as f64).unwrap();
    }
    file.flush().unwrap();
    path
}

fn packed(path: &Path, pack: impl Fn(&[u8]) -> Vec<u8>) -> PathBuf {
    let packed = path.with_extension("packed");
    std::fs::write(&packed, pack(&std::fs::read(path).unwrap())).unwrap();
    packed
}

#[test]
fn a_trace_below_the_limit_is_served_at_its_pace_and_one_above_it_at_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let below = reads(dir.path(), 1_000, 20);
    let result = json(&["--volume", GP3, "--trace", below.to_str().unwrap()]);
    assert_eq!(result["trace"]["format"], "spc");
    assert_eq!((&result["trace"]["requests"], &result["totals"]["ios"]), (&20_000.into(), &20_000.into()));
    assert_near("IOPS", &result["totals"]["iops"], 1_000.0, 0.01);
    assert_eq!(result["totals"]["limited_pct"]["volume_iops"], 0.0);
    let above = reads(dir.path(), 6_000, 20);
    let result = json(&["--volume", GP3, "--trace", above.to_str().unwrap()]);
    // 120,000 requests at 3,000 a second, of which those of the first second are saved up.
    assert_near("duration", &result["totals"]["duration_s"], 39.0, 0.01);
    assert!(result["totals"]["limited_pct"]["volume_iops"].as_f64().unwrap() > 90.0, "{}", result["totals"]);
    assert!(result["totals"]["write"].is_null() && result["jobs"].as_array().unwrap().is_empty());
}

#[test]
fn several_volumes_get_the_same_requests_alone_and_on_one_instance() {
    let dir = tempfile::tempdir().unwrap();
    let path = reads(dir.path(), 2_000, 5);
    let path = path.to_str().unwrap();
    let volumes = ["--volume", GP3, "--volume", "gp2:size=100GiB", "--trace", path];
    for more in [&[][..], &["--instance", "r5.large", "--together"]] {
        let result = json(&[&volumes, more].concat());
        for run in result["runs"].as_array().unwrap() {
            assert_eq!(run["totals"]["ios"], 10_000, "{more:?}");
        }
    }
    let text = text(&volumes);
    assert!(text.contains("The trace (spc) has 10,000 requests."), "{text}");
    assert!(text.contains(", the IOPS of ") || text.contains(" times the IOPS of "), "{text}");
    let details = self::text(&[&volumes[..], &["--details"]].concat());
    assert!(details.contains(&format!("Trace         {path}\n")), "{details}");
}

#[test]
fn a_packed_trace_is_unpacked() {
    let dir = tempfile::tempdir().unwrap();
    let plain = reads(dir.path(), 100, 1);
    let gzip = |bytes: &[u8]| {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    for pack in [&gzip as &dyn Fn(&[u8]) -> Vec<u8>, &zstd] {
        let path = packed(&plain, pack);
        let result = json(&["--volume", GP3, "--trace", path.to_str().unwrap()]);
        assert_eq!(result["trace"]["requests"], 100);
        // Cut off, it is refused with the place.
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
        let output = simulate(&["--volume", GP3, "--trace", path.to_str().unwrap()]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("cannot be read on at byte") && error.contains("hint:"), "{error}");
    }
}

#[test]
fn recorded_latencies_are_shown_beside() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.msr");
    std::fs::write(&path, "100000000,h,0,Read,0,4096,20000\n110000000,h,0,Write,4096,4096,40000\n").unwrap();
    let result = json(&["--volume", GP3, "--trace", path.to_str().unwrap()]);
    assert_near("p50", &result["trace"]["recorded_p50_us"], 2_000.0, 0.01);
    assert_near("p99", &result["trace"]["recorded_p99_us"], 4_000.0, 0.01);
    let text = text(&["--volume", GP3, "--trace", path.to_str().unwrap()]);
    assert!(text.contains("Recorded in the trace: p50 2.00 ms, p99 4.00 ms."), "{text}");
}

#[test]
fn with_think_times_a_faster_volume_is_done_sooner() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("serial.csv");
    // 2,000 reads one after the other: 9 ms for the answer, 1 ms until the next one. Times in 100 ns.
    let line = |number: u64| {
        format!(
            "{},h,0,Read,{},16384,90000\n",
            128_166_372_003_061_629 + number * 100_000,
            number * 40_960_000
        )
    };
    std::fs::write(&path, (0..2_000).map(line).collect::<String>()).unwrap();
    let path = path.to_str().unwrap();
    let open = json(&["--volume", GP3, "--trace", path]);
    assert_near("duration", &open["totals"]["duration_s"], 20.0, 0.01);
    assert_eq!(open["trace"]["think_times"], false);
    let closed = json(&["--volume", GP3, "--trace", path, "--think-times"]);
    let latency = closed["totals"]["mean_us"].as_f64().unwrap();
    assert!(latency < 2_000.0, "{latency}");
    assert_near("duration", &closed["totals"]["duration_s"], 2_000.0 * (1e-3 + latency / 1e6), 0.01);
    assert_eq!((&closed["trace"]["think_times"], &closed["totals"]["ios"]), (&true.into(), &2_000.into()));
    assert!(closed["command"].as_str().unwrap().ends_with("--think-times"));
    let text = text(&["--volume", GP3, "--trace", path, "--think-times"]);
    assert!(text.contains("Each waits for the answer that its client had waited for"), "{text}");
}

#[test]
fn a_trace_that_cannot_be_replayed_is_refused_with_the_place_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = "0,0,512,r,1\n";
    let cases: &[(String, &[&str], i32, &[&str])] = &[
        (file("a", "what is this\n"), &[], 2, &["no known format", "hint: name the format"]),
        (
            file("b", &format!("{good}0,x,512,r,2\n")),
            &[],
            2,
            &["line 2", "byte 12", "'0,x,512,r,2'", "hint:"],
        ),
        (
            file("c", &format!("{good}1,0,512,r,2\n")),
            &[],
            2,
            &["several devices", "0 and 1", "--trace-device"],
        ),
        (
            file("d", "0,400000000,512,r,1\n"),
            &[],
            2,
            &["request 1", "beyond the volume of 100 GiB", "191GiB"],
        ),
        (file("e", good), &["--trace-device", "7"], 2, &["no request was taken", "--trace-device"]),
        (file("f", good), &["--trace-format", "spd"], 2, &["--trace-format spd", "spc"]),
        (file("g", good), &["--trace-unit", "h"], 2, &["--trace-unit h", "ns, us, ms, s"]),
        (file("h", good), &["--job", "rw=read"], 2, &["cannot be used with"]),
        (file("i", good), &["--think-times"], 2, &["think times are not known", "leave --think-times out"]),
        ("/nonexistent".into(), &[], 3, &["cannot read the trace", "No such file"]),
        (dir.path().to_str().unwrap().into(), &[], 2, &["expected a regular file"]),
    ];
    for (path, more, code, parts) in cases {
        let output = simulate(&[&["--volume", GP3, "--trace", path], *more].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{path} {more:?}: {error}");
        for part in *parts {
            assert!(error.contains(part), "{path}: no '{part}' in {error}");
        }
    }
}

#[test]
fn rows_that_are_not_replayed_are_named_and_the_first_line_says_it_when_they_are_many() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("biosnoop.txt");
    let replay = |discards: usize| {
        let heading = "TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)\n";
        let line =
            |number: usize, kind: &str| format!("{number}.5 ib_log 7 sda {kind} {} 4096 0.6\n", number * 8);
        let writes: String = (0..199).map(|number| line(number, "WS")).collect();
        let discards: String = (199..199 + discards).map(|number| line(number, "DS")).collect();
        std::fs::write(&path, format!("{heading}{writes}{discards}")).unwrap();
        let arguments = ["--volume", GP3, "--trace", path.to_str().unwrap()];
        (text(&arguments), json(&arguments))
    };
    let (few, _) = replay(1);
    assert!(few.starts_with("gp3:") && few.contains("Not replayed: 1 discards (DS)."), "{few}");
    let (many, object) = replay(100);
    let first = many.lines().next().unwrap();
    assert!(
        first.starts_with("warning: 33") && first.ends_with("requests are not replayed: 100 discards (DS)"),
        "{first}"
    );
    let trace = &object["trace"];
    assert_eq!(
        (&trace["requests"], &trace["discarded"], &trace["recordings"]),
        (&199.into(), &101.into(), &1.into())
    );
    let kinds = [("discards (DS)", 100, true), ("headings and summaries", 1, false)];
    let kinds = kinds
        .map(|(kind, rows, requests)| serde_json::json!({"kind": kind, "rows": rows, "requests": requests}));
    assert_eq!(trace["not_used"], serde_json::json!(kinds));
    assert_near("share", &trace["not_used_pct"], 100.0 * 100.0 / 299.0, 0.001);
}

#[test]
fn the_output_of_bpftraces_biosnoop_is_refused_with_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("biosnoop.bt");
    let lines = "Attaching 4 probes...\nTIME(ms)     DISK    COMM    PID    LAT(ms)\n611    nvme0n1 bash   4179   10\n";
    std::fs::write(&path, lines).unwrap();
    let output = simulate(&["--volume", GP3, "--trace", path.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("bpftrace's biosnoop: it lacks the sector, the size and the kind"), "{error}");
}
