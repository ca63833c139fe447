//! What fio's words mean, and which are refused.

use ebbtide_volume::Nanos;

use super::*;
use crate::job::Extent;

fn job(text: &str) -> Job {
    parse_words(text, &Nothing).unwrap_or_else(|error| panic!("{text}: {error}")).jobs.remove(0)
}

fn error(text: &str) -> String {
    parse_words(text, &Nothing).expect_err(text).to_string()
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
    let open = parse_words("rate_iops=1000", &Nothing).unwrap();
    assert_eq!(open.jobs[0].depth, OPEN_LOOP_DEPTH);
    assert!(open.notes[0].contains("open loop"), "{:?}", open.notes);
    assert_eq!(job("rate_iops=1000,iodepth=1").depth, 1);
}

#[test]
fn words_without_a_meaning_here_are_noted() {
    let workload =
        parse_words("ioengine=psync,iodepth=8,direct=1,group_reporting,randseed=4", &Nothing).unwrap();
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
        ("bs=", "a multiple of 512"),
        ("rate_iops=", "a whole number from 0"),
        ("bs=1000", "a multiple of 512"),
        ("bs=1g", "to 64m"),
        ("rw=reed", "read, write, randread"),
        ("random_distribution=pareto:1.5", "between 0 and 1"),
        ("time_based=yes", "the word alone, or 0 or 1"),
        ("rate=1m,rate_iops=5", "not both"),
        ("iodepth=65536,numjobs=4096", "exceeds 1048576"),
        ("rw=rw,rate_iops=5,", ""),
    ] {
        if part.is_empty() {
            assert!(parse_words(text, &Nothing).is_ok(), "{text}");
        } else {
            assert!(error(text).contains(part), "{text}: {}", error(text));
        }
    }
}

#[test]
fn sections_of_a_job_file_inherit_the_global_ones_before_them() {
    let text = "; a database\n[global]\nbs=16k\nruntime=60\n\n[redo]\nrw=write\nbs=4k\nfdatasync=1\n\
                [pages]\nrw=randrw\niodepth=32\n[global]\niodepth=8\n[backup]\nstonewall\nrw=read\nbs=1m\n";
    let jobs = parse_file(text, "", &Nothing).unwrap().jobs;
    let summary: Vec<_> = jobs
        .iter()
        .map(|job| (job.name.as_str(), job.block_sizes[0].smallest(), job.depth, job.phase))
        .collect();
    assert_eq!(summary, [("redo", 4096, 1, 0), ("pages", 16_384, 32, 0), ("backup", 1 << 20, 8, 1)]);
    assert!(jobs.iter().all(|job| job.runtime == Some(Nanos::from_secs(60))));
}

#[test]
fn an_error_in_a_job_file_names_its_line() {
    let error = |text: &str| parse_file(text, "", &Nothing).unwrap_err().to_string();
    assert_eq!(
        error("[a]\nrw=read\n\niodeth=3\n"),
        "line 4: unknown fio word 'iodeth'; did you mean 'iodepth'?"
    );
    assert_eq!(error("[a\n"), "line 1: '[a' is neither a [section] nor word=value");
    assert!(error("[global]\nbs=4k\n").contains("no job section"));
}

/// Files and a variable that jobs name.
struct Files(Vec<(&'static str, &'static str)>);

impl Surroundings for Files {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "GIB").then(|| "3".into())
    }

    fn read(&self, path: &str) -> Result<String, ErrorKind> {
        let file = self.0.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| (*text).to_owned()).ok_or(ErrorKind::NotFound)
    }
}

fn files() -> Files {
    Files(vec![
        ("jobs/job.fio", include_str!("samples/include.fio")),
        ("jobs/size.inc", include_str!("samples/size.inc")),
        ("jobs/common.inc", include_str!("samples/common.inc")),
        ("wrong.inc", "bs=4k\niodeth=4\n"),
        ("section.inc", "bs=4k\n[b]\n"),
        ("loop.inc", "include loop.inc\n"),
    ])
}

#[test]
fn the_words_of_an_included_file_take_the_place_of_the_line() {
    let read = |text: &str| parse_file(text, "jobs/job.fio", &files());
    let workload = read(include_str!("samples/include.fio")).unwrap();
    let summary: Vec<_> = workload
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), job.depth, job.block_sizes[0].smallest(), job.runtime, job.phase))
        .collect();
    let runtime = Some(Nanos::from_secs(20));
    assert_eq!(summary, [("rand-write", 64, 4096, runtime, 0), ("rand-read", 64, 4096, runtime, 1)]);
    let error = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(
        error("[a]\ninclude wrong.inc\n"),
        "line 2: wrong.inc, line 2: unknown fio word 'iodeth'; did you mean 'iodepth'?"
    );
    assert!(error("[a]\ninclude section.inc\n").contains("has no sections"));
    assert!(error("[a]\ninclude loop.inc\n").contains("more than 16 files inside one another"));
    assert_eq!(error("[a]\ninclude none.inc\n"), "line 2: cannot read the file 'none.inc': entity not found");
}

#[test]
fn sizes_have_the_units_of_fio() {
    let workload = parse_file(include_str!("samples/size-suffix.fio"), "", &Nothing).unwrap();
    assert_eq!(workload.jobs[0].size, Some(Extent::Bytes(4 << 30)));
    assert_eq!(workload.jobs[0].block_sizes[1], BlockSizes::fixed(16_384));
    for (text, bytes) in [
        ("45Gi", 45 << 30),
        ("4kb", 4096),
        ("0x1000", 4096),
        ("4GiB", 4_000_000_000),
        ("1048576B", 1 << 20),
        ("${GIB}g", 3 << 30),
    ] {
        let workload = parse_words(&format!("size={text}"), &files()).unwrap();
        assert_eq!(workload.jobs[0].size, Some(Extent::Bytes(bytes)), "{text}");
        let notes = usize::from(text == "4GiB");
        assert_eq!(
            workload.notes.iter().filter(|note| note.contains("powers of 1000")).count(),
            notes,
            "{text}"
        );
    }
    // The base holds for the whole section, wherever it stands.
    let decimal = parse_file("[a]\nsize=1g\noffset=1Mi\nio_size=1MiB\nkb_base=1000\n", "", &Nothing).unwrap();
    assert_eq!(decimal.jobs[0].size, Some(Extent::Bytes(1_000_000_000)));
    assert_eq!((decimal.jobs[0].offset, decimal.jobs[0].amount), (Extent::Bytes(1_000_000), Some(1 << 20)));
    for (text, part) in [
        ("size=1.5g", "fio reads this as 1: it stops"),
        ("runtime=1min", "fio reads this as 1.0 us"),
        ("runtime=1.5m", "fio reads this as 1.00 s"),
        ("bs=4KiB", "fio reads this as 4000 bytes"),
        ("io_size=50%", "a percentage is not modelled"),
        ("size=20z", "zones are not modelled"),
        ("numjobs=$ncpus", "write the number"),
        ("size=${NONE}g", "the environment variable NONE is not set"),
    ] {
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
}

#[test]
fn what_follows_a_word_in_a_job_file_is_a_remark() {
    let text = "# bench\n[global] ; for all\nbs=16k # pages\n  [log]  \nrw=write;sequential\n\tsize = 1g\r\n";
    let jobs = parse_file(text, "", &Nothing).unwrap().jobs;
    assert_eq!((jobs[0].name.as_str(), jobs[0].direction), ("log", Direction::Write));
    assert_eq!((jobs[0].block_sizes[1].smallest(), jobs[0].size), (16_384, Some(Extent::Bytes(1 << 30))));
}

#[test]
fn a_command_line_is_read_as_a_shell_and_fio_read_it() {
    let read =
        |text: &str| parse_words(text, &files()).unwrap_or_else(|error| panic!("{text}: {error}")).jobs;
    let jobs = read(
        "sudo ionice -c 3 fio --bs 16k --time_based -runtime=60s \\\n  --name='the log' --rw=write --numj 4 \\\n  \
         --filename=/dev/x:/dev/y --name=b --rw randrw --rwmixread=70 --output=x.json --output-format=json 2>&1 | tee log",
    );
    let summary: Vec<_> = jobs.iter().map(|job| (job.name.as_str(), job.clones, job.runtime)).collect();
    let runtime = Some(Nanos::from_secs(60));
    assert_eq!(summary, [("the log", 4, runtime), ("b", 1, runtime)]);
    assert_eq!(jobs[1].direction, Direction::Mixed { read_percent: 70 });
    assert!(jobs.iter().all(|job| job.block_sizes[0].smallest() == 16_384));
    // A job file, of which one section is wanted, with words for all of its jobs.
    let jobs = read("fio --loops=2 jobs/job.fio --section=rand-read");
    assert_eq!((jobs.len(), jobs[0].name.as_str(), jobs[0].loops), (1, "rand-read", 2));
    // Words that are no command line begin a job with each name, too.
    let jobs = read("bs=8k,name=a,rw=read,name=b,rw=write");
    assert_eq!((jobs.len(), jobs[1].block_sizes[0].smallest()), (2, 8192));
    assert!(error("fio --name='a").contains("ends within a quotation"));
    assert!(error("fio --name=a --verify=md5").contains("verify=md5"));
    assert!(error("fio none.fio").contains("cannot read the file 'none.fio'"));
}

#[test]
fn a_distribution_of_zones_is_refused_with_what_there_is() {
    let error = parse_file(include_str!("samples/zoned.fio"), "", &Nothing).unwrap_err().to_string();
    assert!(error.contains("use random, zipf:THETA or pareto:H") && !error.contains("centre"), "{error}");
}

#[test]
fn a_word_that_is_off_has_no_effect() {
    for text in ["verify=0", "zonemode=none", "percentage_random=100", "latency_target=0", "create_only=0"] {
        let workload = parse_words(text, &Nothing).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(workload.notes[0].contains("has no effect: it is off"), "{:?}", workload.notes);
    }
    let noted = parse_words("ratemin=1m,log_prio=1,dedupe_mode=repeat,exitall", &Nothing).unwrap().notes;
    assert_eq!(noted.len(), 4, "{noted:?}");
}

/// Each was tried with `fio --parse-only` of fio 3.33, which takes or refuses it so.
#[test]
fn what_fio_refuses_is_refused() {
    let in_file = |line: &str| parse_file(&format!("[a]\nruntime=1\n{line}\n"), "", &Nothing);
    for word in ["stonewall", "time_based", "group_reporting", "thread", "norandommap", "wait_for_previous"] {
        assert!(in_file(word).is_ok() && in_file(&format!("{word}=1")).is_ok(), "{word}");
        let error = in_file(&format!("{word}=")).unwrap_err().to_string();
        assert_eq!(error, format!("line 3: {word}=: expected the word alone, or 0 or 1"));
        assert!(
            in_file(&format!("{word} = yes")).is_err() && in_file(&format!("{word}=0")).is_ok(),
            "{word}"
        );
    }
    for line in ["bs=,", "ramp_time=abc", "random_distribution=zipf:1", "random_distribution=pareto:0"] {
        assert!(in_file(line).is_err(), "{line}");
    }
    assert!(parse_words("fio --name=a --runtime=1 --time_based --thread", &Nothing).is_ok());
    assert!(error("fio --name=a --runtime=1 --stonewall=").contains("stonewall=: expected the word alone"));
}

#[test]
fn what_fio_takes_for_no_limit_is_none() {
    let zero = job("rw=read,rate=0,rate_iops=0,loops=0,number_ios=0,random_distribution=zipf:0,runtime=1");
    assert_eq!((zero.rate, zero.loops, zero.max_ios, zero.depth), ([None; 2], 1, None, 1));
    // A word without its parameter has fio's own.
    let distribution = |text: &str| job(text).access;
    assert_eq!(
        [
            distribution("rw=randread,random_distribution=zipf"),
            distribution("rw=randread,random_distribution=pareto")
        ],
        [Access::Random(Distribution::Zipf { theta: 1.1 }), Access::Random(Distribution::Pareto { h: 0.2 })]
    );
}

#[test]
fn a_side_that_is_left_out_keeps_what_it_has() {
    let file = |text: &str| parse_file(text, "", &Nothing).unwrap().jobs.remove(0);
    let mixed = file("[global]\nrate_iops=500\niodepth=4\n[a]\nrw=randrw\nrate_iops=,2000\n");
    assert_eq!(mixed.rate, [Some(Rate::Iops(500)), Some(Rate::Iops(2000))]);
    // A pace of the side that a job does not do is none, and no open loop.
    let writes = file("[a]\nrw=write\nrate_iops=100,\nsize=1m\n");
    assert_eq!((writes.rate, writes.depth), ([None; 2], 1));
    let reads = file("[a]\nrw=read\nrate=1m,\nrate_iops=0\nsize=1m\n");
    assert_eq!(reads.rate, [Some(Rate::Bytes(1 << 20)), None]);
}

#[test]
fn shares_of_block_sizes_hold_wherever_they_stand_as_in_fio() {
    let file = |text: &str| parse_file(text, "", &Nothing).unwrap().jobs.remove(0).block_sizes;
    let both = file("[global]\nbssplit=4k/50:64k/50\n[a]\nbs=8k\n");
    assert_eq!(both.map(|sizes| sizes.largest()), [65_536; 2]);
    let reads = file("[a]\nbssplit=64k/100,\nbs=8k\n");
    assert_eq!(reads.map(|sizes| sizes.largest()), [65_536, 8192]);
    assert_eq!(file("[a]\nbsrange=16k-16k\n"), [BlockSizes::fixed(16_384), BlockSizes::fixed(16_384)]);
    assert_eq!(file("[a]\nbsrange=4k-4k,8k-8k\n"), [BlockSizes::fixed(4096), BlockSizes::fixed(8192)]);
    assert!(error("bssplit=4k/50.5:16k/49.5").contains("whole percentages"));
}

#[test]
fn each_pass_has_its_own_number_of_requests_and_a_percentage_ends_with_the_volume() {
    assert_eq!(job("size=10m,loops=2,number_ios=5").max_ios, Some(10));
    let percent = job("offset=40%,size=100%,loops=2");
    assert_eq!(percent.length(400, 1000), 600);
    assert_eq!(job("size=90%").length(0, 1000), 900);
    assert_eq!(job("size=2k").length(400, 1000), 2048, "bytes are not made fewer");
}

#[test]
fn a_hint_is_of_its_own_word() {
    for (text, part) in [
        ("create_only=1", "leave the job out"),
        ("ba=4k", "multiples of its smallest size"),
        ("bs_is_seq_rand=1", "the job's own rw"),
        ("startdelay=1-3", "a range, of which fio draws"),
        ("rwmixread=70%", "without the percent sign"),
        ("offset_align=4k", "in bytes"),
    ] {
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
    let noted = parse_words("rw_sequencer=identical,percentage_random=100,100", &Nothing).unwrap().notes;
    assert_eq!(noted.len(), 2, "{noted:?}");
    let jobs = |text: &str| parse_words(text, &Nothing).map(|workload| workload.jobs.len());
    assert_eq!(jobs("docker run -v /d:/d someone/fio fio --name=a --size=1g --name=b --size=1g"), Ok(2));
    assert_eq!(jobs("C:/fio/fio.exe --name=a --size=1g"), Ok(1));
}

#[test]
fn every_word_is_documented() {
    let documented = include_str!("../../../../docs/simulate.md");
    let missing: Vec<_> =
        words::accepted().filter(|word| !documented.contains(&format!("`{word}`"))).collect();
    assert!(missing.is_empty(), "docs/simulate.md does not list {missing:?}");
}
