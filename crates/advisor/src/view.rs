//! An observation as checks read it: each value that is read becomes evidence, and each that is missing is an answer.

use std::cell::{Cell, RefCell};
use std::fmt::Display;

use ebbtide_catalog::{Catalog, Resolved, Spec};
use ebbtide_observe::metric::Servers;
use ebbtide_observe::{
    Device, Files, Flavour, Host, METRICS, NotSeen, Observation, Role, ServerDirectory, SharedLogs, Tables,
    Variables, Version, switch,
};

use crate::cautions::cap;
use crate::finding::{Confidence, Evidence, Gap, Seen};
use crate::fix::{Fix, VariableChange};

/// An observation and the catalogue, for one check.
#[derive(Debug)]
pub struct View<'a> {
    seen: &'a Observation,
    catalog: &'a Catalog,
    evidence: RefCell<Vec<Evidence>>,
    /// Whether something was read that is true of the interval alone.
    over_time: Cell<bool>,
    /// What the evidence is true of, where it is not the data or the server as a whole.
    of: Option<&'static str>,
}

/// A first version, by maker, from which a server's variable can be changed while it runs; None: never.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dynamic {
    pub(crate) mariadb: Option<Version>,
    pub(crate) mysql: Option<Version>,
}

impl Dynamic {
    const ANY: Option<Version> = Some(Version::new(0, 0, 0));
    /// On every server.
    pub(crate) const ALWAYS: Self = Self { mariadb: Self::ANY, mysql: Self::ANY };
    /// On no server.
    pub(crate) const NEVER: Self = Self { mariadb: None, mysql: None };

    fn on(self, flavour: Flavour, version: Version) -> bool {
        let since = if flavour == Flavour::MariaDb { self.mariadb } else { self.mysql };
        since.is_some_and(|since| version >= since)
    }
}

/// Where an instance of RDS has its data.
const RDS: &str = "/rdsdbdata/";

fn missing<T>(what: impl Into<String>, why: impl Into<String>) -> Result<T, Gap> {
    Err(Gap::Missing(NotSeen { what: what.into(), why: why.into() }))
}

impl<'a> View<'a> {
    pub(crate) fn new(seen: &'a Observation, catalog: &'a Catalog) -> Self {
        Self { seen, catalog, evidence: RefCell::default(), over_time: Cell::new(false), of: None }
    }

    /// The same for the volume of some files, whose evidence is kept apart until [`View::take`].
    pub(crate) fn of_files(&self, files: Role) -> Self {
        let of = (files != Role::Data).then(|| files.holds());
        Self { of, ..Self::new(self.seen, self.catalog) }
    }

    /// Takes over the evidence of another view.
    pub(crate) fn take(&self, other: Self) {
        self.over_time.set(self.over_time.get() || other.over_time.get());
        self.evidence.borrow_mut().extend(other.evidence.into_inner());
    }

    pub(crate) fn into_evidence(self) -> Vec<Evidence> {
        self.evidence.into_inner()
    }

    pub(crate) fn observation(&self) -> &'a Observation {
        self.seen
    }

    pub(crate) fn catalog(&self) -> &'a Catalog {
        self.catalog
    }

    /// The confidence that what was read allows: settings are certain, an interval is as good as its length.
    pub(crate) fn confidence(&self) -> Confidence {
        let most = if self.over_time.get() { cap(self.seen) } else { Confidence::High };
        // A file has what a server is started with, and a summary leaves things out.
        if self.seen.partial_variables { most.min(Confidence::Medium) } else { most }
    }

    /// Refuses servers that a check does not apply to.
    pub(crate) fn applies(&self, servers: &[Servers]) -> Result<(), Gap> {
        if servers.contains(&Servers::EVERY) {
            return Ok(());
        }
        let (flavour, version) = self.server()?;
        if servers.iter().any(|one| flavour.is_among(version, *one)) {
            return Ok(());
        }
        does_not_apply(format!("{flavour} {version} does not have it"))
    }

    /// Whose server it is, and its version.
    pub(crate) fn server(&self) -> Result<(Flavour, Version), Gap> {
        let release = self.seen.facts.as_ref().and_then(|facts| Some((facts.flavour, facts.release()?)));
        release.map_or_else(
            || missing("the server's version", "connect to the server, or name it with --server-version"),
            Ok,
        )
    }

    pub(crate) fn is_mariadb(&self) -> Result<bool, Gap> {
        Ok(self.server()?.0 == Flavour::MariaDb)
    }

    fn note(&self, name: &'static str, value: Seen, meaning: &'static str) {
        let mut evidence = self.evidence.borrow_mut();
        if !evidence.iter().any(|one| one.name == name) {
            evidence.push(Evidence { name, value, meaning, of: self.of });
        }
    }

    /// Adds a number that was worked out as evidence.
    pub(crate) fn noted(&self, name: &'static str, value: f64, meaning: &'static str) -> f64 {
        self.note(name, Seen::Number(value), meaning);
        value
    }

    fn variables(&self) -> Result<&'a Variables, Gap> {
        self.seen
            .variables
            .as_ref()
            .filter(|all| !all.is_empty())
            .map_or_else(|| missing("SHOW GLOBAL VARIABLES", "connect to the server, or capture it"), Ok)
    }

    /// A variable in the server's words; None where the server does not have it. Where a part of the variables was read,
    /// one that is not among them is missing.
    pub(crate) fn maybe(&self, name: &'static str) -> Result<Option<&'a str>, Gap> {
        let value = self.variables()?.get(name);
        if let Some(value) = value {
            self.note(name, Seen::Text(value.to_owned()), "global variable");
        } else if self.seen.partial_variables {
            return missing(name, "what was read does not set it, and its default is not taken for a fact");
        }
        Ok(value)
    }

    /// A variable in the server's words.
    pub(crate) fn text(&self, name: &'static str) -> Result<&'a str, Gap> {
        match self.maybe(name)? {
            Some(value) => Ok(value),
            None if self.seen.facts.as_ref().is_none_or(|facts| facts.version.is_empty()) => {
                missing(name, "capture the whole of SHOW GLOBAL VARIABLES")
            }
            None => does_not_apply(format!("the server has no variable {name}")),
        }
    }

    /// A variable as a number.
    pub(crate) fn number(&self, name: &'static str) -> Result<f64, Gap> {
        let text = self.text(name)?;
        text.parse().map_err(|_| Gap::Undecided(format!("{name} is {text}, which is no number.")))
    }

    /// Whether a switch is on. A word that is neither on nor off is no answer: the server would not start with it.
    pub(crate) fn on(&self, name: &'static str) -> Result<bool, Gap> {
        let text = self.text(name)?;
        let off = ["OFF", "0", "NO", "FALSE"].iter().any(|off| text.eq_ignore_ascii_case(off));
        match is_on(text) {
            on if on != off => Ok(on),
            _ => Err(Gap::Undecided(format!("{name} is {text}, which is neither ON nor OFF."))),
        }
    }

    /// A variable that has to be one of some words.
    pub(crate) fn one_of(&self, name: &'static str, words: &[&'static str]) -> Result<&'static str, Gap> {
        let text = self.text(name)?;
        words.iter().find(|word| text.eq_ignore_ascii_case(word)).copied().ok_or_else(|| {
            Gap::Undecided(format!("{name} is {text}, which is none of {}.", words.join(", ")))
        })
    }

    /// Whether the binary log is on; a check of the binary log does not apply otherwise.
    pub(crate) fn needs_binlog(&self) -> Result<(), Gap> {
        if self.on("log_bin")? { Ok(()) } else { does_not_apply("the binary log is off") }
    }

    /// Whether the value of a variable was set, and is not the server's own.
    pub(crate) fn is_set(&self, name: &'static str) -> Result<bool, Gap> {
        if self.seen.origins.is_none()
            && let Some(configured) = &self.seen.configured
        {
            return Ok(configured.iter().any(|line| line.name == name));
        }
        let Some(origins) = &self.seen.origins else {
            return missing(
                "the origin of variables",
                "connect to the server; it needs SELECT on performance_schema (MySQL) or no grant (MariaDB)",
            );
        };
        let origin = origins.get(name).unwrap_or("COMPILED");
        let set = !["COMPILED", "COMPILE-TIME", "AUTO"].iter().any(|own| origin.eq_ignore_ascii_case(own));
        if set {
            self.note(name, Seen::Text(origin.to_owned()), "where the value of the variable comes from");
        }
        Ok(set)
    }

    /// A metric over the interval, by the name of its field in `Rates`.
    pub(crate) fn metric(&self, name: &str) -> Result<f64, Gap> {
        let metric = METRICS.iter().position(|metric| metric.name == name).expect("a field of Rates");
        let values = self.seen.rates.map(|rates| rates.to_values()).unwrap_or_default();
        self.over_time.set(true);
        let Some(value) = values.get(metric).copied().flatten() else {
            let why = if self.seen.rates.is_none() {
                "the status has to be read twice: connect to the server, or capture it twice"
            } else {
                "the server does not count it, or the account may not read it (PROCESS, SELECT on performance_schema)"
            };
            return missing(format!("the metric {name}"), why);
        };
        Ok(self.noted(METRICS[metric].name, value, METRICS[metric].meaning))
    }

    /// How long the observation is, seconds; 0 where it is of one moment.
    pub(crate) fn interval(&self) -> f64 {
        self.seen.span.map_or(0.0, |span| span.seconds)
    }

    /// Growth of a status variable, a second.
    pub(crate) fn growth(&self, name: &'static str) -> Result<f64, Gap> {
        self.over_time.set(true);
        let growth = self.seen.status.as_ref().and_then(|status| status.growth_per_s.get(name));
        match growth {
            Some(growth) => Ok(self.noted(name, *growth, "growth a second of the status variable")),
            None if self.seen.status.as_ref().is_some_and(|status| !status.growth_per_s.is_empty()) => {
                missing(
                    format!("the status variable {name}"),
                    "the server does not count it, or it went back",
                )
            }
            None => missing("SHOW GLOBAL STATUS, twice", "connect to the server, or capture it twice"),
        }
    }

    /// The last value of a status variable, in the server's words.
    pub(crate) fn last(&self, name: &'static str) -> Result<&'a str, Gap> {
        match self.seen.status.as_ref().and_then(|status| status.last.get(name)) {
            Some(value) => {
                self.note(name, Seen::Text(value.to_owned()), "status variable");
                Ok(value)
            }
            None => missing(
                format!("the status variable {name}"),
                "connect to the server, or capture SHOW GLOBAL STATUS",
            ),
        }
    }

    /// The columns of replication; a check of a replica does not apply to a server without a source.
    pub(crate) fn replica(&self) -> Result<&'a Variables, Gap> {
        match &self.seen.replica {
            Some(replica) if replica.is_empty() => does_not_apply("the server has no source"),
            Some(replica) => Ok(replica),
            None => missing(
                "SHOW REPLICA STATUS",
                "needs REPLICATION CLIENT (MySQL) or REPLICA MONITOR (MariaDB)",
            ),
        }
    }

    /// Whether the server is known to be a replica. One that takes writes and whose sources are only left from before, with all
    /// threads stopped, is none: it was promoted.
    pub(crate) fn is_replica(&self) -> bool {
        let Some(replica) = self.seen.replica.as_ref().filter(|replica| !replica.is_empty()) else {
            return false;
        };
        let stopped = |names: [&str; 2]| names.iter().find_map(|name| replica.get(name)) == Some("No");
        let stopped = stopped(["replica_io_running", "slave_io_running"])
            && stopped(["replica_sql_running", "slave_sql_running"]);
        let takes_writes =
            self.seen.variables.as_ref().and_then(|all| switch(all.get("read_only")?)) == Some(false);
        let others = replica.get("any_channel_running").is_some();
        others || !(stopped && takes_writes)
    }

    /// Whether the server is a node of a cluster of Galera (MariaDB, Percona XtraDB Cluster).
    pub(crate) fn is_galera(&self) -> bool {
        self.seen.variables.as_ref().and_then(|all| switch(all.get("wsrep_on")?)) == Some(true)
    }

    /// Whether another server is known to have the same data: of a replica, and of a node of a cluster with others in it.
    pub(crate) fn is_copy(&self) -> bool {
        let nodes = || self.seen.status.as_ref()?.last.get("wsrep_cluster_size")?.parse::<u64>().ok();
        self.is_replica() || (self.is_galera() && nodes() > Some(1))
    }

    /// Whether the server is one of Aurora.
    pub(crate) fn is_aurora(&self) -> bool {
        self.seen.facts.as_ref().is_some_and(|facts| facts.aurora.is_some())
    }

    /// Whether the server is an instance of RDS, by where it has its data.
    pub(crate) fn is_rds(&self) -> bool {
        self.seen
            .variables
            .as_ref()
            .and_then(|all| all.get("datadir"))
            .is_some_and(|dir| dir.starts_with(RDS))
    }

    /// Sizes of tables.
    pub(crate) fn tables(&self) -> Result<&'a Tables, Gap> {
        self.seen.tables.as_ref().map_or_else(
            || missing("sizes of tables", "connect to the server; very many tables are skipped"),
            Ok,
        )
    }

    /// The machine.
    pub(crate) fn host(&self) -> Result<&'a Host, Gap> {
        self.seen
            .host
            .as_ref()
            .map_or_else(|| missing("the server's machine", "run this on the server's machine"), Ok)
    }

    /// A fact of the machine.
    pub(crate) fn fact(
        &self,
        name: &'static str,
        value: Option<u64>,
        meaning: &'static str,
    ) -> Result<f64, Gap> {
        match value {
            Some(value) => Ok(self.noted(name, value as f64, meaning)),
            None => missing(meaning, "the machine does not report it, or root is needed"),
        }
    }

    /// Where files of a kind lie.
    pub(crate) fn place(&self, files: Files) -> Result<&'a ServerDirectory, Gap> {
        let Some(place) = self.host()?.place(files) else {
            return missing(
                format!("where the {} lie", files.name()),
                "run this on the server's machine, as root",
            );
        };
        self.note(
            "mount",
            Seen::Text(format!("{} on {}", place.directory, place.mount_point)),
            "directory and where it is mounted",
        );
        Ok(place)
    }

    /// Where files of a kind lie, with the options of the mount.
    pub(crate) fn mount(&self, files: Files) -> Result<&'a ServerDirectory, Gap> {
        let place = self.place(files)?;
        if place.options.is_empty() {
            return missing(
                "options of the mount",
                "capture the output of mount, or run this on the server's machine",
            );
        }
        Ok(place)
    }

    /// The device of files of a kind.
    pub(crate) fn device(&self, files: Files) -> Result<&'a Device, Gap> {
        let Some(device) = &self.place(files)?.device else {
            return missing(
                format!("the device below the {}", files.name()),
                "it is no block device that /sys describes",
            );
        };
        self.note("device", Seen::Text(device.name.clone()), "device below all partitions and mappings");
        Ok(device)
    }

    /// The device of the volume of files.
    pub(crate) fn device_of(&self, files: Role) -> Result<&'a Device, Gap> {
        let host = self.seen.host.as_ref();
        let is_known = |one: &&Files| host.and_then(|host| host.place(**one)?.device.as_ref()).is_some();
        let all = files.files();
        self.device(all.iter().find(is_known).or(all.first()).copied().unwrap_or(Files::Data))
    }

    /// Notes a word of the machine as evidence.
    pub(crate) fn word(&self, name: &'static str, value: &str, meaning: &'static str) {
        self.note(name, Seen::Text(value.to_owned()), meaning);
    }

    /// The volume that both logs share; None where they have none, and where two are named for one device.
    fn shared_logs(&self) -> Option<SharedLogs<'a>> {
        self.seen.shared_logs().ok().flatten()
    }

    /// The spec of the volume of files, where `--volume` names one for them.
    fn own_spec(&self, files: Role) -> Option<&'a str> {
        let shared = || self.shared_logs().and_then(|logs| logs.spec);
        match files {
            Role::Redo => self.seen.spec(files).or_else(shared),
            Role::Logs => shared(),
            _ => self.seen.spec(files),
        }
    }

    /// Whether files are on a device that holds nothing of the data; false where that is not known.
    fn is_apart(&self, files: Files) -> bool {
        let device = |files| self.seen.host.as_ref()?.place(files)?.device.as_ref();
        device(files).zip(device(Files::Data)).is_some_and(|(own, data)| !own.shares_with(data))
    }

    /// The volumes of the server by what lies on them, that of the data first: those that `--volume` names, and those that
    /// are found on another device.
    pub(crate) fn volumes(&self) -> Vec<Role> {
        let mut all = vec![Role::Data];
        match self.shared_logs() {
            Some(_) if self.seen.is_without_binlog() => all.push(Role::Redo),
            Some(_) => all.push(Role::Logs),
            None => {
                let own = [(Role::Redo, Files::Redo), (Role::Binlog, Files::Binlog)];
                let is_there = |(volume, files): &(Role, Files)| {
                    self.own_spec(*volume).is_some() || self.is_apart(*files)
                };
                all.extend(own.into_iter().filter(is_there).map(|(volume, _)| volume));
            }
        }
        all
    }

    /// On which of the server's volumes files of a kind lie.
    pub(crate) fn volume_with(&self, files: Files) -> Role {
        let mut all = self.volumes().into_iter();
        all.find(|volume| volume.files().contains(&files)).unwrap_or(Role::Data)
    }

    /// One of the server's volumes.
    pub(crate) fn volume(&self, files: Role) -> Result<Resolved, Gap> {
        let Some(spec) = self.own_spec(files) else {
            let what = match files {
                Role::Data => "the volume".to_owned(),
                _ => format!("the volume of the {}", files.holds()),
            };
            return missing(what, format!("name it with --volume {}=SPEC", files.key()));
        };
        self.note("volume", Seen::Text(spec.to_owned()), "volume as --volume says");
        let wrong = |error: &dyn Display| Gap::Undecided(format!("{spec}: {error}"));
        let parsed = Spec::parse(spec).map_err(|error| wrong(&error))?;
        self.catalog.resolve(&parsed).map_err(|error| wrong(&error))
    }

    /// Variables to set, in the words of this server's release. Those that have the value already are left out; where
    /// all have it, the fix says so and sets nothing.
    pub(crate) fn fix(
        &self,
        text: impl Into<String>,
        set: &[(&'static str, &str, Dynamic)],
    ) -> Result<Fix, Gap> {
        let differs = |(variable, value, _): &&(&'static str, &str, Dynamic)| {
            let current = self.seen.variables.as_ref().and_then(|all| all.get(variable));
            current.is_none_or(|current| !is_same(current, value))
        };
        let wanted = set;
        let set: Vec<_> = wanted.iter().filter(differs).copied().collect();
        if set.is_empty() && !wanted.is_empty() {
            let have: Vec<_> =
                wanted.iter().map(|(variable, value, _)| format!("{variable} = {value}")).collect();
            return Ok(Fix::by_hand(format!(
                "{} is set already: the cause lies elsewhere.",
                have.join(", ")
            )));
        }
        let Ok((flavour, version)) = self.server() else {
            return Ok(Self::fix_of_file(text, &set));
        };
        let change = |&(variable, value, dynamic): &(&'static str, &str, Dynamic)| VariableChange {
            variable,
            value: value.to_owned(),
            restart: !dynamic.on(flavour, version),
        };
        let set = set.iter().map(change).collect();
        Ok(if self.is_rds() {
            Fix::of_parameter_group(text, set)
        } else {
            Fix::of(text, set, flavour, version)
        })
    }

    /// Lines of my.cnf alone: which statement a server takes follows from its version.
    fn fix_of_file(text: impl Into<String>, set: &[(&'static str, &str, Dynamic)]) -> Fix {
        let change = |&(variable, value, _): &(&'static str, &str, Dynamic)| VariableChange {
            variable,
            value: value.to_owned(),
            restart: true,
        };
        Fix::of_file(text, set.iter().map(change).collect())
    }
}

/// Whether two values of a variable are the same to the server.
fn is_same(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    one.eq_ignore_ascii_case(other) || number(one).is_some_and(|one| number(other) == Some(one))
}

/// Whether a word of a server means that a switch is on.
pub(crate) fn is_on(word: &str) -> bool {
    switch(word) == Some(true)
}

/// The answer where a question has no meaning.
pub(crate) fn does_not_apply<T>(why: impl Into<String>) -> Result<T, Gap> {
    Err(Gap::DoesNotApply(format!("{}.", why.into())))
}
