//! Checking a file system without changing it.

use std::path::Path;
use std::process::Command;

use super::filesystem::{FsType, ToolError, run_for_output};

/// Longest output of a check that is kept, in characters.
const OUTPUT_CHARS: usize = 16_000;

/// What e2fsck prints about a journal that it leaves alone, xfs_repair about a log, and both about a
/// file system in use. What they find then may only be what the journal would have repaired.
const NO_VERDICT: [&str; 4] =
    ["skipping journal recovery", "valuable metadata changes in a log", "is mounted", "contains a mounted"];

/// The verdict of a check.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FsCheck {
    /// Whether nothing is wrong with the file system.
    pub clean: bool,
    /// The tool's output, up to 16,000 characters of it.
    pub output: String,
}

/// Checks the file system on a device, in a child process: `xfs_repair -n` or `e2fsck -f -n`. Nothing
/// is changed. It must have been unmounted in order, since a journal with changes in it is left alone.
///
/// # Errors
/// A tool that is missing, and where there is no verdict: the file system is mounted, its journal
/// was not replayed, or the tool could not read the device.
pub fn check_fs(fs: FsType, device: &Path) -> Result<FsCheck, ToolError> {
    let (tool, arguments): (_, &[&str]) = match fs {
        FsType::Xfs => ("xfs_repair", &["-n"]),
        FsType::Ext4 | FsType::Ext4Bigalloc => ("e2fsck", &["-f", "-n"]),
    };
    let mut command = Command::new(tool);
    command.args(arguments).arg(device);
    let ran = run_for_output(tool, fs.package(), command)?;
    let code = ran.code;
    let mut output = format!("{}{}", ran.text, ran.stderr);
    let clean = match fs {
        FsType::Xfs => xfs_verdict(code, &output),
        FsType::Ext4 | FsType::Ext4Bigalloc => ext4_verdict(code),
    };
    let no_verdict = NO_VERDICT.iter().any(|words| output.contains(words));
    match clean.filter(|_| !no_verdict) {
        Some(clean) => {
            if let Some((end, _)) = output.char_indices().nth(OUTPUT_CHARS) {
                output.truncate(end);
            }
            Ok(FsCheck { clean, output })
        }
        None => {
            let last = output.lines().map(str::trim).rfind(|line| !line.is_empty());
            let why =
                output.lines().find(|line| NO_VERDICT.iter().any(|words| line.contains(words))).or(last);
            let code = code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
            let message = format!("no verdict ({code}): {}", why.unwrap_or("it gave no reason").trim());
            Err(ran.failed_with(tool, message))
        }
    }
}

/// xfs_repair(8): without modifying anything, 0 is clean and 1 is corrupt; but 1 is also every failure to
/// begin.
fn xfs_verdict(code: Option<i32>, output: &str) -> Option<bool> {
    match code {
        Some(0) => Some(true),
        Some(1) if output.contains("Phase 1") && !output.contains("fatal error") => Some(false),
        _ => None,
    }
}

/// e2fsck(8): 4 is errors left uncorrected; 8 and above are failures of the tool itself.
const fn ext4_verdict(code: Option<i32>) -> Option<bool> {
    match code {
        Some(0) => Some(true),
        Some(1..8) => Some(false),
        _ => None,
    }
}
