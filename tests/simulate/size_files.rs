//! `ebbtide size` on files as people have them: folders of a collection, exports that a spreadsheet saved, and records that say less or
//! more than the model.

use std::fmt::Write as _;

use crate::size::{SHOP, answered, json, refused, told, word, written};

/// An export of ten minutes: so many reads and as many writes a second of 16 KiB, with more columns.
fn export(per_second: u64, more: &[(&str, &str)]) -> String {
    let names: String = more.iter().map(|(name, _)| format!(",{name}")).collect();
    let values: String = more.iter().map(|(_, value)| format!(",{value}")).collect();
    let mut text = format!("Label,VolumeReadOps,VolumeWriteOps,VolumeReadBytes,VolumeWriteBytes{names}\n");
    let (ops, bytes) = (per_second * 60, per_second * 60 * 16_384);
    for minute in 0..10 {
        let _ = writeln!(text, "2026/11/02 09:{minute:02}:00,{ops},{ops},{bytes},{bytes}{values}");
    }
    text
}

#[test]
fn one_volume_has_one_figure_by_the_record_or_else_by_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let gp3 = |name: &str, more: &[(&str, &str)], code: i32| {
        let file = written(&dir, name, &export(1_550, more));
        let arguments = [word(&file), "--volume", "gp3:size=500GiB", "--raid0", "1"];
        (told(&arguments, code), json(&arguments, code)["today"]["now"].clone())
    };
    // 3,100 a second on 3,000 IOPS: the model has a queue that grows, and the record has 0.7 ms.
    let times = [("VolumeTotalReadTime", "65.100"), ("VolumeTotalWriteTime", "65.100")];
    let (text, now) = gp3("times.csv", &times, 0);
    assert!(text.contains("it waited for no limit that the record shows; p99 of an I/O"), "{text}");
    assert!(!text.contains("overloaded") && !text.contains("by the model"), "{text}");
    assert_eq!(now["waiting_pct"].as_f64(), Some(0.0), "{now}");
    assert!(now["p99_us"].as_f64().unwrap() < 5_000.0, "{now}");
    // By Little's law a queue says as much.
    let (text, queued) = gp3("queue.csv", &[("VolumeQueueLength", "2.170")], 0);
    assert!(text.contains("it waited for no limit that the record shows"), "{text}");
    assert_eq!(queued["p99_us"], now["p99_us"]);
    // Without either there is no end to the model's wait, and no figure for it.
    let (text, _) = gp3("none.csv", &[], 1);
    assert!(text.contains("by the model the p99 of an I/O has no bound"), "{text}");
}

#[test]
fn a_volume_that_the_record_shows_throttled_is_in_no_row() {
    let dir = tempfile::tempdir().unwrap();
    // Half an hour without credits, then a day with few operations.
    let mut text = String::from(
        "Label,VolumeReadOps,VolumeWriteOps,VolumeReadBytes,VolumeWriteBytes,VolumeTotalReadTime,VolumeTotalWriteTime,BurstBalance\n",
    );
    for slot in 0..288 {
        let (ops, time, credits) = if slot < 6 { (45_000, 2_250.0, 0) } else { (6_000, 4.8, 60) };
        let _ = writeln!(
            text,
            "2026/11/01 {:02}:{:02}:00,{ops},{ops},{},{},{time},{time},{credits}",
            slot / 12,
            slot % 12 * 5,
            ops * 16_384,
            ops * 16_384
        );
    }
    let file = written(&dir, "metrics.csv", &text);
    let arguments = [word(&file), "--volume", "gp2:size=100GiB", "--raid0", "1"];
    let answer = json(&arguments, 1);
    let specs: Vec<&str> =
        answer["choices"].as_array().unwrap().iter().map(|one| one["volumes"].as_str().unwrap()).collect();
    assert!(
        specs.iter().any(|spec| spec.starts_with("gp2:")) && !specs.contains(&"gp2:size=100GiB"),
        "{specs:?}"
    );
    let text = told(&arguments, 1);
    assert!(text.contains("it does not meet what is asked, for its volume burst credits"), "{text}");
}

#[test]
fn operations_of_metrics_that_only_a_disk_counts_are_split_for_an_ssd_volume() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = String::from("Label,VolumeReadOps,VolumeWriteOps,VolumeReadBytes,VolumeWriteBytes\n");
    for minute in 0..10 {
        let _ =
            writeln!(text, "2026/11/02 09:{minute:02}:00,60000,12000,983040000,{}", 12_000_u64 * 411 * 1_024);
    }
    let file = written(&dir, "metrics.csv", &text);
    let arguments = [word(&file), "--size", "4000GiB"];
    let load = json(&arguments, 0)["load"].clone();
    assert_eq!(
        (load["iops"]["mean"].as_f64(), load["requests"]["mean"].as_f64()),
        (Some(1_400.0), Some(1_200.0))
    );
    let text = told(&arguments, 0);
    assert!(text.contains("from 1,200 operations of up to 1 MiB a second, as st1 and sc1 count"), "{text}");
    // So many operations are more than an st1 gives.
    let disk = json(&[word(&file), "--volume", "st1:size=4000GiB"], 1)["load"].clone();
    assert_eq!(disk["iops"]["mean"].as_f64(), Some(1_200.0));
}

#[test]
fn exports_that_excel_saved_are_sized_as_those_of_the_console() {
    let dir = tempfile::tempdir().unwrap();
    let plain = export(1_000, &[]);
    let file = written(&dir, "plain.csv", &plain);
    let rest = ["--volume", "gp3:size=500GiB", "--raid0", "1"];
    let sized = |path: &std::path::PathBuf| json(&[&[word(path)][..], &rest].concat(), 0);
    let expected = sized(&file);
    let german =
        written(&dir, "german.csv", &plain.replace(',', ";").replace("2026/11/02 09:", "02.11.2026 09:"));
    assert_eq!(sized(&german)["answer"], expected["answer"]);
    let tabs: Vec<u8> = "\u{feff}"
        .encode_utf16()
        .chain(plain.replace(',', "\t").encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let unicode = dir.path().join("unicode.txt");
    std::fs::write(&unicode, tabs).unwrap();
    assert_eq!(sized(&unicode)["answer"], expected["answer"]);
    let workbook = dir.path().join("metrics.xlsx");
    std::fs::write(&workbook, b"PK\x03\x04\x14\0\x06\0").unwrap();
    refused(
        &[&[word(&workbook)][..], &rest].concat(),
        &["is a zip archive, as workbooks of Excel", "save the sheet as CSV"],
    );
}

/// `/proc/diskstats` once a second, as pt-stalk keeps it: 200 reads of 16 KiB a second, of 0.8 ms each.
fn diskstats(begin: u64) -> String {
    let mut text = String::new();
    for n in 0..30_u64 {
        let _ = writeln!(
            text,
            "TS {}.000000000 2026-11-22 23:18:00\n 259 0 nvme1n1 {} 0 {} {} 0 0 0 0 0 {} {}",
            begin + n,
            5_000 + n * 200,
            160_000 + n * 6_400,
            4_000 + n * 160,
            3_000 + n * 160,
            4_000 + n * 160
        );
    }
    text
}

#[test]
fn folders_of_a_collection_are_read_and_others_are_refused_with_what_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let begin = 1_795_389_480;
    for (moment, begin) in [("2026_11_22_23_18_00", begin), ("2026_11_22_23_30_00", begin + 720)] {
        written(&dir, &format!("{moment}-diskstats"), &diskstats(begin));
        written(&dir, &format!("{moment}-df"), "Filesystem 1K-blocks Used Available Use% Mounted on\n");
        written(&dir, &format!("{moment}-output"), "\n");
    }
    let both = json(&[word(dir.path()), "--size", "100GiB"], 0);
    assert_eq!(both["load"]["intervals"].as_u64(), Some(58), "{}", both["load"]);
    assert_eq!(both["load"]["iops"]["mean"].as_f64(), Some(200.0));
    assert!(
        both["load"]["source"].to_string().contains(" (2 files): /proc/diskstats"),
        "{}",
        both["load"]["source"]
    );
    assert_eq!(both["load"]["notes"], serde_json::json!([]), "what pt-stalk writes beside is not missed");
    // One moment of it, by the beginning of its names.
    let moment = dir.path().join("2026_11_22_23_18_00");
    let one = json(&[word(&moment), "--size", "100GiB"], 0);
    assert_eq!(one["load"]["intervals"].as_u64(), Some(29));
    let other = tempfile::tempdir().unwrap();
    written(&other, "a.txt", "nothing of a load\n");
    refused(
        &[word(other.path()), "--size", "100GiB"],
        &["has neither the results of a run nor the record of a load", "what is known: "],
    );
}

#[test]
fn files_of_a_folder_that_are_not_read_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let shop = std::fs::read_to_string(SHOP).unwrap();
    written(&dir, "shop.csv", &shop);
    written(&dir, "x.csv", "name,amount\napples,2\n");
    let iostat = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/captured/tests/fixtures/sysstat/human.txt");
    written(&dir, "io.txt", &std::fs::read_to_string(iostat).unwrap());
    let arguments = [word(dir.path()), "--volume", "gp2:size=600GiB", "--raid0", "1"];
    let screen = || answered(&arguments, 0).split_whitespace().collect::<Vec<_>>().join(" ");
    let note =
        "caution: not read: io.txt (iostat; the others are CloudWatch), x.csv (no known form) caution: ";
    let text = screen();
    assert!(text.contains(note) && !text.contains("more note"), "{text}");
    let source = json(&arguments, 0)["load"]["source"].to_string();
    assert!(source.contains(" (1 file): CloudWatch"), "{source}");
    // Of several volumes too.
    written(&dir, "other.csv", &shop.replacen("59246", "59247", 1));
    let text = screen();
    assert!(text.starts_with("2 volumes (other, shop): ") && text.contains(note), "{text}");
}
