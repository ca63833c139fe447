//! Ids and owners of volumes, and what a reader of all volumes is told of.

use ebbtide_control::{ControlError, ControlPlane as _, CreateVolume, LiveControl, Owner, TakeCrashImage};
use ebbtide_device::host::{Home, Host, HostOptions};

use crate::{Fixture, asked};

fn id(plane: &LiveControl, name: &str) -> String {
    plane.volume(name, None).unwrap().volume.id.unwrap()
}

#[test]
fn an_id_is_made_once_and_names_the_volume_in_every_request() {
    let fixture = Fixture::new();
    fixture.create("db", "gp3:size=1GiB").unwrap();
    let db = id(&fixture.plane, "db");
    let socket = fixture.socket(&db);
    fixture.attach(&db).unwrap();
    assert!(socket.exists() && fixture.plane.volume("db", None).unwrap().live.is_some());
    let image = TakeCrashImage { name: db.clone(), image: "image".into(), seed: Some(7) };
    assert_eq!(fixture.plane.take_crash_image(&image).unwrap().volume, "db");
    assert_ne!(id(&fixture.plane, "image"), db);
    fixture.detach(&db).unwrap();
    fixture.plane.delete_volume(&id(&fixture.plane, "image")).unwrap();

    let Fixture { plane, dir } = fixture;
    plane.end();
    drop(plane);
    let home = Home::open(&dir.path().join("home")).unwrap();
    let plane = LiveControl::new(Host::open(home.lock().unwrap(), HostOptions::default()).unwrap());
    assert_eq!(id(&plane, "db"), db);
    assert_eq!(plane.volume_id("db").as_deref(), Some(db.as_str()));
    plane.delete_volume(&db).unwrap();
    assert!(matches!(plane.volume(&db, None), Err(ControlError::NotFound { .. })));
}

#[test]
fn a_volume_has_the_owner_that_is_asked_for_or_the_default_one_of_the_time() {
    let Fixture { plane, dir: _dir } = Fixture::new();
    let owner = |name: &str| plane.volume(name, None).unwrap().volume.owner.unwrap().to_string();
    plane.create_volume(&asked("first", "gp3:size=1GiB")).unwrap();
    plane.set_default_owner(Owner { account: "111122223333".into(), zone: "eu-west-1b".into() });
    plane.create_volume(&asked("second", "gp3:size=1GiB")).unwrap();
    let third =
        CreateVolume { owner: Some("444455556666".parse().unwrap()), ..asked("third", "gp3:size=1GiB") };
    plane.create_volume(&third).unwrap();
    let owners = ["first", "second", "third"].map(owner);
    assert_eq!(
        owners,
        ["000000000000/us-east-1a", "111122223333/eu-west-1b", "444455556666/eu-west-1b"].map(str::to_owned)
    );
}

#[test]
fn a_reader_is_told_of_each_volume_that_changed_since_it_asked() {
    let fixture = Fixture::new();
    let plane = &fixture.plane;
    fixture.create("old", "gp3:size=1GiB").unwrap();
    assert_eq!(plane.changed_volumes(true), [id(plane, "old")]);
    assert_eq!(plane.changed_volumes(false), Vec::<String>::new());
    fixture.create("db", "gp3:size=1GiB").unwrap();
    let db = id(plane, "db");
    assert_eq!(plane.changed_volumes(false), [db.clone()]);
    let attached = || plane.identity(&db).unwrap().is_attached;
    fixture.attach("db").unwrap();
    assert_eq!((plane.changed_volumes(false), attached()), (vec![db.clone()], Some(true)));
    fixture.detach("db").unwrap();
    assert_eq!((plane.changed_volumes(false), attached()), (vec![db.clone()], Some(false)));
    plane.set_owner("db", &"111122223333/eu-west-1b".parse().unwrap()).unwrap();
    assert_eq!(plane.changed_volumes(false), [db.clone()]);
    let found = plane.identity(&db).unwrap();
    assert_eq!((found.name.as_str(), found.has_own_owner), ("db", true));
    assert_eq!(found.owner.to_string(), "111122223333/eu-west-1b");
    plane.delete_volume("db").unwrap();
    assert_eq!(plane.changed_volumes(false), [db.clone()]);
    assert_eq!(plane.identity(&db), None);
}
