//! The server's state, and the dispatch of requests to what handles them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use ebbtide_catalog::{Catalog, CatalogError, Resolved, Spec};
use ebbtide_device::engine::EngineError;
use ebbtide_device::host::{Detached, Home, Host, HostError};
use ebbtide_device::nbd::NbdError;
use ebbtide_device::store::StoreError;
use serde_json::Value;

use crate::answers::Stopped;
use crate::control::{Answer, Progress, Request};
use crate::exit::{Exit, Refusal};

/// What `--force` does to a volume in use, in the words of the help and of the manual.
const FORCED: &str = "what was written before is flushed to the volume, I/O after that fails";

/// Everything that a request may need.
#[derive(Debug)]
pub(super) struct Service {
    /// The volumes.
    pub(super) host: Host,
    home: Home,
    asked_to_stop: AtomicBool,
    stopping: AtomicBool,
    ending: AtomicBool,
    /// Serialises a stop by a client and one by a signal.
    stop: Mutex<()>,
}

impl Service {
    /// A service for a host's volumes.
    pub(super) const fn new(host: Host, home: Home) -> Self {
        Self {
            host,
            home,
            asked_to_stop: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            stop: Mutex::new(()),
        }
    }

    /// Refuses requests from now on and detaches everything, by force where it must: the process
    /// ends after that.
    pub(super) fn end(&self) {
        // Nothing is kept in it that a panic could have left half done.
        let _alone = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopping.store(true, Ordering::Relaxed);
        self.host.stop(&|_| ());
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::end`] has done its work.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// `serve --stop`: detaches everything, after which the server ends. Where it is refused, the
    /// server goes on.
    fn stop(&self, force: bool, progress: Progress<'_>) -> anyhow::Result<Answer> {
        let _alone = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopping.store(true, Ordering::Relaxed);
        let detached = if force {
            Ok(self.host.stop(progress))
        } else {
            match self.host.in_use() {
                none if none.is_empty() => self.host.stop_in_order(progress).map_err(|error| vec![error]),
                in_use => Err(in_use),
            }
        };
        let detached = detached.map_err(|in_use| {
            self.stopping.store(false, Ordering::Relaxed);
            refuse_stop(&in_use)
        })?;
        self.asked_to_stop.store(true, Ordering::Relaxed);
        let lossless = detached.iter().all(is_lossless);
        let exit = if lossless { Exit::Clean } else { Exit::Finding };
        let value = serde_json::to_value(Stopped { stopped: self.home.root(), detached })?;
        Ok(Answer { exit, value })
    }

    /// Whether a client has asked the server to end. It does so after the answer has been sent.
    pub(super) fn is_asked_to_stop(&self) -> bool {
        self.asked_to_stop.load(Ordering::Relaxed)
    }

    /// Carries out one request.
    pub(super) fn handle(&self, request: Request, progress: Progress<'_>) -> anyhow::Result<Answer> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(Refusal::environment("the server is stopping")
                .hint("wait until it has ended, then start it again")
                .into());
        }
        let clean = |value| Answer { exit: Exit::Clean, value };
        match request {
            Request::Ping => Ok(clean(Value::from(env!("CARGO_PKG_VERSION")))),
            Request::Stop { force } => self.stop(force, progress),
            Request::VolumeCreate(args) => self.create(&args).map(clean),
            Request::VolumeAttach(args) => self.attach(&args, progress).map(clean),
            Request::VolumeDetach(args) => self.detach(&args, progress),
            Request::VolumeModify(args) => self.modify(&args, progress).map(clean),
            Request::VolumeList(args) => self.list(args.region.as_deref()).map(clean),
            Request::VolumeShow(args) => self.show(&args.name, args.region.as_deref()).map(clean),
            Request::VolumeDelete(args) => self.delete(&args.name).map(clean),
            Request::VolumeFault(args) => self.fault(&args).map(clean),
            Request::VolumeCrashImage(args) => self.crash_image(&args).map(clean),
            Request::Calibrate { quick } => self.calibrate(quick, progress).map(clean),
            Request::SnapshotCreate(args) => self.snapshot(&args).map(clean),
            Request::SnapshotList => self.snapshots().map(clean),
            Request::SnapshotDelete(args) => self.delete_snapshot(&args.name).map(clean),
        }
    }

    /// The catalogue with this home's overrides. It is read anew for each request, so that a
    /// calibration counts at once.
    pub(super) fn catalog(&self) -> anyhow::Result<Catalog> {
        catalog(&self.home)
    }

    /// What a spec's text means.
    pub(super) fn resolve(&self, text: &str) -> anyhow::Result<Resolved> {
        resolve(Some(&self.home), text)
    }
}

/// The built-in catalogue, with a home's overrides where it has any.
pub(crate) fn catalog(home: &Home) -> anyhow::Result<Catalog> {
    let overrides = home.overrides_file();
    if !overrides.exists() {
        return Ok(Catalog::builtin());
    }
    Catalog::with_overrides(&overrides).map_err(|error| refuse_overrides(&overrides, error.into()))
}

/// Overrides that cannot be read, or mean nothing: they belong to the home, not to the request.
pub(crate) fn refuse_overrides(file: &Path, error: anyhow::Error) -> anyhow::Error {
    let refusal = Refusal::environment("this home's catalogue overrides cannot be used")
        .hint(format!("mend or remove {}", file.display()));
    error.context(refusal)
}

/// What a spec's text means in a home, or where there is none.
pub(crate) fn resolve(home: Option<&Home>, text: &str) -> anyhow::Result<Resolved> {
    let spec = parse(text)?;
    home.map_or_else(|| Ok(Catalog::builtin()), catalog)?.resolve(&spec).map_err(refuse_catalog)
}

/// Refuses a spec that cannot be created in a home, or where there is none, and a region without prices.
pub(crate) fn check(home: Option<&Home>, text: &str, region: Option<&str>) -> anyhow::Result<()> {
    let spec = parse(text)?;
    let catalog = home.map_or_else(|| Ok(Catalog::builtin()), catalog)?;
    catalog.resolve(&spec).map_err(refuse_catalog)?;
    catalog.prices(region).map_err(refuse_catalog)?;
    Ok(())
}

/// Reads a spec.
pub(super) fn parse(text: &str) -> anyhow::Result<Spec> {
    Spec::parse(text).map_err(|error| Refusal::usage(error.to_string()).into())
}

/// Seconds since 1970.
pub(super) fn unix_now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

/// Whether everything that the guest wrote is on the volume, as far as the host knows.
pub(super) const fn is_lossless(detached: &Detached) -> bool {
    detached.lost.is_empty() && detached.host_errors == 0
}

/// Why the server is not stopped while volumes are in use.
fn refuse_stop(in_use: &[HostError]) -> anyhow::Error {
    let texts: Vec<_> = in_use.iter().map(ToString::to_string).collect();
    let volume = in_use.iter().find_map(|error| match error {
        HostError::InUse { volume, .. } | HostError::Stalled { volume } => Some(volume.as_str()),
        _ => None,
    });
    Refusal::environment(format!("the server goes on: {}", texts.join("; ")))
        .hint(format!(
            "end what uses it, or give 'ebbtide volume detach {} --force' or 'ebbtide serve --stop --force': \
             {FORCED}",
            volume.unwrap_or("NAME")
        ))
        .into()
}

/// The catalogue's refusals are the user's request being wrong; they keep AWS's words.
pub(super) fn refuse_catalog(error: CatalogError) -> anyhow::Error {
    let refusal = Refusal::usage(error.to_string());
    match error.hint() {
        Some(hint) => refusal.hint(hint).into(),
        None => refusal.into(),
    }
}

/// The store's refusals.
pub(super) fn refuse_store(error: StoreError) -> anyhow::Error {
    use StoreError as E;
    let message = error.to_string();
    match error {
        E::NotFound { kind, .. } => {
            Refusal::usage(message).hint(format!("'ebbtide {kind} list' shows what there is")).into()
        }
        E::Exists { .. } | E::Busy { .. } | E::Name { .. } | E::Size { .. } | E::NotAncestor { .. } => {
            Refusal::usage(message).into()
        }
        E::Damaged(_) => {
            Refusal::environment(message).hint("'ebbtide volume check' lists every damage").into()
        }
        E::Io { .. } if error.is_full() => {
            let refusal = Refusal::environment("the host's disk is full")
                .hint("free space on the disk that holds the home; nothing already answered is lost");
            anyhow::Error::new(error).context(refusal)
        }
        _ => anyhow::Error::new(error).context(Refusal::environment("the block store cannot be used")),
    }
}

/// The host's refusals.
pub(super) fn refuse_host(error: HostError) -> anyhow::Error {
    use HostError as E;
    let message = error.to_string();
    match error {
        E::Store(error) => refuse_store(error),
        E::NotFree { .. } => {
            Refusal::usage(message).hint("'ebbtide volume detach' makes it available").into()
        }
        E::NotAttached { volume } => {
            Refusal::usage(message).hint(format!("'ebbtide volume attach {volume}' attaches it")).into()
        }
        E::NoSlot { .. } => Refusal::usage(message).hint("detach another one first").into(),
        E::OtherInstance { .. } => Refusal::usage(message).hint("give another ID after the type").into(),
        E::NoBlockDevice { .. } => Refusal::environment(message)
            .hint(
                "run 'ebbtide serve' as root with /dev/fuse and /dev/loop-control there, or use \
                 --nbd unix:PATH, which needs neither",
            )
            .into(),
        E::MountDir { .. } => Refusal::usage(message).hint("choose an empty directory").into(),
        E::NotBlank { .. } => Refusal::usage(message)
            .hint("give --execute to destroy it, or attach without --mount to look at it")
            .into(),
        E::InUse { .. } => {
            Refusal::environment(message).hint(format!("end what uses it, or give --force: {FORCED}")).into()
        }
        E::Stalled { volume } => Refusal::environment(message)
            .hint(format!("'ebbtide volume fault {volume} stall=off' lets it go on; with --force it fails"))
            .into(),
        E::Engine(error) => refuse_engine(error),
        E::Nbd(error) => refuse_nbd(error),
        E::NoSpace { .. } => Refusal::environment(message)
            .hint("free space on the disk that holds the home, or choose another --home")
            .into(),
        E::Home(_) | E::Fuse(_) | E::Loop(_) | E::Tool(_) | E::Io { .. } => not_allowed(error),
        other => not_allowed(other),
    }
}

fn not_allowed(error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    anyhow::Error::new(error).context(Refusal::environment("the host does not allow it"))
}

/// The engine's refusals.
fn refuse_engine(error: EngineError) -> anyhow::Error {
    use EngineError as E;
    match error {
        E::Store(error) => refuse_store(error),
        // Both were checked when the volume was created.
        E::BlockBytes(_) | E::StoreTooSmall { .. } => {
            anyhow::Error::new(error).context(Refusal::invariant("the stored volume contradicts itself"))
        }
        other => not_allowed(other),
    }
}

/// The NBD server's refusals: an address that cannot be used is the request being wrong.
fn refuse_nbd(error: NbdError) -> anyhow::Error {
    use NbdError as E;
    match error {
        E::Address { .. }
        | E::PathTooLong { .. }
        | E::ExportName { .. }
        | E::InUse { .. }
        | E::NotASocket { .. }
        | E::BeyondLoopback { .. } => Refusal::usage(error.to_string()).into(),
        other => not_allowed(other),
    }
}
