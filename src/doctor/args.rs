//! The command line of `ebbtide doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use ebbtide_advisor::{Check, Severity};
use ebbtide_captured::Hints;
use ebbtide_device::host::{FsType, UnknownFs};
use ebbtide_names::{Kind, NamedServer};
use ebbtide_observe::{Files, Role};
use ebbtide_text::{closest, did_you_mean};

use crate::bundle::{parse_device, parse_version, parse_volume};
use crate::config::Slot;
use crate::document::SectionArgs;
use crate::duration::parse_interval;
use crate::load::ServerArgs;

const EXAMPLE: &str = "Examples:
  ebbtide doctor shop
  ebbtide doctor --mysql-socket=/run/mysqld/mysqld.sock --mysql-user=root --volume gp3:size=500GiB
  ebbtide doctor capture --mysql-user=root -o db1.capture
  ebbtide doctor --from db1.capture
  ebbtide doctor --from db1.capture --volume gp3:size=500GiB --prove R01
  ebbtide doctor --explain D03

The checks: docs/generated/checks.md. The server is only read: PROCESS and SELECT on performance_schema are enough.
Exit code 1: a finding of the severity of --fail-on or worse.";

/// `ebbtide doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, args_conflicts_with_subcommands = true)]
pub(crate) struct DoctorArgs {
    #[command(subcommand)]
    pub(super) command: Option<DoctorCommand>,
    #[command(flatten)]
    pub(super) look: LookArgs,
    /// Judge what is in files in place of a live server: a file of `doctor capture`; what SHOW GLOBAL VARIABLES and SHOW
    /// GLOBAL STATUS printed (twice, for rates); my.cnf; pt-mysql-summary; pt-stalk (a directory, or the prefix of its
    /// files); `iostat -x`, df, mount; `aws cloudwatch get-metric-data`. Several may be given
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interval", "probe", "mysql_host", "mysql_port", "mysql_socket"])]
    pub(super) from: Vec<PathBuf>,
    /// With --from: the server's version where no file has it, such as 8.0.36 or 10.11.6-MariaDB
    #[arg(long, value_name = "VERSION", requires = "from", value_parser = parse_version)]
    server_version: Option<String>,
    /// With --from: the device of the data, redo or binlog in `iostat -x` or diskstats, such as data=nvme1n1
    #[arg(long, value_name = "[ROLE=]NAME", requires = "from", value_parser = parse_device)]
    device: Vec<(Files, String)>,
    /// Say what a check looks at, when it finds something and why; `all` for every check, as Markdown
    #[arg(long, value_name = "CODE", value_parser = parse_code)]
    pub(super) explain: Option<Explain>,
    /// End with exit code 1 where a finding is of this severity or worse: low, medium, high or critical
    #[arg(long, value_name = "SEVERITY", default_value = "low", value_parser = parse_severity)]
    pub(super) fail_on: Severity,
    /// Show what changed since a diagnosis of before, a file of `doctor --json`; --fail-on then counts findings that are
    /// new or worse
    #[arg(long, value_name = "FILE", conflicts_with = "explain")]
    pub(super) baseline: Option<PathBuf>,
    /// Print each finding in full (evidence, fix, gain, risk, cost, sources), and what could not be checked
    #[arg(long, conflicts_with = "explain")]
    pub(super) details: bool,
    #[command(flatten)]
    pub(super) sections: SectionArgs,
    /// Also write the answer as a page that opens offline
    #[arg(long, value_name = "FILE", conflicts_with = "explain")]
    pub(super) html: Option<PathBuf>,
    /// Also write the answer as Markdown
    #[arg(long, value_name = "FILE", conflicts_with = "explain")]
    pub(super) markdown: Option<PathBuf>,
    /// Print a fragment of my.cnf with the settings of all fixes, and those that hold now
    #[arg(long, conflicts_with = "explain")]
    pub(super) cnf: bool,
    #[command(flatten)]
    pub(super) proof: ProveArgs,
}

/// `--prove`, and what goes with it.
#[derive(Debug, Args)]
pub(super) struct ProveArgs {
    /// Run the fix of this finding in the lab, on volumes and under a load like the server's, and report what it gains. Without
    /// a code: the fixes that are settings, of up to four findings, the worst first. Needs root and a server program
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "all", value_parser = parse_code, conflicts_with = "explain")]
    pub(super) prove: Option<Explain>,
    /// With --prove: print what would run and for how long; run nothing
    #[arg(long, requires = "prove")]
    pub(super) check: bool,
    /// With --prove: a few trials of 10 s on less data
    #[arg(long, requires = "prove")]
    pub(super) quick: bool,
    /// With --prove: directory for the results and the report [default: doctor-proof-DATE-TIME here]
    #[arg(long, value_name = "DIR", requires = "prove")]
    pub(super) out: Option<PathBuf>,
    /// With --prove: the server program that is measured [default: mariadbd or mysqld of this machine]
    #[arg(long, value_name = "PATH", requires = "prove")]
    pub(super) server: Option<PathBuf>,
    /// With --prove: seed of the order, the load and the volumes' draws [default: a fresh one, which is recorded]
    #[arg(long, value_name = "N", requires = "prove")]
    pub(super) seed: Option<u64>,
    /// With --prove: run on a host that is slower than the volumes promise, and mark the report
    #[arg(long, requires = "prove")]
    pub(super) over_limit: bool,
}

impl DoctorArgs {
    const fn look(&mut self) -> &mut LookArgs {
        match &mut self.command {
            Some(DoctorCommand::Capture(capture)) => &mut capture.look,
            None => &mut self.look,
        }
    }

    /// The server of the file of names that is asked for.
    pub(crate) fn server_name(&mut self) -> Option<String> {
        self.look().server_name.clone()
    }

    /// The values that may be names of the user's file.
    pub(crate) fn slots(&mut self) -> Vec<Slot<'_>> {
        let look = self.look();
        let mut slots = Slot::all(Kind::Volume, look.volume.iter_mut().map(|(_, volume)| volume));
        slots.extend(Slot::all(Kind::Instance, &mut look.instance));
        slots
    }

    /// Takes what a named server says and no option does.
    ///
    /// # Errors
    /// A role or file system that does not exist.
    pub(crate) fn take(&mut self, server: &NamedServer) -> Result<(), String> {
        let look = self.look();
        look.server.take(server);
        for (role, volume) in &server.volumes {
            let role = Role::named(role).map_err(|error| error.to_string())?;
            if look.volume.iter().all(|(given, _)| *given != role) {
                look.volume.push((role, volume.clone()));
            }
        }
        look.instance = look.instance.take().or_else(|| server.instance.clone());
        if let (None, Some(fs)) = (look.fs, &server.fs) {
            look.fs = Some(fs.parse().map_err(|error: UnknownFs| error.to_string())?);
        }
        Ok(())
    }

    /// What to judge in place of a live server; None: look at one.
    pub(super) fn captured(&self) -> Option<(&[PathBuf], Hints)> {
        let hints = Hints { version: self.server_version.clone(), devices: self.device.clone() };
        (!self.from.is_empty()).then_some((&self.from, hints))
    }
}

/// `ebbtide doctor capture`.
#[derive(Debug, Subcommand)]
pub(super) enum DoctorCommand {
    /// Write what is seen of a live server to a file, without passwords, to be judged elsewhere
    Capture(Box<CaptureArgs>),
}

/// `ebbtide doctor capture`.
#[derive(Debug, Args)]
pub(super) struct CaptureArgs {
    #[command(flatten)]
    pub(super) look: LookArgs,
    /// The file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

/// The server, and what it does not know of its storage.
#[derive(Debug, Args)]
pub(super) struct LookArgs {
    /// A server of the file of names, with its volumes and its instance; an option goes before what the file says. The file:
    /// ebbtide config show --help
    #[arg(value_name = "SERVER")]
    server_name: Option<String>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Ask for the account's password on the terminal
    #[arg(
        short = 'p',
        long = "ask-password",
        conflicts_with = "mysql_password_file",
        help_heading = "Server"
    )]
    pub(super) ask_password: bool,
    /// Read the account's password from this file, which others may not read; an end of line at its end is not part of it
    #[arg(long, alias = "mysql_password_file", value_name = "FILE", help_heading = "Server")]
    pub(super) mysql_password_file: Option<PathBuf>,
    /// How long to look at the server's counters, 1s to 24h [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub(super) interval: Option<Duration>,
    /// The volume of the data, redo or binlog, such as data=gp2:size=500GiB; redo+binlog for one that both logs share.
    /// Without a role that of the data, and of what has none of its own
    #[arg(long, value_name = "[ROLE=]SPEC", value_parser = parse_volume)]
    pub(super) volume: Vec<(Role, String)>,
    /// The EC2 instance type, such as r6i.large
    #[arg(long, value_name = "TYPE")]
    pub(super) instance: Option<String>,
    /// Measure how long a write of 4 KiB and its sync take: writes to a file without a name in this directory, for 2 s. Nothing
    /// else of the doctor writes
    #[arg(long, value_name = "DIR")]
    pub(super) probe: Option<PathBuf>,
    /// The file system of the data files: ext4-bigalloc (clusters of 16 KiB, on a device whose start is a multiple of
    /// 16 KiB), ext4 or xfs. Only the first keeps pages in one piece
    #[arg(long, value_name = "FS")]
    pub(super) fs: Option<FsType>,
}

/// What `--explain` is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Explain {
    /// Every check.
    All,
    /// One.
    One(&'static Check),
}

fn parse_severity(text: &str) -> Result<Severity, String> {
    let found = Severity::ALL.into_iter().find(|severity| severity.name() == text);
    found.ok_or_else(|| "use low, medium, high or critical".into())
}

fn parse_code(text: &str) -> Result<Explain, String> {
    if text == "all" {
        return Ok(Explain::All);
    }
    ebbtide_advisor::check(text).map(Explain::One).ok_or_else(|| {
        let nearest = did_you_mean(closest(text, ebbtide_advisor::checks().map(|check| check.code)));
        format!("no check has this code{nearest}; docs/generated/checks.md and `--explain all` list them")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_severities_are_those_of_the_table() {
        assert!(matches!(parse_code("d03"), Ok(Explain::One(check)) if check.code == "D03"));
        assert!(parse_code("D99").is_err() && parse_severity("bad").is_err());
        assert_eq!(parse_severity("high"), Ok(Severity::High));
    }
}
