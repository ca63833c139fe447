//! Writes a profile, and changes single keys of it.

use toml::{Table, Value};

use super::file::with_nearest;
use super::{Profile, ProfileError};

impl Profile {
    /// The profile as a file has it. [`Profile::parse`] reads it again.
    ///
    /// # Panics
    /// Never: every key of a profile is a value that TOML has.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("the keys of a profile are values of TOML")
    }

    /// Sets a key by its path, such as `machine.vcpus`, to a value of TOML, or else to the text itself. `point.KEY` sets
    /// it in every point.
    ///
    /// # Errors
    /// A path that no profile has, and a value that its key does not take; points where there are none.
    pub fn set(&mut self, path: &str, text: &str) -> Result<(), ProfileError> {
        let value =
            toml::from_str::<Table>(&format!("value = {text}")).ok().and_then(|mut one| one.remove("value"));
        // `500` may be a name, and a date may be one.
        let as_text = || self.with(path, &Value::String(text.to_owned()));
        *self = match value.map(|value| self.with(path, &value)) {
            Some(Ok(changed)) => changed,
            Some(Err(error)) => as_text().map_err(|_| error)?,
            None => as_text()?,
        };
        Ok(())
    }

    fn with(&self, path: &str, value: &Value) -> Result<Self, ProfileError> {
        let wrong = |why: &str| ProfileError::Conflict(format!("{path} = {value}: {why}"));
        let mut all = Table::try_from(self).expect("the keys of a profile are values of TOML");
        let (table, key) = path.split_once('.').unwrap_or(("", path));
        if table.is_empty() {
            all.insert(key.to_owned(), value.clone());
        } else {
            match all.get_mut(table) {
                Some(Value::Table(table)) => {
                    table.insert(key.to_owned(), value.clone());
                }
                Some(Value::Array(points)) => {
                    for point in points.iter_mut().filter_map(Value::as_table_mut) {
                        point.insert(key.to_owned(), value.clone());
                    }
                }
                _ if table == "point" => return Err(wrong("the profile has no point to set it in")),
                _ => {
                    return Err(wrong(
                        "expected a key of server, machine, workload or point, as server.flavour",
                    ));
                }
            }
        }
        all.try_into().map_err(|error: toml::de::Error| wrong(&with_nearest(error.message())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MachineTable, PagesTable, PointTable, ServerTable, WorkloadTable};
    use super::*;

    fn profile() -> Profile {
        Profile {
            name: "a shop's".into(),
            server: ServerTable {
                flavour: Some("mariadb-11".into()),
                log_bin: Some(true),
                ..ServerTable::default()
            },
            machine: MachineTable { vcpus: Some(2), divided_by: Some(8), ..MachineTable::default() },
            workload: WorkloadTable {
                kind: Some("observed".into()),
                redo_bytes: Some(900.0),
                pages: vec![PagesTable { pool: "1GiB".into(), reads: 2.5, writes: 1.0 }],
                round_trip_us: Some(20.0),
                ..WorkloadTable::default()
            },
            points: vec![PointTable { clients: Some(4), ..PointTable::default() }, PointTable::default()],
            ..Profile::default()
        }
    }

    #[test]
    fn a_profile_that_is_written_is_read_as_it_was() {
        assert_eq!(Profile::parse(&profile().to_toml()), Ok(profile()), "{}", profile().to_toml());
        assert_eq!(Profile::parse(&Profile::default().to_toml()), Ok(Profile::default()));
    }

    #[test]
    fn a_key_is_set_by_its_path_and_that_of_points_in_all_of_them() {
        let mut changed = profile();
        for (path, text) in [
            ("machine.vcpus", "16"),
            ("server.buffer_pool_size", "8GiB"),
            ("point.volume", "gp3:size=500GiB"),
            ("point.tps", "100"),
            ("name", "2024"),
        ] {
            changed.set(path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        assert_eq!((changed.machine.vcpus, changed.name.as_str()), (Some(16), "2024"));
        assert_eq!(changed.server.buffer_pool_size.as_deref(), Some("8GiB"));
        assert!(changed.points.iter().all(|point| point.tps == Some(100.0)));
        assert_eq!(changed.points[1].volume.as_deref(), Some("gp3:size=500GiB"));
    }

    #[test]
    fn a_key_that_no_profile_has_and_a_value_that_it_does_not_take_are_refused() {
        let why = |path: &str, text: &str| profile().set(path, text).unwrap_err().to_string();
        assert!(why("machine.vcpu", "4").contains("unknown field `vcpu`"), "{}", why("machine.vcpu", "4"));
        let meant = "server.bufer_pool_size = \"1GiB\": unknown field `bufer_pool_size` (did you mean 'buffer_pool_size'?)";
        assert_eq!(why("server.bufer_pool_size", "1GiB"), meant);
        let file = profile().to_toml().replace("log_bin", "log_bni");
        let error = Profile::parse(&file).unwrap_err().to_string();
        assert!(error.ends_with("unknown field `log_bni` (did you mean 'log_bin'?)"), "{error}");
        assert!(why("server.qqq", "1").contains("expected one of"), "none is like it");
        assert!(why("machine.vcpus", "many").contains("machine.vcpus = \"many\""));
        assert!(why("volume.size", "1").contains("server, machine, workload or point"));
        let none = Profile::default().set("point.tps", "1").unwrap_err().to_string();
        assert!(none.contains("no point"), "{none}");
    }
}
