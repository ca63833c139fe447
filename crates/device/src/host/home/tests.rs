//! What a home has, who may use it, and what is refused.

use super::*;

#[test]
fn a_home_has_one_server_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(&dir.path().join("a/b")).unwrap();
    let lock = home.lock().unwrap();
    let refused = home.lock().unwrap_err();
    assert!(
        matches!(&refused, HomeError::Served { pid, .. } if *pid == std::process::id().to_string()),
        "{refused}"
    );
    let inherited = lock.file.try_clone().unwrap();
    drop(lock);
    home.lock().expect("a process that is starting does not keep it");
    drop(inherited);
}

fn modes(root: &Path) -> Vec<(PathBuf, u32)> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut all = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        all.push((path, meta.permissions().mode() & 0o777));
    }
    all
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_home_that_others_could_read_is_its_owners_alone_when_it_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("home");
    let host = || {
        let lock = Home::open(&root).unwrap().lock().unwrap();
        super::super::Host::open(lock, super::super::HostOptions::default()).unwrap()
    };
    let first = host();
    first.store().create_volume("v", 1 << 20, serde_json::Value::Null).unwrap();
    first.store().open_volume("v").unwrap().write_at(&[1; 4096], 0).unwrap();
    drop(first);
    let databases: Vec<_> = DATABASES
        .iter()
        .flat_map(|base| BESIDE_DATABASE.iter().map(move |suffix| format!("{base}{suffix}")))
        .collect();
    assert!(databases.contains(&"cloudwatch.db-wal".to_owned()), "{databases:?}");
    for name in databases.iter().map(String::as_str).chain(["serve.log"]) {
        std::fs::write(root.join(name), "").unwrap();
    }
    std::fs::create_dir(root.join(AWS)).unwrap();
    for (path, _) in modes(&root) {
        set_mode(&path, if path.is_dir() { 0o755 } else { 0o644 });
    }
    let host = host();
    drop(host.home().open_log().unwrap());
    host.home().make_aws().unwrap().write("endpoint", b"http://127.0.0.1:1\n").unwrap();
    let found = modes(&root);
    assert!(found.iter().any(|(path, _)| path.extension().is_some_and(|e| e == "data")), "{found:?}");
    for (path, mode) in found {
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}: {mode:o}", path.display());
    }
}

#[test]
fn what_the_aws_services_need_is_made_for_the_owner_alone_and_never_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (root, victim) = (dir.path().join("home"), dir.path().join("victim"));
    std::fs::write(&victim, "mine").unwrap();
    let lock = Home::open(&root).unwrap().lock().unwrap();
    let folder = lock.home().make_aws().unwrap();
    for (name, link) in [(AWS, "."), ("aws.db", "../victim"), ("cloudwatch.db", "../victim")] {
        let (path, kept) = (root.join(name), root.join(format!("{name}.kept")));
        std::fs::rename(&path, &kept).unwrap();
        std::os::unix::fs::symlink(link, &path).unwrap();
        let refused = lock.home().make_aws().unwrap_err();
        let why = std::error::Error::source(&refused).unwrap().to_string();
        assert!(why.contains("symbolic link"), "{name}: {refused}: {why}");
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&kept, &path).unwrap();
    }
    let history = root.join("history.db");
    std::fs::remove_file(&history).unwrap();
    std::os::unix::fs::symlink("../victim", &history).unwrap();
    assert!(lock.home().make_history().is_err());
    std::fs::remove_file(&history).unwrap();
    lock.home().make_history().unwrap();
    std::os::unix::fs::symlink("../../victim", root.join("aws/events.jsonl")).unwrap();
    folder.append("events.jsonl").unwrap_err();
    assert_eq!(std::fs::read(&victim).unwrap(), b"mine");
    folder.remove("events.jsonl").unwrap();
    folder.append("events.jsonl").unwrap().write_all(b"1\n").unwrap();
    let found = modes(&root);
    assert!(found.contains(&(root.join("aws/events.jsonl"), 0o600)), "{found:?}");
    assert!(found.contains(&(root.join("cloudwatch.db"), 0o600)), "{found:?}");
    assert!(found.contains(&(root.join("history.db"), 0o600)), "{found:?}");
    assert!(found.contains(&(root.join(AWS), 0o700)), "{found:?}");
}

#[test]
fn the_folder_of_a_home_that_was_replaced_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("home");
    let old = Home::open(&root).unwrap().lock().unwrap();
    let folder = old.home().make_aws().unwrap();
    folder.write("endpoint", b"old").unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    let new = Home::open(&root).unwrap().lock().unwrap();
    new.home().make_aws().unwrap().write("endpoint", b"new").unwrap();
    let changes = [
        folder.remove("endpoint"),
        folder.write("endpoint", b"old"),
        folder.rename("endpoint", "endpoint.1"),
        folder.append("events.jsonl").map(drop),
        old.home().make_aws().map(drop),
    ];
    for refused in changes {
        let refused = refused.unwrap_err();
        let why = std::error::Error::source(&refused).unwrap().to_string();
        assert!(why.contains("deleted or replaced"), "{refused}: {why}");
    }
    let names: Vec<_> = std::fs::read_dir(root.join(AWS)).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["endpoint"]);
    assert_eq!(std::fs::read(root.join("aws/endpoint")).unwrap(), b"new");
}

#[test]
fn a_home_that_others_may_change_is_refused_and_so_are_links_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("home");
    let home = Home::open(&root).unwrap();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "mine").unwrap();
    for name in [LOCK, LOG] {
        std::os::unix::fs::symlink(&victim, root.join(name)).unwrap();
    }
    for refused in [home.lock().map(drop), home.open_log().map(drop)] {
        let refused = refused.unwrap_err();
        let why = std::error::Error::source(&refused).unwrap().to_string();
        assert!(why.contains("symbolic link"), "{refused}: {why}");
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"mine");
    std::fs::remove_file(root.join(LOCK)).unwrap();

    std::fs::write(root.join("thesis.txt"), "").unwrap();
    set_mode(&root, 0o755);
    drop(home.lock().unwrap());
    assert!(modes(&root).contains(&(root.clone(), 0o755)), "it holds more than a home");
    set_mode(&root, 0o1777);
    let refused = home.lock().unwrap_err().to_string();
    assert!(refused.contains("thesis.txt") && refused.contains("777"), "{refused}");
    std::fs::remove_file(root.join("thesis.txt")).unwrap();
    drop(home.lock().unwrap());
    assert!(modes(&root).contains(&(root.clone(), 0o700)));
}

#[test]
fn the_home_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: root may give a directory away");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(&dir.path().join("home")).unwrap();
    drop(home.lock().unwrap());
    std::os::unix::fs::chown(home.root(), Some(12_345), None).unwrap();
    let refused = home.lock().unwrap_err().to_string();
    assert!(refused.contains("user 12345") && refused.contains("as user 0"), "{refused}");
    home.lock_to_read().unwrap();
    std::os::unix::fs::chown(home.root(), Some(0), None).unwrap();
    std::os::unix::fs::chown(home.root().join(LOCK), Some(12_345), None).unwrap();
    home.lock().unwrap_err();
}
