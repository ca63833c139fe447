//! The table of fio's words with a meaning here, and a job while its words are being read.

use ebbtide_volume::{Nanos, Op};

use super::table::{ENGINES_WITHOUT_VOLUME, IGNORED, JOB_FLAGS, REFUSED, has};
use super::{
    Access, Direction, Distribution, FioError, Job, OPEN_LOOP_DEPTH, Rate, Surroundings, units, values,
};
use crate::job::{BlockSizes, Extent};

const SECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1_000;

/// Words whose values are bytes.
const SIZES: &str = "bs blocksize bssplit size io_size io_limit offset fileoffset offset_increment rate";
/// fio's units, where they surprise.
const DECIMAL: &str = "fio takes KiB, MiB, GiB and TiB as powers of 1000, and k, m, g and t as powers of 1024, unless kb_base=1000 is given";
/// Words in values that fio replaces by figures of the machine.
const KEYWORDS: [&str; 3] = ["$ncpus", "$mb_memory", "$pagesize"];

/// Reads a value into the draft. The word is given as it was written.
type Setter = fn(&mut Draft, &str, &str) -> Result<(), FioError>;

/// Words with a meaning here, by their names in fio.
const SUPPORTED: &[(&[&str], Setter)] = &[
    (&["rw", "readwrite"], Draft::set_rw),
    (&["rwmixread"], |d, w, v| values::number(w, v, d.base, 0, 100).map(|percent| d.read_percent = percent)),
    (&["rwmixwrite"], |d, w, v| values::number(w, v, d.base, 0, 100).map(|p: u8| d.read_percent = 100 - p)),
    (&["bs", "blocksize"], |d, w, v| {
        let sizes = values::number_sides(v, |text| values::block(w, text, d.base).map(BlockSizes::fixed))?;
        d.set_sizes(w, v, sizes)
    }),
    (&["bssplit"], |d, w, v| {
        let sizes = values::sides(v, |text| values::block_shares(w, text, d.base))?;
        // fio takes these wherever they stand: a `bs` behind them changes nothing.
        for (side, sizes) in d.split.iter_mut().zip(sizes) {
            *side = sizes.or(side.take());
        }
        Ok(())
    }),
    (&["iodepth"], |d, w, v| values::number(w, v, d.base, 1, 65_536).map(|depth| d.depth = Some(depth))),
    (&["numjobs"], |d, w, v| values::number(w, v, d.base, 1, 4_096).map(|clones| d.job.clones = clones)),
    (&["runtime", "timeout"], |d, w, v| {
        let runtime = values::time(w, v, SECOND)?;
        d.job.runtime = (runtime > Nanos::ZERO).then_some(runtime);
        Ok(())
    }),
    (&["time_based"], |d, w, v| values::flag(w, v).map(|on| d.job.time_based = on)),
    (&["size"], |d, w, v| values::extent(w, v, d.base).map(|size| d.job.size = Some(size))),
    (&["io_size", "io_limit"], |d, w, v| values::bytes(w, v, d.base).map(|bytes| d.job.amount = Some(bytes))),
    (&["offset", "fileoffset"], |d, w, v| values::extent(w, v, d.base).map(|offset| d.job.offset = offset)),
    (&["offset_increment"], |d, w, v| values::extent(w, v, d.base).map(|step| d.job.offset_increment = step)),
    // fio goes once over the extent with 0, too.
    (&["loops"], |d, w, v| {
        values::number(w, v, d.base, 0, 1_000_000).map(|loops: u64| d.job.loops = loops.max(1))
    }),
    (&["number_ios"], |d, w, v| {
        values::number(w, v, d.base, 0, u64::MAX).map(|ios| d.job.max_ios = (ios > 0).then_some(ios))
    }),
    (&["rate_iops"], |d, w, v| {
        let rates =
            values::number_sides(v, |text| values::number(w, text, d.base, 0, 100_000_000).map(Rate::Iops))?;
        d.set_rate(rates)
    }),
    (&["rate"], |d, w, v| {
        let rates = values::number_sides(v, |text| values::byte_rate(w, text, d.base).map(Rate::Bytes))?;
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
    (&["thinktime_blocks"], |d, w, v| {
        values::number(w, v, d.base, 1, 1 << 20).map(|n| d.job.think_blocks = n)
    }),
    (&["fsync", "fdatasync"], |d, w, v| {
        values::number(w, v, d.base, 0, 1 << 30).map(|n| d.job.flush_every = n)
    }),
    (&["startdelay", "start_delay"], |d, w, v| {
        if v.split_once('-').is_some_and(|(from, to)| !from.is_empty() && !to.is_empty()) {
            let instead = "give one time: a range, of which fio draws at random, is not modelled";
            return Err(FioError::Unsupported { word: format!("{w}={v}"), instead });
        }
        values::time(w, v, SECOND).map(|at| d.job.start_delay = at)
    }),
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
    (&["ioengine"], |d, w, v| {
        if v.is_empty() {
            return Err(FioError::value(w, v, "a name, like libaio"));
        }
        d.engine = v.into();
        if ENGINES_WITHOUT_VOLUME.contains(&v) {
            let instead = "it sends no I/O to a volume; leave the job out";
            return Err(FioError::Unsupported { word: format!("{w}={v}"), instead });
        }
        Ok(())
    }),
    (&["kb_base"], |d, w, v| {
        d.base = values::number(w, v, 1024, 1000, 1024)?;
        if [1000, 1024].contains(&d.base) { Ok(()) } else { Err(FioError::value(w, v, "1000 or 1024")) }
    }),
    (&["direct", "buffered"], |d, w, v| {
        let on: u8 = values::number(w, v, d.base, 0, 1)?;
        d.buffered = (on == 1) == (w == "buffered");
        Ok(())
    }),
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
    /// Sizes of `bssplit`, which go before those of `bs`.
    split: [Option<BlockSizes>; 2],
    engine: String,
    buffered: bool,
    pub(super) stonewall: bool,
    /// What a `k` is, for sizes: 1024, or 1000 (`kb_base`).
    base: u64,
    /// (word, why it changes nothing)
    ignored: Vec<(String, &'static str)>,
    /// What else its reader should know.
    notes: Vec<String>,
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
            split: [None, None],
            engine: String::new(),
            buffered: false,
            stonewall: false,
            base: 1024,
            ignored: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A section that inherits these words.
    pub(super) fn section(&self, name: &str) -> Self {
        let mut draft = self.clone();
        draft.job.name = name.into();
        draft
    }

    /// Reads one word. `${NAME}` in its value is a variable of the environment; fio takes one that is not set as empty.
    pub(super) fn set(
        &mut self,
        word: &str,
        value: &str,
        surroundings: &dyn Surroundings,
    ) -> Result<(), FioError> {
        let (value, unset) = substituted(value, surroundings);
        let result = self.set_substituted(word, &value);
        match (result, unset) {
            (Err(error), Some(name)) => Err(FioError::Variable { name, source: Box::new(error) }),
            (result, _) => result,
        }
    }

    fn set_substituted(&mut self, word: &str, value: &str) -> Result<(), FioError> {
        if has(JOB_FLAGS, word) {
            // fio takes `stonewall` and `stonewall=1`, and not `stonewall=`.
            values::flag(word, value)?;
        }
        if let Some((_, setter)) = SUPPORTED.iter().find(|(names, _)| names.contains(&word)) {
            if let Some(keyword) = KEYWORDS.iter().find(|keyword| value.contains(**keyword)) {
                let instead = "it is of the machine, and there is none here; write the number";
                return Err(FioError::Unsupported { word: format!("{word}={value}, {keyword}"), instead });
            }
            setter(self, word, value)?;
            if has(SIZES, word) && value.to_ascii_lowercase().contains("ib") {
                self.notes.push(DECIMAL.into());
            }
            return Ok(());
        }
        if let Some((_, why)) = IGNORED.iter().find(|(names, _)| has(names, word)) {
            if word == "ramp_time" && units::span(value, SECOND).is_none() {
                return Err(FioError::value(word, value, values::SPAN));
            }
            self.ignored.push((word.into(), why));
            return Ok(());
        }
        if matches!(word, "bsrange" | "blocksize_range")
            && let Some(sizes) = values::range_of_one(word, value, self.base)
        {
            return self.set_sizes(word, value, sizes);
        }
        if let Some((_, harmless, instead)) = REFUSED.iter().find(|(names, ..)| has(names, word)) {
            if harmless.contains(&value) {
                self.ignored.push((word.into(), "it is off"));
                return Ok(());
            }
            let word = if value.is_empty() { word.into() } else { format!("{word}={value}") };
            return Err(FioError::Unsupported { word, instead });
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
                    instead: "leave out the number after the colon: runs and gaps of I/O are not modelled",
                });
            }
            _ => {
                return Err(FioError::value(word, value, "read, write, randread, randwrite, rw or randrw"));
            }
        };
        Ok(())
    }

    fn set_sizes(&mut self, word: &str, value: &str, sizes: [Option<BlockSizes>; 2]) -> Result<(), FioError> {
        if sizes.iter().all(Option::is_none) {
            return Err(FioError::value(word, value, "a size for reads or for writes, like 4k,16k or ,16k"));
        }
        for (side, sizes) in self.job.block_sizes.iter_mut().zip(sizes) {
            if let Some(sizes) = sizes {
                *side = sizes;
            }
        }
        Ok(())
    }

    /// Sets the paces that are given; a side without one keeps its own. Zero is none, as in fio.
    fn set_rate(&mut self, rates: [Option<Rate>; 2]) -> Result<(), FioError> {
        for (own, given) in self.job.rate.iter_mut().zip(rates) {
            let Some(rate) = given else { continue };
            let is_off = matches!(rate, Rate::Iops(0) | Rate::Bytes(0));
            let is_other =
                own.is_some_and(|own| std::mem::discriminant(&own) != std::mem::discriminant(&rate));
            match (is_other, is_off) {
                (true, true) => {}
                (true, false) => {
                    let message = "give rate or rate_iops for a direction, not both";
                    return Err(FioError::Combination(message.into()));
                }
                (false, _) => *own = (!is_off).then_some(rate),
            }
        }
        Ok(())
    }

    /// The job, when all words are read; adds notes on what has no meaning here.
    pub(super) fn finish(self, phase: u32, notes: &mut Vec<String>) -> Result<Job, FioError> {
        let mut note = |text: String| {
            if !notes.contains(&text) {
                notes.push(text);
            }
        };
        self.notes.iter().cloned().for_each(&mut note);
        for (word, why) in &self.ignored {
            note(format!("{word} has no effect: {why}"));
        }
        let mut job = Job { phase, ..self.job };
        for (sizes, split) in job.block_sizes.iter_mut().zip(self.split) {
            *sizes = split.unwrap_or_else(|| sizes.clone());
        }
        // fio counts them anew in each pass.
        job.max_ios = job.max_ios.map(|ios| ios.saturating_mul(job.loops));
        job.direction = match self.mode {
            Mode::Read => Direction::Read,
            Mode::Write => Direction::Write,
            Mode::Mixed => Direction::Mixed { read_percent: self.read_percent },
        };
        // The pace of a side that the job does not do.
        for (op, rate) in [Op::Read, Op::Write].into_iter().zip(&mut job.rate) {
            *rate = rate.filter(|_| match job.direction {
                Direction::Read => op == Op::Read,
                Direction::Write => op == Op::Write,
                Direction::Mixed { .. } => true,
            });
        }
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
        return wrong(
            "a rate for one direction of a mixed job is not modelled; give both, like rate_iops=500,300",
        );
    }
    let bounded = job.size.is_some() || job.amount.is_some() || job.max_ios.is_some() || job.loops > 1;
    job.time_based |= job.runtime.is_some() && !bounded;
    if job.time_based {
        job.max_ios = None;
    }
    Ok(())
}

/// A value with the variables of the environment in place of their names, and the first one that is not set.
fn substituted(value: &str, surroundings: &dyn Surroundings) -> (String, Option<String>) {
    let (mut text, mut unset, mut rest) = (String::new(), None, value);
    while let Some((before, behind)) = rest.split_once("${")
        && let Some((name, after)) = behind.split_once('}')
    {
        text.push_str(before);
        match surroundings.variable(name) {
            Some(value) => text.push_str(&value),
            None => unset = unset.or_else(|| Some(name.to_owned())),
        }
        rest = after;
    }
    (text + rest, unset)
}

/// Every word that is accepted, with an effect or without.
pub(super) fn accepted() -> impl Iterator<Item = &'static str> {
    let supported = SUPPORTED.iter().flat_map(|(names, _)| names.iter().copied());
    let ignored = IGNORED.iter().flat_map(|(names, _)| names.split_ascii_whitespace());
    supported.chain(ignored)
}

/// Every word of fio's that is known, those that are refused too.
pub(super) fn known() -> impl Iterator<Item = &'static str> {
    accepted().chain(REFUSED.iter().flat_map(|(names, ..)| names.split_ascii_whitespace()))
}
