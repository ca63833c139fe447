//! The messages of the transmission phase, and the numbers of the NBD protocol.
//!
//! Source of every constant: `doc/proto.md` of the NetworkBlockDevice/nbd project. All integers
//! on the wire are big-endian.

/// Negotiation begins with "NBDMAGIC" and "IHAVEOPT".
pub(crate) const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
pub(crate) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub(crate) const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flags, server to client and back.
pub(crate) const FLAG_FIXED_NEWSTYLE: u16 = 1;
pub(crate) const FLAG_NO_ZEROES: u16 = 1 << 1;

/// Transmission flags.
pub(crate) mod flag {
    pub(crate) const HAS_FLAGS: u16 = 1;
    pub(crate) const SEND_FLUSH: u16 = 1 << 2;
    pub(crate) const SEND_FUA: u16 = 1 << 3;
    pub(crate) const ROTATIONAL: u16 = 1 << 4;
    pub(crate) const SEND_TRIM: u16 = 1 << 5;
    pub(crate) const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const SEND_DF: u16 = 1 << 7;
    pub(crate) const CAN_MULTI_CONN: u16 = 1 << 8;
    pub(crate) const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Command flags.
pub(crate) mod command_flag {
    pub(crate) const FUA: u16 = 1;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DF: u16 = 1 << 2;
    pub(crate) const REQ_ONE: u16 = 1 << 3;
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
}

/// Structured reply chunks.
pub(crate) mod chunk {
    pub(crate) const FLAG_DONE: u16 = 1;
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const OFFSET_HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const ERROR: u16 = (1 << 15) + 1;
    pub(crate) const ERROR_OFFSET: u16 = (1 << 15) + 2;
}

/// The largest payload of one read or write: what every client may assume (2^25 bytes).
pub(crate) const MAX_PAYLOAD: u32 = 32 << 20;

/// A string of the protocol holds at most this many bytes.
pub(crate) const MAX_STRING: usize = 4096;

/// Bytes of a request header.
pub(crate) const REQUEST_LEN: usize = 28;

/// The error values that this server sends, out of those that the protocol allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Io,
    Inval,
    NoSpc,
    Overflow,
    NotSup,
    Shutdown,
}

impl Code {
    pub(crate) const fn value(self) -> u32 {
        match self {
            Self::Io => 5,
            Self::Inval => 22,
            Self::NoSpc => 28,
            Self::Overflow => 75,
            Self::NotSup => 95,
            Self::Shutdown => 108,
        }
    }
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    Cache,
    WriteZeroes,
    BlockStatus,
    Unknown(u16),
}

impl Command {
    const fn from_wire(number: u16) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            other => Self::Unknown(other),
        }
    }

    /// The flags that may come with it, once FUA and (with structured replies) DF are offered.
    const fn flags(self) -> u16 {
        use command_flag::{DF, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
        FUA | match self {
            Self::Read => DF,
            Self::WriteZeroes => NO_HOLE | FAST_ZERO,
            Self::BlockStatus => REQ_ONE,
            _ => 0,
        }
    }
}

/// A request as it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHeader {
    pub(crate) flags: u16,
    pub(crate) command: Command,
    /// Opaque; comes back in the reply.
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// A request that cannot be served, answered without troubling the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) message: String,
}

/// What a request is judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Bytes of the export.
    pub(crate) size: u64,
    /// Offsets and lengths are multiples of this.
    pub(crate) block: u32,
    /// Whether structured replies were agreed.
    pub(crate) structured: bool,
    /// Whether a metadata context was selected.
    pub(crate) contexts: bool,
}

impl RequestHeader {
    /// Reads a header; `None` where the magic is wrong, which no connection survives: the stream
    /// has lost its place.
    pub(crate) fn decode(bytes: &[u8; REQUEST_LEN]) -> Option<Self> {
        let mut at = 0;
        if u32::from_be_bytes(take(bytes, &mut at)) != REQUEST_MAGIC {
            return None;
        }
        Some(Self {
            flags: u16::from_be_bytes(take(bytes, &mut at)),
            command: Command::from_wire(u16::from_be_bytes(take(bytes, &mut at))),
            cookie: u64::from_be_bytes(take(bytes, &mut at)),
            offset: u64::from_be_bytes(take(bytes, &mut at)),
            len: u32::from_be_bytes(take(bytes, &mut at)),
        })
    }

    pub(crate) const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Bytes of payload that follow the header.
    pub(crate) const fn payload(&self) -> u32 {
        match self.command {
            Command::Write => self.len,
            _ => 0,
        }
    }

    /// Refuses what the protocol or the volume's size forbids.
    pub(crate) fn check(&self, bounds: Bounds) -> Result<(), Refusal> {
        let mut allowed = self.command.flags();
        if !bounds.structured {
            allowed &= !command_flag::DF;
        }
        if self.flags & !allowed != 0 {
            let unknown = self.flags & !allowed;
            return refuse(Code::Inval, format!("flags {unknown:#x} do not go with {:?}", self.command));
        }
        match self.command {
            Command::Flush | Command::Disconnect => return Ok(()),
            Command::Unknown(number) => return refuse(Code::Inval, format!("unknown command {number}")),
            Command::Cache => return refuse(Code::Inval, "the cache command is not offered".into()),
            Command::BlockStatus if !bounds.contexts => {
                return refuse(
                    Code::Inval,
                    "block status needs a metadata context to be selected first".into(),
                );
            }
            Command::BlockStatus if self.len == 0 => {
                return refuse(Code::Inval, "block status of no bytes".into());
            }
            _ => {}
        }
        self.check_range(bounds)
    }

    fn check_range(&self, bounds: Bounds) -> Result<(), Refusal> {
        let block = u64::from(bounds.block);
        if !self.offset.is_multiple_of(block) || !u64::from(self.len).is_multiple_of(block) {
            let why = format!("offset {} and length {} must be multiples of {block}", self.offset, self.len);
            return refuse(Code::Inval, why);
        }
        if self.offset.checked_add(u64::from(self.len)).is_none_or(|end| end > bounds.size) {
            let code = match self.command {
                Command::Write | Command::WriteZeroes => Code::NoSpc,
                _ => Code::Inval,
            };
            let why = format!("{} bytes at {} reach past the end at {}", self.len, self.offset, bounds.size);
            return refuse(code, why);
        }
        match self.command {
            Command::Read if self.len > MAX_PAYLOAD => {
                refuse(Code::Overflow, format!("a read takes at most {MAX_PAYLOAD} bytes, not {}", self.len))
            }
            Command::Write if self.len > MAX_PAYLOAD => {
                refuse(Code::Inval, format!("a write takes at most {MAX_PAYLOAD} bytes, not {}", self.len))
            }
            _ => Ok(()),
        }
    }
}

fn refuse(code: Code, message: String) -> Result<(), Refusal> {
    Err(Refusal { code, message })
}

fn take<const N: usize>(bytes: &[u8; REQUEST_LEN], at: &mut usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[*at..*at + N]);
    *at += N;
    field
}

/// A simple reply without payload, or the head of one with.
pub(crate) fn simple_reply(cookie: u64, error: u32) -> [u8; 16] {
    let mut reply = [0; 16];
    reply[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    reply[4..8].copy_from_slice(&error.to_be_bytes());
    reply[8..].copy_from_slice(&cookie.to_be_bytes());
    reply
}

/// The head of a structured reply chunk.
pub(crate) fn chunk_head(cookie: u64, kind: u16, done: bool, len: u32) -> [u8; 20] {
    let flags = if done { chunk::FLAG_DONE } else { 0 };
    let mut head = [0; 20];
    head[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&flags.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..].copy_from_slice(&len.to_be_bytes());
    head
}

/// The head of a data chunk; `len` bytes of data follow it.
pub(crate) fn data_chunk_head(cookie: u64, done: bool, offset: u64, len: u32) -> [u8; 28] {
    let mut head = [0; 28];
    head[..20].copy_from_slice(&chunk_head(cookie, chunk::OFFSET_DATA, done, len + 8));
    head[20..].copy_from_slice(&offset.to_be_bytes());
    head
}

/// Appends a chunk that means: these bytes are zero.
pub(crate) fn hole_chunk(out: &mut Vec<u8>, cookie: u64, done: bool, offset: u64, len: u32) {
    out.extend_from_slice(&chunk_head(cookie, chunk::OFFSET_HOLE, done, 12));
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(&len.to_be_bytes());
}

/// Appends an error chunk, with the offset of the failure where it is known.
pub(crate) fn error_chunk(
    out: &mut Vec<u8>,
    cookie: u64,
    done: bool,
    code: Code,
    message: &str,
    offset: Option<u64>,
) {
    let message = truncated(message);
    let text = u16::try_from(message.len()).expect("a message is cut at 4096 bytes");
    let (kind, tail) = if offset.is_some() { (chunk::ERROR_OFFSET, 8) } else { (chunk::ERROR, 0) };
    out.extend_from_slice(&chunk_head(cookie, kind, done, 6 + u32::from(text) + tail));
    out.extend_from_slice(&code.value().to_be_bytes());
    out.extend_from_slice(&text.to_be_bytes());
    out.extend_from_slice(message.as_bytes());
    if let Some(offset) = offset {
        out.extend_from_slice(&offset.to_be_bytes());
    }
}

/// The longest start of the text that a protocol string holds.
fn truncated(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_STRING)).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUNDS: Bounds = Bounds { size: 1 << 30, block: 512, structured: true, contexts: true };

    fn request(command: u16, flags: u16, offset: u64, len: u32) -> RequestHeader {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes.extend_from_slice(&flags.to_be_bytes());
        bytes.extend_from_slice(&command.to_be_bytes());
        bytes.extend_from_slice(&7_u64.to_be_bytes());
        bytes.extend_from_slice(&offset.to_be_bytes());
        bytes.extend_from_slice(&len.to_be_bytes());
        RequestHeader::decode(&bytes.try_into().unwrap()).unwrap()
    }

    fn code(header: RequestHeader, bounds: Bounds) -> Option<Code> {
        header.check(bounds).err().map(|refusal| refusal.code)
    }

    #[test]
    fn a_request_is_read_field_by_field() {
        let header = request(1, 1, 4096, 512);
        assert_eq!(
            header,
            RequestHeader { flags: 1, command: Command::Write, cookie: 7, offset: 4096, len: 512 }
        );
        assert_eq!(header.payload(), 512);
        assert_eq!(request(0, 0, 0, 512).payload(), 0);
    }

    #[test]
    fn a_request_past_the_end_gets_the_error_that_the_protocol_names() {
        for (command, expected) in
            [(0, Code::Inval), (1, Code::NoSpc), (4, Code::Inval), (6, Code::NoSpc), (7, Code::Inval)]
        {
            assert_eq!(code(request(command, 0, 1 << 30, 512), BOUNDS), Some(expected), "command {command}");
            assert_eq!(code(request(command, 0, u64::MAX - 511, 512), BOUNDS), Some(expected));
            assert_eq!(code(request(command, 0, (1 << 30) - 512, 512), BOUNDS), None);
        }
    }

    #[test]
    fn a_request_that_is_misaligned_or_too_long_is_refused() {
        assert_eq!(code(request(0, 0, 1, 512), BOUNDS), Some(Code::Inval));
        assert_eq!(code(request(1, 0, 512, 100), BOUNDS), Some(Code::Inval));
        assert_eq!(code(request(0, 0, 0, MAX_PAYLOAD), BOUNDS), None);
        assert_eq!(code(request(0, 0, 0, MAX_PAYLOAD + 512), BOUNDS), Some(Code::Overflow));
        assert_eq!(code(request(1, 0, 0, MAX_PAYLOAD + 512), BOUNDS), Some(Code::Inval));
        assert_eq!(code(request(6, 0, 0, 1 << 30), BOUNDS), None);
    }

    #[test]
    fn a_flag_is_accepted_only_where_it_means_something() {
        use command_flag::{DF, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
        for (command, flags) in
            [(0, FUA | DF), (1, FUA), (3, FUA), (6, FUA | NO_HOLE | FAST_ZERO), (7, REQ_ONE)]
        {
            assert_eq!(code(request(command, flags, 0, 512), BOUNDS), None, "command {command}");
        }
        for (command, flags) in [(0, NO_HOLE), (1, DF), (4, REQ_ONE), (6, DF), (7, 1 << 5), (1, 1 << 15)] {
            assert_eq!(code(request(command, flags, 0, 512), BOUNDS), Some(Code::Inval), "command {command}");
        }
        let plain = Bounds { structured: false, ..BOUNDS };
        assert_eq!(code(request(0, DF, 0, 512), plain), Some(Code::Inval));
    }

    #[test]
    fn block_status_needs_a_context_and_a_length() {
        assert_eq!(code(request(7, 0, 0, 0), BOUNDS), Some(Code::Inval));
        let none = Bounds { contexts: false, ..BOUNDS };
        assert_eq!(code(request(7, 0, 0, 512), none), Some(Code::Inval));
    }

    #[test]
    fn an_error_chunk_holds_code_message_and_offset() {
        let mut out = Vec::new();
        error_chunk(&mut out, 9, true, Code::Io, "bad block", Some(4096));
        assert_eq!(out.len(), 20 + 6 + 9 + 8);
        assert_eq!(out[4..8], [0, 1, 0x80, 2]);
        assert_eq!(out[16..20], 23_u32.to_be_bytes());
        assert_eq!(out[20..24], 5_u32.to_be_bytes());
        assert_eq!(&out[26..35], b"bad block");
        assert_eq!(out[35..], 4096_u64.to_be_bytes());
        let mut long = Vec::new();
        error_chunk(&mut long, 9, true, Code::Io, &"é".repeat(4000), None);
        assert_eq!(long.len(), 20 + 6 + 4096);
    }

    proptest! {
        #[test]
        fn any_28_bytes_are_judged_without_a_panic(mut bytes: [u8; REQUEST_LEN], magic: bool, bounds in (any::<u64>(), 0..8_u32, any::<bool>(), any::<bool>())) {
            if magic {
                bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
            }
            let (size, shift, structured, contexts) = bounds;
            let bounds = Bounds { size, block: 512 << shift, structured, contexts };
            match RequestHeader::decode(&bytes) {
                None => prop_assert!(bytes[..4] != REQUEST_MAGIC.to_be_bytes()),
                Some(header) if header.check(bounds).is_ok() && header.command != Command::Flush && header.command != Command::Disconnect => {
                    prop_assert!(header.offset + u64::from(header.len) <= size);
                    prop_assert!(header.payload() <= MAX_PAYLOAD);
                }
                Some(_) => {}
            }
        }
    }
}
