//! What an error of the doctor is on the command line: its exit code, and what to do.

use ebbtide_doctor::{BaselineError, DoctorError, LookError, ProbeError, ProofError, StorageError};

use crate::exit::Refusal;
use crate::{load, refusal};

/// An error of the library with its exit code and its hint; the causes follow as the chain.
pub(super) fn refuse(error: impl Into<DoctorError>) -> anyhow::Error {
    match error.into() {
        DoctorError::Storage(error) => storage(error),
        DoctorError::Look(error) => look(error),
        // The option is named in place of the library's own words.
        DoctorError::Probe(ProbeError { directory, source }) => {
            let message = format!("--probe {}: no file can be made there", directory.display());
            let hint = "name a directory on the volume that you may write to, on a local file system";
            anyhow::Error::new(source).context(Refusal::usage(message).hint(hint))
        }
        DoctorError::Baseline(BaselineError::Read(error)) => refusal::refuse_bundle(error),
        DoctorError::Baseline(error) => {
            Refusal::usage(error.to_string()).hint("give a file that `ebbtide doctor --json` wrote").into()
        }
        DoctorError::Proof(error) => proof(&error),
        other => other.into(),
    }
}

fn storage(error: StorageError) -> anyhow::Error {
    match error {
        StorageError::NamedTwice(files) => {
            Refusal::usage(format!("--volume names the volume of the {} twice", files.name())).into()
        }
        StorageError::Spec(error) => refusal::refuse(error.into()),
        StorageError::Catalog(error) => refusal::refuse(error.into()),
        error => Refusal::usage(error.to_string())
            .hint("name each: --volume redo=SPEC --volume binlog=SPEC")
            .into(),
    }
}

fn look(error: LookError) -> anyhow::Error {
    let message = error.to_string();
    match error {
        LookError::Connect(error) => load::refuse(error),
        LookError::Ended => Refusal::cancelled(message).hint("a shorter --interval ends sooner").into(),
        LookError::Status(error) => anyhow::Error::new(error).context(Refusal::environment(message)),
        _ => Refusal::usage(message).into(),
    }
}

fn proof(error: &ProofError) -> anyhow::Error {
    let refusal = Refusal::usage(error.to_string());
    let hint = match error {
        ProofError::NoFinding { .. } => "--prove without a code proves what is found",
        ProofError::OtherMaker { .. } => {
            "name a server of the same maker, best of the same version, with --server PATH"
        }
        ProofError::NoProposal(_) => "the lab needs the server's usual load, its variables and its volume",
        ProofError::NotProved(_) => "--explain CODE says what a finding rests on",
        _ => return refusal.into(),
    };
    refusal.hint(hint).into()
}
