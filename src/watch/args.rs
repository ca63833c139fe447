//! The command line of `ebbtide watch`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use ebbtide_http::LoopbackAddress;
use ebbtide_names::{Kind, NamedServer};
use ebbtide_observe::Role;
use ebbtide_text::{closest, did_you_mean, parse_duration};
use ebbtide_watch::alarm::{RULES, rule_of_name};
use ebbtide_watch::run::WebhookUrl;

use crate::bundle::parse_volume;
use crate::config::Slot;
use crate::duration::parse_interval;
use crate::load::ServerArgs;

const EXAMPLE: &str = "Examples:
  ebbtide watch shop
  ebbtide watch --mysql-socket=/run/mysqld/mysqld.sock --mysql-user=monitor --volume gp3:size=500GiB,iops=6000
  ebbtide watch shop --once --interval 15s
  ebbtide watch shop --listen 9422 --alarm-command '/usr/local/bin/page-me'
  ebbtide watch --replay 2026-11-28T20:00:00Z..2026-11-28T22:00:00Z
  ebbtide watch rules --out /etc/prometheus/rules

Servers are only read. Exit code 1: --once or --for, and an alarm is raised. What it shows, and each alarm: docs/watch.md.";

/// `ebbtide watch`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, args_conflicts_with_subcommands = true)]
pub(crate) struct WatchArgs {
    #[command(subcommand)]
    pub(super) command: Option<WatchCommand>,
    /// Servers of the file of names, with their volumes. The file: ebbtide config show --help
    #[arg(value_name = "SERVER")]
    servers: Vec<String>,
    /// Take names from this file, and without a SERVER watch all servers that it has [default: the file of names]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
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
    /// The volume of the data, redo or binlog, such as data=gp2:size=500GiB; redo+binlog for one that both logs share. No server
    /// can be asked for the limits of a real volume. Its burst credits are not known: they are not forecast
    #[arg(long, value_name = "[ROLE=]SPEC", value_parser = parse_volume)]
    pub(super) volume: Vec<(Role, String)>,
    /// How often everything is read, 1s to 60s; with --once up to 24h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub(super) interval: Duration,
    /// Look twice, an interval apart, and print one screen: the worst alarm first. An alarm that needs a longer look is not raised
    #[arg(long, conflicts_with_all = ["run_for", "listen", "replay"])]
    pub(super) once: bool,
    /// End after this time, and print one screen
    #[arg(long = "for", value_name = "TIME", value_parser = parse_interval, conflicts_with = "replay")]
    pub(super) run_for: Option<Duration>,
    /// Print the file systems and what is not seen, too
    #[arg(long)]
    pub(super) details: bool,
    /// Serve the pages, and metrics for Prometheus at /metrics, at http://127.0.0.1:PORT for this machine alone; 0 takes a free port
    #[arg(long, value_name = "PORT")]
    pub(super) listen: Option<LoopbackAddress>,
    /// Where the history is kept, or `off` [default: the home]
    #[arg(long, value_name = "DIR|off")]
    pub(super) history: Option<HistoryPlace>,
    /// Show what the history has of a span of time, such as 2026-11-28T20:00:00Z..2026-11-28T22:00:00Z, in place of what is
    #[arg(long, value_name = "FROM..TO", conflicts_with_all = ["servers", "config", "volume"])]
    pub(super) replay: Option<TimeSpan>,
    /// Run this with sh for each alarm that begins or ends; it has the event as JSON on standard input
    #[arg(long, value_name = "COMMAND")]
    pub(super) alarm_command: Option<String>,
    /// Send each alarm that begins or ends as JSON, by POST, to this URL of this machine
    #[arg(long, value_name = "URL")]
    pub(super) webhook: Option<WebhookUrl>,
    /// Do not announce alarms of a rule (of a subject alone) until a time, or for a time: latency:shop-data=2h, all=2026-11-29T06:00:00Z
    #[arg(long, value_name = "RULE[:SUBJECT]=UNTIL")]
    pub(super) silence: Vec<SilenceWish>,
    /// Whether EBS volumes on Nitro are asked for their statistics page, every 10 s: a command to the device, for root alone
    #[arg(long, value_name = "on|off", default_value = "on", hide_possible_values = true)]
    pub(super) ebs_statistics: Switch,
    /// The label node_name of each metric, which PMM's dashboards need; servers then have service_name, too
    #[arg(long, value_name = "NAME")]
    pub(super) node_name: Option<String>,
    /// What the file of names says of the servers.
    #[arg(skip)]
    pub(super) named: Vec<TakenServer>,
}

/// A server of the file of names.
#[derive(Debug, Clone)]
pub(super) struct TakenServer {
    pub(super) name: String,
    pub(super) server: NamedServer,
    /// Its volumes by role.
    pub(super) volumes: Vec<(Role, String)>,
}

/// What `ebbtide watch` writes for others.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum WatchCommand {
    /// Write a dashboard for Grafana
    #[command(after_help = "Example: ebbtide watch dashboards --out /var/lib/grafana/dashboards")]
    Dashboards(OutArgs),
    /// Write the alarms as a rule file for Prometheus
    #[command(after_help = "Example: ebbtide watch rules --out /etc/prometheus/rules")]
    Rules(OutArgs),
}

/// Where files are written.
#[derive(Debug, Clone, Args)]
pub(super) struct OutArgs {
    /// The directory; it is made where it is missing. A file of the name is replaced
    #[arg(long, value_name = "DIR")]
    pub(super) out: PathBuf,
}

impl WatchArgs {
    /// The servers of the file of names that are asked for.
    pub(crate) fn server_names(&self) -> &[String] {
        &self.servers
    }

    /// The file of names, where an option names it.
    pub(crate) fn names_file(&self) -> Option<PathBuf> {
        self.config.clone()
    }

    /// The values that may be names of the user's file.
    pub(crate) fn slots(&mut self) -> Vec<Slot<'_>> {
        let named = self.named.iter_mut().flat_map(|server| server.volumes.iter_mut());
        Slot::all(Kind::Volume, self.volume.iter_mut().chain(named).map(|(_, volume)| volume))
    }

    /// Takes what the file of names says of a server.
    ///
    /// # Errors
    /// A role that does not exist.
    pub(crate) fn take(&mut self, name: &str, server: &NamedServer) -> Result<(), String> {
        let role = |(role, volume): (&String, &String)| {
            let role = Role::named(role).map_err(|error| error.to_string())?;
            Ok::<_, String>((role, volume.clone()))
        };
        let volumes = server.volumes.iter().map(role).collect::<Result<_, String>>()?;
        self.named.push(TakenServer { name: name.to_owned(), server: server.clone(), volumes });
        Ok(())
    }
}

/// Whether something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// Where the history is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HistoryPlace {
    /// Nowhere.
    Off,
    /// In a directory.
    In(PathBuf),
}

impl FromStr for HistoryPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("name a directory, or off".to_owned()),
            "off" => Ok(Self::Off),
            directory => Ok(Self::In(directory.into())),
        }
    }
}

/// A span of time, milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeSpan {
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write it like 2026-11-28T20:00:00Z..2026-11-28T22:00:00Z".to_owned();
        let (from, to) = text.split_once("..").ok_or_else(wrong)?;
        let time =
            |text: &str| unix_s(text).and_then(|seconds| u64::try_from(seconds).ok()).ok_or_else(wrong);
        let (from_s, to_s) = (time(from)?, time(to)?);
        if from_s >= to_s {
            return Err("the span ends before it begins".to_owned());
        }
        Ok(Self { from_ms: from_s.saturating_mul(1_000), to_ms: to_s.saturating_mul(1_000) })
    }
}

/// A time in RFC 3339, seconds since 1970.
fn unix_s(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

/// Alarms that are not to be announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SilenceWish {
    /// The name of the rule; None: all.
    pub(super) rule: Option<String>,
    /// The name of the subject; None: all.
    pub(super) subject: Option<String>,
    pub(super) end: SilenceEnd,
}

/// When a silence ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SilenceEnd {
    /// After a time.
    After(Duration),
    /// At a time, seconds since 1970.
    UnixTime(i64),
}

impl FromStr for SilenceWish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write it like latency:shop-data=2h, or all=2026-11-29T06:00:00Z".to_owned();
        // A subject, such as a mount point, may have `=` in it.
        let (alarms, end) = text.rsplit_once('=').ok_or_else(wrong)?;
        let end = match unix_s(end) {
            Some(unix_s) => SilenceEnd::UnixTime(unix_s),
            None => SilenceEnd::After(parse_duration(end).map_err(|error| error.to_string())?),
        };
        let (rule, subject) = match alarms.split_once(':') {
            Some((rule, subject)) if !subject.is_empty() => (rule, Some(subject.to_owned())),
            Some(_) => return Err(wrong()),
            None => (alarms, None),
        };
        if rule != "all" && rule_of_name(rule).is_none() {
            let nearest = did_you_mean(closest(rule, RULES.iter().map(|row| row.name)));
            return Err(format!("no alarm has the rule '{rule}'{nearest}; docs/watch.md has the table"));
        }
        Ok(Self { rule: (rule != "all").then(|| rule.to_owned()), subject, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_has_a_rule_that_exists_and_an_end() {
        let two_hours = SilenceEnd::After(Duration::from_secs(7_200));
        let read: SilenceWish = "latency:shop-data=2h".parse().unwrap();
        assert_eq!(read.rule.as_deref(), Some("latency"));
        assert_eq!((read.subject.as_deref(), read.end), (Some("shop-data"), two_hours));
        let every_rule: SilenceWish = "all=2026-11-29T06:00:00Z".parse().unwrap();
        assert_eq!(
            (every_rule.rule, every_rule.subject, every_rule.end),
            (None, None, SilenceEnd::UnixTime(1_795_932_000))
        );
        for (text, part) in [
            ("latency", "write it like"),
            ("latency:=2h", "write it like"),
            ("latency=soon", "soon"),
            ("latencyy=2h", "did you mean"),
        ] {
            let error = text.parse::<SilenceWish>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_span_has_two_times_in_their_order() {
        let span: TimeSpan = "1970-01-01T00:00:01Z..1970-01-01T00:01:00Z".parse().unwrap();
        assert_eq!(span, TimeSpan { from_ms: 1_000, to_ms: 60_000 });
        for text in ["", "1970-01-01T00:00:01Z", "x..y", "1970-01-01T00:01:00Z..1970-01-01T00:00:01Z"] {
            assert!(text.parse::<TimeSpan>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_history_is_a_directory_or_off() {
        assert_eq!("off".parse(), Ok(HistoryPlace::Off));
        assert_eq!("/srv/h".parse(), Ok(HistoryPlace::In("/srv/h".into())));
        assert!("".parse::<HistoryPlace>().is_err());
    }
}
