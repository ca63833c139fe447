//! sysbench's general options that `ebbtide load` does not need: taken with a note where they change nothing, and refused by
//! name where they would. The names are those of sysbench 1.0.20 and of its source of 2026 (`sysbench --help`).

use anyhow::Result;
use clap::Args;

use super::switch::parse_switch;
use crate::exit::Refusal;
use crate::text::note;

/// The options, none of which is in the help.
#[derive(Debug, Default, Args)]
pub(super) struct SysbenchArgs {
    #[arg(long, alias = "thread_init_timeout", value_name = "S", hide = true)]
    thread_init_timeout: Option<String>,
    #[arg(long, alias = "thread_stack_size", value_name = "SIZE", hide = true)]
    thread_stack_size: Option<String>,
    #[arg(long, value_name = "N", hide = true)]
    verbosity: Option<String>,
    #[arg(long, value_name = "on|off", default_missing_value = "on", num_args = 0..=1, require_equals = true, hide = true)]
    debug: Option<String>,
    #[arg(long, alias = "db_debug", value_name = "on|off", default_missing_value = "on", num_args = 0..=1,
        require_equals = true, hide = true)]
    db_debug: Option<String>,
    #[arg(long, alias = "mysql_debug", value_name = "on|off", default_missing_value = "on", num_args = 0..=1,
        require_equals = true, hide = true)]
    mysql_debug: Option<String>,
    #[arg(long, alias = "luajit_cmd", value_name = "TEXT", hide = true)]
    luajit_cmd: Option<String>,
    #[arg(long, value_name = "on|off", default_missing_value = "on", num_args = 0..=1, require_equals = true, hide = true)]
    validate: Option<String>,
    #[arg(long, alias = "mysql_compression", value_name = "on|off", default_missing_value = "on", num_args = 0..=1,
        require_equals = true, hide = true)]
    mysql_compression: Option<String>,
    #[arg(long, alias = "mysql_dry_run", value_name = "on|off", default_missing_value = "on", num_args = 0..=1,
        require_equals = true, hide = true)]
    mysql_dry_run: Option<String>,
    #[arg(long, alias = "report_checkpoints", value_name = "LIST", hide = true)]
    report_checkpoints: Option<String>,
    #[arg(long, alias = "config_file", value_name = "FILE", hide = true)]
    config_file: Option<String>,
    #[arg(long, alias = "mysql_ssl_cipher", value_name = "TEXT", hide = true)]
    mysql_ssl_cipher: Option<String>,
    #[arg(long, alias = "mysql_ssl_key", value_name = "FILE", hide = true)]
    mysql_ssl_key: Option<String>,
    #[arg(long, alias = "mysql_ssl_cert", value_name = "FILE", hide = true)]
    mysql_ssl_cert: Option<String>,
    #[arg(long, alias = "pgsql_host", value_name = "NAME", hide = true)]
    pgsql_host: Option<String>,
    #[arg(long, alias = "pgsql_port", value_name = "N", hide = true)]
    pgsql_port: Option<String>,
    #[arg(long, alias = "pgsql_user", value_name = "NAME", hide = true)]
    pgsql_user: Option<String>,
    #[arg(long, alias = "pgsql_password", value_name = "TEXT", hide = true)]
    pgsql_password: Option<String>,
    #[arg(long, alias = "pgsql_db", value_name = "NAME", hide = true)]
    pgsql_db: Option<String>,
}

const POSTGRESQL: &str = "PostgreSQL is not spoken here: leave it out";

impl SysbenchArgs {
    /// Says what has no effect, and refuses what would have one.
    ///
    /// # Errors
    /// An option that would need something that is not there: a [`Refusal`].
    pub(super) fn apply(&self) -> Result<()> {
        self.notes()?.iter().for_each(|text| note(text));
        Ok(())
    }

    fn notes(&self) -> Result<Vec<String>> {
        let refused = [
            (
                "report-checkpoints",
                &self.report_checkpoints,
                "full reports at given times are not printed: use --report-interval, or --json, which has each second",
            ),
            (
                "config-file",
                &self.config_file,
                "a file with options is not read: give them on the command line",
            ),
            (
                "mysql-ssl-cipher",
                &self.mysql_ssl_cipher,
                "the cipher is the one that both sides prefer: leave it out",
            ),
            (
                "mysql-ssl-key",
                &self.mysql_ssl_key,
                "a client has no certificate of its own here: leave it out",
            ),
            (
                "mysql-ssl-cert",
                &self.mysql_ssl_cert,
                "a client has no certificate of its own here: leave it out",
            ),
            ("pgsql-host", &self.pgsql_host, POSTGRESQL),
            ("pgsql-port", &self.pgsql_port, POSTGRESQL),
            ("pgsql-user", &self.pgsql_user, POSTGRESQL),
            ("pgsql-password", &self.pgsql_password, POSTGRESQL),
            ("pgsql-db", &self.pgsql_db, POSTGRESQL),
        ];
        if let Some((name, _, why)) =
            refused.iter().find(|(_, value, _)| value.as_ref().is_some_and(|v| !v.is_empty()))
        {
            return Err(Refusal::usage(format!("--{name}: {why}")).into());
        }
        let off_only = [
            ("validate", &self.validate, "the rows that come back are not checked"),
            ("mysql-compression", &self.mysql_compression, "the protocol is not compressed"),
            ("mysql-dry-run", &self.mysql_dry_run, "statements are always sent"),
        ];
        for (name, value, why) in off_only {
            if value.as_deref().map(|text| switch(name, text)).transpose()? == Some(true) {
                return Err(Refusal::usage(format!("--{name}=on: {why}: leave it out")).into());
            }
        }
        let without_effect = [
            ("thread-init-timeout", &self.thread_init_timeout, "connections have no threads of their own"),
            ("thread-stack-size", &self.thread_stack_size, "connections have no threads of their own"),
            ("verbosity", &self.verbosity, "the report is always the same"),
            ("debug", &self.debug, "the report is always the same"),
            ("db-debug", &self.db_debug, "the report is always the same"),
            ("mysql-debug", &self.mysql_debug, "the report is always the same"),
            ("luajit-cmd", &self.luajit_cmd, "no Lua runs"),
        ];
        let given = without_effect.iter().filter(|(_, value, _)| value.is_some());
        Ok(given.map(|(name, _, why)| format!("note: --{name} has no effect: {why}")).collect())
    }
}

fn switch(name: &str, text: &str) -> Result<bool> {
    parse_switch(text).map_err(|error| Refusal::usage(format!("--{name}={text}: {error}")).into())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use clap::Parser;

    use super::super::LoadCommand;
    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        command: LoadCommand,
    }

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        options: SysbenchArgs,
    }

    fn notes(words: &[&str]) -> Result<Vec<String>, String> {
        let line = Alone::try_parse_from([&["load"], words].concat()).unwrap();
        line.options.notes().map_err(|error| error.to_string())
    }

    #[test]
    fn options_without_an_effect_are_noted_and_others_are_refused_by_name() {
        let noted =
            notes(&["--thread-init-timeout=60", "--verbosity=3", "--debug", "--validate=off"]).unwrap();
        assert_eq!(noted.len(), 3, "{noted:?}");
        assert!(noted[0].starts_with("note: --thread-init-timeout has no effect"), "{noted:?}");
        assert_eq!(notes(&["--thread_stack_size=64K"]).unwrap().len(), 1);
        for (word, part) in [
            ("--report-checkpoints=10,20", "--report-interval"),
            ("--validate", "are not checked"),
            ("--mysql-compression=on", "not compressed"),
            ("--config-file=a.cnf", "on the command line"),
            ("--pgsql-host=a", "PostgreSQL"),
            ("--mysql-dry-run=maybe", "use on or off"),
        ] {
            let error = notes(&[word]).unwrap_err();
            assert!(
                error.contains(word.split('=').next().unwrap()) && error.contains(part),
                "{word}: {error}"
            );
        }
    }

    #[test]
    fn each_option_of_the_installed_sysbench_is_known() {
        let Ok(output) = Command::new("sysbench").arg("--help").output() else {
            println!("SKIPPED: sysbench is not installed");
            return;
        };
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = help.lines().filter_map(|line| line.trim().strip_prefix("--"));
        let names: Vec<&str> = names.map(|line| line.split(['=', '[', ' ']).next().unwrap()).collect();
        assert!(names.len() > 40, "{names:?}");
        for name in names.into_iter().filter(|name| !["help", "version"].contains(name)) {
            for name in [name.to_owned(), name.replace('-', "_")] {
                let option = format!("--{name}=1");
                let read = Line::try_parse_from(["load", "run", "oltp_read_only", &option]);
                let unknown = |error: &clap::Error| error.kind() == clap::error::ErrorKind::UnknownArgument;
                assert!(!read.is_err_and(|error| unknown(&error)), "{option}");
            }
        }
    }
}
