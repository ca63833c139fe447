//! What fio's words mean, and which are refused.

use ebbtide_volume::Nanos;

use super::*;
use crate::job::Extent;

fn job(text: &str) -> Job {
    parse_words(text).unwrap_or_else(|error| panic!("{text}: {error}")).jobs.remove(0)
}

fn error(text: &str) -> String {
    parse_words(text).expect_err(text).to_string()
}

#[test]
fn without_words_a_job_has_the_defaults_of_fio() {
    let job = job("");
    assert_eq!((job.direction, job.access), (Direction::Read, Access::Sequential));
    assert_eq!((job.depth, job.clones, job.runtime), (1, 1, None));
    assert_eq!(job.block_sizes, [BlockSizes::fixed(4096), BlockSizes::fixed(4096)]);
}

#[test]
fn the_words_of_the_manual_are_read() {
    let job =
        job("rw=randrw,rwmixread=70,bs=16k,iodepth=64,numjobs=4,runtime=3h,size=25%,offset=1g,fsync=32");
    assert_eq!(job.direction, Direction::Mixed { read_percent: 70 });
    assert_eq!(job.access, Access::Random(Distribution::Uniform));
    assert_eq!(job.block_sizes[1], BlockSizes::fixed(16_384));
    assert_eq!((job.depth, job.clones, job.flush_every), (64, 4, 32));
    assert_eq!(job.runtime, Some(Nanos::from_secs(10_800)));
    assert_eq!((job.size, job.offset), (Some(Extent::Percent(25)), Extent::Bytes(1 << 30)));
}

#[test]
fn times_accept_the_units_of_fio() {
    for (text, ns) in [
        ("90", 90_000_000_000),
        ("90s", 90_000_000_000),
        ("5m", 300_000_000_000),
        ("3h", 10_800_000_000_000),
        ("500ms", 500_000_000),
        ("2d", 172_800_000_000_000),
    ] {
        assert_eq!(job(&format!("runtime={text}")).runtime, Some(Nanos(ns)), "{text}");
    }
    assert_eq!(job("thinktime=250").think_time, Nanos::from_us(250), "a bare thinktime is microseconds");
    assert!(error("runtime=3x").contains("runtime=3x: expected a whole number with us, ms, s, m, h or d"));
}

#[test]
fn a_comma_inside_a_value_belongs_to_it() {
    let split = job("bs=4k,16k,rate_iops=500,300,rw=rw");
    assert_eq!(split.block_sizes, [BlockSizes::fixed(4096), BlockSizes::fixed(16_384)]);
    assert_eq!(split.rate, [Some(Rate::Iops(500)), Some(Rate::Iops(300))]);
    let one = job("bs=,8k rate=,10m --rw=write");
    assert_eq!(one.block_sizes, [BlockSizes::fixed(4096), BlockSizes::fixed(8192)]);
    assert_eq!(one.rate, [None, Some(Rate::Bytes(10 << 20))]);
}

#[test]
fn shares_of_block_sizes_that_are_left_out_split_the_rest() {
    let job = job("bssplit=4k/10:64k:32k");
    assert_eq!(job.block_sizes[0].shares(), [(4096, 10), (65_536, 45), (32_768, 45)]);
    assert!(error("bssplit=4k/10:64k/20").contains("add up to 100"));
    assert!(error("bssplit=4k/90:64k/20").contains("add up to 100"));
}

#[test]
fn a_runtime_alone_bounds_a_job_and_a_size_bounds_it_as_in_fio() {
    assert!(job("runtime=3h").time_based);
    assert!(!job("runtime=3h,size=1g").time_based);
    assert!(job("runtime=3h,size=1g,time_based").time_based);
    assert!(error("time_based").contains("needs a runtime"));
}

#[test]
fn a_rate_without_a_depth_is_an_open_loop_and_reports_it() {
    let open = parse_words("rate_iops=1000").unwrap();
    assert_eq!(open.jobs[0].depth, OPEN_LOOP_DEPTH);
    assert!(open.notes[0].contains("open loop"), "{:?}", open.notes);
    assert_eq!(job("rate_iops=1000,iodepth=1").depth, 1);
}

#[test]
fn words_without_a_meaning_here_are_noted() {
    let workload = parse_words("ioengine=psync,iodepth=8,direct=1,group_reporting,randseed=4").unwrap();
    assert_eq!(workload.notes.len(), 3, "{:?}", workload.notes);
    assert!(workload.notes[0].starts_with("group_reporting has no effect"));
    assert!(workload.notes[1].contains("--seed"));
    assert!(workload.notes[2].contains("ioengine=psync"));
}

#[test]
fn an_unknown_word_names_the_nearest_known_one() {
    assert_eq!(error("iodpeth=4"), "unknown fio word 'iodpeth'; did you mean 'iodepth'?");
    assert_eq!(error("bs=4k,time_basd"), "unknown fio word 'time_basd'; did you mean 'time_based'?");
    assert_eq!(error("run_time=4"), "unknown fio word 'run_time'; did you mean 'runtime'?");
}

#[test]
fn what_the_model_cannot_honour_is_refused_with_what_to_do() {
    for (text, part) in [
        ("rw=randtrim", "leave it out"),
        ("bsrange=4k-16k", "bssplit"),
        ("random_distribution=normal:5", "zipf:THETA"),
        ("random_distribution=zipf:1.2:0.5", "leave the centre out"),
        ("verify=crc32c", "leave it out"),
        ("rw=read:8", "after the colon"),
    ] {
        assert!(error(text).contains("not supported here"), "{text}: {}", error(text));
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
}

#[test]
fn a_value_outside_its_range_names_the_range() {
    for (text, part) in [
        ("iodepth=0", "from 1 to 65536"),
        ("numjobs=5000", "from 1 to 4096"),
        ("rwmixread=101", "from 0 to 100"),
        ("bs=1000", "a multiple of 512"),
        ("bs=1g", "to 64m"),
        ("rw=reed", "read, write, randread"),
        ("rate_iops=0", "from 1"),
        ("random_distribution=pareto:1.5", "between 0 and 1"),
        ("time_based=yes", "nothing, 0 or 1"),
        ("rate=1m,rate_iops=5", "not both"),
        ("iodepth=65536,numjobs=4096", "exceeds 1048576"),
        ("rw=rw,rate_iops=5,", ""),
    ] {
        if part.is_empty() {
            assert!(parse_words(text).is_ok(), "{text}");
        } else {
            assert!(error(text).contains(part), "{text}: {}", error(text));
        }
    }
}

#[test]
fn sections_of_a_job_file_inherit_the_global_ones_before_them() {
    let text = "; a database\n[global]\nbs=16k\nruntime=60\n\n[redo]\nrw=write\nbs=4k\nfdatasync=1\n\
                [pages]\nrw=randrw\niodepth=32\n[global]\niodepth=8\n[backup]\nstonewall\nrw=read\nbs=1m\n";
    let jobs = parse_file(text).unwrap().jobs;
    let summary: Vec<_> = jobs
        .iter()
        .map(|job| (job.name.as_str(), job.block_sizes[0].smallest(), job.depth, job.phase))
        .collect();
    assert_eq!(summary, [("redo", 4096, 1, 0), ("pages", 16_384, 32, 0), ("backup", 1 << 20, 8, 1)]);
    assert!(jobs.iter().all(|job| job.runtime == Some(Nanos::from_secs(60))));
}

#[test]
fn an_error_in_a_job_file_names_its_line() {
    let error = |text: &str| parse_file(text).unwrap_err().to_string();
    assert_eq!(
        error("[a]\nrw=read\n\niodeth=3\n"),
        "line 4: unknown fio word 'iodeth'; did you mean 'iodepth'?"
    );
    assert_eq!(error("[a\n"), "line 1: '[a' is neither a [section] nor word=value");
    assert!(error("[global]\nbs=4k\n").contains("no job section"));
}

#[test]
fn every_word_is_documented() {
    let documented = include_str!("../../../../docs/simulate.md");
    let missing: Vec<_> =
        words::accepted().filter(|word| !documented.contains(&format!("`{word}`"))).collect();
    assert!(missing.is_empty(), "docs/simulate.md does not list {missing:?}");
}
