//! The table of fio's words, and a job while its words are being read.

use ebbtide_volume::Nanos;

use super::{Access, Direction, Distribution, FioError, Job, OPEN_LOOP_DEPTH, Rate, values};
use crate::job::{BlockSizes, Extent};

const SECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1_000;

/// Reads a value into the draft. The word is given as it was written.
type Setter = fn(&mut Draft, &str, &str) -> Result<(), FioError>;

/// Words with a meaning here, by their names in fio.
const SUPPORTED: &[(&[&str], Setter)] = &[
    (&["rw", "readwrite"], Draft::set_rw),
    (&["rwmixread"], |d, w, v| values::number(w, v, 0, 100).map(|percent| d.read_percent = percent)),
    (&["rwmixwrite"], |d, w, v| values::number(w, v, 0, 100).map(|p: u8| d.read_percent = 100 - p)),
    (&["bs", "blocksize"], |d, w, v| {
        let sizes = values::sides(v, |text| values::block(w, text).map(BlockSizes::fixed))?;
        d.set_sizes(sizes);
        Ok(())
    }),
    (&["bssplit"], |d, w, v| {
        let sizes = values::sides(v, |text| values::block_shares(w, text))?;
        d.set_sizes(sizes);
        Ok(())
    }),
    (&["iodepth"], |d, w, v| values::number(w, v, 1, 65_536).map(|depth| d.depth = Some(depth))),
    (&["numjobs"], |d, w, v| values::number(w, v, 1, 4_096).map(|clones| d.job.clones = clones)),
    (&["runtime", "timeout"], |d, w, v| {
        let runtime = values::time(w, v, SECOND)?;
        d.job.runtime = (runtime > Nanos::ZERO).then_some(runtime);
        Ok(())
    }),
    (&["time_based"], |d, w, v| values::flag(w, v).map(|on| d.job.time_based = on)),
    (&["size"], |d, w, v| values::extent(w, v).map(|size| d.job.size = Some(size))),
    (&["io_size", "io_limit"], |d, w, v| values::bytes(w, v).map(|bytes| d.job.amount = Some(bytes))),
    (&["offset"], |d, w, v| values::extent(w, v).map(|offset| d.job.offset = offset)),
    (&["offset_increment"], |d, w, v| values::extent(w, v).map(|step| d.job.offset_increment = step)),
    (&["loops"], |d, w, v| values::number(w, v, 1, 1_000_000).map(|loops| d.job.loops = loops)),
    (&["number_ios"], |d, w, v| values::number(w, v, 1, u64::MAX).map(|ios| d.job.max_ios = Some(ios))),
    (&["rate_iops"], |d, w, v| {
        let rates = values::sides(v, |text| values::number(w, text, 1, 100_000_000).map(Rate::Iops))?;
        d.set_rate(rates)
    }),
    (&["rate"], |d, w, v| {
        let rates = values::sides(v, |text| values::byte_rate(w, text).map(Rate::Bytes))?;
        d.set_rate(rates)
    }),
    (&["rate_process"], |d, w, v| match v {
        "linear" | "poisson" => {
            d.job.poisson = v == "poisson";
            Ok(())
        }
        _ => Err(FioError::value(w, v, "linear or poisson")),
    }),
    (&["thinktime"], |d, w, v| values::time(w, v, MICROSECOND).map(|time| d.job.think_time = time)),
    (&["thinktime_blocks"], |d, w, v| values::number(w, v, 1, 1 << 20).map(|n| d.job.think_blocks = n)),
    (&["fsync", "fdatasync"], |d, w, v| values::number(w, v, 0, 1 << 30).map(|n| d.job.flush_every = n)),
    (&["startdelay", "start_delay"], |d, w, v| values::time(w, v, SECOND).map(|at| d.job.start_delay = at)),
    (&["name"], |d, w, v| {
        if v.is_empty() {
            return Err(FioError::value(w, v, "a name"));
        }
        d.job.name = v.into();
        Ok(())
    }),
    (&["description"], |_, _, _| Ok(())),
    (&["random_distribution"], |d, w, v| values::distribution(w, v).map(|spread| d.distribution = spread)),
    (&["stonewall", "wait_for_previous"], |d, w, v| values::flag(w, v).map(|on| d.stonewall = on)),
    (&["ioengine"], |d, _, v| {
        d.engine = v.into();
        Ok(())
    }),
    (&["direct", "buffered"], |d, w, v| {
        d.buffered = values::flag(w, v)? == (w == "buffered");
        Ok(())
    }),
];

/// Words that change nothing in the model, with why.
const IGNORED: &[(&[&str], &str)] = &[
    (
        &[
            "filename",
            "directory",
            "filename_format",
            "nrfiles",
            "openfiles",
            "file_service_type",
            "create_on_open",
            "fallocate",
            "unlink",
            "overwrite",
            "invalidate",
            "lockfile",
            "allow_mounted_write",
            "fadvise_hint",
            "pre_read",
        ],
        "the simulated volume takes the place of files",
    ),
    (
        &[
            "group_reporting",
            "new_group",
            "per_job_logs",
            "write_bw_log",
            "write_lat_log",
            "write_iops_log",
            "log_avg_msec",
            "log_hist_msec",
            "write_hist_log",
            "bwavgtime",
            "iopsavgtime",
            "percentile_list",
            "clat_percentiles",
            "lat_percentiles",
            "slat_percentiles",
            "disable_lat",
            "disable_clat",
            "disable_slat",
            "disable_bw_measurement",
            "gtod_reduce",
            "gtod_cpu",
            "clocksource",
            "unified_rw_reporting",
            "eta",
            "output",
            "output-format",
            "minimal",
            "status-interval",
            "significant_figures",
            "disk_util",
            "stats",
            "log_max_value",
            "log_unix_epoch",
            "eta-newline",
        ],
        "the report has a form of its own",
    ),
    (
        &[
            "thread",
            "nice",
            "prio",
            "prioclass",
            "cpumask",
            "cpus_allowed",
            "cpus_allowed_policy",
            "numa_cpu_nodes",
            "numa_mem_policy",
            "mem",
            "iomem",
            "lockmem",
            "hipri",
            "registerfiles",
            "fixedbufs",
            "sqthread_poll",
            "nowait",
            "userspace_reap",
            "ioscheduler",
            "cgroup",
            "uid",
            "gid",
            "hugepage-size",
            "io_submit_mode",
        ],
        "there is no host in virtual time",
    ),
    (
        &[
            "zero_buffers",
            "refill_buffers",
            "scramble_buffers",
            "buffer_pattern",
            "buffer_compress_percentage",
            "buffer_compress_chunk",
            "dedupe_percentage",
            "do_verify",
        ],
        "the data do not matter to the limits of a volume",
    ),
    (
        &[
            "iodepth_batch",
            "iodepth_batch_submit",
            "iodepth_batch_complete",
            "iodepth_batch_complete_min",
            "iodepth_batch_complete_max",
            "iodepth_low",
            "serialize_overlap",
            "thinktime_spin",
        ],
        "the depth is refilled I/O by I/O",
    ),
    (&["norandommap", "softrandommap", "random_generator"], "random blocks are drawn with replacement"),
    (&["randrepeat", "allrandrepeat", "randseed"], "give --seed instead"),
    (
        &["sync", "write_barrier", "end_fsync", "fsync_on_close", "create_fsync", "sync_file_range"],
        "an answered write of a volume is durable, and flushes at the end are outside of the run",
    ),
    (&["ramp_time"], "nothing is left out; read the intervals after it"),
    (
        &["exitall", "exitall_on_error", "continue_on_error", "ignore_error", "max_latency"],
        "no I/O fails here",
    ),
    (&["kb_base", "unit_base"], "k, m and g are binary units"),
];

/// Words of fio's that change the load in ways that are not modelled, with what to do instead.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["bsrange", "blocksize_range", "bs_unaligned", "blockalign", "ba"],
        "list sizes with bssplit, like bssplit=4k/50:16k/50",
    ),
    (
        &["verify", "verify_backlog", "verify_only", "trim_percentage"],
        "leave it out; it adds I/O that is not modelled",
    ),
    (
        &["read_iolog", "write_iolog", "replay_no_stall", "merge_blktrace_file"],
        "describe the load with rw, bs and rate_iops",
    ),
    (&["zonemode", "zonesize", "zonerange", "zoneskip"], "use offset and size"),
    (
        &["percentage_random", "rw_sequencer"],
        "run a sequential and a random job at the same time from a job file",
    ),
    (
        &["latency_target", "latency_window", "latency_percentile", "latency_run"],
        "run several depths and compare",
    ),
    (&["rate_min", "rate_iops_min", "rate_cycle", "rate_ignore_thinktime"], "give rate or rate_iops alone"),
    (&["thinktime_blocks_type", "thinktime_iotime"], "give thinktime and thinktime_blocks"),
    (&["flow", "flow_id", "flow_sleep", "wait_for"], "use startdelay or stonewall"),
    (&["steadystate", "steadystate_duration"], "give a runtime"),
    (&["filesize", "file_append", "fill_device"], "use size, or leave it out for the whole volume"),
    (&["include"], "copy the lines into the file"),
];

/// Engines that keep one I/O in flight whatever the depth.
const SYNC_ENGINES: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];

/// Which directions the words ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
    Mixed,
}

/// A job while its words are being read.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    job: Job,
    mode: Mode,
    random: bool,
    read_percent: u8,
    distribution: Distribution,
    depth: Option<u32>,
    engine: String,
    buffered: bool,
    pub(super) stonewall: bool,
    /// (word, why it changes nothing)
    ignored: Vec<(String, &'static str)>,
}

impl Draft {
    pub(super) fn new(name: &str) -> Self {
        Self {
            job: Job::named(name),
            mode: Mode::Read,
            random: false,
            read_percent: 50,
            distribution: Distribution::Uniform,
            depth: None,
            engine: String::new(),
            buffered: false,
            stonewall: false,
            ignored: Vec::new(),
        }
    }

    /// A section that inherits these words.
    pub(super) fn section(&self, name: &str) -> Self {
        let mut draft = self.clone();
        draft.job.name = name.into();
        draft
    }

    /// Reads one word.
    pub(super) fn set(&mut self, word: &str, value: &str) -> Result<(), FioError> {
        if let Some((_, setter)) = SUPPORTED.iter().find(|(names, _)| names.contains(&word)) {
            return setter(self, word, value);
        }
        if let Some((_, why)) = IGNORED.iter().find(|(names, _)| names.contains(&word)) {
            self.ignored.push((word.into(), why));
            return Ok(());
        }
        if let Some((_, instead)) = REFUSED.iter().find(|(names, _)| names.contains(&word)) {
            return Err(FioError::Unsupported { word: word.into(), instead });
        }
        Err(FioError::Unknown { word: word.into(), nearest: ebbtide_text::closest(word, accepted()) })
    }

    fn set_rw(&mut self, word: &str, value: &str) -> Result<(), FioError> {
        (self.mode, self.random) = match value {
            "read" => (Mode::Read, false),
            "write" => (Mode::Write, false),
            "rw" | "readwrite" => (Mode::Mixed, false),
            "randread" => (Mode::Read, true),
            "randwrite" => (Mode::Write, true),
            "randrw" => (Mode::Mixed, true),
            "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
                return Err(FioError::Unsupported {
                    word: format!("{word}={value}"),
                    instead: "a trim costs a volume neither operations nor time; leave it out",
                });
            }
            _ if value.contains(':') => {
                return Err(FioError::Unsupported {
                    word: format!("{word}={value}"),
                    instead: "leave out the number after the colon",
                });
            }
            _ => {
                return Err(FioError::value(word, value, "read, write, randread, randwrite, rw or randrw"));
            }
        };
        Ok(())
    }

    fn set_sizes(&mut self, sizes: [Option<BlockSizes>; 2]) {
        for (side, sizes) in self.job.block_sizes.iter_mut().zip(sizes) {
            if let Some(sizes) = sizes {
                *side = sizes;
            }
        }
    }

    fn set_rate(&mut self, rates: [Option<Rate>; 2]) -> Result<(), FioError> {
        let other = |old: &Option<Rate>, new: &Option<Rate>| match (old, new) {
            (Some(old), Some(new)) => std::mem::discriminant(old) != std::mem::discriminant(new),
            _ => false,
        };
        if self.job.rate.iter().zip(&rates).any(|(old, new)| other(old, new)) {
            return Err(FioError::Combination("give rate or rate_iops for a direction, not both".into()));
        }
        self.job.rate = rates;
        Ok(())
    }

    /// The job, when all words are read; adds notes on what has no meaning here.
    pub(super) fn finish(self, phase: u32, notes: &mut Vec<String>) -> Result<Job, FioError> {
        let mut note = |text: String| {
            if !notes.contains(&text) {
                notes.push(text);
            }
        };
        for (word, why) in &self.ignored {
            note(format!("{word} has no effect: {why}"));
        }
        let mut job = Job { phase, ..self.job };
        job.direction = match self.mode {
            Mode::Read => Direction::Read,
            Mode::Write => Direction::Write,
            Mode::Mixed => Direction::Mixed { read_percent: self.read_percent },
        };
        job.access = if self.random { Access::Random(self.distribution) } else { Access::Sequential };
        let paced = job.rate.iter().any(Option::is_some);
        job.depth = match self.depth {
            Some(depth) => depth,
            None if paced => {
                note(format!(
                    "a rate without iodepth is an open loop: I/O arrives at its rate whatever is outstanding, \
                     up to {OPEN_LOOP_DEPTH} (fio would keep 1 in flight; add iodepth=1 for that)"
                ));
                OPEN_LOOP_DEPTH
            }
            None => 1,
        };
        if SYNC_ENGINES.contains(&self.engine.as_str()) && job.depth > 1 {
            note(format!(
                "ioengine={} would keep one I/O in flight in fio; iodepth is taken here",
                self.engine
            ));
        }
        if self.buffered {
            note("there is no page cache in virtual time: every I/O goes to the volume".into());
        }
        check(&mut job)?;
        Ok(job)
    }
}

/// Checks words against each other, and settles when the job ends.
fn check(job: &mut Job) -> Result<(), FioError> {
    let wrong = |text: &str| Err(FioError::Combination(format!("job '{}': {text}", job.name)));
    if job.time_based && job.runtime.is_none() {
        return wrong("time_based needs a runtime; add runtime=60s");
    }
    if u64::from(job.depth) * u64::from(job.clones) > 1 << 20 {
        return wrong("iodepth times numjobs exceeds 1048576; lower one of them");
    }
    if job.size == Some(Extent::Bytes(0)) || job.size == Some(Extent::Percent(0)) {
        return wrong("size=0 leaves nothing to do; leave size out for the whole volume");
    }
    if let (Direction::Mixed { .. }, [None, Some(_)] | [Some(_), None]) = (job.direction, &job.rate) {
        return wrong("a rate for one direction of a mixed job; give both, like rate_iops=500,300");
    }
    let bounded = job.size.is_some() || job.amount.is_some() || job.max_ios.is_some() || job.loops > 1;
    job.time_based |= job.runtime.is_some() && !bounded;
    if job.time_based {
        job.max_ios = None;
    }
    Ok(())
}

/// Every word that is accepted, with an effect or without.
pub(super) fn accepted() -> impl Iterator<Item = &'static str> {
    let supported = SUPPORTED.iter().flat_map(|(names, _)| names.iter());
    let ignored = IGNORED.iter().flat_map(|(names, _)| names.iter());
    supported.chain(ignored).copied()
}
