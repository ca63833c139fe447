//! The EBS direct APIs over the records and the volumes of the EC2 service.

mod errors;
mod kill;
mod model;
mod steps;
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ebbtide_cloud::{Answer, ApiError, Service};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::support::{self, ACCOUNT, REGION, Rig, text};

/// Size of a block.
pub(crate) const BLOCK: usize = 512 << 10;

pub(crate) fn checksum(data: &[u8]) -> String {
    STANDARD.encode(digest(&SHA256, data))
}

/// The checksum of checksums, by LINEAR.
pub(crate) fn aggregate<'a>(blocks: impl IntoIterator<Item = &'a [u8]>) -> String {
    let all: Vec<u8> = blocks.into_iter().flat_map(|data| digest(&SHA256, data).as_ref().to_vec()).collect();
    checksum(&all)
}

/// A block of one byte.
pub(crate) fn filled(fill: u8) -> Vec<u8> {
    vec![fill; BLOCK]
}

/// The parameters of a put.
pub(crate) fn of_put(id: &str, index: u64, data: &[u8]) -> Value {
    json!({
        "SnapshotId": id, "BlockIndex": index, "DataLength": data.len(), "Checksum": checksum(data),
        "ChecksumAlgorithm": "SHA256",
    })
}

impl Rig {
    pub(crate) fn try_direct_as(
        &self,
        account: &str,
        action: &str,
        (input, payload): (&Value, &[u8]),
    ) -> Result<Answer, ApiError> {
        let service: &dyn Service = &*self.ebs;
        support::answer(service, &self.rights, self.now(), (account, REGION), action, (input, payload))
    }

    pub(crate) fn try_direct(&self, action: &str, input: &Value) -> Result<Answer, ApiError> {
        self.try_direct_as(ACCOUNT, action, (input, &[]))
    }

    #[track_caller]
    pub(crate) fn direct(&self, action: &str, input: Value) -> Value {
        match self.try_direct(action, &input) {
            Ok(answer) => Value::Object(answer.output),
            Err(error) => panic!("{action} {input}: {error}"),
        }
    }

    /// The reason of a refusal; its code where it has none.
    #[track_caller]
    pub(crate) fn direct_refused(&self, action: &str, input: Value) -> String {
        match self.try_direct(action, &input) {
            Ok(answer) => panic!("{action} {input} answered {:?}", answer.output),
            Err(error) => reason(&error),
        }
    }

    /// Begins a snapshot of 1 GiB.
    #[track_caller]
    pub(crate) fn start(&self, parent: Option<&str>) -> String {
        let mut input = json!({"VolumeSize": 1});
        if let Some(parent) = parent {
            input["ParentSnapshotId"] = json!(parent);
        }
        text(&self.direct("StartSnapshot", input)["SnapshotId"])
    }

    pub(crate) fn try_put(&self, id: &str, index: u64, data: &[u8]) -> Result<Answer, ApiError> {
        self.try_direct_as(ACCOUNT, "PutSnapshotBlock", (&of_put(id, index, data), data))
    }

    #[track_caller]
    pub(crate) fn put(&self, id: &str, index: u64, data: &[u8]) {
        let answer = self.try_put(id, index, data).unwrap_or_else(|error| panic!("{id} {index}: {error}"));
        assert_eq!(answer.output["Checksum"], checksum(data));
    }

    #[track_caller]
    pub(crate) fn complete(&self, id: &str, count: usize) {
        let answer = self.direct("CompleteSnapshot", json!({"SnapshotId": id, "ChangedBlocksCount": count}));
        assert_eq!(answer, json!({"Status": "pending"}));
    }

    /// The indexes of the blocks of a snapshot, and their tokens.
    #[track_caller]
    pub(crate) fn listed(&self, id: &str) -> Vec<(u64, String)> {
        let answer = self.direct("ListSnapshotBlocks", json!({"SnapshotId": id}));
        let blocks = answer["Blocks"].as_array().unwrap();
        blocks.iter().map(|row| (row["BlockIndex"].as_u64().unwrap(), text(&row["BlockToken"]))).collect()
    }

    /// Reads a block by a token; its checksum is right.
    #[track_caller]
    pub(crate) fn block(&self, id: &str, index: u64, token: &str) -> Vec<u8> {
        let input = json!({"SnapshotId": id, "BlockIndex": index, "BlockToken": token});
        let answer = self.try_direct("GetSnapshotBlock", &input);
        let Answer { output, payload } = answer.unwrap_or_else(|error| panic!("{id} {index}: {error}"));
        assert_eq!(output["Checksum"], checksum(&payload));
        assert_eq!((&output["DataLength"], payload.len()), (&json!(BLOCK), BLOCK));
        payload
    }
}

/// The reason of a refusal; its code where it has none.
pub(crate) fn reason(error: &ApiError) -> String {
    error.members.get("Reason").and_then(Value::as_str).unwrap_or(&error.code).to_owned()
}
