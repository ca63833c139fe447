//! Making a data directory.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use ebbtide_dir::Dir;

use crate::account::Account;
use crate::end::GivenUp;
use crate::error::ServerError;
use crate::install::Install;
use crate::launch::Launched;
use crate::layout::{Layout, Maker};
use crate::log;
use crate::options::Task;
use crate::plan::ServerPlan;

/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_secs(2);
/// How often it is looked whether it is done.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Makes the system tables in the plan's data directory, with an account `root` that has no password and
/// is reached from this machine alone. What is built into the data (page size, undo tablespaces, lower
/// case names) comes from the plan's settings.
///
/// # Errors
/// [`ServerError::NotEmpty`] where a directory holds something; everything that a start can fail with. What
/// a failed attempt has made is removed again.
pub fn initialize(plan: &ServerPlan, progress: &dyn Fn(&str)) -> Result<(), ServerError> {
    let account = Account::for_server()?;
    for dir in plan.layout.dirs() {
        account.check_reach(dir)?;
        check_empty(dir)?;
    }
    plan.layout.give_to(&account)?;
    let made = make(plan, &account, progress);
    if made.is_err() {
        for dir in plan.layout.dirs() {
            clear(dir);
        }
    }
    made
}

fn make(plan: &ServerPlan, account: &Account, progress: &dyn Fn(&str)) -> Result<(), ServerError> {
    progress(&format!("making a data directory with {}", plan.binary.name()));
    let input = if plan.binary.is_mariadb() { Some(bootstrap_sql(plan)?) } else { None };
    let server = Launched::start(plan, account, Task::Initialize, input)?;
    let (began, mut last_report) = (Instant::now(), Instant::now());
    let status = loop {
        if let Some(status) = server.wait(LOOK_EVERY) {
            break status;
        }
        if plan.cancel.is_cancelled() {
            return Err(ServerError::Cancelled);
        }
        if last_report.elapsed() < REPORT_EVERY {
            continue;
        }
        last_report = Instant::now();
        if began.elapsed() > plan.start_timeout || log::waits_for_room(&server.log().lines()) {
            return Err(server.gave_up(GivenUp::NotInitialized { seconds: began.elapsed().as_secs() }));
        }
        progress(&format!("making a data directory: {} s so far", began.elapsed().as_secs()));
    };
    if !status.success() {
        return Err(server.did_not_start(server.end()));
    }
    Maker::of(&plan.binary).sign(&plan.layout, account)
}

/// The bootstrap's statements, in a file without a name: nothing is left of it.
fn bootstrap_sql(plan: &ServerPlan) -> Result<File, ServerError> {
    use std::io::{Seek as _, Write as _};
    let sql = Install::of(&plan.binary).system_sql(&plan.binary)?;
    let write = || {
        let mut file = tempfile::tempfile()?;
        file.write_all(&sql)?;
        file.rewind()?;
        Ok(file)
    };
    write().map_err(ServerError::io("write the statements of the system tables"))
}

/// Whether a directory holds nothing, or is not there yet. What mkfs puts at the top of a file system is
/// nothing.
fn check_empty(dir: &Path) -> Result<(), ServerError> {
    let names = match Dir::open_entry(dir).and_then(|dir| dir.names()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        read => read.map_err(ServerError::at("list", dir))?,
    };
    if names.iter().any(|name| name != "lost+found") {
        return Err(ServerError::NotEmpty { dir: dir.to_owned() });
    }
    Ok(())
}

/// Removes what a failed attempt has made in a directory that was empty before it.
fn clear(dir: &Path) {
    let Ok(dir) = Dir::open_entry(dir) else { return };
    for name in dir.names().unwrap_or_default().iter().filter(|name| *name != "lost+found") {
        let _ = dir.remove_all(name);
    }
}

impl Layout {
    /// Makes directories that are missing, and the server's user the owner of all.
    pub(crate) fn give_to(&self, account: &Account) -> Result<(), ServerError> {
        self.dirs().try_for_each(|dir| account.give_dir(dir).map(drop))
    }
}
