//! Why an arm has no figure for a claim.

use super::ClaimPhase;

/// Why an arm has no figure for a claim, in words that follow its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoReading {
    /// The run has no such arm.
    #[error("is not part of this run")]
    NotInRun,
    /// The arm has no trial.
    #[error("was not measured")]
    NotMeasured,
    /// No trial of the arm came to its end.
    #[error("was not measured: its trials failed")]
    Failed,
    /// Trials came to their end, and all were disqualified.
    #[error("has no trial that counts")]
    NoneCounts,
    /// The figure is not one of this arm, or of this kind of run.
    #[error("has no such figure")]
    NoSuchFigure,
    /// No part of a trial meets the conditions.
    #[error("was never long enough in this phase: {}", .0.iter().map(|phase| phase.name()).collect::<Vec<_>>().join(", "))]
    NeverInPhase(Vec<ClaimPhase>),
    /// The power of the arm was not cut.
    #[error("was not cut")]
    NotCut,
    /// The canaries of a crash run were not caught.
    #[error("is part of a void run: its canaries were not caught")]
    VoidRun,
    /// The experiment has not run.
    #[error("has not run yet")]
    NotRunYet,
    /// The experiment ended without results, with an error.
    #[error("has no results: {0}")]
    NoResults(String),
}
