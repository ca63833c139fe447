//! The machine of a profile: its memory, and what a caller knows of it.

use ebbtide_volume::parse_size;

use super::ProfileError;
use super::file::MachineTable;
use crate::innodb::Memory;

/// What a caller knows of the machine, for what the profile does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// Processors that the operating system sees.
    pub vcpus: Option<u32>,
    /// Memory that the server and the page cache of its files share, bytes.
    pub memory_bytes: Option<u64>,
}

impl MachineTable {
    /// The memory: as the profile says, or what is known of the machine.
    pub(super) fn memory(&self, known: Option<u64>) -> Result<Option<Memory>, ProfileError> {
        let size = |key: &str, text: &str| {
            parse_size(text).map_err(|error| ProfileError::Conflict(format!("{key}: {error}")))
        };
        let of = |key: &str, text: Option<&str>| text.map(|text| size(key, text)).transpose();
        let other = of("machine.other_memory", self.other_memory.as_deref())?;
        match of("machine.memory", self.memory.as_deref())?.or(known) {
            Some(bytes) => Ok(Some(Memory { bytes, other_bytes: other.unwrap_or(Memory::OTHER_BYTES) })),
            None if other.is_none() => Ok(None),
            None => Err(ProfileError::Missing {
                what: "machine.memory",
                from: "`free` on the server's machine, or the limit of its control group: machine.other_memory is a part of it",
            }),
        }
    }
}
