//! `kill -9` at any moment: no answered call is lost, none is half done.
//!
//! A child process calls the service and reports through a pipe what it begins and what was answered. It is killed at a
//! random moment. The parent then opens the home and compares it with the report.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ebbtide_cloud::ec2::{Ec2, Options};
use ebbtide_control::{ControlPlane, LiveControl};
use serde_json::{Value, json};

use crate::support::{self, ACCOUNT, REGION, Recorder, Rng, START_MS, WITHOUT_ROOT, column, text};

const CHILD: &str = "EBBTIDE_EC2_KILL_CHILD";
const SEED: &str = "EBBTIDE_EC2_KILL_SEED";
const KILLS: u64 = 20;
const INSTANCE_TOKEN: &str = "the-instance";

/// The service of a home on its control plane.
struct Opened {
    ec2: Arc<Ec2>,
    control: Arc<LiveControl>,
}

impl Opened {
    fn open(dir: &Path, seed: u64) -> Self {
        let control = Arc::new(support::control(dir));
        let plane: Arc<dyn ControlPlane> = control.clone();
        let options = Options { seed: Some(seed), ..support::sockets(dir).instant() };
        let ec2 = Arc::new(Ec2::open(&support::home(dir), plane, options).unwrap());
        Self { ec2, control }
    }

    fn call(&self, action: &str, input: &Value) -> Value {
        let rights = Recorder::default();
        match support::call(&self.ec2, &rights, START_MS, (ACCOUNT, REGION), action, input) {
            Ok(output) => Value::Object(output),
            Err(error) => panic!("{action} {input}: {error}"),
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.control.end();
    }
}

/// What the home must have: volumes with size, attachment and tag; snapshots with their volume.
#[derive(Debug, Clone, Default, PartialEq)]
struct World {
    volumes: BTreeMap<String, (u64, bool, Option<String>)>,
    snapshots: BTreeMap<String, String>,
}

impl World {
    fn look(opened: &Opened) -> Self {
        let all = opened.call("DescribeVolumes", &json!({}));
        let volume = |row: &Value| {
            let tag = row["Tags"][0]["Value"].as_str().map(str::to_owned);
            let attached = match row["State"].as_str() {
                Some("in-use") => true,
                Some("available") => false,
                other => panic!("{other:?}: {row}"),
            };
            (text(&row["VolumeId"]), (row["Size"].as_u64().unwrap(), attached, tag))
        };
        let volumes = all["Volumes"].as_array().unwrap().iter().map(volume).collect();
        let all = opened.call("DescribeSnapshots", &json!({}));
        let ids = column(&all["Snapshots"], "SnapshotId");
        Self { volumes, snapshots: ids.into_iter().zip(column(&all["Snapshots"], "VolumeId")).collect() }
    }

    /// The next call, drawn.
    fn draw(&self, rng: &mut Rng, instance: &str) -> (&'static str, Value) {
        let ids: Vec<&String> = self.volumes.keys().collect();
        let free: Vec<&String> =
            self.volumes.iter().filter(|(_, volume)| !volume.1).map(|(id, _)| id).collect();
        let used: Vec<&String> =
            self.volumes.iter().filter(|(_, volume)| volume.1).map(|(id, _)| id).collect();
        let snapshots: Vec<&String> = self.snapshots.keys().collect();
        loop {
            let drawn = match rng.below(9) {
                0 | 1 if ids.len() < 12 => {
                    Some(("CreateVolume", json!({"AvailabilityZone": "us-east-1a", "Size": 1})))
                }
                2 => rng.pick(&free).map(|id| ("DeleteVolume", json!({"VolumeId": id}))),
                3 => rng.pick(&ids).map(|id| ("CreateSnapshot", json!({"VolumeId": id}))),
                4 => rng.pick(&snapshots).map(|id| ("DeleteSnapshot", json!({"SnapshotId": id}))),
                5 => rng.pick(&ids).map(|id| {
                    let tag = json!([{"Key": "k", "Value": rng.below(100).to_string()}]);
                    ("CreateTags", json!({"Resources": [id], "Tags": tag}))
                }),
                // At most four in a day, and the time of this test stands still.
                6 => rng
                    .pick(&ids)
                    .filter(|id| self.volumes[**id].0 < 5)
                    .map(|id| ("ModifyVolume", json!({"VolumeId": id, "Size": self.volumes[*id].0 + 1}))),
                7 if used.is_empty() => rng.pick(&free).map(|id| {
                    ("AttachVolume", json!({"VolumeId": id, "InstanceId": instance, "Device": "/dev/sdf"}))
                }),
                _ => rng.pick(&used).map(|id| ("DetachVolume", json!({"VolumeId": id}))),
            };
            if let Some(drawn) = drawn {
                return drawn;
            }
        }
    }

    /// What the world is after a call; `made` is the id that it answered with, where it makes one.
    fn after(&self, action: &str, input: &Value, made: Option<&str>) -> Self {
        let mut next = self.clone();
        let id = input["VolumeId"].as_str().or(input["Resources"][0].as_str()).unwrap_or_default().to_owned();
        match action {
            "CreateVolume" => {
                drop(next.volumes.insert(made.unwrap_or_default().to_owned(), (1, false, None)))
            }
            "DeleteVolume" => drop(next.volumes.remove(&id)),
            "CreateSnapshot" => drop(next.snapshots.insert(made.unwrap_or_default().to_owned(), id)),
            "DeleteSnapshot" => drop(next.snapshots.remove(input["SnapshotId"].as_str().unwrap())),
            "CreateTags" => {
                next.volumes.get_mut(&id).unwrap().2 = input["Tags"][0]["Value"].as_str().map(str::to_owned)
            }
            "ModifyVolume" => next.volumes.get_mut(&id).unwrap().0 += 1,
            "AttachVolume" => next.volumes.get_mut(&id).unwrap().1 = true,
            "DetachVolume" => next.volumes.get_mut(&id).unwrap().1 = false,
            other => panic!("{other}"),
        }
        next
    }
}

fn instance(opened: &Opened) -> String {
    let input = json!({"MinCount": 1, "MaxCount": 1, "ClientToken": INSTANCE_TOKEN, "ImageId": WITHOUT_ROOT});
    text(&opened.call("RunInstances", &input)["Instances"][0]["InstanceId"])
}

/// The child's life, until it is killed.
fn child(dir: &Path, seed: u64) {
    let opened = Opened::open(dir, seed);
    let instance = instance(&opened);
    let mut world = World::look(&opened);
    let mut rng = Rng(seed);
    let report = |line: Value| eprintln!("@{line}");
    report(json!("ready"));
    loop {
        let (action, input) = world.draw(&mut rng, &instance);
        report(json!({"begins": action, "input": input}));
        let answer = opened.call(action, &input);
        let member = if action == "CreateVolume" { "VolumeId" } else { "SnapshotId" };
        let made = action.starts_with("Create").then(|| answer[member].as_str()).flatten();
        report(json!({"answered": made}));
        world = world.after(action, &input, made);
    }
}

/// Runs a child for a while and kills it: what was answered makes the first world, and a call in progress the second.
fn run_and_kill(
    dir: &Path,
    seed: u64,
    before: World,
    rng: &mut Rng,
) -> (World, Option<(World, bool)>, usize) {
    let name = "kill::a_kill_loses_no_answered_call_and_leaves_none_half_done";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, dir)
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut other = Vec::new();
    let ready = lines.by_ref().any(|line| {
        other.push(line.clone());
        line == "@\"ready\""
    });
    assert!(ready, "seed {seed}: the child has not begun:\n{}", other.join("\n"));
    let patience = Duration::from_millis(5 + rng.next() % 400);
    let served = dir.to_owned();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(patience);
        support::kill(child, &served);
    });
    let mut world = before;
    let mut open: Option<(String, Value)> = None;
    let mut answered = 0;
    for line in lines {
        let Some(entry) = line.strip_prefix('@').and_then(|line| serde_json::from_str::<Value>(line).ok())
        else {
            assert!(!line.contains("panicked"), "seed {seed}: {line}");
            continue;
        };
        if let Some(action) = entry["begins"].as_str() {
            open = Some((action.to_owned(), entry["input"].clone()));
        } else if let Some((action, input)) = open.take() {
            world = world.after(&action, &input, entry["answered"].as_str());
            answered += 1;
        }
    }
    killer.join().unwrap();
    let done = open.map(|(action, input)| {
        let makes = matches!(action.as_str(), "CreateVolume" | "CreateSnapshot");
        (world.after(&action, &input, Some("made")), makes)
    });
    (world, done, answered)
}

/// The world with the id of what was made last replaced, so that it can be compared with one whose id is not known.
fn anonymous(world: &World, known: &World) -> World {
    let name = |id: &String, known: bool| if known { id.clone() } else { "made".to_owned() };
    World {
        volumes: world
            .volumes
            .iter()
            .map(|(id, volume)| (name(id, known.volumes.contains_key(id)), volume.clone()))
            .collect(),
        snapshots: world
            .snapshots
            .iter()
            .map(|(id, of)| (name(id, known.snapshots.contains_key(id)), of.clone()))
            .collect(),
    }
}

#[test]
fn a_kill_loses_no_answered_call_and_leaves_none_half_done() {
    if let Ok(dir) = std::env::var(CHILD) {
        return child(Path::new(&dir), std::env::var(SEED).unwrap().parse().unwrap());
    }
    let seed = support::seed(1_977);
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng(seed);
    // Before a child does: it measures devices of its own.
    drop(Opened::open(dir.path(), seed));
    let mut world = World::default();
    let (mut answered, mut interrupted) = (0, 0);
    for number in 0..KILLS {
        let (answered_world, done, count) = run_and_kill(dir.path(), seed ^ (number << 32), world, &mut rng);
        answered += count;
        let opened = Opened::open(dir.path(), seed ^ (number << 32) ^ 1);
        let found = World::look(&opened);
        let place = format!("seed {seed}, kill {number}");
        let names = opened.control.names().unwrap();
        assert_eq!(names.volumes, found.volumes.keys().cloned().collect::<Vec<_>>(), "{place}");
        assert_eq!(names.snapshots, found.snapshots.keys().cloned().collect::<Vec<_>>(), "{place}");
        for (id, (size, attached, _)) in &found.volumes {
            let volume = opened.control.volume(id, None).unwrap().volume;
            assert_eq!(
                (volume.size_bytes, volume.attachment.is_some()),
                (size << 30, *attached),
                "{place}: {id}"
            );
        }
        if let Some((done, makes)) = &done {
            interrupted += 1;
            let compared = if *makes { anonymous(&found, &answered_world) } else { found.clone() };
            assert!(
                found == answered_world || compared == *done,
                "{place}:\nfound {found:#?}\nanswered {answered_world:#?}\nor {done:#?}"
            );
        } else {
            assert_eq!(found, answered_world, "{place}");
        }
        world = found;
    }
    println!("{answered} calls answered, {interrupted} of {KILLS} kills within a call");
    assert!(answered > 20 && interrupted > 0, "the kills hit nothing");
}
