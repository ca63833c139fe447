//! What a refusal of the control plane, and of files that others made, is on the command line: its exit code, and what to type next.

mod forecast;
mod serve;
mod watch;

use std::path::Path;

use ebbtide_captured::bundle::{BundleError, Foreign};
use ebbtide_control::{ControlError, ControlErrorKind};
use ebbtide_device::host::HostError;

use crate::exit::{Exit, Refusal};
pub(crate) use forecast::refused;
pub(crate) use serve::refuse_serve;

/// What `--force` does to a volume in use, in the words of the help and of the manual.
const FORCED: &str = "what was written before is flushed to the volume, I/O after that fails";

/// A refusal with its exit code and its hint; the causes follow as the chain.
pub(crate) fn refuse(error: ControlError) -> anyhow::Error {
    let (message, hint) = (error.to_string(), hint(&error));
    let refusal = Refusal { exit: exit(error.kind()), message, hint };
    anyhow::Error::new(error).context(refusal)
}

/// Files that give no observation of a server, with what to do about them.
pub(crate) fn refuse_bundle(error: BundleError) -> anyhow::Error {
    use BundleError as E;
    let refusal = Refusal::usage(error.to_string());
    let hint = match &error {
        E::Foreign { why: Foreign::Elsewhere(kind), .. } => kind.hint().to_owned(),
        E::Foreign { .. } => format!("what is known: {}", ebbtide_captured::KNOWN),
        E::Newer { .. } => "use the ebbtide that wrote it, or a newer one".to_owned(),
        E::SeveralRuns { first, last, .. } => format!("name one, from {} to {last}", first.display()),
        E::SeveralServers(_) => {
            "give the files of one server; `ebbtide doctor` looks at one at a time".to_owned()
        }
        _ => return anyhow::Error::new(error).context(refusal),
    };
    anyhow::Error::new(error).context(refusal.hint(hint))
}

/// Overrides that cannot be read, or mean nothing: they belong to the home, not to the request.
pub(crate) fn refuse_overrides(file: &Path, error: anyhow::Error) -> anyhow::Error {
    let refusal = Refusal::environment("this home's catalogue overrides cannot be used").hint(mend(file));
    error.context(refusal)
}

fn mend(overrides: &Path) -> String {
    format!("mend or remove {}", overrides.display())
}

/// The exit code of a kind of refusal.
const fn exit(kind: ControlErrorKind) -> Exit {
    match kind {
        ControlErrorKind::Usage | ControlErrorKind::NotFound | ControlErrorKind::Conflict => Exit::Usage,
        ControlErrorKind::InUse | ControlErrorKind::Unavailable | ControlErrorKind::Environment => {
            Exit::Environment
        }
        ControlErrorKind::Invariant => Exit::Invariant,
    }
}

fn hint(error: &ControlError) -> Option<String> {
    use ControlError as E;
    Some(match error {
        E::Stopping => "wait until it has ended, then start it again".to_owned(),
        E::BlockSize { .. } => "give --block-size 512 or 4096".to_owned(),
        E::Catalog(error) => return error.hint(),
        E::Overrides { file, .. } => mend(file),
        E::SmallerThanSnapshot { needed_bytes, .. } => {
            format!("give it size={} or more", ebbtide_volume::format_size(*needed_bytes))
        }
        E::BeyondEnd { size_bytes, .. } => {
            format!("give OFFSET+LENGTH up to {} together", ebbtide_volume::format_size(*size_bytes))
        }
        E::NotFound { thing, .. } => format!("'ebbtide {thing} list' shows what there is"),
        E::NotFree { .. } => "'ebbtide volume detach' makes it available".to_owned(),
        E::NotAttached { volume } => format!("'ebbtide volume attach {volume}' attaches it"),
        E::InUse { .. } => format!("end what uses it, or give --force: {FORCED}"),
        E::Stalled { volume } => {
            format!("'ebbtide volume fault {volume} stall=off' lets it go on; with --force it fails")
        }
        E::StillInUse { volume, .. } => format!(
            "end what uses it, or give 'ebbtide volume detach {} --force' or 'ebbtide serve --stop --force': \
             {FORCED}",
            volume.as_deref().unwrap_or("NAME")
        ),
        E::FasterThanHost { modify, .. } => format!(
            "--over-limit {} it all the same and marks it; 'ebbtide volume calibrate' measures the host again",
            if *modify { "modifies" } else { "attaches" }
        ),
        E::Refused(error) => return refused_hint(error).map(str::to_owned),
        E::Key { .. } => {
            "start 'ebbtide serve' with --aws, or enable the key with KMS's EnableKey or CancelKeyDeletion"
                .to_owned()
        }
        E::Damaged(_) => "'ebbtide volume check' lists every damage".to_owned(),
        E::HostFull(_) => {
            "free space on the disk that holds the home; nothing already answered is lost".to_owned()
        }
        _ => return None,
    })
}

/// The hint of a refusal that the host words.
const fn refused_hint(error: &HostError) -> Option<&'static str> {
    use HostError as E;
    Some(match error {
        E::NoSlot { .. } => "detach another one first",
        E::OtherInstance { .. } => "give another ID after the type",
        E::NoBlockDevice { .. } => {
            "run 'ebbtide serve' as root with /dev/fuse and /dev/loop-control there, or use \
             --nbd unix:PATH, which needs neither"
        }
        E::MountDir { .. } => "choose an empty directory",
        E::NotBlank { .. } => "give --execute to destroy it, or attach without --mount to look at it",
        E::NoSpace { .. } => "free space on the disk that holds the home, or choose another --home",
        _ => return None,
    })
}
