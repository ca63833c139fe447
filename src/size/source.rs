//! The load: of files that other tools wrote, of a trace, of a run, or of a profile.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ebbtide_advisor::sizing::{LoadOrigin, SSD_UNIT};
use ebbtide_captured::{CLOUDWATCH, Input, KNOWN_RECORDS, Recorded, RecordedError, recorded};
use ebbtide_catalog::{Catalog, InstanceType};
use ebbtide_lab::experiment::Role;
use ebbtide_lab::record::{LabRun, VolumeSecond};
use ebbtide_lab::results::ResultsError;
use ebbtide_observe::{Limited, LoadInterval, VolumeLoad};
use ebbtide_twin::fio;
use ebbtide_twin::trace::{Options, Trace, TraceError};
use ebbtide_volume::{MIB, Op};

use super::args::SizeArgs;
use super::files::{self, text_of_file};
use crate::exit::Refusal;
use crate::predict::server::ModelledServer;
use crate::simulate::trace;
use crate::text::count;
use ebbtide_captured::packed::unpacked;

/// Intervals that a trace is divided into, at most.
const MOST_INTERVALS: usize = 20_000;

/// A load, and where it comes from.
#[derive(Debug)]
pub(super) struct Source {
    /// The volume, where the files name it; empty where they do not.
    pub(super) volume: String,
    /// Files and tool, for people.
    pub(super) what: String,
    pub(super) load: VolumeLoad,
    pub(super) origin: LoadOrigin,
    /// What has to be known of the figures.
    pub(super) notes: Vec<String>,
    /// Bytes of redo log a second, where they are known.
    pub(super) log_bytes: Option<f64>,
    /// The server of a profile; its load is what the model gives.
    pub(super) server: Option<ModelledServer>,
}

impl Source {
    /// Reads what the arguments name: a load, or one of each volume that metrics tell of. Of a profile the load is made later:
    /// see [`super::modelled`].
    pub(super) fn read(
        args: &SizeArgs,
        catalog: &Catalog,
        instance: Option<&InstanceType>,
    ) -> anyhow::Result<Vec<Self>> {
        let shown: Vec<String> = args.from.iter().map(|path| path.display().to_string()).collect();
        if let [path] = &args.from[..] {
            let is_profile = path.is_file() && path.extension().is_some_and(|extension| extension == "toml");
            if path.is_dir() || is_profile {
                of_traces_alone(args, "a run, a folder of records, or a profile")?;
            }
            if let Some(found) = files::of(path).filter(|_| !is_run(path)) {
                let (texts, notes) = files::records(path, &found)?;
                return Self::of_texts(args, &texts, &path.display().to_string(), &notes);
            }
            if path.is_dir() {
                return of_run(path, args.arm.as_deref(), args.device.as_deref()).map(
                    |(load, what, notes)| {
                        vec![Self::recorded(format!("{}: {what}", path.display()), load, notes)]
                    },
                );
            }
            if is_profile {
                let server = ModelledServer::read(path, catalog, instance, args.seed)?;
                if let Some(by) = server.profile.machine.divided_by.filter(|by| *by > 1) {
                    let message = format!(
                        "{} is of a {by}th of a machine and its volumes (machine.divided_by = {by}): no volume to buy follows from it",
                        path.display()
                    );
                    return Err(Refusal::usage(message).hint("give the profile of a whole server").into());
                }
                let what = format!("{}: a profile, by the model of InnoDB", path.display());
                let source = Self::recorded(what, VolumeLoad::default(), Vec::new());
                return Ok(vec![Self { server: Some(server), origin: LoadOrigin::Model, ..source }]);
            }
        }
        // A file whose format as a trace is named is one.
        let named = args.trace_format.is_some() && args.from.len() == 1;
        match if named { None } else { texts(&args.from)? } {
            Some(texts) => {
                of_traces_alone(args, "the text of a tool")?;
                Self::of_texts(args, &texts, &shown.join(", "), &[])
            }
            None => {
                let options = trace::options(
                    args.trace_format.as_deref(),
                    args.trace_unit.as_deref(),
                    args.device.as_deref(),
                )?;
                let (load, notes) = of_trace(&args.from[0], &options)?;
                let what = format!("{}: a trace", shown[0]);
                Ok(vec![Self { origin: LoadOrigin::Trace, ..Self::recorded(what, load, notes) }])
            }
        }
    }

    /// A load that a tool on the host recorded.
    fn recorded(what: String, load: VolumeLoad, notes: Vec<String>) -> Self {
        Self {
            volume: String::new(),
            what,
            load,
            origin: LoadOrigin::Host,
            notes,
            log_bytes: None,
            server: None,
        }
    }

    /// The loads of texts of one tool, which people know by `shown`.
    fn of_texts(
        args: &SizeArgs,
        texts: &[Input],
        shown: &str,
        notes: &[String],
    ) -> anyhow::Result<Vec<Self>> {
        let interval = args.interval.as_deref().map(|text| fio::parse_time("--interval", text));
        let interval = interval.transpose().map_err(|error| Refusal::usage(error.to_string()))?;
        let all = recorded(texts, interval.map(ebbtide_volume::Nanos::as_secs_f64))
            .map_err(|error| refuse_record(&error))?;
        let origin = origin(&all);
        let (volumes, idle) = chosen(&all, args.device.as_deref())?;
        let notes = || notes.iter().chain(&all.notes).cloned().chain(idle.clone()).collect();
        let of_volume = |(name, load): (String, VolumeLoad)| {
            let of = if name.is_empty() { String::new() } else { format!(" of {name}") };
            let what = format!("{shown}: {}{of}", all.tool);
            Self { origin, volume: name, ..Self::recorded(what, load, notes()) }
        };
        Ok(volumes.into_iter().map(of_volume).collect())
    }
}

/// Whether a directory has the results of a run.
fn is_run(dir: &Path) -> bool {
    ["results.json", ebbtide_lab::results::DATABASE].iter().any(|name| dir.join(name).exists())
}

/// How a tool counts operations.
fn origin(recorded: &Recorded) -> LoadOrigin {
    match recorded.tool {
        CLOUDWATCH => LoadOrigin::EbsMetrics,
        _ if recorded.together => LoadOrigin::HostTogether,
        _ => LoadOrigin::Host,
    }
}

/// Refuses options that only a trace has.
fn of_traces_alone(args: &SizeArgs, what: &str) -> anyhow::Result<()> {
    let given = [("--trace-format", &args.trace_format), ("--trace-unit", &args.trace_unit)];
    match given.into_iter().find(|(_, value)| value.is_some()) {
        Some((option, _)) => {
            let message =
                format!("{option}: {} is {what}, and no trace of block I/O", args.from[0].display());
            Err(Refusal::usage(message).hint("leave the option out").into())
        }
        None => Ok(()),
    }
}

/// The files as texts; None where the one file is a trace.
fn texts(paths: &[PathBuf]) -> anyhow::Result<Option<Vec<Input>>> {
    let mut texts = Vec::new();
    for path in paths {
        let input = text_of_file(path)?;
        let is_record = |input: &Input| {
            !matches!(recorded(std::slice::from_ref(input), Some(1.0)), Err(RecordedError::Unknown { .. }))
        };
        match input {
            Some(input) if paths.len() > 1 || is_record(&input) => texts.push(input),
            _ if paths.len() == 1 => return Ok(None),
            _ => {
                let message = format!("{}: several files have to be texts of one tool", path.display());
                return Err(Refusal::usage(message).hint(format!("what is known: {KNOWN_RECORDS}")).into());
            }
        }
    }
    Ok(Some(texts))
}

fn refuse_record(error: &RecordedError) -> Refusal {
    let hint = match error {
        RecordedError::Lacks { what, .. } => what.hint().to_owned(),
        RecordedError::Damaged { .. } => "the file may be cut off: copy or make it again".to_owned(),
        RecordedError::Metrics { cause, .. } => cause.hint().to_owned(),
        RecordedError::Unknown { .. } => format!("what is known: {KNOWN_RECORDS}"),
        RecordedError::Unusable { why, .. } => why.hint(),
        RecordedError::Overlap { .. } => "give the files of one machine, and each time once".to_owned(),
        RecordedError::Mixed { .. } => "give the files of one tool".to_owned(),
    };
    Refusal::usage(error.to_string()).hint(hint)
}

/// Loads with the names of their volumes or devices.
type NamedLoads = Vec<(String, VolumeLoad)>;

/// The load of the device that was named, or of the only one that did something; of metrics those of all volumes that did. With
/// it, for people, the volumes that are left out since they did nothing.
fn chosen(all: &Recorded, device: Option<&str>) -> anyhow::Result<(NamedLoads, Option<String>)> {
    // Metrics of one volume may name none.
    let names: Vec<&str> = all.loads.keys().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let hint = match names[..] {
        [] => "the files name no device: leave --device out".to_owned(),
        _ => format!("there are {}", names.join(", ")),
    };
    let refuse = |message: String| Err(Refusal::usage(message).hint(hint.clone()).into());
    if let Some(name) = device {
        return match all.loads.get(name) {
            Some(load) => Ok((vec![(name.to_owned(), load.clone())], None)),
            None => refuse(format!("--device {name}: the files have no such device")),
        };
    }
    let is_busy = |name: &str, load: &VolumeLoad| {
        let works = load.intervals.iter().any(|one| one.ios() > 0.0);
        works && !name.starts_with("loop") && !name.starts_with("ram")
    };
    let (busy, idle): (Vec<_>, Vec<_>) = all.loads.iter().partition(|(name, load)| is_busy(name, load));
    match busy[..] {
        [] => {
            let intervals: usize = all.loads.values().map(|load| load.intervals.len()).sum();
            let message = format!("the files have no operation in {}", count(intervals, "interval"));
            let named = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
            let hint = format!(
                "record the load while the server works, a day or more, of the volume of its data{named}"
            );
            Err(Refusal::usage(message).hint(hint).into())
        }
        [(first, _), (second, _), ..] if all.tool != CLOUDWATCH => refuse(format!(
            "the files have the load of several devices, among them {first} and {second}: name one with --device"
        )),
        _ => {
            let idle: Vec<&str> =
                idle.iter().map(|(name, _)| name.as_str()).filter(|name| !name.is_empty()).collect();
            let left_out = (all.tool == CLOUDWATCH && !idle.is_empty()).then(|| {
                format!("left out, since the metrics have no operation of them: {}", idle.join(", "))
            });
            let taken = |(name, load): &(&String, &VolumeLoad)| ((*name).clone(), (*load).clone());
            Ok((busy.iter().map(taken).collect(), left_out))
        }
    }
}

/// The load of a volume of an arm of a run: the seconds of its trials, times what the machine is a share of.
fn of_run(
    dir: &Path,
    arm: Option<&str>,
    role: Option<&str>,
) -> anyhow::Result<(VolumeLoad, String, Vec<String>)> {
    let run: LabRun = ebbtide_lab::results::read_json(dir).map_err(|error| refuse_run(dir, &error))?.run;
    let mut arms: Vec<&str> = run.trials.iter().map(|trial| trial.arm.as_str()).collect();
    arms.dedup();
    arms.sort_unstable();
    arms.dedup();
    let arm = match (arm, &arms[..]) {
        (Some(arm), _) if arms.contains(&arm) => arm,
        (None, [arm]) => arm,
        (Some(arm), _) => {
            let message = format!("--arm {arm}: the run in {} has no such arm", dir.display());
            return Err(Refusal::usage(message).hint(format!("it has {}", arms.join(", "))).into());
        }
        (None, _) => {
            let message = format!("the run in {} has several arms: name one with --arm", dir.display());
            return Err(Refusal::usage(message).hint(format!("it has {}", arms.join(", "))).into());
        }
    };
    let planned = run.experiment.arms.iter().find(|planned| planned.name == arm);
    let shares = f64::from(planned.map_or(1, |planned| planned.instance.divided_by).max(1));
    let roles: Vec<Role> = planned.map_or(Vec::new(), |planned| planned.volumes.keys().copied().collect());
    let role = of_role(&roles, role, arm)?;
    let mut intervals = Vec::new();
    let mut start_s = 0.0;
    for trial in run.trials.iter().filter(|trial| trial.arm == arm) {
        for second in &trial.seconds {
            if let Some(volume) = second.volumes.get(&role) {
                intervals.push(of_second(start_s, volume, shares));
                start_s += 1.0;
            }
        }
    }
    if intervals.is_empty() {
        let message = format!("the arm {arm} of the run in {} has no measured second", dir.display());
        return Err(Refusal::usage(message).hint("look at it with ebbtide run --report").into());
    }
    let mut notes = vec!["the seconds of all trials follow each other".to_owned()];
    if shares > 1.0 {
        notes.push(format!(
            "the run had one share of {shares} of the machine and its volumes: its operations and bytes are multiplied by {shares}"
        ));
    }
    let others = roles.iter().filter(|one| **one != role).map(|one| format!("--device {}", one.key()));
    let others = others.collect::<Vec<_>>();
    if !others.is_empty() {
        notes.push(format!(
            "this is the volume of the {} alone; each volume is judged by itself: {}",
            role.holds(),
            others.join(", ")
        ));
    }
    Ok((VolumeLoad { intervals }, format!("the {} volume of arm {arm} of a run", role.key()), notes))
}

/// The volume whose load is taken: that of the data where none is named.
fn of_role(roles: &[Role], named: Option<&str>, arm: &str) -> anyhow::Result<Role> {
    let Some(named) = named else { return Ok(Role::Data) };
    roles.iter().copied().find(|role| role.key() == named).ok_or_else(|| {
        let all: Vec<&str> = roles.iter().map(|role| role.key()).collect();
        Refusal::usage(format!("--device {named}: the arm {arm} has no volume of that name"))
            .hint(format!("it has {}", all.join(", ")))
            .into()
    })
}

fn of_second(start_s: f64, volume: &VolumeSecond, shares: f64) -> LoadInterval {
    let mib = MIB as f64 * shares;
    let time = |number: f64, us: f64| (number > 0.0).then_some(us / 1e6);
    let waited = |share: f64| share > 0.1;
    LoadInterval {
        start_s,
        seconds: 1.0,
        reads: volume.read_iops * shares,
        writes: volume.write_iops * shares,
        read_bytes: volume.read_mib * mib,
        written_bytes: volume.write_mib * mib,
        queue: Some(volume.queue * shares),
        read_s: time(volume.read_iops, volume.read_us),
        write_s: time(volume.write_iops, volume.write_us),
        credits: volume.credits,
        limited: Some(Limited {
            volume_iops: waited(volume.limits.volume_iops),
            volume_throughput: waited(volume.limits.volume_throughput),
            instance_iops: waited(volume.limits.instance_iops),
            instance_throughput: waited(volume.limits.instance_throughput),
        }),
    }
}

fn refuse_run(dir: &Path, error: &ResultsError) -> Refusal {
    Refusal::usage(format!("{}: {error}", dir.display())).hint("name the directory that ebbtide run wrote")
}

/// Requests of a trace in intervals of a second, or of more where it is long.
struct Buckets {
    seconds: u64,
    all: Vec<Bucket>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    reads: f64,
    writes: f64,
    read_bytes: f64,
    written_bytes: f64,
    read_s: f64,
    write_s: f64,
    timed: bool,
}

impl Buckets {
    fn add(&mut self, at_s: u64, op: Op, len: u32, latency_s: Option<f64>) {
        let mut place = usize::try_from(at_s / self.seconds).unwrap_or(usize::MAX);
        while place >= MOST_INTERVALS {
            self.halve();
            place = usize::try_from(at_s / self.seconds).unwrap_or(usize::MAX);
        }
        if self.all.len() <= place {
            self.all.resize(place + 1, Bucket::default());
        }
        let bucket = &mut self.all[place];
        // What the limits of an SSD volume count.
        let operations = u64::from(len).div_ceil(SSD_UNIT).max(1) as f64;
        bucket.timed |= latency_s.is_some();
        let time = latency_s.unwrap_or(0.0) * operations;
        if op == Op::Read {
            bucket.reads += operations;
            bucket.read_bytes += f64::from(len);
            bucket.read_s += time;
        } else {
            bucket.writes += operations;
            bucket.written_bytes += f64::from(len);
            bucket.write_s += time;
        }
    }

    /// Intervals of twice the length.
    fn halve(&mut self) {
        let joined = self.all.chunks(2).map(|pair| {
            let mut sum = pair[0];
            for more in &pair[1..] {
                sum.reads += more.reads;
                sum.writes += more.writes;
                sum.read_bytes += more.read_bytes;
                sum.written_bytes += more.written_bytes;
                sum.read_s += more.read_s;
                sum.write_s += more.write_s;
                sum.timed |= more.timed;
            }
            sum
        });
        self.all = joined.collect();
        self.seconds *= 2;
    }

    fn load(self) -> VolumeLoad {
        let seconds = self.seconds as f64;
        let interval = |(place, one): (usize, &Bucket)| {
            let mean = |time: f64, number: f64| (one.timed && number > 0.0).then(|| time / number);
            LoadInterval {
                start_s: place as f64 * seconds,
                seconds,
                reads: one.reads / seconds,
                writes: one.writes / seconds,
                read_bytes: one.read_bytes / seconds,
                written_bytes: one.written_bytes / seconds,
                queue: None,
                read_s: mean(one.read_s, one.reads),
                write_s: mean(one.write_s, one.writes),
                credits: None,
                limited: None,
            }
        };
        VolumeLoad { intervals: self.all.iter().enumerate().map(interval).collect() }
    }
}

fn of_trace(path: &Path, options: &Options) -> anyhow::Result<(VolumeLoad, Vec<String>)> {
    let file = File::open(path).with_context(|| Refusal::usage(format!("cannot read {}", path.display())))?;
    let input = unpacked(file).with_context(|| Refusal::usage(format!("cannot read {}", path.display())))?;
    let mut trace = Trace::open(input, options).map_err(|error| refuse_trace(path, &error, 0))?;
    let mut buckets = Buckets { seconds: 1, all: Vec::new() };
    let mut requests = 0_u64;
    for record in trace.by_ref() {
        let record = record.map_err(|error| refuse_trace(path, &error, requests))?;
        requests += 1;
        if matches!(record.io.op, Op::Read | Op::Write) {
            let latency = record.latency.map(ebbtide_volume::Nanos::as_secs_f64);
            buckets.add(record.at.0 / 1_000_000_000, record.io.op, record.io.len, latency);
        }
    }
    if buckets.all.is_empty() {
        let message = format!("{}: no request was taken of it ({})", path.display(), trace.counts().format);
        return Err(Refusal::usage(message).hint("name another device with --device").into());
    }
    let notes = vec![format!(
        "{} of the trace ({}), in intervals of {} s; the last one may be cut short",
        count(requests, "request"),
        trace.counts().format,
        buckets.seconds
    )];
    Ok((buckets.load(), notes))
}

fn refuse_trace(path: &Path, error: &TraceError, requests: u64) -> Refusal {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let before = if requests == 0 {
        String::new()
    } else {
        format!("; read before it: {}", count(requests, "request"))
    };
    let refusal = Refusal::usage(format!("{}: {error}{cause}{before}", path.display()));
    match error {
        TraceError::Foreign { .. } => refusal,
        TraceError::Unknown => {
            refusal.hint(format!("what is known: {KNOWN_RECORDS}; the formats of traces of docs/simulate.md"))
        }
        TraceError::Devices { .. } => {
            refusal.hint("choose one with --device NAME, or take all as one with --device all")
        }
        TraceError::Read { .. } | TraceError::Event { .. } => {
            refusal.hint("the file may be cut off: copy it again")
        }
        TraceError::Line { .. } | TraceError::Length { .. } => refusal.hint("mend or cut the file there"),
    }
}
