//! What to do about a finding, in the words of the server.

use ebbtide_catalog::Spec;
use ebbtide_observe::metric::Maker;
use ebbtide_observe::{Flavour, Role, Version};
use serde::Serialize;

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// In sentences.
    pub text: String,
    /// The server's variables to set; empty where none is.
    pub set: Vec<VariableChange>,
    /// Statements that do it while the server runs; empty where it must be restarted.
    pub statements: Vec<String>,
    /// Lines of the section `[mysqld]` of my.cnf that keep it; empty where a statement keeps it.
    pub my_cnf: Vec<String>,
    /// Volumes to modify while they are in use; empty where none is.
    pub volumes: Vec<VolumeChange>,
    /// Whether the server has to be restarted for it.
    pub restart: bool,
}

/// A volume and what it is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VolumeChange {
    /// What lies on it: `data`, `redo`, `binlog`, or `redo+binlog` where both logs share it.
    pub role: &'static str,
    /// Its spec after the change.
    pub spec: String,
}

/// A variable and its new value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VariableChange {
    /// Its name.
    pub variable: &'static str,
    /// The new value.
    pub value: String,
    /// Whether the server has to be restarted for it.
    pub restart: bool,
}

impl Fix {
    /// Something to do outside the server's variables, in sentences.
    #[must_use]
    pub fn by_hand(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            set: Vec::new(),
            statements: Vec::new(),
            my_cnf: Vec::new(),
            volumes: Vec::new(),
            restart: false,
        }
    }

    /// The volume of these files is to be another one.
    pub(crate) fn of_volume(mut self, files: Role, spec: &Spec) -> Self {
        self.volumes.push(VolumeChange { role: files.key(), spec: spec.to_string() });
        self
    }

    /// A statement that does it, as it is.
    pub(crate) fn statement(mut self, sql: impl Into<String>) -> Self {
        self.statements.push(sql.into());
        self
    }

    /// This and another; what both say is there once.
    pub(crate) fn and(mut self, other: Self) -> Self {
        if self.text != other.text {
            self.text = format!("{} {}", self.text, other.text);
        }
        for change in other.set {
            if !self.set.contains(&change) {
                self.set.push(change);
            }
        }
        for (own, theirs) in [(&mut self.statements, other.statements), (&mut self.my_cnf, other.my_cnf)] {
            for line in theirs {
                if !own.contains(&line) {
                    own.push(line);
                }
            }
        }
        for change in other.volumes {
            if !self.volumes.contains(&change) {
                self.volumes.push(change);
            }
        }
        self.restart |= other.restart;
        self
    }

    /// Variables to set in my.cnf.
    pub(crate) fn of_file(text: impl Into<String>, set: Vec<VariableChange>) -> Self {
        let my_cnf = set.iter().map(|change| format!("{} = {}", change.variable, change.value)).collect();
        Self { set, my_cnf, restart: true, ..Self::by_hand(text) }
    }

    /// Parameters to set of an instance of RDS, which refuses SET GLOBAL.
    pub(crate) fn of_parameter_group(text: impl Into<String>, set: Vec<VariableChange>) -> Self {
        let restart = set.iter().any(|change| change.restart);
        let text = format!("{} On RDS set it in the instance's parameter group.", text.into());
        Self { restart, ..Self::of_file(text, set) }
    }

    /// A variable of the option files that would undo the statements at the next start, and the value with which it does
    /// not.
    pub(crate) fn kept_by(mut self, variable: &'static str, value: &str) -> Self {
        self.my_cnf.push(format!("{variable} = {value}"));
        self.set.push(VariableChange { variable, value: value.to_owned(), restart: true });
        self
    }

    /// Variables to set on a server of this release.
    pub(crate) fn of(
        text: impl Into<String>,
        set: Vec<VariableChange>,
        flavour: Flavour,
        version: Version,
    ) -> Self {
        // SET PERSIST keeps a value over a restart: MySQL from 8.0.0 on.
        let persists = flavour.maker() == Maker::MySql && version >= Version::new(8, 0, 0);
        let mut fix = Self { restart: set.iter().any(|change| change.restart), ..Self::by_hand(text) };
        for VariableChange { variable, value, restart } in &set {
            let persists = persists && !NOT_PERSISTENT.contains(variable);
            if !restart {
                let scope = if persists { "PERSIST" } else { "GLOBAL" };
                fix.statements.push(format!("SET {scope} {variable} = {}", literal(value)));
            }
            if *restart || !persists {
                fix.my_cnf.push(format!("{variable} = {value}"));
            }
        }
        Self { set, ..fix }
    }
}

/// Variables that MySQL changes by SET GLOBAL and refuses to SET PERSIST (error 1238, seen on 9.7.4).
const NOT_PERSISTENT: [&str; 1] = ["innodb_doublewrite"];

/// A value as SQL takes it: numbers and the words of switches as they are, others in quotes.
fn literal(value: &str) -> String {
    let plain = value.parse::<f64>().is_ok() || matches!(value, "ON" | "OFF");
    if plain { value.to_owned() } else { format!("'{value}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix(flavour: Flavour, version: &str, value: &str, restart: bool) -> Fix {
        let change = VariableChange { variable: "sync_binlog", value: value.to_owned(), restart };
        Fix::of("", vec![change], flavour, Version::parse(version).unwrap())
    }

    #[test]
    fn a_change_is_written_as_the_release_takes_it() {
        let now = fix(Flavour::MySql, "8.0.36", "1", false);
        assert_eq!(
            (now.statements, now.my_cnf),
            (vec!["SET PERSIST sync_binlog = 1".to_owned()], Vec::<String>::new())
        );
        for (flavour, version) in [(Flavour::MariaDb, "10.11.19"), (Flavour::MySql, "5.7.44")] {
            let now = fix(flavour, version, "ROW", false);
            assert_eq!(now.statements, ["SET GLOBAL sync_binlog = 'ROW'"]);
            assert_eq!(now.my_cnf, ["sync_binlog = ROW"]);
        }
        let later = fix(Flavour::MySql, "8.0.36", "ON", true);
        assert_eq!((later.statements.len(), later.restart), (0, true));
        assert_eq!(later.my_cnf, ["sync_binlog = ON"]);
    }
}
