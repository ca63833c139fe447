//! Each request and reply arrives as it was sent, and another version is refused for its version.

use std::time::Duration;

use ebbtide_catalog::{Initialization, Spec};
use ebbtide_device::host::FsType;
use serde_json::{Value, json};

use super::*;
use crate::{CreateSnapshot, DetachVolume, FaultSetting, Optimizing, SetFaults, TakeCrashImage};

fn attach(export: ExportRequest) -> Request {
    Request::VolumeAttach(AttachRequest {
        name: "db".into(),
        export,
        instance: Some("r5.large/web1".into()),
        over_limit: true,
        shadows: vec!["gp3:iops=6000".into()],
    })
}

fn create(initialization: Option<Initialization>) -> Request {
    Request::VolumeCreate(CreateRequest {
        name: "db".into(),
        spec: "gp3:size=1GiB".into(),
        snapshot: initialization.map(|_| "monday".into()),
        initialization,
        block_size: 4096,
        seed: Some(u64::MAX),
        region: None,
        owner: Some("111122223333/eu-west-1b".parse().unwrap()),
    })
}

fn modify(optimizing: Option<Optimizing>) -> Request {
    Request::VolumeModify(ModifyRequest {
        name: "db".into(),
        spec: Some("gp3:size=1TiB".into()),
        owner: Some("111122223333".parse().unwrap()),
        optimizing,
        over_limit: false,
    })
}

/// A change of the owner alone.
fn give() -> Request {
    Request::VolumeModify(ModifyRequest {
        name: "db".into(),
        spec: None,
        owner: Some("111122223333/eu-west-1b".parse().unwrap()),
        optimizing: None,
        over_limit: false,
    })
}

/// Requests of each variant, and of each form of what is in them.
fn requests() -> Vec<Request> {
    let name = || "db".to_owned();
    let mount = MountPoint { dir: "/mnt/db".into(), fs: FsType::Ext4Bigalloc, destroy: true };
    let settings = ["latency=write:1500ns", "errors=100ppm", "error-range=1GiB+4KiB", "power-cut=7", "clear"];
    let settings: Vec<FaultSetting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    vec![
        Request::Ping,
        Request::Status,
        Request::Stop { force: true },
        create(None),
        create(Some(Initialization::Lazy)),
        create(Some(Initialization::Rate { mib_s: 200 })),
        attach(ExportRequest::Block { mount: None }),
        attach(ExportRequest::Block { mount: Some(mount) }),
        attach(ExportRequest::Nbd { address: "unix:/tmp/db.sock".into() }),
        Request::VolumeDetach(DetachVolume { name: name(), force: true }),
        Request::VolumeRecord { name: name(), file: "/tmp/db.blkparse.zst".into() },
        Request::VolumeRecordEnd { name: name() },
        modify(None),
        modify(Some(Optimizing::Aws)),
        modify(Some(Optimizing::For(Duration::from_millis(1_500)))),
        give(),
        Request::VolumeList { region: Some("eu-west-1".into()) },
        Request::VolumeShow { name: name(), region: None },
        Request::VolumeDelete { name: name() },
        Request::VolumeFault(SetFaults { name: name(), settings }),
        Request::VolumeCrashImage(TakeCrashImage { name: name(), image: "after".into(), seed: Some(7) }),
        Request::Calibrate { quick: true },
        Request::SnapshotCreate(CreateSnapshot { name: "monday".into(), volume: name() }),
        Request::SnapshotList,
        Request::SnapshotDelete { name: "monday".into() },
        Request::ServerChange(ServerChange {
            log: Some("debug".into()),
            aws: vec!["--aws".into(), "4599".into()],
            metrics: Some("off".into()),
        }),
    ]
}

/// The place of a request's variant. The compiler misses a new one here; [`requests`] needs it then, too.
const fn place(request: &Request) -> usize {
    match request {
        Request::Ping => 0,
        Request::Status => 1,
        Request::Stop { .. } => 2,
        Request::VolumeCreate(_) => 3,
        Request::VolumeAttach(_) => 4,
        Request::VolumeDetach(_) => 5,
        Request::VolumeRecord { .. } => 6,
        Request::VolumeRecordEnd { .. } => 7,
        Request::VolumeModify(_) => 8,
        Request::VolumeList { .. } => 9,
        Request::VolumeShow { .. } => 10,
        Request::VolumeDelete { .. } => 11,
        Request::VolumeFault(_) => 12,
        Request::VolumeCrashImage(_) => 13,
        Request::Calibrate { .. } => 14,
        Request::SnapshotCreate(_) => 15,
        Request::SnapshotList => 16,
        Request::SnapshotDelete { .. } => 17,
        Request::ServerChange(_) => 18,
    }
}

#[test]
fn each_request_arrives_as_it_was_sent() {
    let requests = requests();
    let mut places: Vec<usize> = requests.iter().map(place).collect();
    places.dedup();
    assert_eq!(places, (0..19).collect::<Vec<_>>(), "each variant");
    for request in requests {
        let sent = serde_json::to_value(Envelope::seal(&request).unwrap()).unwrap();
        assert_eq!(sent["v"], VERSION);
        let arrived = serde_json::from_value::<Envelope>(sent).unwrap().open().unwrap();
        assert_eq!(format!("{arrived:?}"), format!("{request:?}"));
    }
}

#[test]
fn a_path_that_is_not_utf_8_is_not_sent() {
    use std::os::unix::ffi::OsStringExt as _;
    let file = std::ffi::OsString::from_vec(vec![b'/', 0xff]).into();
    Envelope::seal(&Request::VolumeRecord { name: "db".into(), file }).unwrap_err();
}

/// Why the server does not take what a client sends.
fn refusal(sent: Value) -> ProtocolError {
    serde_json::from_value::<Envelope>(sent).unwrap().open().unwrap_err()
}

#[test]
fn an_older_and_a_newer_client_are_refused_for_their_version_whatever_they_ask() {
    for client in [0, VERSION - 1, VERSION + 1, u32::MAX] {
        for request in [json!("ping"), json!({"dance": 1}), json!(null)] {
            let refused = refusal(json!({"v": client, "request": request, "more": true}));
            assert_eq!(refused, ProtocolError::OtherVersion { client });
        }
    }
    let words = refusal(json!({"v": VERSION + 1, "request": "ping"})).to_string();
    assert_eq!(words, "the server speaks version 9 of the control protocol, the client version 10");
}

#[test]
fn a_request_that_this_version_does_not_have_is_refused_with_its_name() {
    let refused = refusal(json!({"v": VERSION, "request": {"dance": 1}})).to_string();
    assert!(refused.starts_with("the request is not understood: unknown variant `dance`"), "{refused}");
}

#[test]
fn replies_without_a_view_arrive_as_they_were_sent_and_two_of_them_are_the_last() {
    let refused = RefusedRequest {
        exit: ExitStatus::Environment,
        chain: vec!["the host's disk is full".into(), "cannot write manifest".into()],
        hint: None,
    };
    let hinted = RefusedRequest { hint: Some("free space".into()), ..refused.clone() };
    let done = |exit| Reply::Done { exit, answer: Answer::Deleted("db".into()) };
    let replies = [
        (Reply::Progress("mkfs".into()), false, json!({"progress": "mkfs"})),
        (Reply::Warning("it is slow".into()), false, json!({"warning": "it is slow"})),
        (done(ExitStatus::Clean), true, json!({"done": {"exit": "clean", "answer": {"deleted": "db"}}})),
        (done(ExitStatus::Finding), true, json!({"done": {"exit": "finding", "answer": {"deleted": "db"}}})),
        // Clients of other versions read these two.
        (
            Reply::Failed(refused),
            true,
            json!({"failed": {"exit": "environment", "chain": ["the host's disk is full", "cannot write manifest"]}}),
        ),
        (
            Reply::Failed(hinted),
            true,
            json!({"failed": {
                "exit": "environment",
                "chain": ["the host's disk is full", "cannot write manifest"],
                "hint": "free space"
            }}),
        ),
    ];
    for (reply, is_last, sent) in replies {
        assert_eq!(reply.is_last(), is_last, "{reply:?}");
        assert_eq!(serde_json::to_value(&reply).unwrap(), sent);
        let arrived: Reply = serde_json::from_value(sent).unwrap();
        assert_eq!(format!("{arrived:?}"), format!("{reply:?}"));
    }
}

#[test]
fn a_request_that_is_read_has_the_refusal_of_the_control_plane() {
    use crate::{AttachVolume, ControlErrorKind, CreateVolume};
    let spec = |text: &str| match create(None) {
        Request::VolumeCreate(request) => CreateRequest { spec: text.into(), ..request },
        other => panic!("{other:?}"),
    };
    assert_eq!(CreateVolume::try_from(spec("gp3:size=much")).unwrap_err().kind(), ControlErrorKind::Usage);
    let asked = Spec::parse("gp3:size=2GiB").unwrap();
    assert_eq!(CreateVolume::try_from(spec("gp3:size=2GiB")).unwrap().spec, asked);
    let Request::VolumeAttach(request) = attach(ExportRequest::Nbd { address: "udp:1".into() }) else {
        panic!()
    };
    assert_eq!(AttachVolume::try_from(request).unwrap_err().kind(), ControlErrorKind::Usage);
    let Request::VolumeModify(request) = modify(None) else { panic!() };
    let change = request.change().unwrap().unwrap();
    assert_eq!(
        (change.spec, change.optimizing),
        (Spec::parse("gp3:size=1TiB").unwrap(), Optimizing::For(Duration::ZERO))
    );
    let Request::VolumeModify(request) = give() else { panic!() };
    assert_eq!(request.change().unwrap(), None);
}
