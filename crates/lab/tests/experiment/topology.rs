//! The servers of an arm.

use ebbtide_lab::experiment::{Overrides, Replication, Role, Topology};

use crate::support::{check, check_refused, mariadb, read, read_with, refused, servers, set};

const PAIR: &str = "[settings]\nlog_bin = true\nsync_binlog = 1\n[volumes]\ndata = \"gp3:size=100GiB\"\n\
                    binlog = \"gp3:size=10GiB\"\n[topology]\nreplicas = 2\nby = \"gtid\"\n\
                    [topology.source.settings]\ninnodb_io_capacity = 300\n\
                    [topology.replica.settings]\nlog_bin = false\nsync_binlog = \"default\"\n\
                    [topology.replica.volumes]\ndata = \"gp2:size=200GiB\"\nbinlog = \"none\"\n";

#[test]
fn an_arm_is_a_single_server_unless_it_has_a_topology() {
    let experiment = read("[arms.a]\n").unwrap();
    assert_eq!(experiment.arms[0].topology, Topology::default());
    assert!(experiment.arms[0].topology.is_single() && experiment.arms[0].replica().is_none());
    assert_eq!(check(&experiment, &mariadb()).unwrap()[0].replica, None);
    let text = serde_json::to_string(&experiment.arms[0]).unwrap();
    assert!(!text.contains("topology"), "earlier results stay the same: {text}");
}

#[test]
fn source_and_replica_have_what_all_servers_have_and_what_their_role_has() {
    let experiment = read(PAIR).unwrap();
    let arm = &experiment.arms[0];
    assert_eq!((arm.topology.replicas, arm.topology.by), (2, Replication::Gtid));
    let source = |name: &str| arm.settings.get(name);
    assert_eq!((source("io_capacity"), source("sync_binlog")), (Some("300"), Some("1")));
    let replica = arm.replica().unwrap();
    let of = |name: &str| replica.settings.get(name);
    assert_eq!((of("io_capacity"), of("sync_binlog"), of("log_bin")), (None, None, Some("off")));
    assert!(arm.volumes.contains_key(&Role::Binlog) && !replica.volumes.contains_key(&Role::Binlog));
    assert_eq!(replica.volumes[&Role::Data], "gp2:size=200GiB");
    for server in servers() {
        let planned = check(&experiment, &server).unwrap().remove(0);
        let replica = planned.replica.expect("it has replicas");
        assert_eq!(replica.prepare_key, planned.prepare_key, "both start from the same data");
        assert_eq!(replica.volumes.len(), 1);
        assert!(replica.arm.topology.is_single());
    }
    let other = read(&PAIR.replace("log_bin = false", "log_bin = false\npage_size = \"4KiB\"")).unwrap();
    let planned = check(&other, &mariadb()).unwrap().remove(0);
    assert_ne!(planned.replica.unwrap().prepare_key, planned.prepare_key, "its data are made otherwise");
    let kept = serde_json::to_string(&experiment).unwrap();
    let again: ebbtide_lab::experiment::Experiment = serde_json::from_str(&kept).unwrap();
    assert_eq!(again, experiment);
}

#[test]
fn arms_may_differ_in_their_topology_and_the_command_line_changes_it() {
    let arms = "[settings]\nlog_bin = true\n[arms.alone]\n[arms.followed.topology]\nreplicas = 1\n";
    let experiment = read(arms).unwrap();
    assert_eq!(experiment.arms.iter().map(|arm| arm.topology.servers()).collect::<Vec<_>>(), [1, 2]);
    let with = |path: &str, value: &str| read_with(arms, &set(path, value)).unwrap();
    assert_eq!(with("followed.topology.replicas", "3").arms[1].topology.replicas, 3);
    assert_eq!(with("followed.topology.by", "gtid").arms[1].topology.by, Replication::Gtid);
    let changed = with("followed.topology.replica.settings.sync_binlog", "7");
    assert_eq!(changed.arms[1].replica().unwrap().settings.get("sync_binlog"), Some("7"));
    assert_eq!(changed.arms[1].settings.get("sync_binlog"), None);
    let quick = Overrides { quick: true, ..Overrides::default() };
    assert_eq!(read_with(arms, &quick).unwrap().arms[1].topology.replicas, 1);
}

#[test]
fn what_cannot_be_a_topology_is_refused_with_what_to_do() {
    assert_eq!(
        refused("[topology]\nreplicas = 9\n"),
        "mine.toml line 2: topology.replicas = 9: it must be a whole number from 0 to 8"
    );
    assert_eq!(
        refused("[topology]\nreplicas = 1\nby = \"gtids\"\n"),
        "mine.toml line 3: topology.by = \"gtids\": 'gtids' is none of position, gtid (did you mean 'gtid'?)"
    );
    assert_eq!(
        refused("[topology.replica.load]\nconnections = 3\n"),
        "mine.toml line 1: unknown key 'load' in [topology.replica]; the keys are server, settings, volumes"
    );
    assert!(check_refused("[topology]\nreplicas = 1\n").contains("set log_bin = true"));
    let logs = "[settings]\nlog_bin = true\n[topology]\nreplicas = 1\n";
    assert!(check_refused(&format!("{logs}[crash]\ncuts = 3\n")).contains("crash.role"));
    let read_only = format!("{logs}promote = true\n[load]\nworkload = \"read_only\"\n");
    assert!(check_refused(&read_only).contains("promote = false"));
    let without = format!("{logs}promote = true\n[load]\nworkload = \"write_only\"\nskip_trx = true\n");
    assert!(check_refused(&without).contains("without skip_trx"));
    let small = format!(
        "{logs}[topology.replica.volumes]\ndata = \"gp3:size=1GiB\"\n[data]\nrows = 100_000_000\n[volumes]\ndata = \"gp3:size=100GiB\"\n"
    );
    assert!(check_refused(&small).starts_with("arm 'base': as a replica: its data volume has 1024 MiB"));
}
