//! The other programs on the same server.

use std::path::{Path, PathBuf};
use std::process::Command;

/// MySQLTuner and pt-variable-advisor, where they are installed.
#[derive(Debug)]
pub(crate) struct Peers {
    tuner: Option<(PathBuf, String)>,
    advisor: Option<String>,
}

impl Peers {
    /// Looks for them. `MYSQLTUNER` names a newer mysqltuner.pl than that of the system.
    pub(crate) fn find() -> Self {
        let tuner = std::env::var_os("MYSQLTUNER").map_or_else(|| PathBuf::from("mysqltuner"), PathBuf::from);
        let version = Command::new(&tuner).arg("--help").output().ok().and_then(|out| {
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            let line = text.lines().find(|line| line.contains("MySQLTuner "))?.trim().to_owned();
            Some(line.split(" - ").next().unwrap_or_default().to_owned())
        });
        let advisor = Command::new("pt-variable-advisor").arg("--version").output().ok();
        let advisor = advisor.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
        Self { tuner: version.map(|version| (tuner, version)), advisor }
    }

    pub(crate) fn tuner_name(&self) -> String {
        self.tuner.as_ref().map_or("MySQLTuner (not installed)".into(), |(_, name)| name.clone())
    }

    pub(crate) fn advisor_name(&self) -> String {
        self.advisor.clone().unwrap_or_else(|| "pt-variable-advisor (not installed)".into())
    }

    /// What MySQLTuner complains about: its lines `[!!]`, and its recommendations.
    pub(crate) fn tuner(&self, socket: &Path) -> Option<String> {
        let (program, _) = self.tuner.as_ref()?;
        let out = Command::new("timeout")
            .arg("60")
            .arg(program)
            .args([
                "--user",
                "root",
                "--pass",
                "",
                "--skippassword",
                "--host",
                "localhost",
                "--nocolor",
                "--socket",
            ])
            .arg(socket)
            .stdin(std::process::Stdio::null())
            .env("HOME", "/nonexistent")
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let start = ["General recommendations", "Variables to adjust"]
            .iter()
            .filter_map(|head| text.find(head))
            .min();
        let at = start.unwrap_or(text.len());
        let bad = text[..at].lines().filter(|line| line.starts_with("[!!]") || line.starts_with('✘'));
        let advice = text[at..].lines().filter(|line| line.starts_with("    "));
        Some(bad.chain(advice).collect::<Vec<_>>().join("\n"))
    }

    /// What pt-variable-advisor says.
    pub(crate) fn advisor(&self, socket: &Path) -> Option<String> {
        self.advisor.as_ref()?;
        let source = format!("S={},u=root", socket.display());
        let out = Command::new("timeout").args(["60", "pt-variable-advisor", &source]).output().ok()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let notes = text.lines().filter(|line| {
            line.starts_with("# WARN") || line.starts_with("# CRIT") || line.starts_with("# NOTE")
        });
        Some(notes.collect::<Vec<_>>().join("\n"))
    }
}
