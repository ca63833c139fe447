//! Backups under load, and the volumes that are for relay logs and backups alone.

use ebbtide_lab::experiment::{BackedUp, BackupMethod, Role, estimate};

use crate::support::{check, check_refused, mariadb, read, refused, servers};

const DATA: &str = "[volumes]\ndata = \"gp3:size=20GiB\"\n";
const TARGET: &str = "backup = \"st1:size=125GiB\"\n";
const REPLICA: &str = "[settings]\nlog_bin = true\n[topology]\nreplicas = 1\n[topology.replica.volumes]\n";

#[test]
fn a_backup_is_read_with_its_defaults_and_none_takes_it_away() {
    let text = format!(
        "{DATA}{TARGET}[backup]\nmethod = \"dump\"\nstart = \"20s\"\n[arms.with]\n\
                        [arms.without.backup]\nmethod = \"none\"\n[arms.without.volumes]\nbackup = \"none\"\n"
    );
    let experiment = read(&text).unwrap();
    let backup = experiment.arms[0].backup.unwrap();
    assert_eq!((backup.method, backup.of, backup.start_s), (BackupMethod::Dump, BackedUp::Source, 20));
    assert!(!backup.damage);
    assert_eq!(experiment.arms[1].backup, None);
    let planned = check(&experiment, &mariadb()).unwrap();
    assert!(
        planned[0].volumes.contains_key(&Role::Backup) && !planned[1].volumes.contains_key(&Role::Backup)
    );
    let alone = |arm: usize| {
        let arms = vec![experiment.arms[arm].clone()];
        estimate(&ebbtide_lab::experiment::Experiment { arms, ..experiment.clone() })
    };
    assert!(alone(0) > alone(1), "restoring takes time");
}

#[test]
fn the_backup_of_a_replica_is_on_the_replicas_volume() {
    let text = format!("{DATA}{REPLICA}{TARGET}[backup]\nmethod = \"physical\"\nof = \"replica\"\n");
    for server in servers() {
        let planned = check(&read(&text).unwrap(), &server).unwrap().remove(0);
        assert!(!planned.volumes.contains_key(&Role::Backup));
        assert!(planned.replica.unwrap().volumes.contains_key(&Role::Backup));
    }
}

#[test]
fn what_cannot_be_backed_up_is_refused_with_what_to_do() {
    let backup = "[backup]\nmethod = \"physical\"\n";
    for (text, words) in [
        (format!("{DATA}{backup}"), "its backup of the source has no volume to be written to"),
        (format!("{DATA}{TARGET}"), "its source has a volume for backups, and no dump or physical copy"),
        (format!("{DATA}{TARGET}[backup]\nmethod = \"snapshot\"\n"), "its source has a volume for backups"),
        (format!("{DATA}{backup}of = \"replica\"\n"), "it has no replica; set topology.replicas"),
        (format!("{DATA}{REPLICA}{TARGET}{backup}"), "its backup of the source has no volume"),
        (
            format!("{DATA}redo = \"gp3:size=10GiB\"\n[backup]\nmethod = \"snapshot\"\n"),
            "put the redo log on the data volume with volumes.redo = \"none\"",
        ),
        (format!("{DATA}[backup]\nmethod = \"snapshot\"\n[crash]\n"), "[backup] is for 'ebbtide run'"),
        (
            format!(
                "{DATA}[settings]\nlog_bin = true\n[topology]\nreplicas = 1\npromote = true\n[load]\nworkload = \
                 \"write_only\"\n[backup]\nmethod = \"snapshot\"\n"
            ),
            "leave out one of them",
        ),
        (
            format!("{DATA}backup = \"gp3:size=1GiB\"\n{backup}[data]\nrows = 9_000_000\n"),
            "its backup volume has 1024 MiB",
        ),
        (format!("{DATA}relay = \"gp3:size=10GiB\"\n"), "set it in [topology.replica.volumes]"),
    ] {
        let message = check_refused(&text);
        assert!(message.contains(words), "{words}: {message}");
    }
    for (text, words) in [
        ("[backup]\nstart = \"5s\"\n", "a backup needs its method: dump, physical, snapshot"),
        ("[backup]\nmethod = \"dmup\"\n", "did you mean 'dump'"),
        ("[backup]\nmethod = \"dump\"\nof = \"primary\"\n", "none of source, replica"),
        ("[backup]\nmethod = \"dump\"\nstart = \"60s\"\n", "the measurement is over after 60s"),
    ] {
        let message = refused(text);
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn a_replica_has_its_relay_logs_on_a_volume_of_their_own() {
    let text = format!("{DATA}{REPLICA}relay = \"gp3:size=10GiB\"\n");
    let planned = check(&read(&text).unwrap(), &mariadb()).unwrap().remove(0);
    assert!(planned.replica.unwrap().volumes.contains_key(&Role::Relay));
}
