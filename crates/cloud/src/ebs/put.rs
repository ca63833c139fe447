//! StartSnapshot, PutSnapshotBlock and CompleteSnapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ebbtide_control::SNAPSHOT_BLOCK_BYTES;
use parking_lot::Mutex;
use ring::digest;
use serde_json::{Map, Value, json};

use super::{Checksums, Ebs, SHA256, arn, blocks_of, demand, input, refuse};
use crate::ec2::direct::{Owned, SeenSnapshot, Start};
use crate::{Access, ApiError, Call};

/// Size of the largest disk, GiB.
const LARGEST_GIB: u64 = 65_536;
/// Least and most minutes that a snapshot stays open without a block.
const TIMEOUT: (u64, u64) = (10, 4_320);
/// The same where a call does not say.
const TIMEOUT_MINUTES: u64 = 60;
/// Most tags of a resource, and most characters of keys and values.
const TAGS: usize = 50;
const KEY_CHARS: usize = 127;
const VALUE_CHARS: usize = 255;
/// Most characters of a description and of a client token.
const TEXT_CHARS: usize = 255;

/// A text that the call may have, of a length that AWS takes.
fn short_text(call: &Call<'_>, member: &str) -> Result<Option<String>, ApiError> {
    let text = input::text(call, member);
    match text.map(|text| text.chars().count()) {
        Some(length) if length > TEXT_CHARS => Err(refuse::invalid_value(format!(
            "{member} has at most {TEXT_CHARS} characters; {length} were given."
        ))),
        _ => Ok(text.map(str::to_owned)),
    }
}

fn tags(call: &Call<'_>) -> Result<BTreeMap<String, String>, ApiError> {
    let invalid = |message: &str| refuse::invalid("INVALID_TAG", message);
    let given = call.input.get("Tags").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut tags = BTreeMap::new();
    for tag in given {
        let text = |member: &str| tag[member].as_str().unwrap_or_default();
        let (key, value) = (text("Key"), text("Value"));
        if !(1..=KEY_CHARS).contains(&key.chars().count()) {
            return Err(invalid("The key of a tag has 1 to 127 characters."));
        }
        if key.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("aws:")) {
            return Err(invalid("Tag keys starting with 'aws:' are reserved for internal use"));
        }
        if value.chars().count() > VALUE_CHARS {
            return Err(invalid("The value of a tag has at most 255 characters."));
        }
        if tags.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(invalid(&format!("Duplicate tag key '{key}' specified.")));
        }
    }
    if tags.len() > TAGS {
        return Err(invalid("A snapshot has at most 50 tags."));
    }
    Ok(tags)
}

/// Demands the rights to begin a snapshot, and to tag it.
fn demand_start(call: &Call<'_>, start: &Start) -> Result<(), ApiError> {
    let mut context: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut set = |key: String, value: String| context.entry(key).or_default().push(value);
    for (key, value) in &start.tags {
        set(format!("aws:RequestTag/{key}"), value.clone());
        set("aws:TagKeys".to_owned(), key.clone());
    }
    let of_tags = context.clone();
    let mut set = |key: &str, value: String| context.entry(key.to_owned()).or_default().push(value);
    if !start.description.is_empty() {
        set("ebs:Description", start.description.clone());
    }
    if let Some(parent) = &start.parent {
        set("ebs:ParentSnapshot", arn(call, parent));
    }
    set("ebs:VolumeSize", start.size_gib.to_string());
    let resource = arn(call, "*");
    let action = "ebs:StartSnapshot".into();
    call.authorize(&Access { action, resource: resource.clone(), context })?;
    if start.tags.is_empty() {
        return Ok(());
    }
    call.authorize(&Access { action: "ec2:CreateTags".into(), resource, context: of_tags })
}

/// Refuses combinations that AWS does not have.
fn check_encryption(call: &Call<'_>, has_parent: bool) -> Result<(), ApiError> {
    let encrypted = call.input.get("Encrypted").and_then(Value::as_bool);
    let has_key = input::text(call, "KmsKeyArn").is_some();
    if has_parent && has_key {
        return Err(refuse::invalid_value("ParentSnapshotId and KmsKeyArn cannot be specified together"));
    }
    if has_parent && encrypted.is_some() {
        return Err(refuse::invalid_value("ParentSnapshotId and Encrypted cannot be specified together"));
    }
    if has_key && encrypted == Some(false) {
        return Err(refuse::invalid_value("Encrypted cannot be false when KmsKeyArn is specified"));
    }
    Ok(())
}

impl Ebs {
    pub(super) fn start_snapshot(&self, call: &Call<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut start = read_start(call)?;
        demand_start(call, &start)?;
        match &start.parent {
            Some(id) => self.check_parent(call, id, start.size_gib)?,
            None => {
                let asks = call.input.get("Encrypted").and_then(Value::as_bool) == Some(true);
                let name = input::text(call, "KmsKeyArn");
                let key = self.ec2.key_of_direct(call, asks, name);
                start.key = key.map_err(|problem| refuse::of_key(&problem, name.unwrap_or_default()))?;
            }
        }
        let id = start.parent.clone().unwrap_or_default();
        let started = self.ec2.start_direct(call, start).map_err(|error| refuse::of_direct(&error, &id))?;
        Ok(of_start(&started))
    }

    fn check_parent(&self, call: &Call<'_>, id: &str, size_gib: u64) -> Result<(), ApiError> {
        // Others' snapshots can be read, but not built upon.
        let parent = self.ec2.seen_snapshot(call, id).filter(|seen| seen.owned == Owned::ByCaller);
        demand(call, id, parent.as_ref())?;
        let parent = parent.ok_or_else(|| refuse::not_found(id))?;
        let key = parent.kms_key.as_deref();
        let refused = |problem| refuse::of_key(&problem, key.unwrap_or_default());
        self.ec2.demand_parent(call, key).map_err(refused)?;
        match parent.state {
            "completed" if parent.size_gib > size_gib => Err(refuse::invalid(
                "INVALID_VOLUME_SIZE",
                format!(
                    "Volume size of {size_gib} GiB is smaller than the parent snapshot's, {} GiB.",
                    parent.size_gib
                ),
            )),
            "completed" => Ok(()),
            "error" => Err(refuse::not_found(id)),
            _ => Err(refuse::invalid(
                "INVALID_SNAPSHOT_ID",
                format!("Source snapshot ({id}) is not complete."),
            )),
        }
    }

    pub(super) fn put_snapshot_block(&self, call: &Call<'_>) -> Result<Map<String, Value>, ApiError> {
        let id = input::snapshot_id(call, "SnapshotId", "snapshotId")?;
        let seen = self.own(call, id)?;
        self.demand_data(call, &seen)?;
        must_be_open(&seen)?;
        let index = check_block(call, seen.size_gib)?;
        let progress = input::bounded(call, "Progress", (0, 100))?;
        let checksum = checked(call)?;
        let open = self.checksums_of(id);
        let mut checksums = open.lock();
        // It may have been completed while this call waited.
        must_be_open(&self.ec2.seen_snapshot(call, id).ok_or_else(|| refuse::not_found(id))?)?;
        let written = self.ec2.control().write_block(id, index, call.payload);
        written.map_err(|error| refuse::of_control(&error, id))?;
        checksums.insert(index, checksum);
        drop(checksums);
        self.ec2.extend_direct(call, id, progress).map_err(|error| refuse::of_direct(&error, id))?;
        Ok(Map::from_iter([
            ("Checksum".to_owned(), STANDARD.encode(checksum).into()),
            ("ChecksumAlgorithm".to_owned(), SHA256.into()),
        ]))
    }

    fn checksums_of(&self, id: &str) -> Arc<Mutex<Checksums>> {
        Arc::clone(self.open.lock().entry(id.to_owned()).or_default())
    }

    pub(super) fn complete_snapshot(&self, call: &Call<'_>) -> Result<Map<String, Value>, ApiError> {
        let id = input::snapshot_id(call, "SnapshotId", "snapshotId")?;
        let seen = self.own(call, id)?;
        if seen.direct.is_none() {
            return Err(refuse::not_found(id));
        }
        let expected = expected_checksum(call)?;
        let count = input::bounded(call, "ChangedBlocksCount", (0, u64::from(u32::MAX)))?;
        let answer = |status: &str| Map::from_iter([("Status".to_owned(), Value::from(status))]);
        let open = self.checksums_of(id);
        let checksums = open.lock();
        let seen = self.ec2.seen_snapshot(call, id).ok_or_else(|| refuse::not_found(id))?;
        if !seen.is_open {
            return Ok(answer(seen.state));
        }
        // AWS looks at both after its answer.
        let failed = self.mismatch(id, &checksums, count.unwrap_or_default(), expected)?;
        self.ec2.seal_direct(call, id, failed).map_err(|error| refuse::of_direct(&error, id))?;
        self.open.lock().remove(id);
        Ok(answer("pending"))
    }

    /// Why a snapshot is not what the caller means to have put.
    fn mismatch(
        &self,
        id: &str,
        checksums: &Checksums,
        count: u64,
        expected: Option<&str>,
    ) -> Result<Option<&'static str>, ApiError> {
        let control = self.ec2.control();
        let written = control.written_blocks(id).map_err(|error| refuse::of_control(&error, id))?;
        if u64::try_from(written.len()) != Ok(count) {
            return Ok(Some("Changed blocks count mismatch for snapshot"));
        }
        let Some(expected) = expected else { return Ok(None) };
        let mut all = digest::Context::new(&digest::SHA256);
        for index in written {
            if let Some(known) = checksums.get(&index) {
                all.update(known);
            } else {
                // It was put before a start.
                let data = control.read_written_block(id, index);
                let data = data.map_err(|error| refuse::of_control(&error, id))?;
                all.update(digest::digest(&digest::SHA256, &data).as_ref());
            }
        }
        let is_equal = STANDARD.encode(all.finish()) == expected;
        Ok((!is_equal).then_some("Checksum mismatch for snapshot"))
    }
}

fn read_start(call: &Call<'_>) -> Result<Start, ApiError> {
    let size_gib = input::number(call, "VolumeSize").and_then(|size| u64::try_from(size).ok());
    let size_gib = size_gib.filter(|size| (1..=LARGEST_GIB).contains(size)).ok_or_else(|| {
        let message = format!("Volume size must be between 1 and {LARGEST_GIB} GiB.");
        refuse::invalid("INVALID_VOLUME_SIZE", message)
    })?;
    let parent = input::text(call, "ParentSnapshotId")
        .map(|_| input::snapshot_id(call, "ParentSnapshotId", "parentSnapshotId").map(str::to_owned))
        .transpose()?;
    let minutes = input::bounded(call, "Timeout", TIMEOUT)?.unwrap_or(TIMEOUT_MINUTES);
    check_encryption(call, parent.is_some())?;
    let mut parameters = call.input.clone();
    parameters.remove("ClientToken");
    Ok(Start {
        size_gib,
        parent,
        description: short_text(call, "Description")?.unwrap_or_default(),
        tags: tags(call)?,
        timeout_ms: minutes.saturating_mul(60_000),
        token: short_text(call, "ClientToken")?,
        key: None,
        parameters: Value::Object(parameters).to_string(),
    })
}

/// What a snapshot that was begun is answered with, the first time and again.
fn of_start(started: &SeenSnapshot) -> Map<String, Value> {
    let mut output = Map::from_iter([
        ("SnapshotId".to_owned(), started.id.clone().into()),
        ("OwnerId".to_owned(), started.owner.clone().into()),
        ("Status".to_owned(), "pending".into()),
        ("StartTime".to_owned(), Value::from(started.started_ms as f64 / 1e3)),
        ("VolumeSize".to_owned(), started.size_gib.into()),
        ("BlockSize".to_owned(), SNAPSHOT_BLOCK_BYTES.into()),
    ]);
    output.insert("SseType".to_owned(), if started.kms_key.is_some() { "sse-kms" } else { "none" }.into());
    if let Some(key) = &started.kms_key {
        output.insert("KmsKeyArn".to_owned(), key.clone().into());
    }
    if !started.description.is_empty() {
        output.insert("Description".to_owned(), started.description.clone().into());
    }
    if let Some(Some(parent)) = &started.direct {
        output.insert("ParentSnapshotId".to_owned(), parent.clone().into());
    }
    if !started.tags.is_empty() {
        let tags = started.tags.iter().map(|(key, value)| json!({"Key": key, "Value": value}));
        output.insert("Tags".to_owned(), tags.collect());
    }
    output
}

/// Refuses a snapshot to which no block can be put.
fn must_be_open(seen: &SeenSnapshot) -> Result<(), ApiError> {
    match seen.state {
        _ if seen.is_open => Ok(()),
        "error" => Err(refuse::not_found(&seen.id)),
        _ => Err(refuse::invalid("INVALID_SNAPSHOT_ID", "Snapshot is already completed")),
    }
}

/// The index of a block that is whole and inside the disk.
fn check_block(call: &Call<'_>, size_gib: u64) -> Result<u64, ApiError> {
    let invalid = |message: String| refuse::invalid("INVALID_BLOCK", message);
    if u64::try_from(call.payload.len()) != Ok(SNAPSHOT_BLOCK_BYTES) {
        return Err(refuse::invalid_value("Failed to read block data"));
    }
    let length = input::number(call, "DataLength").unwrap_or_default();
    if u64::try_from(length) != Ok(SNAPSHOT_BLOCK_BYTES) {
        return Err(invalid(format!(
            "Block data length {length} is not valid, expected {SNAPSHOT_BLOCK_BYTES}"
        )));
    }
    let index = input::number(call, "BlockIndex").unwrap_or_default();
    let inside = u64::try_from(index).ok().filter(|index| *index < blocks_of(size_gib));
    inside.ok_or_else(|| invalid(format!("Block index {index} is beyond the volume size extent")))
}

fn check_algorithm(algorithm: &str) -> Result<(), ApiError> {
    if algorithm == SHA256 {
        return Ok(());
    }
    Err(refuse::invalid_value(format!(
        "Unsupported Checksum Algorithm '{algorithm}', supported algorithms are {SHA256}"
    )))
}

/// The checksum of a block, which is what the caller says.
fn checked(call: &Call<'_>) -> Result<[u8; 32], ApiError> {
    check_algorithm(input::text(call, "ChecksumAlgorithm").unwrap_or_default())?;
    let found = digest::digest(&digest::SHA256, call.payload);
    let (computed, expected) = (STANDARD.encode(found), input::text(call, "Checksum").unwrap_or_default());
    if computed != expected {
        return Err(refuse::wrong_checksum(&computed, expected));
    }
    Ok(found.as_ref().try_into().expect("a SHA-256 has 32 bytes"))
}

/// The checksum of all blocks, where the caller gives one.
fn expected_checksum<'a>(call: &Call<'a>) -> Result<Option<&'a str>, ApiError> {
    let names = ["Checksum", "ChecksumAlgorithm", "ChecksumAggregationMethod"];
    let given = names.map(|name| input::text(call, name));
    let missing =
        |what: &str| Err(refuse::invalid_value(format!("Invalid parameter combination. {what} is missing.")));
    match given {
        [None, None, None] => Ok(None),
        [None, ..] => missing("Snapshot checksum"),
        [_, None, _] => missing("Checksum algorithm"),
        [_, _, None] => missing("Checksum aggregation method"),
        [Some(checksum), Some(algorithm), Some(method)] => {
            check_algorithm(algorithm)?;
            if method != "LINEAR" {
                let message = format!(
                    "Unsupported Checksum Aggregation Method '{method}', supported methods are LINEAR"
                );
                return Err(refuse::invalid_value(message));
            }
            Ok(Some(checksum))
        }
    }
}
