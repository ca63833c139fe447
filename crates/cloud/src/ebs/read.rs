//! ListSnapshotBlocks, ListChangedBlocks and GetSnapshotBlock.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ebbtide_control::SNAPSHOT_BLOCK_BYTES;
use ring::digest;
use serde_json::{Map, Value, json};

use super::tokens::{Binding, Purpose};
use super::{Ebs, SHA256, TOKEN_MS, input, refuse};
use crate::ec2::direct::SeenSnapshot;
use crate::{Answer, ApiError, Call};

/// Least and most blocks of a page.
const PAGE: (u64, u64) = (100, 10_000);

/// The page that a call asks for: from which index on, and how many blocks.
struct Page {
    from: u64,
    most: usize,
}

impl Ebs {
    fn page(&self, call: &Call<'_>, binding: Binding<'_>) -> Result<Page, ApiError> {
        let most = input::bounded(call, "MaxResults", PAGE)?.unwrap_or(PAGE.1);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let from = match input::text(call, "NextToken") {
            Some(token) => self.tokens.index(binding, token, call.now_ms).ok_or_else(|| {
                refuse::invalid("INVALID_PAGE_TOKEN", format!("The pagination token {token} is invalid."))
            })?,
            None => {
                let bounds = (0, u64::from(u32::MAX));
                input::bounded(call, "StartingBlockIndex", bounds)?.unwrap_or_default()
            }
        };
        Ok(Page { from, most })
    }

    pub(super) fn list_snapshot_blocks(&self, call: &Call<'_>) -> Result<Map<String, Value>, ApiError> {
        let id = input::snapshot_id(call, "SnapshotId", "snapshotId")?;
        let seen = self.readable(call, id)?;
        let binding = Binding { purpose: Purpose::Blocks, first: "", snapshot: id };
        let page = self.page(call, binding)?;
        let listed = self.ec2.control().snapshot_blocks(id, page.from, page.most + 1);
        let mut blocks = listed.map_err(|error| refuse::of_control(&error, id))?;
        let expires_ms = call.now_ms.saturating_add(TOKEN_MS);
        let next = (blocks.len() > page.most).then(|| blocks.pop()).flatten();
        let block = |index: &u64| {
            let token = self.block_token(id, *index, expires_ms);
            json!({"BlockIndex": index, "BlockToken": token})
        };
        let mut output = of_list(&seen, expires_ms);
        output.insert("Blocks".to_owned(), blocks.iter().map(block).collect());
        if let Some(next) = next {
            output.insert("NextToken".to_owned(), self.tokens.issue(binding, next, expires_ms).into());
        }
        Ok(output)
    }

    pub(super) fn list_changed_blocks(&self, call: &Call<'_>) -> Result<Map<String, Value>, ApiError> {
        let second = input::snapshot_id(call, "SecondSnapshotId", "secondSnapshotId")?;
        if input::text(call, "FirstSnapshotId").is_none() {
            let message = "First snapshot should not be empty or null";
            return Err(refuse::invalid("INVALID_SNAPSHOT_ID", message));
        }
        let first = input::snapshot_id(call, "FirstSnapshotId", "firstSnapshotId")?;
        self.readable(call, first)?;
        let seen = self.readable(call, second)?;
        let binding = Binding { purpose: Purpose::ChangedBlocks, first, snapshot: second };
        let page = self.page(call, binding)?;
        let listed = self.ec2.control().changed_blocks(first, second, page.from, page.most + 1);
        let mut changed = listed.map_err(|error| refuse::of_control(&error, second))?;
        if changed.is_empty() && page.from == 0 {
            // As AWS answers of two snapshots that are the same.
            return Ok(Map::from_iter([("ChangedBlocks".to_owned(), json!([]))]));
        }
        let expires_ms = call.now_ms.saturating_add(TOKEN_MS);
        let next = (changed.len() > page.most).then(|| changed.pop()).flatten();
        let block = |block: &ebbtide_control::ChangedBlock| {
            let mut row = Map::from_iter([("BlockIndex".to_owned(), block.index.into())]);
            for (name, is_there, id) in
                [("FirstBlockToken", block.in_first, first), ("SecondBlockToken", block.in_second, second)]
            {
                if is_there {
                    row.insert(name.to_owned(), self.block_token(id, block.index, expires_ms).into());
                }
            }
            Value::Object(row)
        };
        let mut output = of_list(&seen, expires_ms);
        output.insert("ChangedBlocks".to_owned(), changed.iter().map(block).collect());
        if let Some(next) = next {
            output.insert("NextToken".to_owned(), self.tokens.issue(binding, next.index, expires_ms).into());
        }
        Ok(output)
    }

    pub(super) fn get_snapshot_block(&self, call: &Call<'_>) -> Result<Answer, ApiError> {
        let id = input::snapshot_id(call, "SnapshotId", "snapshotId")?;
        let seen = self.readable(call, id)?;
        self.demand_data(call, &seen)?;
        let token = input::text(call, "BlockToken").unwrap_or_default();
        let index = self.tokens.index(block_binding(id), token, call.now_ms);
        let asked = input::number(call, "BlockIndex").and_then(|index| u64::try_from(index).ok());
        let Some(index) = index.filter(|index| asked == Some(*index)) else {
            return Err(refuse::invalid(
                "INVALID_BLOCK_TOKEN",
                format!("The block token {token} is invalid."),
            ));
        };
        let read = self.ec2.control().read_block(id, index);
        let payload = read.map_err(|error| refuse::of_control(&error, id))?;
        let checksum = STANDARD.encode(digest::digest(&digest::SHA256, &payload));
        let output = Map::from_iter([
            ("DataLength".to_owned(), payload.len().into()),
            ("Checksum".to_owned(), checksum.into()),
            ("ChecksumAlgorithm".to_owned(), SHA256.into()),
        ]);
        Ok(Answer { output, payload })
    }

    fn block_token(&self, id: &str, index: u64, expires_ms: u64) -> String {
        self.tokens.issue(block_binding(id), index, expires_ms)
    }
}

const fn block_binding(id: &str) -> Binding<'_> {
    Binding { purpose: Purpose::Block, first: "", snapshot: id }
}

/// What a list has besides its blocks.
fn of_list(seen: &SeenSnapshot, expires_ms: u64) -> Map<String, Value> {
    Map::from_iter([
        ("BlockSize".to_owned(), SNAPSHOT_BLOCK_BYTES.into()),
        ("VolumeSize".to_owned(), seen.size_gib.into()),
        ("ExpiryTime".to_owned(), Value::from(expires_ms as f64 / 1e3)),
    ])
}
