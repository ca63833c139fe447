//! What a refusal of `ebbtide-forecast` is on the command line: the option that is meant, the exit code, and what to do.

use std::error::Error;
use std::fmt;

use ebbtide_captured::{KNOWN_RECORDS, RecordedError};
use ebbtide_forecast::prediction::{NoSweep, PROCESSOR_TIME, PredictionError};
use ebbtide_forecast::profile::{DraftError, Missing};
use ebbtide_forecast::server::ServerError;
use ebbtide_forecast::sizing::{PricesError, SizeOrigin, SizingError, TraceOption};
use ebbtide_forecast::stored::VolumeTooSmall;
use ebbtide_forecast::volumes::VolumesError;
use ebbtide_observe::{Role, WrongVolumes};
use ebbtide_text::size;
use ebbtide_twin::trace::TraceError;

use crate::exit::{Exit, Refusal};

/// An error of the library that the command line words.
pub(crate) trait Refusable: Error + Send + Sync + 'static {
    /// It, with the names of options.
    fn refusal(&self) -> Refusal;
}

/// The refusal of an error; its causes follow as the chain.
pub(crate) fn refused(error: impl Refusable) -> anyhow::Error {
    let refusal = error.refusal();
    anyhow::Error::new(Reworded { message: refusal.message.clone(), error }).context(refusal)
}

/// An error in the words of its refusal. A chain says equal words once.
#[derive(Debug)]
struct Reworded<E> {
    message: String,
    error: E,
}

impl<E> fmt::Display for Reworded<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Error> Error for Reworded<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

const EVERY_KEY: &str = "docs/predict.md has every key";

impl Refusable for VolumesError {
    fn refusal(&self) -> Refusal {
        let refusal = Refusal::usage(self.to_string());
        match self {
            Self::Wrong(WrongVolumes::Twice { .. }) => refusal.hint("give each role once"),
            Self::Wrong(WrongVolumes::NoData { .. }) => {
                refusal.hint("as in data=gp3:size=500GiB,redo=gp3:size=50GiB")
            }
            Self::NoBinlog { role, .. } => {
                let change = match role {
                    Role::Logs => "name the volume redo=",
                    _ => "leave binlog= out",
                };
                refusal.hint(format!("{change}, or predict with --set server.log_bin=true"))
            }
            Self::Catalog(error) => Refusal { hint: error.hint(), ..refusal },
            Self::Wrong(WrongVolumes::UnknownRole(_)) | Self::Spec(_) => refusal,
        }
    }
}

impl Refusable for VolumeTooSmall {
    fn refusal(&self) -> Refusal {
        Refusal::usage(format!("--volume {}: {self}", self.spec)).hint(format!(
            "give a size of {} or more; --set server.redo_log_capacity=SIZE predicts with another redo log",
            size(self.least_bytes)
        ))
    }
}

impl Refusable for ServerError {
    fn refusal(&self) -> Refusal {
        let refusal = Refusal::usage(self.to_string());
        match self {
            Self::Read { .. } => refusal.hint("give the path of a TOML file; docs/predict.md has an example"),
            Self::Unusable { .. } => refusal.hint(EVERY_KEY),
            Self::Instance(_) => refusal,
        }
    }
}

impl Refusable for NoSweep {
    fn refusal(&self) -> Refusal {
        Refusal::usage(format!("--sweep {self}"))
            .hint("like iops=1000..30000:1000, or redo.iops=1000..5000:500; sizes are in GiB")
    }
}

impl Refusable for PredictionError {
    fn refusal(&self) -> Refusal {
        let usage = Refusal::usage;
        match self {
            Self::Server(error) => error.refusal(),
            Self::Volumes(error) => error.refusal(),
            Self::TooSmall(error) => error.refusal(),
            Self::Instance(_) => usage(self.to_string()),
            Self::ProcessorTimeMeasured { .. } => usage(format!("--set {PROCESSOR_TIME}: {self}"))
                .hint("remove cpu_pct from the points of the profile's file"),
            Self::PointChanged { key } => {
                usage(format!("--set {key}: {self}")).hint("change the profile's file")
            }
            Self::Key(_) => usage(format!("--set {self}")).hint(EVERY_KEY),
            Self::Changed(_) => usage("--set gives no profile".to_owned()),
            Self::Rate { .. } => usage(format!("--rate {self}")),
            Self::Clients { .. } => usage(format!("--clients {self}")),
            Self::NoVolumeToSweep { role, key } => {
                usage(format!("--sweep {role}.{key}: --volume has no volume for {role}"))
                    .hint(format!("as in --volume data=gp3:size=500GiB,{role}=gp3:size=50GiB"))
            }
            Self::TooManyVolumes { .. } => usage(self.to_string()).hint("give --sweep a larger step"),
        }
    }
}

impl Refusable for DraftError {
    fn refusal(&self) -> Refusal {
        let refusal = Refusal::usage(self.to_string());
        let usable = |arms: &[String]| format!("it has {}", arms.join(", "));
        match self {
            Self::Results { .. } => {
                refusal.hint("give the directory of a run: `ebbtide run EXPERIMENT --out DIR`")
            }
            Self::NoUsableArm { .. } => refusal.hint("docs/predict.md says what a profile can express"),
            Self::UnusableArm { arm, why, usable: arms } => {
                Refusal::usage(format!("--arm {arm} can be no profile: {why}")).hint(usable(arms))
            }
            Self::UnknownArm { arm, usable: arms } => {
                Refusal::usage(format!("--arm {arm}: the run has no arm of this name")).hint(usable(arms))
            }
            Self::NoVariables => refusal.hint("add the output of SHOW GLOBAL VARIABLES"),
            Self::SharedLogs(_) => refusal.hint("capture it again, and name one of them"),
            Self::Restarted => refusal.hint("observe it again"),
            Self::Key(_) => Refusal::usage(format!("--set {self}")).hint(EVERY_KEY),
            Self::Missing(missing) => {
                refusal.hint(format!("add it with --set, as in --set {}=VALUE", example(missing)))
            }
            Self::Instance(_) => refusal,
            Self::Volumes(error) => error.refusal(),
            Self::Useless(_) => refusal.hint(EVERY_KEY),
        }
    }
}

/// A missing key that `--set` takes.
fn example(missing: &[Missing]) -> &'static str {
    let keys = missing.iter().map(|missing| missing.key);
    keys.into_iter().find(|key| !key.starts_with('[')).unwrap_or("machine.vcpus")
}

impl Refusable for PricesError {
    fn refusal(&self) -> Refusal {
        match self {
            Self::Read { .. } => Refusal::usage(format!("--prices {self}")),
            Self::List(_) | Self::Catalog(_) => {
                Refusal::usage(format!("--prices: {self}")).hint(HOW_TO_GET_PRICES)
            }
        }
    }
}

const HOW_TO_GET_PRICES: &str = "a list is at https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/current/REGION/index.csv, and the same with \
                                 AmazonRDS";

impl Refusable for SizingError {
    fn refusal(&self) -> Refusal {
        let usage = Refusal::usage;
        let refusal = usage(self.to_string());
        match self {
            Self::Region(error) => {
                Refusal { hint: error.hint(), ..usage(format!("--region: {self}")) }
            }
            Self::Today { .. } => usage(format!("--volume {self}")).hint(
                "a volume is TYPE:KEY=VALUE,... such as gp3:size=500GiB,iops=6000 or raid0(2x gp2:size=100GiB)",
            ),
            Self::Instance { .. } => usage(format!("--instance {self}")),
            Self::Contradiction { .. } => refusal.hint(
                "leave the interval out of the file, or record the load again; sums and means may have been mixed up",
            ),
            Self::SizeUnknown => refusal.hint(
                "give today's volume with --volume gp2:size=500GiB, or the size with --size 500GiB",
            ),
            Self::SizeTooSmall { origin, least_bytes, .. } => {
                let option = if *origin == SizeOrigin::Asked { "--size" } else { "--volume" };
                usage(format!("{option}: {self}")).hint(format!("give {} or more", size(*least_bytes)))
            }
            Self::Tps { .. } => usage(format!("--tps {self}")),
            Self::TpsMeasured { .. } => usage(format!("--tps-measured {self}")),
            Self::TpsNotRecorded => usage(format!("--tps: {self}"))
                .hint("give them with --tps-measured, or size for a profile (docs/predict.md)"),
            Self::TpsNotInProfile => refusal.hint(
                "give --tps, or a point: the difference of Com_commit over a measurement, by its seconds",
            ),
            Self::ServerOverloaded { .. } => Refusal { exit: Exit::Finding, ..refusal }
                .hint("give a larger --instance, other settings in the profile, or fewer --tps"),
            // The size was found to be one that a volume can have.
            Self::Ideal(_) => Refusal::invariant(self.to_string()),
            Self::Members { .. } => usage(format!("--raid0 {self}")),
            Self::Server(error) => error.refusal(),
            Self::Share { .. } => refusal.hint("give the profile of a whole server"),
            _ => unusable_files(self, refusal),
        }
    }
}

/// The refusal of files that tell no load.
fn unusable_files(error: &SizingError, refusal: Refusal) -> Refusal {
    use SizingError as E;
    let usage = Refusal::usage;
    let known = |more: &str| format!("what is known: {KNOWN_RECORDS}{more}");
    let there_are = |names: &[String]| match names {
        [] => "the files name no device: leave --device out".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    match error {
        E::Unreadable { .. } => {
            refusal.hint(known("; a trace of block I/O; the directory of a run; a profile"))
        }
        E::Empty { .. } => refusal.hint(known("; a trace of block I/O")),
        E::Zip { .. } => refusal.hint("save the sheet as CSV, or unpack the archive"),
        E::NoRecord { .. } => refusal.hint(format!(
            "name the directory that ebbtide run wrote, or files; what is known: {KNOWN_RECORDS}"
        )),
        E::Recorded(error) => refusal.hint(record_hint(error)),
        E::NotATrace { option, .. } => {
            let option = match option {
                TraceOption::Format => "--trace-format",
                TraceOption::Unit => "--trace-unit",
            };
            usage(format!("{option}: {error}")).hint("leave the option out")
        }
        E::NotAText { .. } => refusal.hint(known("")),
        E::UnknownDevice { device, devices } => {
            usage(format!("--device {device}: the files have no such device")).hint(there_are(devices))
        }
        E::SeveralDevices { devices, .. } => {
            usage(format!("{error}: name one with --device")).hint(there_are(devices))
        }
        E::Idle { devices, .. } => {
            let named = if devices.is_empty() { String::new() } else { format!(" ({})", devices.join(", ")) };
            refusal.hint(format!(
                "record the load while the server works, a day or more, of the volume of its data{named}"
            ))
        }
        E::NoOperation { .. } => refusal.hint("record the load while the server works, a day or more"),
        E::Run { .. } => refusal.hint("name the directory that ebbtide run wrote"),
        E::UnknownArm { arm, dir, arms } => {
            usage(format!("--arm {arm}: the run in {} has no such arm", dir.display()))
                .hint(format!("it has {}", arms.join(", ")))
        }
        E::SeveralArms { arms, .. } => {
            usage(format!("{error}: name one with --arm")).hint(format!("it has {}", arms.join(", ")))
        }
        E::UnknownRole { role, arm, roles } => {
            usage(format!("--device {role}: the arm {arm} has no volume of that name"))
                .hint(format!("it has {}", roles.join(", ")))
        }
        E::NotMeasured { .. } => refusal.hint("look at it with ebbtide run --report"),
        E::Trace { cause, .. } => trace_hint(cause, refusal),
        E::NoRequest { .. } => refusal.hint("name another device with --device"),
        _ => refusal,
    }
}

fn record_hint(error: &RecordedError) -> String {
    match error {
        RecordedError::Lacks { what, .. } => what.hint().to_owned(),
        RecordedError::Damaged { .. } => "the file may be cut off: copy or make it again".to_owned(),
        RecordedError::Metrics { cause, .. } => cause.hint().to_owned(),
        RecordedError::Unknown { .. } => format!("what is known: {KNOWN_RECORDS}"),
        RecordedError::Unusable { why, .. } => why.hint(),
        RecordedError::Overlap { .. } => "give the files of one machine, and each time once".to_owned(),
        RecordedError::Mixed { .. } => "give the files of one tool".to_owned(),
    }
}

fn trace_hint(error: &TraceError, refusal: Refusal) -> Refusal {
    match error {
        TraceError::Foreign { .. } | TraceError::Empty => refusal,
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

#[cfg(test)]
mod tests {
    use ebbtide_twin::profile::ProfileError;

    use super::*;
    use crate::exit::Report;

    #[test]
    fn a_refusal_has_its_own_words_once_and_the_causes_behind_them() {
        let cause = ProfileError::Conflict("two values".into());
        let changed = Report::of(&refused(PredictionError::Changed(cause)));
        assert_eq!(changed.chain, ["--set gives no profile", "two values"]);
        let clients = Report::of(&refused(PredictionError::Clients { clients: 0 }));
        assert_eq!(clients.chain, ["--clients 0 is out of range: expected 1 to 10000"]);
        assert_eq!((clients.exit, clients.hint), (Exit::Usage, None));
    }

    #[test]
    fn a_server_that_no_storage_helps_is_a_finding_and_not_a_wrong_request() {
        let overloaded =
            SizingError::ServerOverloaded { tps: 5.0, finished: 4.0, limiter: "the processors", share: 0.9 };
        let report = Report::of(&refused(overloaded));
        assert_eq!(report.exit, Exit::Finding);
        assert!(report.hint.is_some_and(|hint| hint.contains("--instance")));
    }
}
