//! Volumes from snapshots that are loaded while they are used: right data, kept progress, clear refusals.

use std::time::{Duration, Instant};

use ebbtide_catalog::{Initialization, Spec};
use ebbtide_control::{
    ControlError, ControlErrorKind, ControlPlane as _, CreateSnapshot, CreateVolume, InitializationState,
    InitializationView, LiveControl, ModifyVolume, Optimizing, TakeCrashImage,
};
use ebbtide_device::host::{Home, Host, HostOptions};

use crate::nbd::Client;
use crate::{Fixture, asked};

const BLOCK: u64 = 512 << 10;
/// A read of a block that is there takes well below this on any type used here, and one of another well above.
const QUICK: Duration = Duration::from_millis(4);
/// Of so many reads of a block that is there one is quick, on a busy machine too.
const TRIES: u32 = 2_000;
const LAZY: Option<Initialization> = Some(Initialization::Lazy);

fn from_snapshot(name: &str, spec: &str, initialization: Option<Initialization>) -> CreateVolume {
    CreateVolume { snapshot: Some("monday".to_owned()), initialization, ..asked(name, spec) }
}

/// What the snapshot has in each of its blocks: 8 with data, then nothing.
fn content(block: u64) -> Vec<u8> {
    vec![u8::try_from(block + 1).unwrap(); 4096]
}

impl Fixture {
    /// A home with a snapshot `monday` of a GiB that has data in its first 8 blocks.
    fn with_snapshot() -> Self {
        let fixture = Self::new();
        fixture.create("db", "ideal:size=1GiB").unwrap();
        fixture.attach("db").unwrap();
        let mut client = Client::connect(&fixture.socket("db"));
        (0..8).for_each(|block| client.write(block * BLOCK + 8192, &content(block)));
        drop(client);
        fixture.detach("db").unwrap();
        fixture
            .plane
            .create_snapshot(&CreateSnapshot { name: "monday".into(), volume: "db".into() })
            .unwrap();
        fixture
    }

    fn restore(
        &self,
        name: &str,
        spec: &str,
        initialization: Option<Initialization>,
    ) -> Option<InitializationView> {
        let created = self.plane.create_volume(&from_snapshot(name, spec, initialization)).unwrap();
        created.volume.initialization
    }

    fn loading(&self, name: &str) -> InitializationView {
        self.plane.volume(name, None).unwrap().volume.initialization.unwrap()
    }

    /// The same home with another server.
    fn restarted(self) -> Self {
        let Self { plane, dir } = self;
        drop(plane);
        let home = Home::open(&dir.path().join("home")).unwrap();
        let host = Host::open(home.lock().unwrap(), HostOptions::default()).unwrap();
        Self { plane: LiveControl::new(host), dir }
    }
}

/// Reads what the snapshot has in a block; how long that took.
fn read(client: &mut Client, block: u64) -> Duration {
    let began = Instant::now();
    assert_eq!(client.read(block * BLOCK + 8192, 4096), content(block), "block {block}");
    began.elapsed()
}

#[test]
fn an_ebs_volume_from_a_snapshot_is_lazy_unless_something_else_is_asked_for() {
    let fixture = Fixture::with_snapshot();
    let view = fixture.restore("lazy", "gp3:size=1GiB", None).unwrap();
    assert_eq!((view.mode, view.state), (Initialization::Lazy, InitializationState::Initializing));
    assert_eq!((view.total_bytes, view.loaded_bytes, view.progress_pct), (8 * BLOCK, 0, 0));
    assert_eq!(view.completes, None);
    assert!(fixture.restore("whole", "gp3:size=1GiB", Some(Initialization::None)).is_none());
    assert!(fixture.restore("disk", "nvme:size=1GiB", None).is_none());
    assert!(fixture.restore("slow-disk", "nvme:size=1GiB", LAZY).is_some());
    assert!(fixture.plane.volume("db", None).unwrap().volume.initialization.is_none());
    let rated = fixture.restore("rated", "gp3:size=1GiB", Some(Initialization::Rate { mib_s: 100 })).unwrap();
    assert_eq!((rated.mode, rated.total_bytes), (Initialization::Rate { mib_s: 100 }, 8 * BLOCK));
    // Each member has a snapshot of its own; a chunk is a block.
    let striped = fixture.restore("striped", "raid0(2x gp3:size=1GiB)", None).unwrap();
    assert_eq!(striped.total_bytes, 8 * BLOCK);
    // Several at once, in the order of the names.
    let all = fixture.plane.initializations(&["whole", "slow-disk", "nobody", "lazy", "db"]).unwrap();
    let bytes: Vec<_> = all.iter().map(|one| one.as_ref().map(|one| one.total_bytes)).collect();
    assert_eq!(bytes, [None, Some(8 * BLOCK), None, Some(8 * BLOCK), None]);
}

#[test]
fn what_cannot_be_initialized_is_refused() {
    let fixture = Fixture::with_snapshot();
    let refused = |request: &CreateVolume| fixture.plane.create_volume(request).unwrap_err();
    let empty = refused(&CreateVolume { initialization: LAZY, ..asked("x", "gp3:size=1GiB") });
    assert!(matches!(empty, ControlError::NothingToInitialize), "{empty}");
    assert_eq!(empty.kind(), ControlErrorKind::Usage);
    let fast = refused(&from_snapshot("x", "gp3:size=1GiB", Some(Initialization::Rate { mib_s: 301 })));
    assert!(fast.to_string().contains("100 to 300 MiB/s"), "{fast}");
    assert_eq!(fast.kind(), ControlErrorKind::Usage);
    // A repeated request is one with the same initialization.
    let token = |initialization| CreateVolume {
        token: Some("abc".into()),
        ..from_snapshot("y", "gp3:size=1GiB", initialization)
    };
    fixture.plane.create_volume(&token(None)).unwrap();
    fixture.plane.create_volume(&token(None)).unwrap();
    assert!(matches!(refused(&token(LAZY)), ControlError::TokenUsed { .. }));
}

#[test]
fn data_are_right_while_they_load_and_progress_outlives_the_server() {
    let fixture = Fixture::with_snapshot();
    fixture.restore("copy", "io2:size=4GiB,iops=1000", LAZY).unwrap();
    fixture.attach("copy").unwrap();
    let mut client = Client::connect(&fixture.socket("copy"));
    for block in [5, 0] {
        let first = read(&mut client, block);
        assert!(first > QUICK, "the first touch of block {block} took {first:?}");
    }
    assert!((0..TRIES).any(|_| read(&mut client, 5) < QUICK), "a block that is there was loaded again");
    // A part of a block that is not loaded, and one that the snapshot does not have.
    client.write(2 * BLOCK, &[0xEE; 4096]);
    client.write(100 * BLOCK, &[0xDD; 4096]);
    assert_eq!(fixture.loading("copy").loaded_bytes, 3 * BLOCK);
    drop(client);
    fixture.detach("copy").unwrap();
    let kept = fixture.loading("copy");
    assert_eq!((kept.loaded_bytes, kept.progress_pct), (3 * BLOCK, 37));

    let fixture = fixture.restarted();
    let found = fixture.loading("copy");
    assert_eq!((found.loaded_bytes, found.since), (kept.loaded_bytes, kept.since));
    fixture.attach("copy").unwrap();
    let mut client = Client::connect(&fixture.socket("copy"));
    assert!((0..TRIES).any(|_| read(&mut client, 0) < QUICK), "what was loaded before was loaded again");
    assert_eq!(client.read(2 * BLOCK, 4096), [0xEE; 4096]);
    for block in 0..8 {
        read(&mut client, block);
    }
    assert_eq!(client.read(100 * BLOCK, 4096), [0xDD; 4096]);
    let done = fixture.loading("copy");
    assert_eq!((done.state, done.progress_pct), (InitializationState::Completed, 100));
    assert_eq!((done.loaded_bytes, done.total_bytes), (8 * BLOCK, 8 * BLOCK));
    drop(client);
    fixture.detach("copy").unwrap();
    assert_eq!(fixture.loading("copy").state, InitializationState::Completed);
}

#[test]
fn a_provisioned_rate_loads_without_anyone_who_reads() {
    let fixture = Fixture::with_snapshot();
    let view = fixture.restore("copy", "gp3:size=1GiB", Some(Initialization::Rate { mib_s: 300 })).unwrap();
    // 4 MiB at 300 MiB/s: by the clock, attached or not.
    let deadline = Instant::now() + Duration::from_secs(60);
    while fixture.loading("copy").state != InitializationState::Completed {
        assert!(Instant::now() < deadline, "{:?}", fixture.loading("copy"));
        std::thread::yield_now();
    }
    let done = fixture.loading("copy");
    assert_eq!((done.progress_pct, done.since, done.completes), (100, view.since, None));
}

#[test]
fn snapshots_crash_images_and_growth_of_a_volume_that_loads_are_whole() {
    let fixture = Fixture::with_snapshot();
    fixture.restore("copy", "gp3:size=1GiB", None).unwrap();
    fixture.attach("copy").unwrap();
    let mut client = Client::connect(&fixture.socket("copy"));
    read(&mut client, 3);
    fixture.plane.create_snapshot(&CreateSnapshot { name: "later".into(), volume: "copy".into() }).unwrap();
    let image = TakeCrashImage { name: "copy".into(), image: "cut".into(), seed: Some(7) };
    fixture.plane.take_crash_image(&image).unwrap();
    let grown = ModifyVolume {
        name: "copy".into(),
        spec: Spec::parse("gp3:size=2GiB").unwrap(),
        optimizing: Optimizing::For(Duration::ZERO),
        over_limit: true,
    };
    fixture.plane.modify_volume(&grown, &|_| ()).unwrap();
    let after = fixture.loading("copy");
    assert_eq!(
        (after.loaded_bytes, after.total_bytes),
        (BLOCK, 8 * BLOCK),
        "what is new has nothing to load"
    );
    drop(client);
    // The image is the volume: what it had not loaded, the image has not. The snapshot has all.
    assert_eq!(fixture.loading("cut").loaded_bytes, BLOCK);
    let second = CreateVolume {
        snapshot: Some("later".into()),
        initialization: Some(Initialization::None),
        ..asked("second", "gp3:size=1GiB")
    };
    assert!(fixture.plane.create_volume(&second).unwrap().volume.initialization.is_none());
    let third = CreateVolume { snapshot: Some("later".into()), ..asked("third", "gp3:size=1GiB") };
    let third = fixture.plane.create_volume(&third).unwrap().volume.initialization.unwrap();
    assert_eq!((third.loaded_bytes, third.total_bytes), (0, 8 * BLOCK));
    for name in ["cut", "second"] {
        fixture.attach(name).unwrap();
        let mut client = Client::connect(&fixture.socket(name));
        for block in 0..8 {
            read(&mut client, block);
        }
    }
}
