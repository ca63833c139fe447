//! Drawn calls against a simple model of the states, with starts in between.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{Rig, Rng, column, seed, text};

/// A volume, as the model has it. Times are those at which a state ends.
#[derive(Debug, Clone)]
struct Volume {
    size: u64,
    creating: u64,
    deleting: Option<u64>,
    attachment: Option<Attachment>,
    /// Starts of its modifications, and when the latest shows and completes.
    modified: Vec<u64>,
    shows: u64,
    completes: u64,
    size_before: u64,
    tags: BTreeMap<String, String>,
    snapshot_at: Option<u64>,
}

#[derive(Debug, Clone)]
struct Attachment {
    instance: String,
    device: String,
    attaching: u64,
    detaching: Option<u64>,
}

#[derive(Debug, Default)]
struct Model {
    now: u64,
    volumes: BTreeMap<String, Volume>,
    snapshots: BTreeMap<String, (String, u64)>,
    instances: BTreeMap<String, u64>,
}

impl Volume {
    fn attachment(&self, now: u64) -> Option<&Attachment> {
        self.attachment.as_ref().filter(|at| at.detaching.is_none_or(|until| now < until))
    }

    fn state(&self, now: u64) -> Option<&'static str> {
        match self.deleting {
            Some(until) if now >= until => None,
            Some(_) => Some("deleting"),
            None if now < self.creating => Some("creating"),
            None if self.attachment(now).is_some() => Some("in-use"),
            None => Some("available"),
        }
    }

    fn size(&self, now: u64) -> u64 {
        if now < self.shows { self.size_before } else { self.size }
    }
}

impl Attachment {
    fn state(&self, now: u64) -> &'static str {
        match self.detaching {
            Some(_) => "detaching",
            None if now < self.attaching => "attaching",
            None => "attached",
        }
    }
}

const DAY: u64 = 24 * 3_600_000;

impl Model {
    /// The ids of the volumes that are in one of the states.
    fn in_state(&self, states: &[&str]) -> Vec<String> {
        let is = |volume: &&Volume| volume.state(self.now).is_some_and(|state| states.contains(&state));
        self.volumes.iter().filter(|(_, volume)| is(volume)).map(|(id, _)| id.clone()).collect()
    }

    /// Compares all that is described.
    #[track_caller]
    fn compare(&self, rig: &Rig, step: &str) {
        let now = self.now;
        let shown = rig.call("DescribeVolumes", json!({}));
        let shown = shown["Volumes"].as_array().unwrap();
        let expected: BTreeMap<_, _> =
            self.volumes.iter().filter_map(|(id, volume)| Some((id, (volume, volume.state(now)?)))).collect();
        assert_eq!(shown.len(), expected.len(), "{step}");
        for row in shown {
            let id = text(&row["VolumeId"]);
            let (volume, state) =
                expected.get(&id).unwrap_or_else(|| panic!("{step}: {id} is not in the model"));
            assert_eq!(row["State"], *state, "{step}: {id}");
            assert_eq!(row["Size"], volume.size(now), "{step}: {id}");
            let attachment = volume.attachment(now);
            let rows = row["Attachments"].as_array().unwrap();
            assert_eq!(rows.len(), usize::from(attachment.is_some()), "{step}: {id}");
            if let (Some(at), Some(row)) = (attachment, rows.first()) {
                assert_eq!(row["State"], at.state(now), "{step}: {id}");
                assert_eq!(
                    (&row["InstanceId"], &row["Device"]),
                    (&json!(at.instance), &json!(at.device)),
                    "{step}"
                );
            }
            let tags: BTreeMap<String, String> = row
                .get("Tags")
                .and_then(|tags| tags.as_array())
                .into_iter()
                .flatten()
                .map(|tag| (text(&tag["Key"]), text(&tag["Value"])))
                .collect();
            assert_eq!(tags, volume.tags, "{step}: {id}");
        }
        let shown = rig.call("DescribeSnapshots", json!({}));
        let states = column(&shown["Snapshots"], "State");
        let shown: BTreeMap<_, _> =
            column(&shown["Snapshots"], "SnapshotId").into_iter().zip(states).collect();
        let state = |until: u64| if now < until { "pending" } else { "completed" };
        let expected: BTreeMap<_, _> =
            self.snapshots.iter().map(|(id, (_, until))| (id.clone(), state(*until).to_owned())).collect();
        assert_eq!(shown, expected, "{step}");
        let (volumes, snapshots) = rig.names();
        let kept = self.volumes.iter().filter(|(_, volume)| volume.deleting.is_none());
        assert_eq!(volumes, kept.map(|(id, _)| id.clone()).collect::<Vec<_>>(), "{step}");
        assert_eq!(snapshots, expected.keys().cloned().collect::<Vec<_>>(), "{step}");
    }

    /// One drawn call that the model allows; what it was.
    fn step(&mut self, rig: &Rig, rng: &mut Rng) -> String {
        let now = self.now;
        match rng.below(12) {
            0..=1 => self.create(rig, rng),
            2 => {
                let Some(id) = rng.pick(&self.in_state(&["available"])).cloned() else {
                    return String::new();
                };
                rig.call("DeleteVolume", json!({"VolumeId": id}));
                self.volumes.get_mut(&id).unwrap().deleting = Some(now + 1_500);
                format!("delete {id}")
            }
            3..=4 => self.attach(rig, rng),
            5..=6 => {
                let Some(id) = rng.pick(&self.in_state(&["in-use"])).cloned() else { return String::new() };
                rig.call("DetachVolume", json!({"VolumeId": id}));
                let attachment = self.volumes.get_mut(&id).unwrap().attachment.as_mut().unwrap();
                attachment.detaching.get_or_insert(now + 2_000);
                format!("detach {id}")
            }
            7 => self.modify(rig, rng),
            8 => self.snapshot(rig, rng),
            9 => {
                let ids: Vec<String> = self.snapshots.keys().cloned().collect();
                let Some(id) = rng.pick(&ids) else { return String::new() };
                rig.call("DeleteSnapshot", json!({"SnapshotId": id}));
                self.snapshots.remove(id);
                format!("delete {id}")
            }
            10 => {
                let Some(id) = rng.pick(&self.in_state(&["available", "in-use", "creating"])).cloned() else {
                    return String::new();
                };
                let (key, value) = (format!("k{}", rng.below(3)), format!("v{}", rng.below(9)));
                let tags = &mut self.volumes.get_mut(&id).unwrap().tags;
                if tags.remove(&key).is_some() {
                    rig.call("DeleteTags", json!({"Resources": [id], "Tags": [{"Key": key}]}));
                } else {
                    rig.call(
                        "CreateTags",
                        json!({"Resources": [id], "Tags": [{"Key": key, "Value": value}]}),
                    );
                    tags.insert(key, value);
                }
                format!("tag {id}")
            }
            _ => {
                if self.instances.len() >= 4 {
                    return String::new();
                }
                let id = rig.instance();
                self.instances.insert(id.clone(), now + 4_000);
                format!("run {id}")
            }
        }
    }

    fn create(&mut self, rig: &Rig, rng: &mut Rng) -> String {
        let now = self.now;
        let size = 1 + rng.next() % 4;
        let id = rig.volume_of(json!({"Size": size, "VolumeType": "gp3"}));
        let volume = Volume {
            size,
            creating: now + 1_500,
            deleting: None,
            attachment: None,
            modified: Vec::new(),
            shows: 0,
            completes: 0,
            size_before: size,
            tags: BTreeMap::new(),
            snapshot_at: None,
        };
        self.volumes.insert(id.clone(), volume);
        format!("create {id}")
    }

    fn attach(&mut self, rig: &Rig, rng: &mut Rng) -> String {
        let now = self.now;
        let ready: Vec<String> =
            self.instances.iter().filter(|(_, until)| now >= **until).map(|(id, _)| id.clone()).collect();
        let (Some(id), Some(instance)) =
            (rng.pick(&self.in_state(&["available"])).cloned(), rng.pick(&ready).cloned())
        else {
            return String::new();
        };
        let device = format!("/dev/sd{}", char::from(b'f' + u8::try_from(rng.below(8)).unwrap()));
        let taken = self.volumes.values().filter_map(|volume| volume.attachment(now));
        let taken = taken.filter(|at| at.instance == instance).any(|at| at.device == device);
        let input = json!({"VolumeId": id, "InstanceId": instance, "Device": device});
        if taken {
            assert_eq!(rig.code("AttachVolume", input), "InvalidParameterValue");
            return format!("refuse to attach {id}");
        }
        rig.call("AttachVolume", input);
        let attachment = Attachment { instance, device, attaching: now + 1_500, detaching: None };
        self.volumes.get_mut(&id).unwrap().attachment = Some(attachment);
        format!("attach {id}")
    }

    fn modify(&mut self, rig: &Rig, rng: &mut Rng) -> String {
        let now = self.now;
        let Some(id) = rng.pick(&self.in_state(&["available", "in-use"])).cloned() else {
            return String::new();
        };
        let volume = self.volumes.get_mut(&id).unwrap();
        let input = json!({"VolumeId": id, "Size": volume.size + 1});
        if now < volume.completes {
            assert_eq!(rig.code("ModifyVolume", input), "IncorrectModificationState");
            return format!("refuse to modify {id}: not completed");
        }
        if volume.modified.iter().filter(|start| now < **start + DAY).count() >= 4 {
            assert_eq!(rig.code("ModifyVolume", input), "VolumeModificationRateExceeded");
            return format!("refuse to modify {id}: too often");
        }
        rig.call("ModifyVolume", input);
        let latest = rig.call("DescribeVolumesModifications", json!({"VolumeIds": [id]}));
        assert_eq!(latest["VolumesModifications"][0]["OriginalSize"], volume.size);
        (volume.size_before, volume.size) = (volume.size, volume.size + 1);
        // The rules count whole seconds.
        let start = now / 1_000 * 1_000;
        volume.modified.push(start);
        let plan = plan(rig, volume.size_before, volume.size);
        (volume.shows, volume.completes) = (start + plan.0, start + plan.1);
        format!("modify {id}")
    }

    fn snapshot(&mut self, rig: &Rig, rng: &mut Rng) -> String {
        let now = self.now;
        let Some(id) = rng.pick(&self.in_state(&["available", "in-use"])).cloned() else {
            return String::new();
        };
        let input = json!({"VolumeId": id});
        let volume = self.volumes.get_mut(&id).unwrap();
        if volume.snapshot_at.is_some_and(|at| now < at + 15_000)
            && self.snapshots.values().any(|(of, until)| *of == id && now < until + 11_000)
        {
            assert_eq!(rig.code("CreateSnapshot", input), "SnapshotCreationPerVolumeRateExceeded");
            return format!("refuse a snapshot of {id}");
        }
        let made = text(&rig.call("CreateSnapshot", input)["SnapshotId"]);
        volume.snapshot_at = Some(now);
        self.snapshots.insert(made.clone(), (id, now + 4_000));
        format!("snapshot {made}")
    }
}

/// Milliseconds until a modification shows and completes, from the catalogue.
fn plan(rig: &Rig, from: u64, to: u64) -> (u64, u64) {
    let spec = |gib: u64| format!("gp3:size={gib}GiB").parse().unwrap();
    let plan = ebbtide_catalog::modify::check_modify(
        &rig.options.catalog,
        &spec(from),
        &spec(to),
        &[],
        1_790_000_000,
    );
    let plan = plan.unwrap();
    (plan.optimizing_after_s * 1_000, plan.completes_after_s * 1_000)
}

#[test]
fn drawn_calls_agree_with_a_model_of_the_states_over_starts() {
    let seed = seed(20_261_123);
    for round in 0..3_u64 {
        let mut rng = Rng(seed ^ (round << 48));
        let mut rig = Rig::slow();
        let mut model = Model { now: rig.now(), ..Model::default() };
        let mut done = BTreeMap::<String, u32>::new();
        for number in 0..250 {
            if rng.below(40) == 0 {
                rig = rig.reopened();
            }
            let ms = [0, 100, 1_500, 2_000, 4_000, 20_000, 400_000][rng.below(7)];
            rig.pass(ms);
            model.now += ms;
            let step = model.step(&rig, &mut rng);
            if let Some(word) = step.split(' ').next().filter(|word| !word.is_empty()) {
                *done.entry(word.to_owned()).or_default() += 1;
            }
            model.compare(&rig, &format!("seed {seed}, round {round}, step {number}: {step}"));
        }
        println!("round {round}: {done:?}");
        for word in ["create", "attach", "detach", "modify", "snapshot", "tag", "delete"] {
            assert!(done.contains_key(word), "no {word} was drawn");
        }
    }
}
