//! What was seen of a server and of the storage below it.

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Variables};
use crate::host::{Host, SyncProbe, VolumePeaks};
use crate::rates::Rates;
use crate::role::Role;
use crate::status::{SelectRates, StatusVariables};
use crate::tables::Tables;
use crate::volumes::Volumes;

/// What was seen of one server, by whomever. Everything is optional but where it comes from: a capture may have variables
/// alone, a trial rates and its volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Where it comes from.
    pub origin: Origin,
    /// When, and over how long.
    pub span: Option<Span>,
    /// The server's settings in its own words.
    pub variables: Option<Variables>,
    /// Whether the variables are a part of the server's: a configuration file or a summary has no others. One that is
    /// missing is then not known.
    #[serde(default)]
    pub partial_variables: bool,
    /// What the option files of the server set, in the order in which they hold; None where no file was read.
    pub configured: Option<Vec<Configured>>,
    /// The values of the settings.
    pub facts: Option<Facts>,
    /// What the server did in the span, a second.
    pub rates: Option<Rates>,
    /// The specs of its volumes, such as `gp3:size=500GiB`, as far as someone named them.
    #[serde(flatten, with = "specs")]
    pub volumes: Volumes<Option<String>>,
    /// The file system that its data are on.
    pub file_system: Option<FileSystem>,
    /// All status variables.
    pub status: Option<StatusVariables>,
    /// What SELECT statements did by their digests; None where these are not collected, not shown, or not needed, because InnoDB
    /// counts the rows that it reads.
    pub selects: Option<SelectRates>,
    /// Mean number of clients whose statements ran, of several looks within the span; None where it was looked at twice.
    pub clients: Option<f64>,
    /// The highest checkpoint age of these looks, bytes; None where it was looked at twice, and where no status variable has it.
    pub highest_checkpoint_age: Option<f64>,
    /// Where the value of each variable comes from, in the server's words, such as `COMPILED` or `CONFIG`.
    pub origins: Option<Variables>,
    /// Replication from a source, by the names of the server's columns; empty where the server has no source.
    pub replica: Option<Variables>,
    /// Tables of users.
    pub tables: Option<Tables>,
    /// The machine that the server runs on.
    pub host: Option<Host>,
    /// The EC2 instance type, such as `r6i.large`.
    pub instance: Option<String>,
    /// What the volume of the data carried over days.
    pub peaks: Option<VolumePeaks>,
    /// How long a small write and its sync take; None where that was not asked for.
    pub sync_probe: Option<SyncProbe>,
    /// Settings that were changed within the span.
    #[serde(default)]
    pub changed: Vec<String>,
    /// What was asked for and not answered.
    pub not_seen: Vec<NotSeen>,
}

/// An option that an option file (my.cnf) of the server sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    /// Its name as that of a variable.
    pub name: String,
    /// Its value, numbers without a suffix, switches as `ON` and `OFF`.
    pub value: String,
    /// The group that it stands in.
    pub group: String,
    /// File and line.
    pub place: String,
}

/// Something that was asked for and could not be observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotSeen {
    /// What.
    pub what: String,
    /// Why, and what would allow it.
    pub why: String,
}

impl Observation {
    /// One in which nothing was seen.
    #[must_use]
    pub const fn of(origin: Origin) -> Self {
        Self {
            origin,
            span: None,
            variables: None,
            partial_variables: false,
            configured: None,
            facts: None,
            rates: None,
            volumes: Volumes::new(None),
            file_system: None,
            status: None,
            selects: None,
            clients: None,
            highest_checkpoint_age: None,
            origins: None,
            replica: None,
            tables: None,
            host: None,
            instance: None,
            peaks: None,
            sync_probe: None,
            changed: Vec::new(),
            not_seen: Vec::new(),
        }
    }
}

/// Defaults of the variables that size MySQL's redo log: `innodb_redo_log_capacity`, and the older two.
const REDO_DEFAULTS: [(&str, &str); 3] = [
    ("innodb_redo_log_capacity", "104857600"),
    ("innodb_log_file_size", "50331648"),
    ("innodb_log_files_in_group", "2"),
];

/// The age of the checkpoint at which a server flushes before all else, as a share of the redo log's capacity, where no counter has it.
/// Two of 32 files are kept free, a twentieth of the rest is for the writer of the log, and the last sixteenth is for the flush
/// (`log0files_capacity.cc` of MySQL). Before 8.0.30, and on MariaDB before 10.5, a tenth is kept free, and the last sixteenth is
/// the same.
pub const REDO_SYNC_FLUSH_SHARE: f64 = 0.83;

impl Observation {
    /// The spec of the volume that is named for what lies on it: for a log also that of both logs.
    #[must_use]
    pub fn spec(&self, role: Role) -> Option<&str> {
        self.volumes.get(role)?.as_deref()
    }

    /// Bytes of the redo log's files together; None where neither variables nor status have them.
    ///
    /// MySQL from 8.0.30 on has the variable `innodb_redo_log_capacity` in any case, but takes the older two where they
    /// alone are set ("Redo Log", MySQL 8.0's manual). The status `Innodb_redo_log_capacity_resized` has what holds.
    #[must_use]
    pub fn redo_capacity_bytes(&self) -> Option<u64> {
        let variables = self.variables.as_ref()?;
        let number = |name: &str| variables.get(name)?.parse::<u64>().ok();
        let files = || {
            let files = self.facts.as_ref().map_or(1, |facts| facts.redo_files(variables));
            number("innodb_log_file_size")?.checked_mul(files)
        };
        let Some(capacity) = number("innodb_redo_log_capacity") else { return files() };
        let status =
            self.status.as_ref().and_then(|status| status.last.get("innodb_redo_log_capacity_resized"));
        if let Some(resized) = status.and_then(|value| value.parse().ok()).filter(|bytes| *bytes > 0) {
            return Some(resized);
        }
        if self.is_redo_sized_by_files() { files() } else { Some(capacity) }
    }

    /// Whether the older two variables size the redo log of a server that has `innodb_redo_log_capacity`.
    #[must_use]
    pub fn is_redo_sized_by_files(&self) -> bool {
        let [capacity, files @ ..] = REDO_DEFAULTS.map(|(name, default)| self.is_set(name, default));
        !capacity && files.contains(&true)
    }

    /// Whether a variable was set: by its origin, else by the option files, else by a value that is not its default.
    fn is_set(&self, name: &str, default: &str) -> bool {
        match (&self.origins, &self.configured) {
            (Some(origins), _) => {
                let own = ["COMPILED", "COMPILE-TIME", "AUTO"];
                origins.get(name).is_some_and(|from| !own.iter().any(|own| from.eq_ignore_ascii_case(own)))
            }
            (None, Some(lines)) => lines.iter().any(|line| line.name == name),
            (None, None) => {
                let value = self.variables.as_ref().and_then(|variables| variables.get(name));
                value.is_some_and(|value| value != default)
            }
        }
    }
}

/// The names of the specs in a capture: those of the logs stand for one volume where that is said.
mod specs {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::role::Role;
    use crate::volumes::Volumes;

    #[derive(Serialize, Deserialize)]
    struct Specs {
        volume: Option<String>,
        redo_volume: Option<String>,
        binlog_volume: Option<String>,
        #[serde(default)]
        logs_share_volume: bool,
    }

    pub(super) fn serialize<S: Serializer>(
        volumes: &Volumes<Option<String>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let spec = |role| volumes.get(role).cloned().flatten();
        let specs = Specs {
            volume: spec(Role::Data),
            redo_volume: spec(Role::Redo),
            binlog_volume: spec(Role::Binlog),
            logs_share_volume: volumes.get(Role::Logs).is_some(),
        };
        specs.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Volumes<Option<String>>, D::Error> {
        let Specs { volume, redo_volume, binlog_volume, logs_share_volume } =
            Specs::deserialize(deserializer)?;
        let mut volumes = Volumes::new(volume);
        let differ = redo_volume.is_some() && binlog_volume.is_some() && redo_volume != binlog_volume;
        let logs = if logs_share_volume && !differ {
            vec![(Role::Logs, redo_volume.or(binlog_volume))]
        } else {
            vec![(Role::Redo, redo_volume), (Role::Binlog, binlog_volume)]
        };
        for (role, spec) in logs.into_iter().filter(|(_, spec)| spec.is_some()) {
            volumes.set(role, spec);
        }
        Ok(volumes)
    }
}

/// Where an observation comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A running server.
    Server {
        /// Socket, or host and port.
        at: String,
    },
    /// Text that was captured of a server before.
    Capture {
        /// File or directory.
        path: String,
    },
    /// A trial of an experiment.
    Trial {
        /// Name of the arm.
        arm: String,
        /// Number of the repeat, from 0.
        repeat: u32,
    },
}

/// When something was observed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Its beginning, seconds since 1970; None: not known.
    pub began_unix_s: Option<u64>,
    /// Its length, s; over 0.
    pub seconds: f64,
    /// Whether the server was started again within it, so that its counters began anew.
    pub restarted: bool,
}

/// The file system that data files are on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Its name, such as `ext4-bigalloc`.
    pub name: String,
    /// Bytes in which it allocates, aligned on the device: a page of this size or less stays in one piece; 0 where it
    /// makes no such promise.
    pub aligned_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(variables: &[(&str, &str)]) -> Observation {
        let variables: Variables = variables.iter().copied().collect();
        Observation {
            facts: Some(Facts::of(&variables)),
            variables: Some(variables),
            ..Observation::of(Origin::Capture { path: "/c".into() })
        }
    }

    #[test]
    fn specs_have_the_names_in_a_capture_that_they_had() {
        let spec = |text: &str| Some(text.to_owned());
        let apart = Volumes::new(spec("a")).with(Role::Redo, spec("b"));
        let shared = Volumes::new(None).with(Role::Logs, spec("c"));
        for (volumes, data, redo, binlog, share) in [
            (Volumes::new(None), None, None, None, false),
            (apart.clone(), spec("a"), spec("b"), None, false),
            (apart.with(Role::Binlog, spec("b")), spec("a"), spec("b"), spec("b"), false),
            (shared, None, spec("c"), spec("c"), true),
        ] {
            let json = serde_json::to_value(Observation { volumes: volumes.clone(), ..seen(&[]) }).unwrap();
            let named = [("volume", data), ("redo_volume", redo), ("binlog_volume", binlog)];
            assert!(named.iter().all(|(name, spec)| json[name] == serde_json::json!(spec)), "{json}");
            assert_eq!(json["logs_share_volume"], share);
            assert_eq!(serde_json::from_value::<Observation>(json).unwrap().volumes, volumes);
        }
    }

    const CAPACITY: (&str, &str) = ("innodb_redo_log_capacity", "104857600");
    const SIZE: (&str, &str) = ("innodb_log_file_size", "1073741824");
    const FILES: (&str, &str) = ("innodb_log_files_in_group", "2");

    #[test]
    fn the_redo_log_has_the_size_of_its_capacity_or_of_its_files() {
        let bytes = |variables: &[(&str, &str)]| seen(variables).redo_capacity_bytes();
        assert_eq!(bytes(&[("version", "5.7.44"), SIZE, FILES]), Some(2 << 30));
        assert_eq!(bytes(&[("version", "10.11.19-MariaDB"), SIZE, FILES]), Some(1 << 30));
        let default = ("innodb_log_file_size", "50331648");
        assert_eq!(bytes(&[("version", "8.0.36"), default, FILES, CAPACITY]), Some(104_857_600));
        assert_eq!(bytes(&[("version", "8.0.36")]), None);
    }

    #[test]
    fn the_older_variables_size_the_redo_log_where_they_alone_are_set() {
        let all = [("version", "8.0.36"), SIZE, FILES, CAPACITY];
        assert_eq!(seen(&all).redo_capacity_bytes(), Some(2 << 30), "no default: it was set");
        let by = |set: &[&str]| {
            let origins = set.iter().map(|name| (*name, "GLOBAL")).collect();
            Observation { origins: Some(origins), ..seen(&all) }.redo_capacity_bytes()
        };
        assert_eq!(by(&[SIZE.0]), Some(2 << 30));
        assert_eq!(by(&[SIZE.0, CAPACITY.0]), Some(104_857_600), "the newer one goes before them");
        assert_eq!(by(&[]), Some(104_857_600));
        let line = Configured {
            name: SIZE.0.into(),
            value: SIZE.1.into(),
            group: "mysqld".into(),
            place: "/f:1".into(),
        };
        let configured = Observation { configured: Some(vec![line]), ..seen(&all) };
        assert_eq!(configured.redo_capacity_bytes(), Some(2 << 30));
    }

    #[test]
    fn what_the_server_made_of_the_variables_goes_before_them() {
        let last = Variables::from_iter([("innodb_redo_log_capacity_resized", "8388608")]);
        let status = Some(StatusVariables::once(last));
        let seen = Observation { status, ..seen(&[("version", "8.0.36"), SIZE, FILES, CAPACITY]) };
        assert_eq!(seen.redo_capacity_bytes(), Some(8 << 20));
    }
}
