//! Counters of the requests to a control plane: how many there were, how they failed, and how long they took.

use std::sync::atomic::{AtomicU64, Ordering};

use ebbtide_volume::Nanos;

use crate::{ControlErrorKind, FailureCount, OperationView};

macro_rules! kinds {
    ($($kind:ident $name:literal,)*) => {
        /// An operation of the control plane: a method of [`ControlPlane`](crate::ControlPlane).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum RequestKind {
            $($kind,)*
        }

        impl RequestKind {
            /// All of them, each at the place of its number.
            pub(crate) const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its name in the log and in views.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    CreateVolume "create",
    Volumes "list",
    Volume "show",
    Initializations "initializations",
    AttachVolume "attach",
    DetachVolume "detach",
    RecordVolume "record",
    EndRecording "end-recording",
    ModifyVolume "modify",
    SetOwner "owner",
    DeleteVolume "delete",
    SetFaults "fault",
    TakeCrashImage "crash-image",
    CreateSnapshot "snapshot",
    CreateSnapshots "snapshots",
    CopySnapshot "copy-snapshot",
    EncryptSnapshot "encrypt-snapshot",
    Snapshot "show-snapshot",
    Names "names",
    Counters "counters",
    Snapshots "list-snapshots",
    DeleteSnapshot "delete-snapshot",
    BeginSnapshot "begin-snapshot",
    WriteBlock "write-block",
    WrittenBlocks "written-blocks",
    ReadWrittenBlock "read-written-block",
    CompleteSnapshot "complete-snapshot",
    AbandonSnapshot "abandon-snapshot",
    SnapshotBlocks "list-blocks",
    ChangedBlocks "changed-blocks",
    ReadBlock "read-block",
    Calibrate "calibrate",
    Stop "stop",
}

/// The counters of all operations. A request adds to five atomics at most and takes no lock.
#[derive(Debug)]
pub(crate) struct RequestCounters([OperationCounters; RequestKind::ALL.len()]);

/// The counters of one operation. They are never set back.
#[derive(Debug, Default)]
struct OperationCounters {
    begun: AtomicU64,
    ended: AtomicU64,
    failed: [AtomicU64; ControlErrorKind::ALL.len()],
    total_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Default for RequestCounters {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OperationCounters::default()))
    }
}

impl RequestCounters {
    /// Counts a request that begins.
    pub(crate) fn begin(&self, kind: RequestKind) {
        self.0[kind as usize].begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts its end: how long it took, and of which kind its failure is.
    pub(crate) fn end(&self, kind: RequestKind, took: Nanos, failure: Option<ControlErrorKind>) {
        let of = &self.0[kind as usize];
        if let Some(failure) = failure {
            of.failed[failure as usize].fetch_add(1, Ordering::Relaxed);
        }
        of.total_ns.fetch_add(took.0, Ordering::Relaxed);
        of.max_ns.fetch_max(took.0, Ordering::Relaxed);
        of.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted so far, by operation. Requests that end meanwhile may be in some counters and not in others.
    pub(crate) fn view(&self) -> Vec<OperationView> {
        RequestKind::ALL.iter().zip(&self.0).map(|(kind, counters)| counters.view(*kind)).collect()
    }
}

impl OperationCounters {
    fn view(&self, kind: RequestKind) -> OperationView {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let failures = ControlErrorKind::ALL.into_iter().zip(&self.failed);
        // In this order, so that none has ended that had not begun.
        let (ended, requests) = (load(&self.ended), load(&self.begun));
        OperationView {
            operation: kind.name().to_owned(),
            requests,
            running: requests.saturating_sub(ended),
            failures: failures
                .map(|(kind, counter)| FailureCount { kind, count: load(counter) })
                .filter(|failure| failure.count > 0)
                .collect(),
            total_us: load(&self.total_ns) / 1_000,
            max_us: load(&self.max_ns) / 1_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counters: &RequestCounters, kind: RequestKind) -> OperationView {
        counters.view().into_iter().find(|view| view.operation == kind.name()).unwrap()
    }

    #[test]
    fn a_kind_has_the_place_of_its_number_and_a_name_of_its_own() {
        for (place, kind) in RequestKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, place);
            let same = RequestKind::ALL.iter().filter(|other| other.name() == kind.name());
            assert_eq!(same.count(), 1, "{}", kind.name());
        }
        for (place, kind) in ControlErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }

    #[test]
    fn durations_are_added_and_the_longest_is_kept() {
        let counters = RequestCounters::default();
        let failure = Some(ControlErrorKind::Conflict);
        for (took_us, failure) in [(1_500, None), (4_000, failure), (2_000, failure)] {
            counters.begin(RequestKind::AttachVolume);
            counters.end(RequestKind::AttachVolume, Nanos(took_us * 1_000), failure);
        }
        let expected = OperationView {
            operation: "attach".to_owned(),
            requests: 3,
            running: 0,
            failures: vec![FailureCount { kind: ControlErrorKind::Conflict, count: 2 }],
            total_us: 7_500,
            max_us: 4_000,
        };
        assert_eq!(of(&counters, RequestKind::AttachVolume), expected);
        assert_eq!(of(&counters, RequestKind::DetachVolume).requests, 0, "operations are apart");
    }

    #[test]
    fn a_request_runs_until_it_ends() {
        let counters = RequestCounters::default();
        counters.begin(RequestKind::DetachVolume);
        counters.begin(RequestKind::DetachVolume);
        counters.end(RequestKind::DetachVolume, Nanos(1), None);
        let view = of(&counters, RequestKind::DetachVolume);
        assert_eq!((view.requests, view.running), (2, 1));
    }
}
