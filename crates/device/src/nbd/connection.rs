//! One client: its negotiation and its requests.

use std::{io, os::fd::OwnedFd, sync::Arc, thread, time::Instant};

use super::{
    hub::Hub,
    input::Input,
    negotiate::{
        Export, MAX_OPTION, MAX_SKIPPED_OPTION, Negotiation, Next, Session, SnapshotNames, greeting,
        option_header,
    },
    status::{ContextKind, Descriptors},
};
use crate::{
    request::{self, Buffer, Reply, Request},
    store::{BLOCK_BYTES, ExtentKind, StoreError},
    sys::{Role, enter_data_path},
    transport::nbd::{
        NbdReply, ReplySender, SplitRequest, encode_nothing, encode_refusal,
        output::{Cost, Output, send_all},
        wire::{
            Bounds, Code, Command, MAX_PAYLOAD, REQUEST_LEN, Refusal, RequestHeader, command_flag,
            error_chunk,
        },
    },
};

/// The longest piece of a client's read or write that goes to the volume as one request.
const DATA_PIECE: u32 = 1 << 20;

/// The longest piece of a request without data.
const ZERO_PIECE: u32 = 64 << 20;

/// Where a long request is cut, bytes: at no place where an atomic unit (4 or 16 KiB) would be.
const CUT: u64 = 16 << 10;

/// The longest payload that is skipped rather than that the connection ends.
const MAX_SKIPPED_PAYLOAD: u32 = 2 * MAX_PAYLOAD;

/// How much of a volume one question about extents covers, bytes: an answer of a megabyte or two
/// at worst.
const STATUS_WINDOW: u64 = 256 << 20;

/// A client in the transmission phase.
#[derive(Debug)]
pub(super) struct Connection {
    hub: Arc<Hub>,
    replies: Arc<ReplySender>,
    session: Session,
    bounds: Bounds,
}

/// Serves one client to its end. The calling thread becomes its reader.
pub(super) fn serve(socket: OwnedFd, hub: &Arc<Hub>) -> io::Result<()> {
    let mut input = Input::new(socket.try_clone()?, usize_of(DATA_PIECE));
    let export = export(hub);
    let deadline = Instant::now() + hub.options.handshake_timeout;
    let Some(session) = negotiate(&socket, &mut input, &export, hub, deadline)? else { return Ok(()) };
    // Only now: a stranger that never gets through the negotiation gets no real-time thread.
    enter_data_path(Role::Export);
    let bounds = Bounds {
        size: export.size,
        block: export.block,
        structured: session.structured,
        contexts: !session.contexts.is_empty(),
    };
    let max = Cost { requests: hub.options.max_requests, bytes: hub.options.max_bytes };
    let connection = Arc::new(Connection {
        hub: Arc::clone(hub),
        replies: Arc::new(ReplySender::new(Output::new(socket, max), session.structured)),
        session,
        bounds,
    });
    let writer = {
        let replies = Arc::clone(&connection.replies);
        thread::Builder::new().name("nbd-writer".into()).spawn(move || replies.output().run_writer())?
    };
    let ended = connection.read(&mut input);
    connection.replies.flush_batch();
    connection.replies.output().gauge().wait_until_empty();
    connection.replies.output().end();
    let _ = writer.join();
    ended
}

fn export(hub: &Hub) -> Export {
    let block = hub.volume.block_bytes();
    Export {
        name: hub.options.export.clone(),
        description: hub.options.description.clone(),
        size: hub.volume.size_bytes(),
        block,
        preferred: block.max(u32::try_from(BLOCK_BYTES).expect("a block is small")),
        rotational: hub.options.rotational,
    }
}

/// Negotiates; `None` where that ended the connection in order.
fn negotiate(
    socket: &OwnedFd,
    input: &mut Input,
    export: &Export,
    hub: &Hub,
    deadline: Instant,
) -> io::Result<Option<Session>> {
    let mut negotiation = Negotiation::new(export);
    let names = HubSnapshots(hub);
    send_all(socket, &greeting(), deadline)?;
    let flags = u32::from_be_bytes(input.array(Some(deadline))?);
    if !negotiation.client_flags(flags) {
        return Err(invalid(format!("client flags {flags:#x} were not offered")));
    }
    let mut out = Vec::new();
    loop {
        let Some((option, len)) = option_header(&input.array(Some(deadline))?) else {
            return Err(invalid("an option without its magic".into()));
        };
        out.clear();
        let next = if len > MAX_SKIPPED_OPTION {
            return Err(invalid(format!("{len} bytes of option data")));
        } else if len > MAX_OPTION {
            input.skip(usize_of(len), Some(deadline))?;
            negotiation.too_long(option, len, &mut out)
        } else {
            negotiation.option(option, input.take(usize_of(len), Some(deadline))?, &names, &mut out)
        };
        send_all(socket, &out, deadline)?;
        match next {
            Next::Option => {}
            Next::Transmit(session) => return Ok(Some(session)),
            Next::Close => return Ok(None),
        }
    }
}

/// The snapshots of a server's volume, as the negotiation asks for them.
struct HubSnapshots<'a>(&'a Hub);

impl SnapshotNames for HubSnapshots<'_> {
    fn list(&self) -> Vec<String> {
        let mut names = (self.0.options.snapshots)();
        names.retain(|name| self.has(name));
        names
    }

    fn has(&self, name: &str) -> bool {
        self.0.volume.store().dirty_since(name, 0, BLOCK_BYTES).is_ok()
    }
}

impl Connection {
    /// Reads requests until the client has no more.
    fn read(self: &Arc<Self>, input: &mut Input) -> io::Result<()> {
        loop {
            if input.available() < REQUEST_LEN {
                self.replies.flush_batch();
            }
            let header = match input.array(None) {
                Ok(header) => header,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            };
            let Some(header) = RequestHeader::decode(&header) else {
                return Err(invalid("a request without its magic".into()));
            };
            if header.command == Command::Disconnect {
                return Ok(());
            }
            self.handle(header, input)?;
        }
    }

    fn handle(self: &Arc<Self>, header: RequestHeader, input: &mut Input) -> io::Result<()> {
        tracing::trace!(
            volume = self.hub.volume.name(),
            operation = ?header.command,
            offset = header.offset,
            length = header.len,
            cookie = header.cookie,
            "asked"
        );
        if let Err(refusal) = self.judge(&header) {
            if header.payload() > MAX_SKIPPED_PAYLOAD {
                return Err(invalid(format!("a write of {} bytes", header.payload())));
            }
            // First all of the payload: a client may not expect a reply while it still sends.
            self.replies.flush_batch();
            input.skip(usize_of(header.payload()), None)?;
            self.refuse(&header, &refusal);
            return Ok(());
        }
        match header.command {
            Command::Flush => {
                let reply = self.admit(&header, (0, 0), false, None);
                self.submit(&header, request::Command::Flush, (0, 0), None, reply);
            }
            Command::BlockStatus => self.block_status(header),
            _ if header.len == 0 => {
                let mut out = Vec::new();
                encode_nothing(&mut out, self.replies.structured(), header.cookie);
                self.replies.send_own(&out);
            }
            Command::Read => self.submit_read(header),
            Command::Write => self.submit_write(header, input)?,
            Command::Trim => self.submit_pieces(header, request::Command::Discard, ZERO_PIECE),
            Command::WriteZeroes => self.submit_zeroes(header),
            Command::Cache | Command::Disconnect | Command::Unknown(_) => {
                unreachable!("refused, or the end of the connection")
            }
        }
        Ok(())
    }

    fn judge(&self, header: &RequestHeader) -> Result<(), Refusal> {
        if self.hub.stopping() {
            return Err(Refusal { code: Code::Shutdown, message: "the server is shutting down".into() });
        }
        header.check(self.bounds)?;
        if header.command == Command::WriteZeroes && header.has(command_flag::FAST_ZERO) {
            return fast_zero(header);
        }
        Ok(())
    }

    fn submit_read(self: &Arc<Self>, header: RequestHeader) {
        // Only chunks can be sent as they come; any other reply needs all of its data first.
        let in_chunks = self.replies.structured() && !header.has(command_flag::DF);
        let longest = if in_chunks { DATA_PIECE } else { MAX_PAYLOAD };
        self.submit_pieces(header, request::Command::Read, longest);
    }

    fn submit_zeroes(self: &Arc<Self>, header: RequestHeader) {
        if header.has(command_flag::FAST_ZERO) {
            // Free, and whole blocks read as zeroes afterwards.
            self.submit_pieces(header, request::Command::Discard, ZERO_PIECE);
        } else if header.has(command_flag::NO_HOLE) {
            // Blocks that are to be there have to be written.
            self.submit_pieces(header, request::Command::Write, DATA_PIECE);
        } else {
            self.submit_pieces(header, request::Command::WriteZeroes, ZERO_PIECE);
        }
    }

    /// Submits a request that brings no data along.
    fn submit_pieces(self: &Arc<Self>, header: RequestHeader, command: request::Command, longest: u32) {
        let whole = whole_of(&header, longest);
        let moves_data = matches!(command, request::Command::Read | request::Command::Write);
        for (offset, len) in pieces(header.offset, header.len, longest) {
            let reply = self.admit(&header, (offset, len), moves_data, whole.clone());
            let zeroes = (command == request::Command::Write).then(|| {
                let mut buffer = self.hub.volume.buffer(len);
                buffer.fill(0);
                buffer
            });
            self.submit(&header, command, (offset, len), zeroes, reply);
        }
    }

    /// Submits a write, piece by piece as its payload arrives.
    fn submit_write(self: &Arc<Self>, header: RequestHeader, input: &mut Input) -> io::Result<()> {
        let whole = whole_of(&header, DATA_PIECE);
        for (offset, len) in pieces(header.offset, header.len, DATA_PIECE) {
            if input.available() < usize_of(len) {
                self.replies.flush_batch();
            }
            // Where the payload ends early, pieces are under way whose reply nobody waits for.
            let data = input.take(usize_of(len), None)?;
            let reply = self.admit(&header, (offset, len), true, whole.clone());
            if header.has(command_flag::FUA) {
                let mut buffer = self.hub.volume.buffer(len);
                buffer.copy_from_slice(data);
                self.submit(&header, request::Command::Write, (offset, len), Some(buffer), reply);
            } else {
                self.hub.volume.submit_write(offset, data, reply);
            }
        }
        Ok(())
    }

    fn submit(
        &self,
        header: &RequestHeader,
        command: request::Command,
        (offset, len): (u64, u32),
        data: Option<Buffer>,
        reply: Reply,
    ) {
        let fua = header.has(command_flag::FUA);
        self.hub.volume.submit(Request { command, offset, len, fua, data, reply });
    }

    /// The reply to a piece that has been let in, after waiting for room if need be: before it takes a buffer of
    /// the volume, for which other clients may be waiting.
    fn admit(
        &self,
        request: &RequestHeader,
        range: (u64, u32),
        moves_data: bool,
        whole: Option<Arc<SplitRequest>>,
    ) -> Reply {
        self.replies.admit(NbdReply::cost_of(range.1, moves_data));
        Reply::nbd(NbdReply::new(Arc::clone(&self.replies), request, range, moves_data, whole))
    }

    fn block_status(&self, header: RequestHeader) {
        let mut out = Vec::new();
        for (number, context) in (1..).zip(&self.session.contexts) {
            match self.describe(&header, &context.kind) {
                Ok(descriptors) => {
                    let done = number == self.session.contexts.len();
                    descriptors.encode(&mut out, header.cookie, context.id, done);
                }
                Err(error) => {
                    error_chunk(&mut out, header.cookie, true, Code::Inval, &error.to_string(), None);
                    break;
                }
            }
        }
        let cost = Cost::of(out.len());
        self.replies.admit(cost);
        self.replies.send(&out, &[], cost);
    }

    fn describe(&self, header: &RequestHeader, kind: &ContextKind) -> Result<Descriptors, StoreError> {
        let store = self.hub.volume.store();
        let end = header.offset + u64::from(header.len);
        let mut descriptors = Descriptors::new(header.len, header.has(command_flag::REQ_ONE));
        let mut at = header.offset;
        while at < end {
            let window = STATUS_WINDOW.min(end - at);
            let extents = match kind {
                ContextKind::Allocation => store.extents(at, window),
                ContextKind::Dirty { snapshot } => store.dirty_since(snapshot, at, window)?,
            };
            for extent in extents {
                if !descriptors.add(extent.len, kind.flags(extent.kind == ExtentKind::Data)) {
                    return Ok(descriptors);
                }
            }
            at += window;
        }
        Ok(descriptors)
    }

    fn refuse(&self, header: &RequestHeader, refusal: &Refusal) {
        tracing::debug!(
            volume = self.hub.volume.name(),
            operation = ?header.command,
            offset = header.offset,
            length = header.len,
            code = ?refusal.code,
            "refused: {}",
            refusal.message
        );
        let mut out = Vec::new();
        encode_refusal(&mut out, self.replies.structured(), header.cookie, refusal);
        self.replies.send_own(&out);
    }
}

/// What holds the pieces of a request together, where there are several.
fn whole_of(header: &RequestHeader, longest: u32) -> Option<Arc<SplitRequest>> {
    let count = pieces(header.offset, header.len, longest).count();
    (count > 1).then(|| SplitRequest::new(count))
}

/// Whether zeroes can be had for less than writing them: where whole blocks can be given back.
fn fast_zero(header: &RequestHeader) -> Result<(), Refusal> {
    let refuse = |message: &str| Err(Refusal { code: Code::NotSup, message: message.into() });
    if header.has(command_flag::NO_HOLE) {
        return refuse("zeroes without a hole take as long as a write");
    }
    if !header.offset.is_multiple_of(BLOCK_BYTES) || !u64::from(header.len).is_multiple_of(BLOCK_BYTES) {
        return refuse("only whole blocks of 4096 bytes become zeroes faster than by a write");
    }
    Ok(())
}

/// Cuts a request into pieces of at most `longest` bytes, at multiples of [`CUT`].
fn pieces(offset: u64, len: u32, longest: u32) -> impl Iterator<Item = (u64, u32)> {
    let end = offset + u64::from(len);
    let mut at = offset;
    std::iter::from_fn(move || {
        let start = at;
        let left = end - start;
        let some = match u64::from(longest) {
            longest if left <= longest => left,
            longest => (start + longest) / CUT * CUT - start,
        };
        at += some;
        (some > 0).then(|| (start, u32::try_from(some).expect("a part of a u32")))
    })
}

fn usize_of(len: u32) -> usize {
    usize::try_from(len).expect("a u32 fits into a usize on the supported hosts")
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::unix::net::UnixStream, time::Duration};

    use ebbtide_volume::{Accounting, Array, AtomicUnit, Durability, Limits, Nanos, RateLimit};
    use proptest::prelude::*;

    use super::*;
    use crate::{
        clock::ManualClock,
        engine::{LiveOptions, LiveVolume},
        nbd::NbdOptions,
        store::{StoreOptions, VolumeStore},
        transport::nbd::wire::chunk,
    };

    const SIZE: u64 = 4 << 20;

    /// A volume that lets its first read of a second pass and holds the next one back.
    fn one_read_a_second(dir: &std::path::Path, clock: &Arc<ManualClock>) -> Arc<LiveVolume> {
        let store = VolumeStore::open(dir, StoreOptions::default()).unwrap();
        store.create_volume("vol", SIZE, serde_json::Value::Null).unwrap();
        let limits = Limits {
            iops: Some(RateLimit::flat(1)),
            accounting: Accounting { unit_bytes: 4 << 20, ..Accounting::per_io() },
            durability: Durability { atomic_unit: AtomicUnit::SixteenKib, volatile_cache_bytes: 0 },
            ..Limits::unlimited(SIZE)
        };
        let array = Array::single(limits, Nanos::from_secs(1_780_000_000)).unwrap();
        let mut options = LiveOptions::new("vol", array, store.open_volume("vol").unwrap(), 7);
        options.clock = Arc::<ManualClock>::clone(clock);
        LiveVolume::start(options).unwrap()
    }

    /// Kind and flags of every chunk in a stream of structured replies.
    fn chunks(mut bytes: &[u8]) -> Vec<(u16, u16)> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let short = |at: usize| u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap());
            let len = u32::from_be_bytes(bytes[16..20].try_into().unwrap());
            found.push((short(6), short(4)));
            bytes = &bytes[20 + usize_of(len)..];
        }
        found
    }

    #[test]
    fn the_end_of_a_reply_does_not_overtake_a_chunk_that_waits_on_the_readers_thread() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(Nanos::from_secs(1_780_000_000)));
        let volume = one_read_a_second(dir.path(), &clock);
        let (client, server) = UnixStream::pair().unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let socket = OwnedFd::from(server);
        let mut input = Input::new(socket.try_clone().unwrap(), usize_of(DATA_PIECE));
        let connection = Arc::new(Connection {
            hub: Arc::new(Hub::new(Arc::clone(&volume), NbdOptions::new("vol"))),
            replies: Arc::new(ReplySender::new(
                Output::new(socket, Cost { requests: 16, bytes: 8 << 20 }),
                true,
            )),
            session: Session { structured: true, contexts: Vec::new() },
            bounds: Bounds { size: SIZE, block: 512, structured: true, contexts: false },
        });
        // Two pieces of zeroes, each a chunk that is short enough to be batched.
        let header = RequestHeader { flags: 0, command: Command::Read, cookie: 9, offset: 0, len: 2 << 20 };
        connection.handle(header, &mut input).unwrap();
        assert_eq!(volume.in_flight(), 1, "the first piece passes and the second waits");
        clock.advance(Nanos::from_secs(10));
        thread::scope(|scope| scope.spawn(|| volume.run_due()).join().unwrap());
        connection.replies.flush_batch();
        connection.replies.output().shut(std::net::Shutdown::Write);
        let mut bytes = Vec::new();
        (&client).read_to_end(&mut bytes).unwrap();
        assert_eq!(chunks(&bytes), [(chunk::OFFSET_HOLE, 0), (chunk::OFFSET_HOLE, 0), (chunk::NONE, 1)]);
    }

    #[test]
    fn a_short_request_stays_whole_whatever_its_alignment() {
        assert_eq!(pieces(512, 1 << 20, 1 << 20).collect::<Vec<_>>(), [(512, 1 << 20)]);
        assert_eq!(pieces(512, 0, 1 << 20).count(), 0);
    }

    proptest! {
        #[test]
        fn pieces_cover_a_request_without_gaps_and_are_cut_between_atomic_units(
            block in 0..1_u64 << 40, len in 0..=u32::MAX / 512, longest in prop_oneof![Just(DATA_PIECE), Just(ZERO_PIECE)]
        ) {
            let (offset, len) = (block * 512, len * 512);
            let mut at = offset;
            for (start, some) in pieces(offset, len, longest) {
                prop_assert_eq!(start, at);
                prop_assert!(some > 0 && some <= longest);
                prop_assert!(start == offset || start % CUT == 0);
                at += u64::from(some);
            }
            prop_assert_eq!(at, offset + u64::from(len));
        }
    }
}
