//! The backup of a trial: started with the load, ended after it, restored when the server is gone.

use std::thread::Scope;

use ebbtide_mysql::Server;
use ebbtide_mysql::backup::Source;

use super::TrialLoad;
use crate::experiment::BackedUp;
use crate::record::BackupUse;
use crate::run::backup::{self, Made, Restore, Running, Subject};
use crate::run::batch::Beat;
use crate::run::error::StepError;
use crate::run::event::Phase;

/// A load and the backup under it: one that was not made fails the load that it was made under.
pub(super) fn with_backup<'a, T>(
    loaded: Result<T, StepError>,
    copied: Result<Option<Made<'a>>, StepError>,
) -> (Result<T, StepError>, Option<Made<'a>>) {
    match (loaded, copied) {
        (Ok(loaded), Ok(copied)) => (Ok(loaded), copied),
        (Ok(_), Err(error)) | (Err(error), _) => (Err(error), None),
    }
}

impl<'a> TrialLoad<'a> {
    /// Has the backup of the arm wait for its second; none where the arm has none. The load must not run yet.
    pub(super) fn start_backup<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        server: &Server,
        beat: &'scope Beat,
    ) -> Result<Option<Running<'scope>>, StepError>
    where
        'a: 'scope,
    {
        let context = self.context;
        let Some(plan) = context.planned.arm.backup else { return Ok(None) };
        let (of, volumes) = match plan.of {
            BackedUp::Source => (server, &self.mounted.volumes),
            BackedUp::Replica => (
                self.replicas.first().expect("a checked arm has the replica of its backup"),
                self.mounted.replica_volumes().expect("a replica that runs has volumes"),
            ),
        };
        let subject = Subject {
            plan,
            lab: context.lab,
            binary: &context.backed_up(plan.of).server,
            server: Source::of(of),
            volumes,
            beats: !self.replicas.is_empty(),
            cancel: context.cancel,
        };
        backup::start(scope, subject, server, beat).map(Some)
    }

    /// Waits for the end of the backup.
    pub(super) fn end_backup<'scope>(
        &self,
        running: Running<'scope>,
        loaded: bool,
    ) -> Result<Made<'scope>, StepError> {
        self.context.phase(Phase::BackingUp);
        running.join(loaded)
    }

    /// Restores the backup and checks it; the servers of the trial must be gone or idle.
    pub(super) fn restored(&self, made: Made<'_>) -> Result<BackupUse, StepError> {
        let context = self.context;
        context.proceed()?;
        context.phase(Phase::Restoring);
        let plan = context.planned.arm.backup.expect("it was made as the arm has it");
        let planned = context.backed_up(plan.of);
        let server = match plan.of {
            BackedUp::Source => self.mounted.plan(context),
            BackedUp::Replica => self.mounted.replica_plans(context).swap_remove(0),
        };
        let restore = Restore {
            plan,
            lab: context.lab,
            binary: &planned.server,
            planned,
            data: context.experiment.data,
            server: &server,
            seed: context.seed(),
            cancel: context.cancel,
        };
        let restored = backup::restored(&restore, &made)?;
        let from = self.measured.as_ref().map(|begun| begun.at).expect("a load that has ended was measured");
        Ok(made.record(plan, from, restored))
    }
}
