//! The header of a journal: which of its records are sealed.

use super::{BLOCK_BYTES, LayerId};

/// Length of the header, bytes.
pub(super) const HEADER_BYTES: u64 = 40;

const MAGIC: &[u8; 8] = b"EBBJRNL1";
const HEADER: usize = 40;

/// What a journal's header has about its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Records that are in the file: fewer are damage.
    pub(super) sealed: u64,
    /// Records whose blocks are on the host's disk, at least the sealed ones; later ones are not
    /// believed once the host has restarted. `None` without `host_sync`.
    pub(super) durable: Option<u64>,
}

impl Header {
    /// The header's bytes. `durable` is stored as one more than its distance to `sealed`, in 32
    /// bits: a distance beyond that is cut, which believes fewer records.
    pub(super) fn encode(self, id: LayerId) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&1_u32.to_le_bytes());
        bytes[12..16].copy_from_slice(&u32::try_from(BLOCK_BYTES).expect("a block is small").to_le_bytes());
        bytes[16..24].copy_from_slice(&id.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.sealed.to_le_bytes());
        let code = self.durable.map_or(0, |durable| {
            let ahead = durable.saturating_sub(self.sealed);
            u32::try_from(ahead.saturating_add(1)).unwrap_or(u32::MAX)
        });
        bytes[32..36].copy_from_slice(&code.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..36]);
        bytes[36..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header, or returns what is wrong with it.
    pub(super) fn decode(bytes: &[u8; HEADER], id: LayerId) -> Result<Self, String> {
        if &bytes[..8] != MAGIC {
            return Err("the header does not begin as a journal's does".to_owned());
        }
        let stored = u32_at(bytes, 36);
        let crc = crc32c::crc32c(&bytes[..36]);
        if crc != stored {
            return Err(format!("the header's checksum is {crc:08x}, {stored:08x} was stored"));
        }
        let (version, block, of) = (u32_at(bytes, 8), u32_at(bytes, 12), u64_at(bytes, 16));
        if version != 1 || u64::from(block) != BLOCK_BYTES {
            return Err(format!(
                "the header has version {version} and blocks of {block} bytes; 1 and {BLOCK_BYTES} are known"
            ));
        }
        if of != id.0 {
            return Err(format!("this is the journal of layer {}", LayerId(of)));
        }
        let sealed = u64_at(bytes, 24);
        let ahead = u32_at(bytes, 32).checked_sub(1);
        let durable = ahead.map(|ahead| sealed.saturating_add(u64::from(ahead)));
        Ok(Self { sealed, durable })
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written_and_one_of_an_older_program_promises_nothing_durable() {
        let id = LayerId(7);
        for (sealed, durable) in [(0, None), (9, None), (0, Some(0)), (3, Some(3)), (3, Some(1_000))] {
            let header = Header { sealed, durable };
            assert_eq!(Header::decode(&header.encode(id), id), Ok(header));
        }
        // What is beyond the field is not believed.
        let far = Header { sealed: 1, durable: Some(1 << 40) };
        let read = Header::decode(&far.encode(id), id).unwrap();
        assert_eq!(read, Header { sealed: 1, durable: Some(u64::from(u32::MAX)) });
        // Bytes 32 to 35 were zero before they had a meaning.
        let old = Header { sealed: 5, durable: None }.encode(id);
        assert_eq!(old[32..36], [0; 4]);
    }
}
