//! Images of two volumes at one instant, against writers whose second write waits for the answer to
//! the first: as a database's log on one volume and its data on another. It runs in real time, since what
//! is tested is what threads see of each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use super::*;
use crate::clock::{Clock, MonotonicClock};
use crate::engine::{GroupCut, ImageRequest, Keep, crash_images, snapshots_at_once};
use crate::store::SnapshotRequest;

const NAMES: [&str; 2] = ["first", "second"];
const WRITERS: u64 = 3;
const CUTTERS: usize = 2;
const ROUNDS: usize = 60;
/// Long enough for writes to be in flight most of the time.
const QUICK: Nanos = Nanos::from_us(100);

struct Pair {
    volumes: [Arc<LiveVolume>; 2],
    store: VolumeStore,
    _dir: TempDir,
}

/// One write of a writer's chain.
struct Sent {
    writer: u64,
    volume: usize,
    number: u64,
    sent: Instant,
    answered: Instant,
}

impl Pair {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
        let mut limits = ebs();
        limits.service.write = QuantileCurve::constant(QUICK);
        let volumes = NAMES.map(|name| {
            store.create_volume(name, SIZE, Value::Null).unwrap();
            let clock = MonotonicClock::new();
            let array = Array::single(limits.clone(), clock.now()).unwrap();
            let mut options = LiveOptions::new(name, array, store.open_volume(name).unwrap(), 7);
            options.clock = Arc::new(clock);
            LiveVolume::start(options).unwrap()
        });
        Self { volumes, store, _dir: dir }
    }

    /// Writes 1, 2, 3 ... to the first volume and, when that is answered, to the second one.
    fn write(&self, writer: u64, done: &AtomicBool) -> Vec<Sent> {
        let mut log = Vec::new();
        for number in 1_u64.. {
            for (place, volume) in self.volumes.iter().enumerate() {
                let (sender, receiver) = mpsc::channel();
                let page = number.to_le_bytes().repeat(512);
                let sent = Instant::now();
                let reply = Reply::callback(move |outcome| sender.send(outcome.map(drop)).unwrap());
                volume.submit_write(writer * PAGE, &page, reply);
                receiver.recv().unwrap().unwrap();
                log.push(Sent { writer, volume: place, number, sent, answered: Instant::now() });
            }
            if done.load(Ordering::Relaxed) {
                break;
            }
        }
        log
    }

    /// The number that an image has of each writer; the image is deleted.
    fn found(&self, image: &str) -> Vec<u64> {
        let open = self.store.open_volume(image).unwrap();
        let of_writer = |writer: u64| {
            let mut page = [0; 4096];
            open.read_at(&mut page, writer * PAGE).unwrap();
            let number = u64::from_le_bytes(page[..8].try_into().unwrap());
            assert_eq!(page.as_slice(), number.to_le_bytes().repeat(512), "a torn page");
            number
        };
        let found = (0..WRITERS).map(of_writer).collect();
        drop(open);
        self.store.delete_volume(image).unwrap();
        found
    }

    /// Has `look` take images while the writers write; answers with what all of them did.
    fn under_load<T: Send>(&self, look: impl Fn(usize) -> Vec<T> + Sync) -> (Vec<T>, Vec<Sent>) {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (look, done) = (&look, &done);
            let writers: Vec<_> =
                (0..WRITERS).map(|writer| scope.spawn(move || self.write(writer, done))).collect();
            let cutters: Vec<_> = (0..CUTTERS).map(|cutter| scope.spawn(move || look(cutter))).collect();
            let seen: Vec<_> = cutters.into_iter().map(ScopedJoinHandle::join).collect();
            // Before the first failure of a cutter ends this test: the writers would go on for ever.
            done.store(true, Ordering::Relaxed);
            let log = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
            (seen.into_iter().flat_map(Result::unwrap).collect(), log)
        })
    }
}

#[test]
fn images_of_two_volumes_are_of_one_instant() {
    let pair = Pair::new();
    let (cuts, log) = pair.under_load(|cutter| {
        let cut = |round| {
            let images = NAMES.map(|name| format!("{name}-{cutter}-{round}"));
            let request = |place: usize| ImageRequest {
                volume: &pair.volumes[place],
                image: &images[place],
                seed: u64::try_from(round).unwrap(),
                meta: Value::Null,
            };
            // Neither order of the requests may matter, nor two groups that are asked for at the same time.
            let order = if (cutter + round) % 2 == 0 { [0, 1] } else { [1, 0] };
            let GroupCut { at, .. } = crash_images(&pair.store, &order.map(request), Keep::Nothing).unwrap();
            (at, images.map(|image| pair.found(&image)))
        };
        (0..ROUNDS).map(cut).collect()
    });
    let mut cut_between = 0;
    for (at, found) in &cuts {
        for (writer, (first, second)) in (0..).zip(found[0].iter().zip(&found[1])) {
            assert!(first >= second, "writer {writer}: the second volume has {second}, the first {first}");
            cut_between += usize::from(first > second);
        }
        for (place, found) in found.iter().enumerate() {
            for (writer, found) in (0..).zip(found) {
                let own = || log.iter().filter(|sent| sent.writer == writer && sent.volume == place);
                let answered = own().filter(|sent| sent.answered < *at).map(|sent| sent.number).max();
                let sent = own().filter(|sent| sent.sent < *at).map(|sent| sent.number).max();
                let range = answered.unwrap_or(0)..=sent.unwrap_or(0);
                assert!(range.contains(found), "writer {writer}: {found} of {range:?} on {}", NAMES[place]);
            }
        }
    }
    assert!(cut_between > 0, "no cut came between two writes");
}

#[test]
fn images_taken_one_after_the_other_show_what_a_group_never_shows() {
    let pair = Pair::new();
    let (ahead, _) = pair.under_load(|cutter| {
        let cut = |round| {
            let [first, second] = [0, 1].map(|place| {
                let image = format!("{}-{cutter}-{round}", NAMES[place]);
                pair.volumes[place].crash_image(&pair.store, &image, 1, Value::Null).unwrap();
                pair.found(&image)
            });
            first.iter().zip(second).any(|(first, second)| second > *first)
        };
        (0..ROUNDS).map(cut).collect()
    });
    assert!(ahead.contains(&true), "the other test would not notice images of two instants");
}

#[test]
fn snapshots_of_two_volumes_are_of_one_instant() {
    let pair = Pair::new();
    let (found, _) = pair.under_load(|cutter| {
        let take = |round| {
            let names = NAMES.map(|name| format!("{name}-{cutter}-{round}"));
            let request = |place: usize| SnapshotRequest {
                volume: NAMES[place],
                name: &names[place],
                meta: Value::Null,
            };
            let order = if (cutter + round) % 2 == 0 { [0, 1] } else { [1, 0] };
            let live = order.map(|place| &*pair.volumes[place]);
            snapshots_at_once(&pair.store, &live, &order.map(request)).unwrap();
            names.map(|name| {
                let volume = format!("of-{name}");
                pair.store.create_from_snapshot(&volume, &name, SIZE, Value::Null).unwrap();
                let found = pair.found(&volume);
                pair.store.delete_snapshot(&name).unwrap();
                found
            })
        };
        (0..ROUNDS).map(take).collect()
    });
    let pairs = found.iter().flat_map(|[first, second]| first.iter().zip(second));
    let mut between = 0;
    for (first, second) in pairs {
        assert!(first >= second && first - second <= 1, "the volumes have {first} and {second}");
        between += usize::from(first > second);
    }
    assert!(between > 0, "no snapshot came between two writes");
}
