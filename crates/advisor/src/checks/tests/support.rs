//! What is seen of a server, piece by piece, for the tests of checks.

use std::collections::BTreeMap;

use ebbtide_catalog::Catalog;
use ebbtide_observe::{
    Device, Engine, Facts, Files, Host, Observation, Origin, Rates, ServerDirectory, Span, StatusVariables,
    Tables, Variables,
};

use crate::finding::Finding;

/// What is seen of a server, piece by piece.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) variables: BTreeMap<String, String>,
    rates: BTreeMap<String, f64>,
    growth: BTreeMap<String, f64>,
    last: BTreeMap<String, String>,
    pub(super) rest: Observation,
}

pub(super) fn server(version: &str) -> Seen {
    let span = Span { began_unix_s: None, seconds: 900.0, restarted: false };
    let rest = Observation {
        span: Some(span),
        replica: Some(Variables::default()),
        ..Observation::of(Origin::Server { at: "/s".into() })
    };
    let none = || Seen {
        variables: BTreeMap::new(),
        rates: BTreeMap::new(),
        growth: BTreeMap::new(),
        last: BTreeMap::new(),
        rest: rest.clone(),
    };
    none().var("version", version)
}

pub(super) fn mysql() -> Seen {
    server("8.0.36").var("log_bin", "ON")
}

pub(super) fn mariadb() -> Seen {
    server("10.11.19-MariaDB").var("log_bin", "ON")
}

impl Seen {
    pub(super) fn var(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    pub(super) fn rate(mut self, name: &str, value: f64) -> Self {
        assert!(Rates::NAMES.contains(&name), "{name}");
        self.rates.insert(name.into(), value);
        self
    }

    pub(super) fn highest_checkpoint_age(mut self, bytes: f64) -> Self {
        self.rest.highest_checkpoint_age = Some(bytes);
        self
    }

    pub(super) fn grew(mut self, name: &str, value: f64) -> Self {
        self.growth.insert(name.into(), value);
        self
    }

    pub(super) fn last(mut self, name: &str, value: &str) -> Self {
        self.last.insert(name.into(), value.into());
        self
    }

    pub(super) fn on(mut self, spec: &str) -> Self {
        self.rest.volumes.data = Some(spec.into());
        self
    }

    pub(super) fn replica(mut self, columns: &[(&str, &str)]) -> Self {
        let running = [("slave_io_running", "Yes"), ("slave_sql_running", "Yes")];
        self.rest.replica = Some(running.iter().chain(columns).copied().collect());
        self
    }

    pub(super) fn set(mut self, name: &str, origin: &str) -> Self {
        let all = self.rest.origins.take().unwrap_or_default();
        self.rest.origins = Some(all.iter().chain([(name, origin)]).collect());
        self
    }

    pub(super) fn tables(mut self, engine: &str, tables: u64, bytes: u64) -> Self {
        let engines = vec![Engine { name: engine.into(), tables, bytes }];
        self.rest.tables = Some(Tables { engines, ..Tables::default() });
        self
    }

    pub(super) fn host(mut self, change: impl FnOnce(&mut Host)) -> Self {
        change(self.rest.host.get_or_insert_with(Host::default));
        self
    }

    /// The data on a file system with a device, and the redo log, the binary log and temporary files too.
    pub(super) fn place(self, change: impl Fn(&mut ServerDirectory), device: Device) -> Self {
        self.host(|host| {
            for files in [Files::Data, Files::Redo, Files::Binlog, Files::Temporary] {
                let mut place = ServerDirectory {
                    files,
                    directory: "/data/mysql".into(),
                    mount_point: "/data".into(),
                    file_system: "xfs".into(),
                    options: vec!["rw".into(), "noatime".into()],
                    size_bytes: Some(100 << 30),
                    free_bytes: Some(50 << 30),
                    device: Some(device.clone()),
                };
                change(&mut place);
                host.places.push(place);
            }
        })
    }

    pub(super) fn device(self, device: Device) -> Self {
        self.place(|_| {}, device)
    }

    pub(super) fn observation(self) -> Observation {
        let variables: Variables = self.variables.iter().collect();
        let status = StatusVariables { last: self.last.iter().collect(), growth_per_s: self.growth };
        Observation {
            facts: Some(Facts::of(&variables)),
            variables: Some(variables),
            rates: Some(Rates::from_fn(|_, metric| self.rates.get(metric.name).copied())),
            status: Some(status),
            ..self.rest
        }
    }

    pub(super) fn asks(self, code: &str) -> Finding {
        crate::check(code)
            .unwrap_or_else(|| panic!("no check {code}"))
            .run(&self.observation(), &Catalog::builtin())
    }
}

pub(super) fn device(name: &str) -> Device {
    Device { name: name.into(), rotational: Some(false), ..Device::default() }
}
