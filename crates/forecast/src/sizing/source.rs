//! The load: of files that other tools wrote, of a trace, of a run, or of a profile.

use std::path::PathBuf;

use ebbtide_advisor::sizing::LoadOrigin;
use ebbtide_captured::{CLOUDWATCH, Input, ReadFile, Recorded, RecordedError, Unusable, recorded, together};
use ebbtide_catalog::{Catalog, InstanceType};
use ebbtide_observe::VolumeLoad;
use ebbtide_twin::trace::{Device, Options, TraceError};

use super::error::{SizingError, TraceOption};
use super::files::{self, Record, Records, text_of_file};
use super::request::SizingRequest;
use super::run::of_run;
use super::traced::of_trace;
use crate::profile::is_run;
use crate::server::ModelledServer;

/// A load, and where it comes from.
#[derive(Debug)]
pub struct Source {
    /// The volume, where the files name it; empty where they do not.
    pub volume: String,
    /// Files and tool, for people.
    pub what: String,
    /// It.
    pub load: VolumeLoad,
    /// How its operations are counted.
    pub origin: LoadOrigin,
    /// What has to be known of the figures.
    pub notes: Vec<String>,
    /// Bytes of redo log a second, where they are known.
    pub log_bytes: Option<f64>,
    /// The server of a profile; its load is what the model gives.
    pub server: Option<ModelledServer>,
}

impl Source {
    /// Reads what the request names: a load, or one of each volume that metrics tell of. Of a profile the load is made later:
    /// see [`super::modelled`].
    pub(super) fn read(
        request: &SizingRequest,
        catalog: &Catalog,
        instance: Option<&InstanceType>,
    ) -> Result<Vec<Self>, SizingError> {
        let shown: Vec<String> = request.from.iter().map(|path| path.display().to_string()).collect();
        if let [path] = &request.from[..] {
            let is_profile = path.is_file() && path.extension().is_some_and(|extension| extension == "toml");
            if path.is_dir() || is_profile {
                of_traces_alone(request, "a run, a folder of records, or a profile")?;
            }
            if let Some(found) = files::of(path).filter(|_| !is_run(path)) {
                let interval_s = request.interval.map(ebbtide_volume::Nanos::as_secs_f64);
                let records = files::records(path, &found, interval_s)?;
                let shown = format!("{} ({})", path.display(), records.counts);
                return Self::of_folder(request, records, &shown);
            }
            if path.is_dir() {
                return of_run(path, request.arm.as_deref(), request.device.as_deref()).map(
                    |(load, what, notes)| {
                        vec![Self::recorded(format!("{}: {what}", path.display()), load, notes)]
                    },
                );
            }
            if is_profile {
                let server = ModelledServer::read(path, catalog, instance, request.seed)?;
                if let Some(by) = server.profile.machine.divided_by.filter(|by| *by > 1) {
                    return Err(SizingError::Share { path: path.clone(), divided_by: by });
                }
                let what = format!("{}: a profile, by the model of InnoDB", path.display());
                let source = Self::recorded(what, VolumeLoad::default(), Vec::new());
                return Ok(vec![Self { server: Some(server), origin: LoadOrigin::Model, ..source }]);
            }
        }
        // A file whose format as a trace is named is one.
        let named = request.trace_format.is_some() && request.from.len() == 1;
        match if named { Files::Trace(None) } else { files_of(&request.from)? } {
            Files::Texts(texts) => {
                of_traces_alone(request, "the text of a tool")?;
                Self::of_texts(request, &texts, &shown.join(", "))
            }
            Files::Trace(other) => {
                let options = Options {
                    format: request.trace_format,
                    device: Device::named(request.device.as_deref()),
                    unit_ns: request.trace_unit_ns,
                };
                let (load, notes) =
                    of_trace(&request.from[0], &options).map_err(|error| match (error, other) {
                        (SizingError::Trace { cause, .. }, Some(other))
                            if matches!(*cause, TraceError::Unknown) =>
                        {
                            other.into()
                        }
                        (error, _) => error,
                    })?;
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

    /// The loads of the files of a folder: together they are those of one machine, or each is of a volume of its own where they
    /// have other figures of the same times. Such a volume has the name of its file.
    fn of_folder(request: &SizingRequest, records: Records, shown: &str) -> Result<Vec<Self>, SizingError> {
        let Records { files, notes, .. } = records;
        let read: Vec<(PathBuf, ReadFile, Option<Recorded>)> = files
            .into_iter()
            .map(|record: Record| Ok((record.path, record.read?, record.alone)))
            .collect::<Result<_, RecordedError>>()?;
        let interval_s = request.interval.map(ebbtide_volume::Nanos::as_secs_f64);
        let all: Vec<&ReadFile> = read.iter().map(|(_, file, _)| file).collect();
        let all_together = together(&all, interval_s);
        let differ =
            matches!(all_together, Err(RecordedError::Overlap { .. } | RecordedError::Metrics { .. }));
        if read.len() < 2 || !differ {
            return Self::of_recorded(request.device.as_deref(), all_together?, shown, &notes);
        }
        let mut all = Vec::new();
        for (path, file, alone) in read {
            let alone = alone.map_or_else(|| together(&[&file], interval_s), Ok)?;
            let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
            let of_file = Self::of_recorded(None, alone, &path.display().to_string(), &notes)?;
            let is_only = of_file.len() == 1;
            all.extend(of_file.into_iter().map(|source| {
                let name = if is_only { name.to_string() } else { format!("{name}/{}", source.volume) };
                Self { volume: name, ..source }
            }));
        }
        let Some(device) = &request.device else { return Ok(all) };
        let devices = all.iter().map(|source| source.volume.clone()).collect();
        let named: Vec<Self> = all.into_iter().filter(|source| source.volume == *device).collect();
        if named.is_empty() {
            return Err(SizingError::UnknownDevice { device: device.clone(), devices });
        }
        Ok(named)
    }

    /// The loads of texts of one tool, which people know by `shown`.
    fn of_texts(request: &SizingRequest, texts: &[Input], shown: &str) -> Result<Vec<Self>, SizingError> {
        let all = recorded(texts, request.interval.map(ebbtide_volume::Nanos::as_secs_f64))?;
        Self::of_recorded(request.device.as_deref(), all, shown, &[])
    }

    /// The loads that a tool recorded: that of one device, or all.
    fn of_recorded(
        device: Option<&str>,
        all: Recorded,
        shown: &str,
        notes: &[String],
    ) -> Result<Vec<Self>, SizingError> {
        let origin = origin(&all);
        let (volumes, left_out) = chosen(&all, device)?;
        // The first note is on the first screen, and the others are among the details.
        let notes = || left_out.iter().chain(notes).chain(&all.notes).cloned().collect();
        let of_volume = |(name, load): (String, VolumeLoad)| {
            let of = if name.is_empty() { String::new() } else { format!(" of {name}") };
            let what = format!("{shown}: {}{of}", all.tool);
            Self { origin, volume: name, ..Self::recorded(what, load, notes()) }
        };
        Ok(volumes.into_iter().map(of_volume).collect())
    }
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
fn of_traces_alone(request: &SizingRequest, what: &'static str) -> Result<(), SizingError> {
    let given = [
        (TraceOption::Format, request.trace_format.is_some()),
        (TraceOption::Unit, request.trace_unit_ns.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(SizingError::NotATrace { option, path: request.from[0].clone(), what }),
        None => Ok(()),
    }
}

/// What files are.
enum Files {
    Texts(Vec<Input>),
    /// The one file is a trace, or of the kind that the error names.
    Trace(Option<RecordedError>),
}

fn files_of(paths: &[PathBuf]) -> Result<Files, SizingError> {
    let mut texts = Vec::new();
    for path in paths {
        let input = text_of_file(path)?;
        let other = input.as_ref().and_then(|input| match recorded(std::slice::from_ref(input), Some(1.0)) {
            Err(
                error @ (RecordedError::Unknown { .. }
                | RecordedError::Unusable { why: Unusable::Elsewhere(_), .. }),
            ) => Some(error),
            _ => None,
        });
        match input {
            Some(input) if paths.len() > 1 || other.is_none() => texts.push(input),
            _ if paths.len() == 1 => {
                return Ok(Files::Trace(
                    other.filter(|error| !matches!(error, RecordedError::Unknown { .. })),
                ));
            }
            _ => return Err(SizingError::NotAText { path: path.clone() }),
        }
    }
    Ok(Files::Texts(texts))
}

/// Loads with the names of their volumes or devices.
type NamedLoads = Vec<(String, VolumeLoad)>;

/// The load of the device that was named, or of the only one that did something; of metrics those of all volumes that did. With
/// it, for people, the volumes that are left out since they did nothing, or that others than the taken device did something too.
fn chosen(all: &Recorded, device: Option<&str>) -> Result<(NamedLoads, Option<String>), SizingError> {
    // Metrics of one volume may name none.
    let names = || all.loads.keys().filter(|name| !name.is_empty()).cloned().collect::<Vec<_>>();
    if let Some(name) = device {
        return match all.loads.get(name) {
            Some(load) => Ok((vec![(name.to_owned(), load.clone())], None)),
            None => Err(SizingError::UnknownDevice { device: name.to_owned(), devices: names() }),
        };
    }
    let is_busy = |name: &str, load: &VolumeLoad| {
        operations(load) > 0.0 && !name.starts_with("loop") && !name.starts_with("ram")
    };
    let (busy, idle): (Vec<_>, Vec<_>) = all.loads.iter().partition(|(name, load)| is_busy(name, load));
    match busy[..] {
        [] => Err(SizingError::Idle {
            intervals: all.loads.values().map(|load| load.intervals.len()).sum(),
            devices: names(),
        }),
        [(first, _), (second, _), ..] if all.tool != CLOUDWATCH => Err(SizingError::SeveralDevices {
            first: first.clone(),
            second: second.clone(),
            devices: names(),
        }),
        [(taken, load)] if all.tool != CLOUDWATCH => {
            let busiest = idle.iter().max_by(|a, b| operations(a.1).total_cmp(&operations(b.1)));
            let passed_over = busiest.filter(|(_, load)| operations(load) > 0.0).map(|(other, _)| {
                format!("the load is that of {taken}; {other} had operations too: --device names another")
            });
            Ok((vec![(taken.clone(), load.clone())], passed_over))
        }
        _ => {
            let idle: Vec<&str> =
                idle.iter().map(|(name, _)| name.as_str()).filter(|name| !name.is_empty()).collect();
            let left_out = (!idle.is_empty()).then(|| {
                format!("left out, since the metrics have no operation of them: {}", idle.join(", "))
            });
            let taken = |(name, load): &(&String, &VolumeLoad)| ((*name).clone(), (*load).clone());
            Ok((busy.iter().map(taken).collect(), left_out))
        }
    }
}

/// Operations of a load.
fn operations(load: &VolumeLoad) -> f64 {
    load.intervals.iter().map(|interval| interval.ios() * interval.seconds).sum()
}

#[cfg(test)]
mod tests {
    use ebbtide_observe::LoadInterval;

    use super::*;

    fn recorded(devices: &[(&str, f64)]) -> Recorded {
        let load = |reads| VolumeLoad {
            intervals: vec![LoadInterval { seconds: 10.0, reads, ..LoadInterval::default() }],
        };
        let loads = devices.iter().map(|(name, reads)| ((*name).to_owned(), load(*reads))).collect();
        Recorded { tool: "iostat", together: false, loads, notes: vec!["of the tool".to_owned()] }
    }

    #[test]
    fn a_device_that_is_taken_before_busy_loop_devices_is_named_on_the_first_screen() {
        let all = recorded(&[("loop0", 0.0), ("loop1", 900.0), ("ram0", 5.0), ("vda", 2.0)]);
        let sources = Source::of_recorded(None, all, "io.txt", &[]).unwrap();
        let note = "the load is that of vda; loop1 had operations too: --device names another";
        assert_eq!(sources[0].notes, [note, "of the tool"]);
        let named = recorded(&[("loop1", 900.0), ("vda", 2.0)]);
        assert_eq!(
            Source::of_recorded(Some("loop1"), named, "io.txt", &[]).unwrap()[0].notes,
            ["of the tool"]
        );
        let alone = recorded(&[("loop0", 0.0), ("vda", 2.0)]);
        assert_eq!(Source::of_recorded(None, alone, "io.txt", &[]).unwrap()[0].notes, ["of the tool"]);
    }
}
