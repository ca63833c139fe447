//! The options file: every line that a server is started with.

use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::binary::{Binary, Version};
use crate::error::ServerError;
use crate::install::Install;
use crate::layout::Layout;
use crate::plan::ServerPlan;
use crate::record::WorkDir;

/// From this version on MySQL listens for its X protocol too, unless it is configured not to.
const MYSQLX: Version = Version::new(8, 0, 11);
/// From this version on MySQL keeps the temporary tables of sessions in a directory that can be named.
const TEMP_TABLESPACES_DIR: Version = Version::new(8, 0, 13);

/// What a server is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Make its system tables and end.
    Initialize,
    /// Serve, on this port of 127.0.0.1 too.
    Serve { port: Option<u16> },
}

/// The lines of the group `[mysqld]`.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// All of them; later ones win.
    pub(crate) lines: Vec<String>,
    /// How many at the end are the plan's settings.
    settings: usize,
}

impl Options {
    /// Those that the plan's settings ask for.
    pub(crate) fn asked(&self) -> &[String] {
        &self.lines[self.lines.len() - self.settings..]
    }
}

/// Every line for a plan and a task.
pub(crate) fn options(plan: &ServerPlan, work: &WorkDir, task: Task) -> Result<Options, ServerError> {
    let mut lines = Vec::new();
    for (name, dir) in Install::of(&plan.binary).options() {
        lines.push(path_line(name, &dir));
    }
    lines.push(path_line("datadir", &plan.layout.data));
    lines.push(path_line("socket", &work.socket()));
    lines.push(path_line("pid-file", &work.pid_file()));
    lines.extend(network(&plan.binary, task));
    lines.extend(files(&plan.binary, work));
    if task != Task::Initialize {
        // Sets the password of this start.
        lines.push(path_line("init-file", &work.init_file()));
    }
    if !plan.binary.is_mariadb() {
        // MariaDB logs a recovery by default; MySQL logs it as a note, and does not print notes by default.
        lines.push("log-error-verbosity=3".into());
    }
    lines.extend(layout_lines(&plan.layout, &plan.binary));
    if task != Task::Initialize {
        lines.extend(plan.part.into_iter().flat_map(|part| part.lines(&plan.binary)));
        if let (Some(relay), true) = (&plan.layout.relay, plan.part.is_some_and(|part| part.replica)) {
            lines.push(path_line("relay-log", &relay.join("relay")));
        }
    }
    let asked = setting_lines(plan, task)?;
    let settings = asked.len();
    lines.extend(asked);
    Ok(Options { lines, settings })
}

/// Writes the option file.
pub(crate) fn write(work: &WorkDir, account: &Account, lines: &[String]) -> Result<(), ServerError> {
    let mut text = String::from("[mysqld]\n");
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    work.write_options(&text, account)
}

fn network(binary: &Binary, task: Task) -> Vec<String> {
    let mut lines = match task {
        Task::Serve { port: Some(port) } => vec!["bind-address=127.0.0.1".into(), format!("port={port}")],
        _ => vec!["skip-networking".into()],
    };
    if !binary.is_mariadb() && binary.version >= MYSQLX {
        lines.push("mysqlx=OFF".into());
    }
    lines
}

/// No statement reads or writes files of the machine: no load needs it.
fn files(binary: &Binary, work: &WorkDir) -> [String; 2] {
    // MariaDB takes NULL for a directory's name.
    let secure = match binary.is_mariadb() {
        true => path_line("secure-file-priv", &work.empty_dir()),
        false => "secure-file-priv=NULL".to_owned(),
    };
    [secure, "local-infile=0".to_owned()]
}

fn layout_lines(layout: &Layout, binary: &Binary) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(redo) = &layout.redo {
        lines.push(path_line("innodb-log-group-home-dir", redo));
    }
    if let Some(undo) = &layout.undo {
        lines.push(path_line("innodb-undo-directory", undo));
    }
    let tmp = layout.tmp.as_ref().unwrap_or(&layout.data);
    lines.push(path_line("tmpdir", tmp));
    if let Some(tmp) = &layout.tmp {
        lines.push(path_line("innodb-tmpdir", tmp));
        // Taken below the data directory, so it has to lead out of there.
        let file = relative(&layout.data, tmp).join("ibtmp1");
        lines.push(format!("innodb-temp-data-file-path={}:12M:autoextend", file.display()));
        if !binary.is_mariadb() && binary.version >= TEMP_TABLESPACES_DIR {
            lines.push(path_line("innodb-temp-tablespaces-dir", tmp));
        }
    }
    lines
}

fn setting_lines(plan: &ServerPlan, task: Task) -> Result<Vec<String>, ServerError> {
    plan.settings.check_raw(&plan.binary)?;
    let mut lines = plan.settings.options_for(&plan.binary)?;
    let log_bin = lines.iter().any(|line| is_on(line, "log_bin"));
    if task == Task::Initialize || !log_bin {
        // No statement that makes the system tables is worth a replica's time.
        lines.retain(|line| !is_named(line, "log_bin"));
        lines.push("skip-log-bin".into());
    } else if let Some(binlog) = &plan.layout.binlog {
        lines.retain(|line| !is_named(line, "log_bin"));
        lines.push(path_line("log-bin", &binlog.join("binlog")));
    }
    Ok(lines)
}

fn is_named(line: &str, name: &str) -> bool {
    line.split('=').next().is_some_and(|option| option.trim().replace('-', "_") == name)
}

fn is_on(line: &str, name: &str) -> bool {
    let off = ["0", "off", "false"];
    is_named(line, name)
        && line
            .split_once('=')
            .is_none_or(|(_, value)| !off.contains(&value.trim().to_ascii_lowercase().as_str()))
}

/// A line with a path. Quoted: a `#` would begin a comment, and blanks at the ends would be lost.
fn path_line(name: &str, path: &Path) -> String {
    let escaped = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{escaped}\"")
}

/// The way from one directory to another, both absolute.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| "..");
    up.map(PathBuf::from)
        .chain(to.components().skip(common).map(|part| PathBuf::from(part.as_os_str())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_another_volume_leads_up_and_down() {
        let way = |from: &str, to: &str| relative(Path::new(from), Path::new(to)).display().to_string();
        assert_eq!(way("/mnt/a/data", "/mnt/b/tmp"), "../../b/tmp");
        assert_eq!(way("/a", "/a/tmp"), "tmp");
        assert_eq!(way("/a/b", "/c"), "../../c");
    }

    #[test]
    fn a_path_keeps_its_odd_characters() {
        assert_eq!(path_line("datadir", Path::new("/a b/#c\\d\"e")), r##"datadir="/a b/#c\\d\"e""##);
    }

    #[test]
    fn a_binary_log_is_on_only_where_it_was_asked_for() {
        for (line, on) in [
            ("log_bin=binlog", true),
            ("log-bin", true),
            ("log_bin=OFF", false),
            ("log_bin=0", false),
            ("log_bin_trust_function_creators=1", false),
        ] {
            assert_eq!(is_on(line, "log_bin"), on, "{line}");
        }
    }
}
