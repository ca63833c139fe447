//! The negotiation: fixed newstyle option haggling as a pure state machine.
//!
//! Bytes come in through [`Negotiation::client_flags`] and [`Negotiation::option`], replies are
//! appended to a buffer, and [`Next`] is how to go on. No socket is touched here.

use super::status::{Context, ContextKind};
use crate::transport::nbd::wire::{
    FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, INIT_MAGIC, MAX_PAYLOAD, MAX_STRING, OPTION_MAGIC,
    OPTION_REPLY_MAGIC, flag,
};

const OPT_EXPORT_NAME: u32 = 1;
const OPT_ABORT: u32 = 2;
const OPT_LIST: u32 = 3;
const OPT_STARTTLS: u32 = 5;
const OPT_INFO: u32 = 6;
const OPT_GO: u32 = 7;
const OPT_STRUCTURED_REPLY: u32 = 8;
const OPT_LIST_META_CONTEXT: u32 = 9;
const OPT_SET_META_CONTEXT: u32 = 10;

const REP_ACK: u32 = 1;
const REP_SERVER: u32 = 2;
const REP_INFO: u32 = 3;
const REP_META_CONTEXT: u32 = 4;
const REP_ERR_UNSUP: u32 = (1 << 31) + 1;
const REP_ERR_POLICY: u32 = (1 << 31) + 2;
const REP_ERR_INVALID: u32 = (1 << 31) + 3;
const REP_ERR_UNKNOWN: u32 = (1 << 31) + 6;
const REP_ERR_TOO_BIG: u32 = (1 << 31) + 9;

const INFO_EXPORT: u16 = 0;
const INFO_NAME: u16 = 1;
const INFO_DESCRIPTION: u16 = 2;
const INFO_BLOCK_SIZE: u16 = 3;

/// The longest option that is looked at: a name and a dozen queries of full length. A longer one
/// is answered with "too big", and its data are skipped.
pub(super) const MAX_OPTION: u32 = 64 << 10;

/// An option so long that the connection ends rather than that its data are skipped.
pub(super) const MAX_SKIPPED_OPTION: u32 = 1 << 20;

/// Metadata contexts that one connection may select; each costs a walk per block status.
const MAX_CONTEXTS: usize = 16;

/// What a server offers.
#[derive(Debug, Clone)]
pub(super) struct Export {
    /// The export's name; the empty name represents it too.
    pub(super) name: String,
    /// A sentence for people.
    pub(super) description: String,
    /// Bytes.
    pub(super) size: u64,
    /// Smallest unit of offsets and lengths, in bytes.
    pub(super) block: u32,
    /// Unit below which a write costs a read as well, in bytes.
    pub(super) preferred: u32,
    /// Whether the volume is a spinning disk.
    pub(super) rotational: bool,
}

impl Export {
    const fn flags(&self, structured: bool) -> u16 {
        use flag::{
            CAN_MULTI_CONN, HAS_FLAGS, ROTATIONAL, SEND_DF, SEND_FAST_ZERO, SEND_FLUSH, SEND_FUA, SEND_TRIM,
            SEND_WRITE_ZEROES,
        };
        let always = HAS_FLAGS
            | SEND_FLUSH
            | SEND_FUA
            | SEND_TRIM
            | SEND_WRITE_ZEROES
            | SEND_FAST_ZERO
            | CAN_MULTI_CONN;
        always | if structured { SEND_DF } else { 0 } | if self.rotational { ROTATIONAL } else { 0 }
    }

    fn is(&self, name: &str) -> bool {
        name.is_empty() || name == self.name
    }
}

/// The snapshots about which "changed since" can be asked.
pub(super) trait SnapshotNames {
    /// All of them.
    fn list(&self) -> Vec<String>;
    /// Whether this is one.
    fn has(&self, name: &str) -> bool;
}

/// What both sides agreed on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Session {
    /// Replies to reads come in chunks.
    pub(super) structured: bool,
    /// The contexts that block status reports, with their ids.
    pub(super) contexts: Vec<Context>,
}

/// How the connection goes on after an option.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// With another option.
    Option,
    /// With the transmission phase.
    Transmit(Session),
    /// Not at all, once the replies are sent.
    Close,
}

/// The state of one connection's negotiation.
#[derive(Debug)]
pub(super) struct Negotiation<'a> {
    export: &'a Export,
    fixed: bool,
    zeroes: bool,
    session: Session,
}

/// The server's opening message.
pub(super) fn greeting() -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..8].copy_from_slice(&INIT_MAGIC.to_be_bytes());
    bytes[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
    bytes[16..].copy_from_slice(&(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
    bytes
}

/// Reads an option's header into its number and length; `None` where the magic is wrong.
pub(super) fn option_header(bytes: &[u8; 16]) -> Option<(u32, u32)> {
    let (magic, rest) = bytes.split_first_chunk::<8>().expect("16 bytes hold 8");
    let mut rest = Reader(rest);
    let (option, len) = (rest.u32().expect("8 bytes are left"), rest.u32().expect("4 bytes are left"));
    (u64::from_be_bytes(*magic) == OPTION_MAGIC).then_some((option, len))
}

impl<'a> Negotiation<'a> {
    pub(super) fn new(export: &'a Export) -> Self {
        Self { export, fixed: false, zeroes: true, session: Session::default() }
    }

    /// Takes the client's flags; `false` where the connection must end, because the client set a
    /// flag that it was not offered.
    #[must_use]
    pub(super) fn client_flags(&mut self, flags: u32) -> bool {
        self.fixed = flags & u32::from(FLAG_FIXED_NEWSTYLE) != 0;
        self.zeroes = flags & u32::from(FLAG_NO_ZEROES) == 0;
        flags & !u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES) == 0
    }

    /// Refuses an option whose data are longer than [`MAX_OPTION`] (and are not here).
    pub(super) fn too_long(&self, option: u32, len: u32, out: &mut Vec<u8>) -> Next {
        if option == OPT_EXPORT_NAME || !self.fixed {
            return Next::Close;
        }
        if option == OPT_ABORT {
            reply(out, option, REP_ACK, &[]);
            return Next::Close;
        }
        let why = format!("{len} bytes of option data; at most {MAX_OPTION} are read");
        reply(out, option, REP_ERR_TOO_BIG, why.as_bytes());
        Next::Option
    }

    /// Answers one option.
    pub(super) fn option(
        &mut self,
        option: u32,
        data: &[u8],
        snapshots: &dyn SnapshotNames,
        out: &mut Vec<u8>,
    ) -> Next {
        if !self.fixed && option != OPT_EXPORT_NAME {
            return Next::Close;
        }
        match option {
            OPT_EXPORT_NAME => return self.export_name(data, out),
            OPT_ABORT => {
                reply(out, option, REP_ACK, &[]);
                return Next::Close;
            }
            OPT_GO => return self.go(data, out),
            OPT_INFO => {
                self.info(option, data, out);
            }
            OPT_LIST => self.list(data, out),
            OPT_STARTTLS if !data.is_empty() => invalid(out, option, "STARTTLS takes no data"),
            OPT_STARTTLS => {
                let why = b"this server has no TLS; it listens on a local socket, or behind a tunnel";
                reply(out, option, REP_ERR_POLICY, why);
            }
            OPT_STRUCTURED_REPLY if !data.is_empty() => {
                invalid(out, option, "STRUCTURED_REPLY takes no data")
            }
            OPT_STRUCTURED_REPLY => {
                self.session.structured = true;
                reply(out, option, REP_ACK, &[]);
            }
            OPT_LIST_META_CONTEXT => self.list_contexts(data, snapshots, out),
            OPT_SET_META_CONTEXT => self.set_contexts(data, snapshots, out),
            _ => reply(out, option, REP_ERR_UNSUP, b"this server does not know the option"),
        }
        Next::Option
    }

    fn export_name(&mut self, data: &[u8], out: &mut Vec<u8>) -> Next {
        if !std::str::from_utf8(data).is_ok_and(|name| self.export.is(name)) {
            return Next::Close;
        }
        out.extend_from_slice(&self.export.size.to_be_bytes());
        out.extend_from_slice(&self.export.flags(self.session.structured).to_be_bytes());
        if self.zeroes {
            out.extend_from_slice(&[0; 124]);
        }
        Next::Transmit(std::mem::take(&mut self.session))
    }

    fn go(&mut self, data: &[u8], out: &mut Vec<u8>) -> Next {
        if self.info(OPT_GO, data, out) {
            Next::Transmit(std::mem::take(&mut self.session))
        } else {
            Next::Option
        }
    }

    /// Answers INFO or GO, and returns whether the answer was yes.
    fn info(&self, option: u32, data: &[u8], out: &mut Vec<u8>) -> bool {
        let mut reader = Reader(data);
        let Some((name, wanted)) = reader.string().and_then(|name| Some((name, reader.info_requests()?)))
        else {
            invalid(out, option, "the name or the list of wanted information does not fit its length");
            return false;
        };
        if !self.export.is(name) {
            self.unknown(option, name, out);
            return false;
        }
        let export = self.export;
        let mut info = |kind: u16, payload: &[&[u8]]| {
            let mut data = kind.to_be_bytes().to_vec();
            payload.iter().for_each(|part| data.extend_from_slice(part));
            reply(out, option, REP_INFO, &data);
        };
        info(
            INFO_EXPORT,
            &[&export.size.to_be_bytes(), &export.flags(self.session.structured).to_be_bytes()],
        );
        // Sent unasked too: a client that knows them keeps to them, the others ignore them.
        let sizes = [export.block, export.preferred, MAX_PAYLOAD].map(u32::to_be_bytes);
        info(INFO_BLOCK_SIZE, &[&sizes.concat()]);
        if wanted.contains(&INFO_NAME) {
            info(INFO_NAME, &[export.name.as_bytes()]);
        }
        if wanted.contains(&INFO_DESCRIPTION) {
            info(INFO_DESCRIPTION, &[export.description.as_bytes()]);
        }
        reply(out, option, REP_ACK, &[]);
        true
    }

    fn list(&self, data: &[u8], out: &mut Vec<u8>) {
        if !data.is_empty() {
            return invalid(out, OPT_LIST, "LIST takes no data");
        }
        let mut payload = string(&self.export.name);
        payload.extend_from_slice(self.export.description.as_bytes());
        reply(out, OPT_LIST, REP_SERVER, &payload);
        reply(out, OPT_LIST, REP_ACK, &[]);
    }

    fn list_contexts(&self, data: &[u8], snapshots: &dyn SnapshotNames, out: &mut Vec<u8>) {
        let Some(queries) = self.queries(OPT_LIST_META_CONTEXT, data, out) else { return };
        let all = std::iter::once(ContextKind::Allocation)
            .chain(snapshots.list().into_iter().map(|snapshot| ContextKind::Dirty { snapshot }));
        for kind in all {
            let name = kind.name();
            if queries.is_empty() || queries.iter().any(|query| lists(query, &name)) {
                reply_context(out, OPT_LIST_META_CONTEXT, 0, &name);
            }
        }
        reply(out, OPT_LIST_META_CONTEXT, REP_ACK, &[]);
    }

    fn set_contexts(&mut self, data: &[u8], snapshots: &dyn SnapshotNames, out: &mut Vec<u8>) {
        self.session.contexts.clear();
        let Some(queries) = self.queries(OPT_SET_META_CONTEXT, data, out) else { return };
        let mut chosen: Vec<ContextKind> = Vec::new();
        for query in queries {
            if let Some(kind) = ContextKind::parse(query, |name| snapshots.has(name))
                && !chosen.contains(&kind)
            {
                chosen.push(kind);
            }
        }
        if chosen.len() > MAX_CONTEXTS {
            let why = format!("{} contexts selected; at most {MAX_CONTEXTS} are reported", chosen.len());
            return reply(out, OPT_SET_META_CONTEXT, REP_ERR_TOO_BIG, why.as_bytes());
        }
        for (id, kind) in (1..).zip(chosen) {
            reply_context(out, OPT_SET_META_CONTEXT, id, &kind.name());
            self.session.contexts.push(Context { id, kind });
        }
        reply(out, OPT_SET_META_CONTEXT, REP_ACK, &[]);
    }

    /// The queries of a metadata option, or `None` after an error was answered.
    fn queries<'d>(&self, option: u32, data: &'d [u8], out: &mut Vec<u8>) -> Option<Vec<&'d str>> {
        if !self.session.structured {
            invalid(out, option, "metadata contexts need structured replies to be agreed first");
            return None;
        }
        let mut reader = Reader(data);
        let Some((name, queries)) = reader.string().and_then(|name| Some((name, reader.queries()?))) else {
            invalid(out, option, "the name or a query does not fit its length");
            return None;
        };
        if !self.export.is(name) {
            self.unknown(option, name, out);
            return None;
        }
        if let Some(query) = queries.iter().find(|query| !query.contains(':')) {
            invalid(out, option, &format!("the query {query:?} has no namespace, as base: would be"));
            return None;
        }
        Some(queries)
    }

    fn unknown(&self, option: u32, name: &str, out: &mut Vec<u8>) {
        let why = format!("no export {name:?} here; this server has {:?}", self.export.name);
        reply(out, option, REP_ERR_UNKNOWN, why.as_bytes());
    }
}

/// Whether a query of LIST_META_CONTEXT asks for this context: by its name, or by a namespace
/// (and, for `qemu:dirty-bitmap:`, a longer start) that ends in a colon.
fn lists(query: &str, name: &str) -> bool {
    query == name || query.ends_with(':') && name.starts_with(query)
}

fn string(text: &str) -> Vec<u8> {
    let len = u32::try_from(text.len()).expect("an export's name is short");
    [&len.to_be_bytes()[..], text.as_bytes()].concat()
}

fn reply_context(out: &mut Vec<u8>, option: u32, id: u32, name: &str) {
    reply(out, option, REP_META_CONTEXT, &[&id.to_be_bytes()[..], name.as_bytes()].concat());
}

fn invalid(out: &mut Vec<u8>, option: u32, why: &str) {
    reply(out, option, REP_ERR_INVALID, why.as_bytes());
}

fn reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    let data = &data[..data.len().min(MAX_STRING + 64)];
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&u32::try_from(data.len()).expect("cut above").to_be_bytes());
    out.extend_from_slice(data);
}

/// Takes fields off the front of an option's data.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }

    fn string(&mut self) -> Option<&'a str> {
        let len = usize::try_from(self.u32()?).ok().filter(|&len| len <= MAX_STRING)?;
        std::str::from_utf8(self.bytes(len)?).ok()
    }

    /// A counted list that ends with the data.
    fn info_requests(&mut self) -> Option<Vec<u16>> {
        let count = usize::from(self.u16()?);
        (self.0.len() == 2 * count).then(|| std::iter::from_fn(|| self.u16()).collect())
    }

    /// A counted list of strings that ends with the data. The count is not trusted for a
    /// reservation: each query takes four bytes of data at least.
    fn queries(&mut self) -> Option<Vec<&'a str>> {
        let count = usize::try_from(self.u32()?).ok().filter(|&count| count <= self.0.len() / 4)?;
        let queries: Vec<_> = (0..count).map(|_| self.string()).collect::<Option<_>>()?;
        self.0.is_empty().then_some(queries)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Names for the taking.
    struct Known(&'static [&'static str]);

    impl SnapshotNames for Known {
        fn list(&self) -> Vec<String> {
            self.0.iter().map(|&name| name.to_owned()).collect()
        }

        fn has(&self, name: &str) -> bool {
            self.0.contains(&name)
        }
    }

    fn export() -> Export {
        Export {
            name: "vol".into(),
            description: "a volume".into(),
            size: 1 << 30,
            block: 512,
            preferred: 4096,
            rotational: false,
        }
    }

    /// Sends options to a fresh negotiation and returns the reply kinds of the last, and the end.
    fn haggle(options: &[(u32, Vec<u8>)]) -> (Vec<(u32, Vec<u8>)>, Next) {
        let export = export();
        let mut negotiation = Negotiation::new(&export);
        assert!(negotiation.client_flags(3));
        let snapshots = Known(&["monday", "tuesday"]);
        let mut last = (Vec::new(), Next::Option);
        for (option, data) in options {
            let mut out = Vec::new();
            let next = negotiation.option(*option, data, &snapshots, &mut out);
            last = (if *option == OPT_EXPORT_NAME { vec![(0, out)] } else { replies(*option, &out) }, next);
        }
        last
    }

    fn replies(option: u32, mut out: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut found = Vec::new();
        while !out.is_empty() {
            assert_eq!(out[..8], OPTION_REPLY_MAGIC.to_be_bytes());
            assert_eq!(out[8..12], option.to_be_bytes());
            let kind = u32::from_be_bytes(out[12..16].try_into().unwrap());
            let len = usize::try_from(u32::from_be_bytes(out[16..20].try_into().unwrap())).unwrap();
            found.push((kind, out[20..20 + len].to_vec()));
            out = &out[20 + len..];
        }
        found
    }

    fn go(name: &str, wanted: &[u16]) -> Vec<u8> {
        let mut data = string(name);
        data.extend_from_slice(&u16::try_from(wanted.len()).unwrap().to_be_bytes());
        wanted.iter().for_each(|kind| data.extend_from_slice(&kind.to_be_bytes()));
        data
    }

    fn meta(name: &str, queries: &[&str]) -> Vec<u8> {
        let mut data = string(name);
        data.extend_from_slice(&u32::try_from(queries.len()).unwrap().to_be_bytes());
        queries.iter().for_each(|query| data.extend_from_slice(&string(query)));
        data
    }

    fn kinds(replies: &[(u32, Vec<u8>)]) -> Vec<u32> {
        replies.iter().map(|(kind, _)| *kind).collect()
    }

    #[test]
    fn go_answers_with_size_flags_and_block_sizes_and_enters_transmission() {
        let (replies, next) = haggle(&[(OPT_GO, go("vol", &[INFO_NAME, INFO_DESCRIPTION, 77]))]);
        assert_eq!(next, Next::Transmit(Session::default()));
        assert_eq!(kinds(&replies), [REP_INFO, REP_INFO, REP_INFO, REP_INFO, REP_ACK]);
        assert_eq!(replies[0].1[2..10], (1_u64 << 30).to_be_bytes());
        let flags = u16::from_be_bytes(replies[0].1[10..12].try_into().unwrap());
        assert_eq!(flags & flag::SEND_DF, 0, "DF is offered after structured replies only");
        assert_ne!(flags & flag::CAN_MULTI_CONN, 0);
        assert_eq!(replies[1].1, [0, 3, 0, 0, 2, 0, 0, 0, 16, 0, 2, 0, 0, 0]);
        assert_eq!(replies[2].1[2..], *b"vol");
    }

    #[test]
    fn structured_replies_offer_unfragmented_reads() {
        let (replies, next) = haggle(&[(OPT_STRUCTURED_REPLY, vec![]), (OPT_GO, go("", &[]))]);
        assert!(matches!(next, Next::Transmit(session) if session.structured));
        let flags = u16::from_be_bytes(replies[0].1[10..12].try_into().unwrap());
        assert_ne!(flags & flag::SEND_DF, 0);
    }

    #[test]
    fn a_wrong_name_is_unknown_and_the_haggling_goes_on() {
        for option in [OPT_INFO, OPT_GO] {
            let (replies, next) = haggle(&[(option, go("other", &[]))]);
            assert_eq!((kinds(&replies), next), (vec![REP_ERR_UNKNOWN], Next::Option));
        }
        assert_eq!(haggle(&[(OPT_EXPORT_NAME, b"other".to_vec())]).1, Next::Close);
    }

    #[test]
    fn the_old_export_name_gets_its_zeroes_unless_the_client_waived_them() {
        let export = export();
        for (flags, len) in [(1, 134), (3, 10)] {
            let mut negotiation = Negotiation::new(&export);
            assert!(negotiation.client_flags(flags));
            let mut out = Vec::new();
            let next = negotiation.option(OPT_EXPORT_NAME, b"vol", &Known(&[]), &mut out);
            assert_eq!((next, out.len()), (Next::Transmit(Session::default()), len));
        }
    }

    #[test]
    fn an_old_client_may_only_name_an_export_and_an_unknown_flag_ends_it() {
        let export = export();
        let mut negotiation = Negotiation::new(&export);
        assert!(negotiation.client_flags(0));
        assert_eq!(negotiation.option(OPT_LIST, &[], &Known(&[]), &mut Vec::new()), Next::Close);
        assert!(!negotiation.client_flags(4));
    }

    #[test]
    fn tls_is_refused_by_policy_and_unknown_options_as_unsupported() {
        for (option, data, kind) in [
            (OPT_STARTTLS, vec![], REP_ERR_POLICY),
            (OPT_STARTTLS, vec![1], REP_ERR_INVALID),
            (4, vec![], REP_ERR_UNSUP),
            (11, vec![], REP_ERR_UNSUP),
            (u32::MAX, vec![9; 100], REP_ERR_UNSUP),
            (OPT_LIST, vec![1], REP_ERR_INVALID),
            (OPT_STRUCTURED_REPLY, vec![1], REP_ERR_INVALID),
        ] {
            let (replies, next) = haggle(&[(option, data)]);
            assert_eq!((kinds(&replies), next), (vec![kind], Next::Option), "option {option}");
        }
        assert_eq!(haggle(&[(OPT_ABORT, vec![1, 2])]).1, Next::Close);
    }

    #[test]
    fn the_export_is_listed_with_its_description() {
        let (replies, _) = haggle(&[(OPT_LIST, vec![])]);
        assert_eq!(kinds(&replies), [REP_SERVER, REP_ACK]);
        assert_eq!(replies[0].1, b"\0\0\0\x03vola volume");
    }

    #[test]
    fn contexts_are_listed_by_name_by_namespace_or_all() {
        let listed = |queries: &[&str]| {
            let (replies, _) =
                haggle(&[(OPT_STRUCTURED_REPLY, vec![]), (OPT_LIST_META_CONTEXT, meta("vol", queries))]);
            let names: Vec<_> = replies
                .iter()
                .filter(|(kind, _)| *kind == REP_META_CONTEXT)
                .map(|(_, data)| String::from_utf8(data[4..].to_vec()).unwrap())
                .collect();
            names
        };
        assert_eq!(listed(&[]), ["base:allocation", "qemu:dirty-bitmap:monday", "qemu:dirty-bitmap:tuesday"]);
        assert_eq!(listed(&["base:"]), ["base:allocation"]);
        assert_eq!(listed(&["qemu:dirty-bitmap:"]).len(), 2);
        assert_eq!(listed(&["qemu:", "base:allocation", "x-y:z"]).len(), 3);
        assert_eq!(listed(&["qemu:dirty-bitmap:mon"]).len(), 0);
    }

    #[test]
    fn selecting_contexts_replaces_the_selection_even_where_it_fails() {
        let select = |data| (OPT_SET_META_CONTEXT, data);
        let both = meta("vol", &["base:allocation", "qemu:dirty-bitmap:monday", "base:allocation"]);
        let start = (OPT_STRUCTURED_REPLY, vec![]);
        let session = |options: &[_]| match haggle(options).1 {
            Next::Transmit(session) => session.contexts,
            other => panic!("{other:?}"),
        };
        let end = (OPT_GO, go("", &[]));
        let ids: Vec<_> = session(&[start.clone(), select(both.clone()), end.clone()])
            .into_iter()
            .map(|context| (context.id, context.kind.name()))
            .collect();
        assert_eq!(ids, [(1, "base:allocation".to_owned()), (2, "qemu:dirty-bitmap:monday".to_owned())]);
        for failing in [meta("other", &["base:allocation"]), vec![0, 0], meta("vol", &["noname"])] {
            let options = [start.clone(), select(both.clone()), select(failing), end.clone()];
            assert_eq!(session(&options), []);
        }
        for wildcard in ["base:", "qemu:dirty-bitmap:", "qemu:dirty-bitmap:friday", "base:other"] {
            assert_eq!(session(&[start.clone(), select(meta("", &[wildcard])), end.clone()]), []);
        }
    }

    #[test]
    fn contexts_before_structured_replies_are_invalid() {
        for option in [OPT_LIST_META_CONTEXT, OPT_SET_META_CONTEXT] {
            let (replies, _) = haggle(&[(option, meta("vol", &["base:allocation"]))]);
            assert_eq!(kinds(&replies), [REP_ERR_INVALID]);
        }
    }

    #[test]
    fn wrong_lengths_are_invalid_and_reserve_nothing() {
        let mut lying = string("vol");
        lying.extend_from_slice(&u32::MAX.to_be_bytes());
        let options = [(OPT_STRUCTURED_REPLY, vec![]), (OPT_SET_META_CONTEXT, lying)];
        assert_eq!(kinds(&haggle(&options).0), [REP_ERR_INVALID]);
        let mut trailing = go("vol", &[]);
        trailing.push(0);
        assert_eq!(kinds(&haggle(&[(OPT_GO, trailing)]).0), [REP_ERR_INVALID]);
        assert_eq!(kinds(&haggle(&[(OPT_GO, vec![255; 6])]).0), [REP_ERR_INVALID]);
    }

    proptest! {
        #[test]
        fn any_option_is_answered_with_whole_replies(options in proptest::collection::vec((0..14_u32, proptest::collection::vec(any::<u8>(), 0..80)), 1..6)) {
            let export = export();
            let mut negotiation = Negotiation::new(&export);
            prop_assert!(negotiation.client_flags(3));
            for (option, data) in options {
                let mut out = Vec::new();
                let next = negotiation.option(option, &data, &Known(&["s"]), &mut out);
                if option == OPT_EXPORT_NAME {
                    prop_assert!(next != Next::Option);
                } else {
                    prop_assert!(!replies(option, &out).is_empty());
                }
                if next != Next::Option {
                    break;
                }
            }
        }
    }
}
