//! Every operation is counted, with its failures.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use ebbtide_control::{
    AttachVolume, BeginSnapshot, ControlError, ControlPlane, CreateSnapshot, DetachVolume, Export,
    FailureCount, LiveControl, ModifyVolume, NbdAddress, OperationView, Optimizing, RecordVolume,
    SNAPSHOT_BLOCK_BYTES, SetFaults, TakeCrashImage, WrappedKey,
};

use crate::{Fixture, asked};

/// Methods of [`ControlPlane`] that are not counted.
const NOT_COUNTED: [&str; 4] = ["ready", "requests", "changed_volumes", "identity"];

/// A method of [`ControlPlane`], and a call of it. Most are refused, since nothing that they name exists.
type Called = (&'static str, fn(&LiveControl) -> Result<(), ControlError>);

/// Whatever the call returns.
fn end<T>(outcome: Result<T, ControlError>) -> Result<(), ControlError> {
    outcome.map(drop)
}

/// A call of each method, the last of which stops the plane.
const CALLS: [Called; 33] = [
    ("create_volume", |plane| end(plane.create_volume(&asked("db", "gp3:size=1GiB")))),
    ("volumes", |plane| end(plane.volumes(None))),
    ("volume", |plane| end(plane.volume("none", None))),
    ("initializations", |plane| end(plane.initializations(&["none"]))),
    ("attach_volume", |plane| {
        let export = Export::Nbd(NbdAddress::Unix("/nowhere.sock".into()));
        let name = "none".to_owned();
        let request = AttachVolume { name, export, instance: None, over_limit: true, shadows: Vec::new() };
        end(plane.attach_volume(&request, &|_| ()))
    }),
    ("detach_volume", |plane| {
        end(plane.detach_volume(&DetachVolume { name: "none".to_owned(), force: false }, &|_| ()))
    }),
    ("record_volume", |plane| {
        let request = RecordVolume { name: "none".to_owned(), path: String::new() };
        end(plane.record_volume(&request, Box::new(io::sink())))
    }),
    ("end_recording", |plane| end(plane.end_recording("db"))),
    ("modify_volume", |plane| {
        let request = ModifyVolume {
            name: "none".to_owned(),
            spec: asked("none", "gp3:size=2GiB").spec,
            optimizing: Optimizing::Aws,
            over_limit: true,
        };
        end(plane.modify_volume(&request, &|_| ()))
    }),
    ("delete_volume", |plane| end(plane.delete_volume("none"))),
    ("set_faults", |plane| end(plane.set_faults(&SetFaults { name: "db".to_owned(), settings: Vec::new() }))),
    ("take_crash_image", |plane| {
        let (name, image) = ("db".to_owned(), "image".to_owned());
        end(plane.take_crash_image(&TakeCrashImage { name, image, seed: None }))
    }),
    ("create_snapshot", |plane| {
        end(plane.create_snapshot(&CreateSnapshot { name: "monday".to_owned(), volume: "db".to_owned() }))
    }),
    ("create_snapshots", |plane| end(plane.create_snapshots(&[]))),
    ("copy_snapshot", |plane| end(plane.copy_snapshot("monday", "monday"))),
    ("encrypt_snapshot", |plane| {
        let key = WrappedKey { key_id: String::new(), blob: String::new(), context: BTreeMap::new() };
        end(plane.encrypt_snapshot("none", "tuesday", &key))
    }),
    ("snapshot", |plane| end(plane.snapshot("none"))),
    ("set_owner", |plane| end(plane.set_owner("none", &"111122223333".parse().unwrap()))),
    ("names", |plane| end(plane.names())),
    ("counters", |plane| end(plane.counters())),
    ("snapshots", |plane| end(plane.snapshots())),
    ("delete_snapshot", |plane| end(plane.delete_snapshot("none"))),
    ("begin_snapshot", |plane| {
        let (name, size_bytes) = ("pending".to_owned(), 1 << 30);
        end(plane.begin_snapshot(&BeginSnapshot { name, size_bytes, parent: None, key: None }))
    }),
    ("write_block", |plane| {
        end(plane.write_block("none", 0, &vec![1; usize::try_from(SNAPSHOT_BLOCK_BYTES).unwrap()]))
    }),
    ("written_blocks", |plane| end(plane.written_blocks("pending"))),
    ("read_written_block", |plane| end(plane.read_written_block("pending", 0))),
    ("complete_snapshot", |plane| end(plane.complete_snapshot("none"))),
    ("abandon_snapshot", |plane| end(plane.abandon_snapshot("pending"))),
    ("snapshot_blocks", |plane| end(plane.snapshot_blocks("monday", 0, 1))),
    ("changed_blocks", |plane| end(plane.changed_blocks("monday", "none", 0, 1))),
    ("read_block", |plane| end(plane.read_block("none", 0))),
    ("stop", |plane| end(plane.stop(false, &|_| ()))),
    // It would measure for seconds: it is refused, since the plane has stopped.
    ("calibrate", |plane| end(plane.calibrate(true, &|_| ()))),
];

/// The operations whose counters differ between two views, as they were and as they are.
fn changed(before: Vec<OperationView>, after: Vec<OperationView>) -> Vec<(OperationView, OperationView)> {
    before.into_iter().zip(after).filter(|(before, after)| before != after).collect()
}

#[test]
fn each_method_counts_one_operation_of_its_own_and_its_failure_by_kind() {
    let Fixture { plane, dir: _dir } = Fixture::new();
    assert!(plane.requests().operations.iter().all(|view| view.requests == 0), "they begin at zero");
    let mut counted = BTreeSet::new();
    for (method, call) in CALLS {
        let before = plane.requests().operations;
        let failures: Vec<_> = call(&plane)
            .err()
            .map(|error| FailureCount { kind: error.kind(), count: 1 })
            .into_iter()
            .collect();
        let changed = changed(before, plane.requests().operations);
        let [(before, after)] = changed.as_slice() else { panic!("{method}: {changed:?}") };
        assert_eq!((before.requests, after.requests, after.running), (0, 1, 0), "{method}: {after:?}");
        assert_eq!(after.failures, failures, "{method}");
        assert_eq!(after.max_us, after.total_us, "{method}: {after:?}");
        assert!(counted.insert(after.operation.clone()), "{method} is counted as another one");
    }
    assert_eq!(counted.len(), plane.requests().operations.len(), "an operation that no method counts");
}

#[test]
fn a_method_of_the_trait_that_is_not_counted_is_found() {
    let source = include_str!("../../src/plane.rs");
    let name = |line: &'static str| Some(line.strip_prefix("    fn ")?.split_once('(')?.0);
    let methods: BTreeSet<_> = source.lines().filter_map(name).collect();
    let called: BTreeSet<_> = CALLS.iter().map(|(method, _)| *method).chain(NOT_COUNTED).collect();
    assert_eq!(methods, called, "add a method to RequestKind and to CALLS here");
}

#[test]
fn a_repeated_request_adds_to_its_kinds_of_failure() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    for _ in 0..2 {
        fixture.create("db", "gp3:size=1GiB").unwrap_err();
    }
    fixture.create("b!d", "gp3:size=1GiB").unwrap_err();
    let operations = fixture.plane.requests().operations;
    let create = operations.iter().find(|view| view.operation == "create").unwrap();
    let failures: Vec<_> = create.failures.iter().map(|one| (one.kind.name(), one.count)).collect();
    assert_eq!((create.requests, failures), (4, vec![("usage", 1), ("conflict", 2)]));
    assert!(create.total_us >= create.max_us && create.max_us > 0, "{create:?}");
}
