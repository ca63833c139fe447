//! Reads what other tools wrote, and captures: the only crate that does. It needs no server.
//!
//! An observation is made of what people already have of a server: printed variables and status, option files, files of Percona
//! Toolkit, and the kernel's and sysstat's figures of devices.
//!
//! Each text is known by its content. What is in none of them stays unknown: no default is taken for a fact.
//!
//! # Where to begin reading
//!
//! - [`observation()`] makes an observation of texts; `pieces` finds of which kind each is. Captures are [`bundle`], option files
//!   [`option_file`], those of clients [`client_defaults`], files of sysstat `src/sysstat`. What stands around a pasted text is taken off by `pasted`; XML, HTML and JSON of
//!   clients become the text of `\G` in `rows`. Kinds that are not read are named in `elsewhere`, with what to give instead.
//! - Loads over time, for `ebbtide size`, are `src/recorded`. Metrics of CloudWatch are the tables `EBS` and `RDS` in
//!   `src/cloudwatch/metric.rs`, with the statistic and unit that each needs; the readers of files are `json.rs` and `table.rs` beside it.
//!
//! A new kind of file is a variant of `Piece`, which `pieces` makes of a text, and which `Collected::take` adds to the observation. Name
//! it in [`KNOWN`], put a sample into `tests/fixtures`, and its reader into a target of `crates/fuzz`.
#![forbid(unsafe_code)]

pub mod bundle;
pub mod client_defaults;
pub mod configuration;
pub mod option_file;
pub mod packed;

mod cloudwatch;
mod devices;
mod elsewhere;
mod engine;
mod growth;
mod load;
mod offset;
mod pasted;
mod printed;
mod record_error;
mod recorded;
mod replica;
mod rows;
mod started;
mod storage;
mod summary;
mod sysstat;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use ebbtide_observe::{
    Configured, Device, DeviceIo, Facts, Files, Flavour, Host, NotSeen, Observation, Origin, ServerDirectory,
    Span, StatusVariables, Variables, Version,
};

use devices::Devices;
pub use devices::device_io;
pub use elsewhere::Elsewhere;
use engine::Engine;
use growth::over;
use option_file::OptionFile;
use printed::Printed;
pub use record_error::{MissingFigures, RecordDamage, RecordedError, Unusable, WrongMetrics, WrongStatistic};
pub use recorded::{CLOUDWATCH, KNOWN_RECORDS, ReadFile, Recorded, read_file, recorded, together};
use started::Started;
use storage::Storage;

/// What can be read, for messages.
pub const KNOWN: &str = "a capture of `ebbtide doctor capture`; the output of SHOW GLOBAL VARIABLES, SHOW GLOBAL STATUS and SHOW ENGINE \
                         INNODB STATUS (also as XML, HTML, JSON or CSV), of `mysqladmin variables` and `mysqladmin extended-status`; an \
                         option file (my.cnf), the output of my_print_defaults, a server's command line; a report of pt-mysql-summary; \
                         the files of pt-stalk (a directory, or their common prefix); the output of `iostat -x`, df, mount, findmnt, \
                         lsblk and `aws cloudwatch get-metric-data`, and /proc/diskstats, /proc/mounts, /proc/meminfo";

/// A text, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The file.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
}

/// What the texts do not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    /// The server's version; that of the texts goes before it.
    pub version: Option<String>,
    /// The devices that the server's files are on, such as `nvme1n1`.
    pub devices: Vec<(Files, String)>,
}

/// What a text is.
#[derive(Debug)]
enum Piece {
    Printed(Printed),
    /// Rows whose document has no end.
    Cut,
    Options(OptionFile),
    Started(Started),
    Engine(Engine),
    Summary(summary::Summary),
    Devices(Devices),
    Storage(Storage),
    Replica(Variables),
    Minutes(cloudwatch::Minutes),
}

/// Reads a text: what it has of each known kind, as the output of several programs in one file. Empty for a text of no known
/// kind.
///
/// Of an option file the includes are followed that lie in its own directory.
fn pieces(input: &Input) -> Vec<Piece> {
    let text = &*pasted::bare(&input.text);
    if let Some(summary) = summary::read(text) {
        return vec![Piece::Summary(summary)];
    }
    if let Some(minutes) = cloudwatch::read(input) {
        return vec![Piece::Minutes(minutes)];
    }
    let mut found = printed_pieces(text);
    if found.is_empty()
        && let Some(rows) = rows::read(text)
    {
        found = printed_pieces(&rows.text);
        found.extend((rows.is_cut && !found.is_empty()).then_some(Piece::Cut));
    }
    found.extend(engine::read(text).map(Piece::Engine));
    if !found.is_empty() {
        return found;
    }
    let file = OptionFile::inside_directory(&input.path, text);
    let mut unsure = Vec::new();
    let of_server = !configuration::configured(&file, None, None, &mut unsure).is_empty()
        || !unsure.is_empty()
        || configuration::has_unread_group(&file);
    if of_server {
        return vec![Piece::Options(file)];
    }
    started::read(&input.path, text).map(Piece::Started).into_iter().collect()
}

/// What programs printed, by line.
fn printed_pieces(text: &str) -> Vec<Piece> {
    let found = [
        devices::read(text).map(Piece::Devices),
        storage::read(text).map(Piece::Storage),
        replica::read(text).map(Piece::Replica),
        printed::read(text).map(Piece::Printed),
    ];
    found.into_iter().flatten().collect()
}

/// Whether a text is of a known kind.
#[must_use]
pub fn is_known(input: &Input) -> bool {
    !pieces(input).is_empty()
}

/// Texts of several servers, which are not judged as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the files are of several servers: {name} is '{}' in one and '{}' in another", .values[0], .values[1])]
pub struct SeveralServers {
    /// The variable that tells them apart.
    name: String,
    values: [String; 2],
}

/// What texts hold of one server. Texts of no known kind are left out.
///
/// # Errors
/// They are of several servers.
pub fn observation(path: &str, inputs: &[Input], hints: &Hints) -> Result<Observation, SeveralServers> {
    let mut all = Collected::default();
    inputs.iter().flat_map(pieces).for_each(|piece| all.take(piece));
    match all.mixed() {
        Some((name, values)) => Err(SeveralServers { name, values }),
        None => Ok(all.observation(path, hints)),
    }
}

/// What was found in the texts.
#[derive(Debug, Default)]
struct Collected {
    printed: Printed,
    /// Whether rows of a document without an end are among what was printed.
    is_cut: bool,
    options: OptionFile,
    started: Started,
    engine: Engine,
    summary: Option<summary::Summary>,
    devices: Devices,
    storage: Storage,
    replica: Option<Variables>,
    minutes: cloudwatch::Minutes,
}

impl Collected {
    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Printed(printed) => self.printed.add(printed),
            Piece::Cut => self.is_cut = true,
            Piece::Options(file) => {
                self.options.lines.extend(file.lines);
                self.options.warnings.extend(file.warnings);
            }
            Piece::Started(started) => {
                self.started.options.lines.extend(started.options.lines);
                self.started.values.lines.extend(started.values.lines);
                self.started.version = started.version.or(self.started.version.take());
            }
            Piece::Engine(engine) => self.engine.add(engine),
            Piece::Summary(summary) => {
                self.options.lines.extend(summary.options.lines.iter().cloned());
                self.summary = Some(summary);
            }
            Piece::Devices(devices) => self.devices.add(devices),
            Piece::Storage(storage) => self.storage.add(storage),
            Piece::Replica(replica) => self.replica = Some(replica),
            Piece::Minutes(minutes) => self.minutes.add(minutes),
        }
    }

    /// A name and two values of a variable that tells servers apart.
    fn mixed(&self) -> Option<(String, [String; 2])> {
        let summary = || printed::mixed(self.printed.variables.as_ref()?, &self.summary.as_ref()?.variables);
        let machines = || {
            let mut names = self.devices.machines.iter();
            let values = [names.next()?, names.next()?].map(String::clone);
            Some(("the machine of iostat".to_owned(), values))
        };
        self.printed.mixed.clone().or_else(summary).or_else(machines)
    }

    fn observation(mut self, path: &str, hints: &Hints) -> Observation {
        let mut seen = Observation::of(Origin::Capture { path: path.to_owned() });
        // A command line goes before the option files.
        self.options.lines.append(&mut self.started.options.lines);
        let version = self.version(hints);
        let mariadb = version.as_deref().map(|version| version.contains("MariaDB"));
        let number = version.as_deref().and_then(Version::parse);
        self.set_configured(&mut seen, number, mariadb);
        self.set_variables(&mut seen, version);
        self.set_status(&mut seen);
        self.engine.set(&mut seen);
        seen.changed = self.printed.changed.iter().cloned().collect();
        seen.replica = self.replica.clone();
        self.set_host(&mut seen, hints);
        self.set_peaks(&mut seen);
        self.say(&mut seen, number, mariadb);
        seen
    }

    /// Adds what was not read, or not as it stands there.
    fn say(&self, seen: &mut Observation, number: Option<Version>, mariadb: Option<bool>) {
        let mut add = |missing: String, why: String| seen.not_seen.push(NotSeen { what: missing, why });
        for warning in &self.options.warnings {
            add("an option file".into(), warning.to_string());
        }
        for word in configuration::unknown_words(&self.options, number, mariadb) {
            add("a switch of an option file".into(), word);
        }
        if let Some(name) = &self.printed.cut {
            let why = "it is on a last line that has no end, and may be cut off".to_owned();
            add(format!("the value of {name}"), why);
        }
        if self.is_cut {
            add("the rest of a document".into(), "its end is missing: what is whole was read".into());
        }
        for warning in &self.minutes.warnings() {
            add("rows of the volume's metrics".into(), warning.clone());
        }
        for warning in &self.devices.warnings {
            add("rates of devices".into(), warning.clone());
        }
        let places = seen.host.as_ref().map(|host| self.storage.rounded(&host.places)).unwrap_or_default();
        for rounded in places {
            seen.not_seen.push(NotSeen { what: "the exact free space".into(), why: rounded });
        }
    }

    fn version(&self, hints: &Hints) -> Option<String> {
        let printed = self.printed.variables.as_ref().and_then(|all| all.get("version"));
        let summary = self.summary.as_ref().and_then(|summary| summary.variables.get("version"));
        let started = self.started.version.as_deref();
        printed.or(summary).or(started).map(str::to_owned).or_else(|| hints.version.clone())
    }

    fn set_configured(&self, seen: &mut Observation, number: Option<Version>, mariadb: Option<bool>) {
        if self.options.lines.is_empty() {
            return;
        }
        let mut unsure = Vec::new();
        let lines: Vec<Configured> = configuration::configured(&self.options, number, mariadb, &mut unsure);
        if !unsure.is_empty() {
            let why = format!(
                "whether the server reads [{}] follows from its version: name it with --server-version",
                unsure.join("], [")
            );
            seen.not_seen.push(NotSeen { what: "groups of option files".into(), why });
        }
        seen.configured = Some(lines);
    }

    /// The variables of a server go before those of a summary, and these before an option file's.
    fn set_variables(&self, seen: &mut Observation, version: Option<String>) {
        let mut variables = match (&self.printed.variables, &self.summary, &seen.configured) {
            (Some(printed), _, _) => {
                seen.partial_variables = !printed::is_whole(printed);
                printed.clone()
            }
            (None, Some(summary), _) => {
                seen.partial_variables = true;
                summary.variables.clone()
            }
            (None, None, lines) => {
                let mut all = configuration::configured(&self.started.values, None, None, &mut Vec::new());
                all.extend(lines.iter().flatten().cloned());
                if lines.is_none() && all.is_empty() {
                    return;
                }
                seen.partial_variables = true;
                configuration::variables(&all)
            }
        };
        if let Some(version) = version {
            variables = variables.iter().chain([("version", version.as_str())]).collect();
        }
        seen.facts = Some(Facts::of(&variables));
        seen.variables = Some(variables);
    }

    fn set_status(&self, seen: &mut Observation) {
        let flavour = seen.facts.as_ref().map_or(Flavour::MySql, |facts| facts.flavour);
        let status = &self.printed.status;
        let Some(first) = &status.first else {
            if let Some(summary) = &self.summary {
                summary.set_rates(seen, flavour);
            }
            return;
        };
        let last = status.last.as_ref().unwrap_or(first);
        match status.seconds() {
            Ok(Some(seconds)) => {
                let (span, rates) = over([first, last], flavour, seconds);
                (seen.span, seen.rates) = (Some(span), Some(rates));
                seen.status = Some(StatusVariables::between(first, last.clone(), seconds));
            }
            Ok(None) => seen.status = Some(StatusVariables::once(last.clone())),
            Err(why) => {
                // Differences are no values.
                let values = if matches!(why, printed::NoRates::Other(_)) { first } else { last };
                seen.status = Some(StatusVariables::once(values.clone()));
                seen.not_seen.push(NotSeen { what: "rates".into(), why: why.to_string() });
            }
        }
    }

    fn set_peaks(&self, seen: &mut Observation) {
        if self.minutes.is_empty() {
            return;
        }
        match self.minutes.peaks() {
            Ok(peaks) => seen.peaks = Some(peaks),
            Err(error) => {
                seen.not_seen.push(NotSeen { what: "the volume's metrics".into(), why: error.to_string() });
            }
        }
    }

    fn set_host(&self, seen: &mut Observation, hints: &Hints) {
        if seen.span.is_none()
            && let Some(seconds) = self.devices.seconds()
        {
            seen.span = Some(Span { began_unix_s: None, seconds, restarted: false });
        }
        let nothing = Variables::default();
        let mut host = Host {
            processors: self.devices.processors(),
            busy_share: self.devices.busy_share(),
            ..self.storage.host(seen.variables.as_ref().unwrap_or(&nothing))
        };
        let mut hinted = Vec::new();
        for (files, name) in &hints.devices {
            let device = Device { name: name.clone(), ..Device::default() };
            let place = host.places.iter_mut().find(|place| place.files == *files);
            match place {
                Some(ServerDirectory { device: Some(known), .. }) if hinted.contains(files) => {
                    // A role that is named again is on an array: all its members are named.
                    if known.members.is_empty() {
                        known.members.push(known.name.clone());
                    }
                    known.members.push(name.clone());
                }
                Some(place) => place.device = Some(device),
                None => host.places.push(place_of(*files, device)),
            }
            hinted.push(*files);
        }
        for device in host.places.iter_mut().filter_map(|place| place.device.as_mut()) {
            let members: Option<Vec<_>> = device.names().map(|name| self.devices.io(name)).collect();
            device.io = members.and_then(|members| DeviceIo::together(&members));
        }
        let known = self.devices.names();
        if host.places.iter().all(|place| place.device.is_none()) && !known.is_empty() {
            let why =
                format!("which of {} the data are on: name it with --device data=NAME", known.join(", "));
            seen.not_seen.push(NotSeen { what: "the device of the data".into(), why });
        }
        if host != Host::default() {
            seen.host = Some(host);
        }
    }
}

/// Files of which the device is known alone.
fn place_of(files: Files, device: Device) -> ServerDirectory {
    ServerDirectory {
        files,
        directory: String::new(),
        mount_point: String::new(),
        file_system: String::new(),
        options: Vec::new(),
        size_bytes: None,
        free_bytes: None,
        device: Some(device),
    }
}
