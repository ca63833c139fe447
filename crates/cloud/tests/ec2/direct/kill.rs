//! `kill -9` at any moment: every block whose put was answered is there, and a pending snapshot can be completed.
//!
//! A child process puts blocks and reports through a pipe what it begins and what was answered. It is killed at a random
//! moment. The parent then opens the home, completes what is pending, and reads all blocks.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ebbtide_cloud::ebs::Ebs;
use ebbtide_cloud::ec2::{Ec2, Options};
use ebbtide_control::{ControlPlane, LiveControl};
use serde_json::{Value, json};

use super::{BLOCK, aggregate, of_put};
use crate::support::{self, ACCOUNT, REGION, Recorder, Rng, START_MS, column, text};

const CHILD: &str = "EBBTIDE_EBS_KILL_CHILD";
const SEED: &str = "EBBTIDE_EBS_KILL_SEED";
const KILLS: u64 = 8;
const NAME: &str = "direct::kill::a_kill_loses_no_answered_block";

/// The services of a home on its control plane.
struct Opened {
    ec2: Arc<Ec2>,
    ebs: Ebs,
    control: Arc<LiveControl>,
}

impl Opened {
    fn open(dir: &Path, seed: u64) -> Self {
        let control = Arc::new(support::control(dir));
        let plane: Arc<dyn ControlPlane> = control.clone();
        let options = Options { seed: Some(seed), ..support::sockets(dir).instant() };
        let ec2 = Arc::new(Ec2::open(&support::home(dir), plane, options).unwrap());
        let ebs = Ebs::open(&support::home(dir), Arc::clone(&ec2)).unwrap();
        Self { ec2, ebs, control }
    }

    fn call(&self, action: &str, input: &Value, payload: &[u8]) -> (Value, Vec<u8>) {
        let rights = Recorder::default();
        let is_ec2 = action == "DescribeSnapshots";
        let service: &dyn ebbtide_cloud::Service = if is_ec2 { &*self.ec2 } else { &self.ebs };
        let answered =
            support::answer(service, &rights, START_MS, (ACCOUNT, REGION), action, (input, payload));
        let answer = answered.unwrap_or_else(|error| panic!("{action} {input}: {error}"));
        (Value::Object(answer.output), answer.payload)
    }

    fn ids(&self) -> Vec<String> {
        column(&self.call("DescribeSnapshots", &json!({}), &[]).0["Snapshots"], "SnapshotId")
    }

    fn state(&self, id: &str) -> String {
        text(&self.call("DescribeSnapshots", &json!({"SnapshotIds": [id]}), &[]).0["Snapshots"][0]["State"])
    }

    /// The blocks of a completed snapshot, by the first byte of each; all of a block is the same.
    fn blocks(&self, id: &str) -> BTreeMap<u64, u8> {
        let listed = self.call("ListSnapshotBlocks", &json!({"SnapshotId": id}), &[]).0;
        let rows = listed["Blocks"].as_array().unwrap();
        let block = |row: &Value| {
            let mut input = row.clone();
            input["SnapshotId"] = json!(id);
            let data = self.call("GetSnapshotBlock", &input, &[]).1;
            (row["BlockIndex"].as_u64().unwrap(), whole(&data).unwrap_or(u8::MAX))
        };
        rows.iter().map(block).collect()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.control.end();
    }
}

/// The byte that a block is filled with; none where it is torn.
fn whole(data: &[u8]) -> Option<u8> {
    (data[1..] == data[..data.len() - 1]).then_some(data[0])
}

/// Snapshots by their token: id, blocks by their fill, whether completed.
#[derive(Debug, Clone, Default)]
struct World {
    snapshots: BTreeMap<String, (BTreeMap<u64, u8>, bool)>,
}

/// The child's life, until it is killed.
fn child(dir: &Path, seed: u64) {
    let opened = Opened::open(dir, seed);
    let mut rng = Rng(seed);
    let report = |line: Value| eprintln!("@{line}");
    report(json!("ready"));
    let mut parent: Option<String> = None;
    loop {
        let mut start = json!({"VolumeSize": 1});
        if let Some(parent) = &parent {
            start["ParentSnapshotId"] = json!(parent);
        }
        report(json!({"begins": "start", "parent": parent}));
        let id = text(&opened.call("StartSnapshot", &start, &[]).0["SnapshotId"]);
        report(json!({"id": id}));
        let mut put = BTreeMap::new();
        for _ in 0..rng.below(12) + 1 {
            let index = u64::try_from(rng.below(6)).unwrap() * 300;
            let fill = u8::try_from(rng.below(250)).unwrap();
            let data = vec![fill; BLOCK];
            report(json!({"begins": "put", "snapshot": id, "index": index, "fill": fill}));
            opened.call("PutSnapshotBlock", &of_put(&id, index, &data), &data);
            report(json!({}));
            put.insert(index, data);
        }
        let complete = json!({
            "SnapshotId": id, "ChangedBlocksCount": put.len(), "ChecksumAlgorithm": "SHA256",
            "ChecksumAggregationMethod": "LINEAR", "Checksum": aggregate(put.values().map(Vec::as_slice)),
        });
        report(json!({"begins": "complete", "snapshot": id}));
        opened.call("CompleteSnapshot", &complete, &[]);
        report(json!({}));
        parent = (rng.below(3) > 0).then_some(id);
    }
}

/// What a report says: what was answered, and the call in progress.
fn read(lines: impl Iterator<Item = String>, world: &mut World, seed: u64) -> (Option<Value>, usize) {
    let mut open: Option<Value> = None;
    let mut answered = 0;
    for line in lines {
        let entry = line.strip_prefix('@').and_then(|line| serde_json::from_str::<Value>(line).ok());
        let Some(entry) = entry else {
            assert!(!line.contains("panicked"), "seed {seed}: {line}");
            continue;
        };
        if entry.get("begins").is_some() {
            open = Some(entry);
            continue;
        }
        let Some(begun) = open.take() else { continue };
        answered += 1;
        match begun["begins"].as_str() {
            Some("start") => {
                let of_parent = begun["parent"].as_str().map(|parent| world.snapshots[parent].0.clone());
                let id = text(&entry["id"]);
                world.snapshots.insert(id, (of_parent.unwrap_or_default(), false));
            }
            Some("put") => {
                let of = world.snapshots.get_mut(begun["snapshot"].as_str().unwrap()).unwrap();
                let fill = u8::try_from(begun["fill"].as_u64().unwrap()).unwrap();
                of.0.insert(begun["index"].as_u64().unwrap(), fill);
            }
            _ => world.snapshots.get_mut(begun["snapshot"].as_str().unwrap()).unwrap().1 = true,
        }
    }
    (open, answered)
}

/// Runs a child for a while and kills it: the call in progress, and how many were answered.
fn run_and_kill(dir: &Path, seed: u64, world: &mut World, rng: &mut Rng) -> (Option<Value>, usize) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(CHILD, dir)
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.by_ref().any(|line| line == "@\"ready\""), "seed {seed}: the child has not begun");
    let patience = Duration::from_millis(5 + rng.next() % 300);
    let served = dir.to_owned();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(patience);
        support::kill(child, &served);
    });
    let ran = read(lines, world, seed);
    killer.join().unwrap();
    ran
}

#[test]
fn a_kill_loses_no_answered_block() {
    if let Ok(dir) = std::env::var(CHILD) {
        return child(Path::new(&dir), std::env::var(SEED).unwrap().parse().unwrap());
    }
    let seed = support::seed(2_026);
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng(seed);
    // Before a child does: it measures devices of its own.
    drop(Opened::open(dir.path(), seed));
    let mut world = World::default();
    let (mut answered, mut within, mut completed_later) = (0, 0, 0);
    for number in 0..KILLS {
        let place = format!("seed {seed}, kill {number}");
        let (open, count) = run_and_kill(dir.path(), seed ^ (number << 32), &mut world, &mut rng);
        answered += count;
        within += usize::from(open.is_some());
        let opened = Opened::open(dir.path(), seed ^ (number << 32) ^ 1);
        let begun = open.as_ref().and_then(|begun| begun["begins"].as_str()).unwrap_or_default().to_owned();
        let at = open.as_ref().filter(|_| begun == "put").map(|begun| {
            let fill = u8::try_from(begun["fill"].as_u64().unwrap()).unwrap();
            (text(&begun["snapshot"]), begun["index"].as_u64().unwrap(), fill)
        });
        for (id, (blocks, is_completed)) in &mut world.snapshots {
            let state = opened.state(id);
            let in_progress = open.as_ref().is_some_and(|begun| begun["snapshot"] == **id);
            if *is_completed {
                assert_eq!(state, "completed", "{place}: {id}");
            } else if state == "pending" {
                let written = opened.control.written_blocks(id).unwrap();
                let complete = json!({"SnapshotId": id, "ChangedBlocksCount": written.len()});
                opened.call("CompleteSnapshot", &complete, &[]);
                completed_later += 1;
            } else {
                assert!(
                    in_progress && begun == "complete" && state == "completed",
                    "{place}: {id} is {state}"
                );
            }
            *is_completed = true;
            assert_eq!(opened.state(id), "completed", "{place}: {id}");
            let found = opened.blocks(id);
            // The put in progress is there, is not, or is a part of what it was to become.
            if let Some((_, index, _)) = at.as_ref().filter(|(of, ..)| of == id) {
                match found.get(index) {
                    Some(fill) => drop(blocks.insert(*index, *fill)),
                    None => assert!(!blocks.contains_key(index), "{place}: block {index} of {id} is lost"),
                }
            }
            assert_eq!(found, *blocks, "{place}: {id}");
        }
        // A start in progress is taken back, or it is there without having been answered.
        for id in opened.ids() {
            world.snapshots.entry(id).or_insert_with_key(|id| {
                assert_eq!(begun, "start", "{place}: {id}");
                opened.call("CompleteSnapshot", &json!({"SnapshotId": id, "ChangedBlocksCount": 0}), &[]);
                (opened.blocks(id), true)
            });
        }
        assert_eq!(opened.control.names().unwrap().pending, Vec::<String>::new(), "{place}");
    }
    println!(
        "{answered} calls answered, {within} of {KILLS} kills within a call, {completed_later} completed after"
    );
    assert!(answered > 20 && within > 0 && completed_later > 0, "the kills hit nothing");
}
