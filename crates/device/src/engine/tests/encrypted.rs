//! Volumes that are encrypted at rest: the same power cuts, and nothing plain on the disk.

use parking_lot::Mutex;

use super::images::busy_on;
use super::*;
use crate::store::{DataKey, KeyUnavailable, KeyUnwrapper, WrappedKey};

/// Has one key, until it is taken away.
#[derive(Debug, Default)]
struct Keys {
    disabled: Mutex<bool>,
}

impl KeyUnwrapper for Keys {
    fn unwrap_key(&self, wrapped: &WrappedKey) -> Result<DataKey, KeyUnavailable> {
        if *self.disabled.lock() {
            return Err(KeyUnavailable(format!("{} is disabled.", wrapped.key_id)));
        }
        DataKey::new(std::array::from_fn(|at| u8::try_from(at).unwrap()))
    }
}

fn encrypted(limits: Limits) -> (Fixture, Arc<Keys>) {
    let keys = Arc::new(Keys::default());
    let key = WrappedKey { key_id: "k".to_owned(), blob: String::new(), context: [].into() };
    let fixture = Fixture::on(limits, |store, size| {
        store.set_key_unwrapper(Arc::<Keys>::clone(&keys));
        store.create_encrypted_volume(NAME, size, Value::Null, key).unwrap();
    });
    (fixture, keys)
}

#[test]
fn crash_images_and_power_cuts_of_an_encrypted_volume_are_those_of_a_plain_one() {
    for cache in [0, 64 * KIB] {
        let limits = limits(AtomicUnit::FourKib, cache);
        let (plain, _in_flight) = busy_on(Fixture::new(limits.clone()));
        let (fixture, keys) = encrypted(limits);
        let (fixture, _in_flight_too) = busy_on(fixture);
        *keys.disabled.lock() = true;
        let of_plain = plain.volume.crash_image(&plain.store, "image", 42, Value::Null).unwrap();
        let image = fixture.volume.crash_image(&fixture.store, "image", 42, Value::Null).unwrap();
        assert_eq!(image.cut, of_plain.cut);
        assert!(image.cut.units_new > 0 && image.cut.units_old > 0, "{:?}", image.cut);
        assert_eq!(plain.volume.power_cut(42).unwrap(), fixture.volume.power_cut(42).unwrap());
        let refused = fixture.store.open_volume("image").unwrap_err();
        assert!(refused.to_string().contains("'image' is encrypted"), "{refused}");
        *keys.disabled.lock() = false;
        let expected = plain.contents("image");
        assert_eq!(fixture.contents("image"), expected);
        assert_eq!(fixture.stored(0, SIZE), expected);
    }
}

#[test]
fn no_block_of_an_encrypted_volume_is_on_the_disk_and_every_one_of_a_plain_volume_is() {
    let find = |fixture: &Fixture, byte: u8| {
        let block = [byte; 512];
        let layers = std::fs::read_dir(fixture.dir.path().join("store/layers")).unwrap();
        let mut files = layers.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        files.any(|file| file.chunks(512).any(|part| part == block))
    };
    let (plain, _in_flight) = busy_on(Fixture::new(ebs()));
    let (fixture, _keys) = encrypted(ebs());
    let (fixture, _in_flight_too) = busy_on(fixture);
    for fixture in [&plain, &fixture] {
        fixture.volume.snapshot(&fixture.store, "snap", Value::Null).unwrap();
        fixture.pass(SERVICE);
        fixture.volume.crash_image(&fixture.store, "image", 42, Value::Null).unwrap();
        // Its background work renames and removes files.
        fixture.store.settle();
    }
    for byte in (1..=8).chain(101..=108) {
        assert!(find(&plain, byte) || byte < 9, "the search finds {byte}");
        assert!(!find(&fixture, byte), "{byte}");
    }
    assert_eq!(fixture.stored(0, SIZE), plain.stored(0, SIZE));
}
