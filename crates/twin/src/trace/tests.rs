//! Each format, the order of requests, and damage.

use std::io;

use ebbtide_volume::{Io, Nanos, Op};

use super::{Device, Format, Options, Record, Trace, TraceError, Unbatched};

fn read(text: &[u8], options: &Options) -> Result<Vec<Record>, TraceError> {
    Trace::open(text, options)?.collect()
}

fn record(at: u64, op: Op, offset: u64, len: u32) -> Record {
    Record { at: Nanos(at), io: Io { op, offset, len }, client: 0, latency: None }
}

const MS: u64 = 1_000_000;

/// A trace of each text format with the same two requests: a read of 8 KiB at 4 KiB, and 2 ms later (Tencent: 2 s) a write of
/// 4 KiB at 1 MiB.
const TEXTS: [(Format, &str); 10] = [
    (
        Format::Blkparse,
        "259,0 1 1 0.001000000 7 D R 8 + 16 [mariadbd]\n259,0 1 2 0.003000000 7 D WS 2048 + 8 [mariadbd]\nCPU1 (259,0):\n Reads Queued: 1\n",
    ),
    (
        Format::Biosnoop,
        "TIME(s)     COMM           PID    DISK      T SECTOR     BYTES  LAT(ms)\n0.002000    my sql d       7      nvme1n1   R 8          8192      1.000\n0.003500    mysqld         7      nvme1n1   W 2048       4096      0.500\n",
    ),
    (
        Format::Msr,
        "128166372003061629,usr,0,Read,4096,8192,10000\n128166372003081629,usr,0,Write,1048576,4096,5000\n",
    ),
    (Format::Alibaba, "419,R,4096,8192,1577808000000046\n419,W,1048576,4096,1577808000002046\n"),
    (Format::Tencent, "1538323200,8,16,0,1283\n1538323202,2048,8,1,1283\n"),
    (
        Format::Systor,
        "Timestamp,Response,IOType,LUN,Offset,Size\n1455592007.001000000,0.001000000,R,1,4096,8192\n1455592007.002,,,1,0,0\n1455592007.003000000,0.000500000,W,1,1048576,4096\n",
    ),
    (
        Format::Fiu,
        "89967404000000 4892 my proc 8 16 R 6 0 531e779\n89967406000000 4892 syslogd 2048 8 W 6 0 4fd0c43\n",
    ),
    (Format::Spc, "0,8,8192,R,0.001\n0,2048,4096,w,0.003\n"),
    (Format::DiskSim, "1.0 0 8 16 1\n3.0 0 2048 8 0\n"),
    (
        Format::Iolog,
        "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x read 4096 8192\n/dev/x wait 2\n/dev/x write 1048576 4096\n/dev/x close\n",
    ),
];

#[test]
fn every_text_format_is_known_and_read() {
    for (format, text) in TEXTS {
        assert_eq!(Format::of(text.as_bytes()), Some(format), "{text}");
        let all =
            read(text.as_bytes(), &Options::default()).unwrap_or_else(|error| panic!("{format}: {error}"));
        let gap = if format == Format::Tencent { 1_000 * 2 * MS } else { 2 * MS };
        let plain: Vec<Record> = all.iter().map(|one| Record { client: 0, latency: None, ..*one }).collect();
        assert_eq!(
            plain,
            [record(0, Op::Read, 4096, 8192), record(gap, Op::Write, 1 << 20, 4096)],
            "{format}"
        );
        let answered = matches!(format, Format::Biosnoop | Format::Msr | Format::Systor);
        let latencies = all.iter().map(|one| one.latency).collect::<Vec<_>>();
        let wanted = if answered { [Some(Nanos(MS)), Some(Nanos(MS / 2))] } else { [None; 2] };
        assert_eq!(latencies, wanted, "{format}");
        let named = matches!(format, Format::Blkparse | Format::Biosnoop | Format::Fiu);
        assert_eq!(all[0].client != 0, named, "{format}");
        assert_eq!(format.name().parse(), Ok(format));
    }
}

#[test]
fn fios_third_version_has_the_time_in_each_line_and_flushes() {
    let text =
        "fio version 3 iolog\n10 f add\n10 f open\n1000 f read 0 512\n3000 f datasync\n4000 f trim 0 512\n";
    let wanted = [record(0, Op::Read, 0, 512), record(2 * MS, Op::Flush, 0, 0)];
    assert_eq!(read(text.as_bytes(), &Options::default()).unwrap(), wanted);
    let options = Options { unit_ns: Some(MS), ..Options::default() };
    assert_eq!(read(text.as_bytes(), &options).unwrap()[1].at, Nanos(2_000 * MS));
}

/// An event of blktrace with a payload of three bytes.
fn event(swapped: bool, time: u64, sector: u64, bytes: u32, action: u32) -> Vec<u8> {
    let long = |value: u64| if swapped { value.to_be_bytes() } else { value.to_le_bytes() };
    let word = |value: u32| if swapped { value.to_be_bytes() } else { value.to_le_bytes() };
    let short = |value: u16| if swapped { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut all = Vec::new();
    all.extend(word(0x6561_7407));
    all.extend(word(1));
    all.extend(long(time));
    all.extend(long(sector));
    for value in [bytes, action, 7, (259 << 20) | 1, 0] {
        all.extend(word(value));
    }
    all.extend(short(0));
    all.extend(short(3));
    all.extend(b"abc");
    all
}

const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;

#[test]
fn events_are_read_in_either_byte_order_and_joined_with_their_answers() {
    for swapped in [false, true] {
        let all = [
            event(swapped, 1_000, 8, 4096, READ | QUEUE),
            event(swapped, 2_000, 8, 4096, READ | ISSUE),
            event(swapped, 3_000, 16, 512, WRITE | ISSUE),
            event(swapped, 3_500, 0, 0, WRITE | FLUSH | ISSUE),
            event(swapped, 5_000, 8, 4096, READ | COMPLETE),
        ]
        .concat();
        let read = read(&all, &Options::default()).unwrap();
        let wanted = [
            Record { client: 7, latency: Some(Nanos(3_000)), ..record(0, Op::Read, 4096, 4096) },
            Record { client: 7, ..record(1_000, Op::Write, 8192, 512) },
            Record { client: 7, ..record(1_500, Op::Flush, 0, 0) },
        ];
        assert_eq!(read, wanted);
    }
}

#[test]
fn a_device_made_of_others_has_queued_requests_alone() {
    let text = "253,0 1 1 0.001 7 Q R 8 + 16 [a]\n253,0 1 2 0.002 7 C R 8 + 16 [0]\n";
    let all = read(text.as_bytes(), &Options::default()).unwrap();
    assert_eq!(all, [Record { client: 7, latency: Some(Nanos(MS)), ..record(0, Op::Read, 4096, 8192) }]);
}

#[test]
fn requests_out_of_order_are_put_in_order() {
    let text = "0,0,512,R,0.005\n0,1,512,R,0.001\n0,2,512,R,0.009\n0,3,512,R,0.005\n";
    let all = read(text.as_bytes(), &Options::default()).unwrap();
    let order: Vec<(u64, u64)> = all.iter().map(|one| (one.at.0 / MS, one.io.offset / 512)).collect();
    assert_eq!(order, [(0, 1), (4, 0), (4, 3), (8, 2)]);
}

#[test]
fn a_request_that_is_too_late_arrives_when_it_is_read_and_is_counted() {
    let text = "0,0,512,R,1\n0,1,512,R,50\n0,2,512,R,0.5\n0,3,512,R,99\n";
    let mut trace = Trace::open(text.as_bytes(), &Options::default()).unwrap();
    let times: Vec<u64> = trace.by_ref().map(|one| one.unwrap().at.0 / 1_000_000_000).collect();
    assert_eq!(times, [0, 0, 49, 98]);
    assert_eq!((trace.counts().late, trace.counts().requests), (1, 4));
    assert_eq!(trace.counts().bytes, text.len() as u64);
}

#[test]
fn a_second_device_is_refused_unless_one_is_named_or_all_are_wanted() {
    let text = "1,R,0,512,1\n2,R,512,512,2\n1,R,1024,512,3\n";
    let count = |device| {
        let all = read(text.as_bytes(), &Options { device, ..Options::default() });
        all.map(|all| all.len()).map_err(|error| error.to_string())
    };
    let refused = "the trace has requests of several devices, among them 1 and 2".to_owned();
    assert_eq!(count(Device::Only), Err(refused));
    assert_eq!((count(Device::Named("1".into())), count(Device::All)), (Ok(2), Ok(3)));
}

#[test]
fn damage_is_named_with_its_line_its_byte_and_what_was_read_before() {
    let mut trace =
        Trace::open(&b"1,R,0,512,1\n1,R,512\x07,512,2\n1,R,0,512,3\n"[..], &Options::default()).unwrap();
    let error = trace.by_ref().find_map(Result::err).unwrap();
    assert_eq!(
        error.to_string(),
        "line 2 of the trace, at byte 12: expected DEVICE,R|W,OFFSET,LENGTH,MICROSECONDS, found '1,R,512?,512,2'"
    );
    assert!(trace.next().is_none());
    let cut = &event(false, 1, 8, 512, READ | ISSUE)[..40];
    assert!(matches!(read(cut, &Options::default()), Err(TraceError::Event { number: 1, byte: 0, .. })));
    assert!(matches!(read(b"what is this\n", &Options::default()), Err(TraceError::Unknown)));
    assert!(matches!(read(b" \n\n", &Options::default()), Err(TraceError::Empty)));
    for (text, name) in [
        (&b"     usecs               : count     distribution\n 128 -> 255 : 12 |*****|\n"[..], "biolatency"),
        (b"PID     COMM             D MAJ MIN DISK       I/O  Kbytes  AVGms\n", "biotop"),
        (b"COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n", "iosnoop"),
    ] {
        let error = read(text, &Options::default()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    let long = read(b"1,R,0,4294967296,1\n", &Options::default()).unwrap_err();
    assert_eq!(
        long.to_string(),
        "a request of the trace has 4294967296 bytes or ends beyond 2^64; expected at most 4294967295 bytes"
    );
}

#[test]
fn a_line_without_an_end_is_refused_and_does_not_fill_the_memory() {
    let text = [b"1,R,0,512,1\n".to_vec(), vec![b'1'; 1 << 20]].concat();
    let mut input = &text[..];
    let error = Trace::open(&mut input, &Options::default()).unwrap().find_map(Result::err).unwrap();
    assert!(
        matches!(error, TraceError::Line { number: 2, expected: "a line of less than 64 KiB", .. }),
        "{error}"
    );
    assert!(input.len() > text.len() / 2, "{} bytes were left", input.len());
}

/// Gives at most so many bytes at once.
struct Piecemeal<'a>(&'a [u8], usize);

impl io::Read for Piecemeal<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(self.1);
        self.0.read(&mut into[..most])
    }
}

/// Requests, and the message of an error at the end.
fn all_of(records: &mut dyn Iterator<Item = Result<Record, TraceError>>) -> (Vec<Record>, Option<String>) {
    let mut all = Vec::new();
    for record in records {
        match record {
            Ok(record) => all.push(record),
            Err(error) => return (all, Some(error.to_string())),
        }
    }
    (all, None)
}

/// So many requests of blkparse, a millisecond apart, each answered half a millisecond later.
fn many(requests: u64) -> Vec<u8> {
    let line = |n: u64| {
        let (at, sector) = (n as f64 / 1e3, n * 8);
        format!(
            "  8,0 1 {n} {at:.9} 7 D R {sector} + 8 [a]\n8,0\t1 {n} {:.9} 0 C R {sector} + 8 [0]\n",
            at + 0.0005
        )
    };
    (0..requests).map(line).collect::<String>().into_bytes()
}

#[test]
fn it_does_not_matter_in_which_pieces_the_input_comes() {
    let text = many(8_000);
    assert!(text.len() > 1 << 19, "{} bytes are more than a buffer", text.len());
    let events: Vec<u8> = (0..8_000).flat_map(|n| event(false, n * 1_000, n, 4096, READ | ISSUE)).collect();
    for text in [text, events] {
        let whole = all_of(&mut Trace::open(&text[..], &Options::default()).unwrap());
        assert_eq!((whole.0.len(), &whole.1), (8_000, &None));
        for bytes in [1, 13, 4_099] {
            let pieces = Piecemeal(&text, bytes);
            assert!(all_of(&mut Trace::open(pieces, &Options::default()).unwrap()) == whole, "{bytes} bytes");
        }
    }
}

#[test]
fn batches_have_the_same_requests_and_the_error_after_them() {
    let text = [many(20_000), b"8,0 1 1 x 7 D R 8 + 8 [a]\n".to_vec(), many(10)].concat();
    let open = || Trace::open(&text[..], &Options::default()).unwrap();
    let mut alone = open();
    let wanted = all_of(&mut alone);
    assert!(wanted.1.as_ref().is_some_and(|error| error.starts_with("line 40001 ")), "{:?}", wanted.1);
    let mut batched = open();
    assert!(all_of(&mut Unbatched::new(&mut || batched.next_batch())) == wanted);
    assert_eq!(batched.counts(), alone.counts());
    assert_eq!(batched.recorded().at(0.5), alone.recorded().at(0.5));
    assert!(batched.next_batch().is_none());
}

#[test]
fn no_text_however_damaged_makes_it_panic_or_go_on_for_ever() {
    use rand_core::{Rng as _, SeedableRng as _};
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(11);
    println!("seed 11");
    let binary = [event(false, 1, 8, 512, READ | ISSUE), event(false, 9, 8, 512, READ | COMPLETE)].concat();
    let texts = TEXTS.iter().map(|(_, text)| text.as_bytes().to_vec()).chain([binary]);
    for text in texts {
        for _ in 0..300 {
            let mut damaged = text.clone();
            for _ in 0..=random.next_u32() % 4 {
                let place = random.next_u32() as usize % damaged.len();
                match random.next_u32() % 3 {
                    0 => damaged[place] = random.next_u32().to_le_bytes()[0],
                    1 => damaged.truncate(place.max(1)),
                    _ => {
                        let copy = damaged[place..].to_vec();
                        damaged.extend(copy);
                    }
                }
            }
            let read = Trace::open(&damaged[..], &Options { device: Device::All, ..Options::default() });
            let count = read.map_or(0, |trace| trace.take_while(Result::is_ok).count());
            assert!(count <= damaged.len());
        }
    }
}

/// The rows that are not replayed and are requests, by kind.
fn left_out(text: &[u8]) -> (usize, Vec<(String, u64)>) {
    let mut trace = Trace::open(text, &Options { device: Device::All, ..Options::default() }).unwrap();
    let (read, error) = all_of(&mut trace);
    assert_eq!(error, None);
    let read = read.len();
    let kinds = trace.not_used().into_iter().filter(|kind| kind.requests);
    let kinds: Vec<(String, u64)> = kinds.map(|kind| (kind.kind, kind.rows)).collect();
    let all: u64 = trace.not_used().iter().map(|kind| kind.rows).sum();
    assert_eq!(trace.counts().discarded, all);
    (read, kinds)
}

#[test]
fn biosnoop_of_libbpf_tools_has_the_flags_of_the_kernel() {
    let text = include_str!("samples/biosnoop-libbpf.txt");
    let read = read(text.as_bytes(), &Options::default()).unwrap();
    let ops: Vec<Op> = read.iter().map(|record| record.io.op).collect();
    let mut sorted = ops.clone();
    sorted.sort_by_key(|op| match op {
        Op::Read => 0,
        Op::Write => 1,
        _ => 2,
    });
    assert_eq!(sorted, [Op::Read, Op::Write, Op::Write, Op::Write, Op::Flush], "{ops:?}");
    // Each kind that the kernel's blk_fill_rwbs makes, with data.
    let heading = "TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)\n";
    let of = |kind: &str, bytes: u64| {
        let text = format!("{heading}0.5 a b c 7 sda {kind} 8 {bytes} 0.1\n");
        let (_, left) = left_out(text.as_bytes());
        let read = super::tests::read(text.as_bytes(), &Options::default()).unwrap();
        (read.first().map(|record| record.io.op), left.first().map(|(kind, _)| kind.clone()))
    };
    for kind in ["R", "RA", "RM", "RS", "RAM", "RSM", "RF"] {
        assert_eq!(of(kind, 512), (Some(Op::Read), None), "{kind}");
    }
    for kind in ["W", "WS", "WM", "WFS", "FWFS", "FW", "WFSM", "FWS", "WAS"] {
        assert_eq!(of(kind, 512), (Some(Op::Write), None), "{kind}");
    }
    for kind in ["F", "FF", "FN", "FWFS", "FWS"] {
        assert_eq!(of(kind, 0), (Some(Op::Flush), None), "{kind}");
    }
    for (kind, words) in [
        ("D", "discards (D)"),
        ("DS", "discards (DS)"),
        ("N", "requests without data (N)"),
        ("ZA", "operations on zones (ZA)"),
        ("XY", "requests of kind 'XY'"),
    ] {
        assert_eq!(of(kind, 512), (None, Some(words.into())), "{kind}");
    }
    assert_eq!(of("WS", 0), (None, Some("requests without data".into())));
}

#[test]
fn biosnoop_may_have_a_column_of_the_queue_a_pattern_and_the_time_of_the_day() {
    let headings = [
        ("TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)", "0.002", "-1.000 1.000"),
        ("TIME(s) COMM PID DISK T SECTOR BYTES P LAT(ms)", "0.002", "? 1.000"),
        ("TIME(s) COMM PID DISK T SECTOR BYTES P QUE(ms) LAT(ms)", "0.002", "S 0.01 1.000"),
        ("TIMESTAMP    COMM PID DISK T SECTOR BYTES LAT(ms)", "23:59:59.999", "1.000"),
    ];
    for (heading, at, tail) in headings {
        let text = format!("{heading}\n{at} my sql d 7 sda W 8 4096 {tail}\n");
        let read = read(text.as_bytes(), &Options::default()).unwrap();
        assert_eq!((read.len(), read[0].latency), (1, Some(Nanos(MS))), "{heading}");
    }
    // The day ends, and there is a heading within.
    let text = "TIMESTAMP COMM PID DISK T SECTOR BYTES LAT(ms)\n23:59:59.990 a 7 sda W 8 512 1.0\n\
                00:00:00.020 a 7 sda W 16 512 1.0\nTIMESTAMP COMM PID DISK T SECTOR BYTES LAT(ms)\n\
                00:00:00.030 a 7 sda W 16 512 1.0\n";
    let times: Vec<u64> =
        read(text.as_bytes(), &Options::default()).unwrap().iter().map(|one| one.at.0 / MS).collect();
    assert_eq!(times, [0, 30, 40]);
}

#[test]
fn blkparse_of_recorded_files_names_them_first_and_ends_with_summaries() {
    let text = include_str!("samples/blkparse-files.txt");
    let mut trace = Trace::open(text.as_bytes(), &Options::default()).unwrap();
    let read: Vec<Record> = trace.by_ref().map(Result::unwrap).collect();
    let latencies: Vec<u64> = read.iter().map(|one| one.latency.unwrap().0).collect();
    assert_eq!(latencies, [602_000, 469_000]);
    assert_eq!(left_out(text.as_bytes()).1, []);
    // A machine has more processors than the lines by which a format is known.
    let files: String = (0..192).map(|cpu| format!("Input file sda.blktrace.{cpu} added\n")).collect();
    assert_eq!(Format::of((files + text).as_bytes()), Some(Format::Blkparse));
}

#[test]
fn recordings_behind_one_another_are_replayed_behind_one_another() {
    let blkparse = include_str!("samples/blkparse-files.txt");
    let biosnoop = include_str!("samples/biosnoop-libbpf.txt");
    let iolog = "fio version 2 iolog\nf add\nf read 0 512\nf wait 3000 0\nf write 0 512\n";
    for (text, requests) in [(blkparse, 2), (biosnoop, 5), (iolog, 2)] {
        let twice = text.repeat(2);
        let mut trace = Trace::open(twice.as_bytes(), &Options::default()).unwrap();
        let read: Vec<Record> = trace.by_ref().map(Result::unwrap).collect();
        assert_eq!((read.len(), trace.counts().recordings), (requests * 2, 2), "{text}");
        let alone = super::tests::read(text.as_bytes(), &Options::default()).unwrap();
        for (first, second) in alone.iter().zip(&read[requests..]) {
            assert_eq!(second.io, first.io);
            assert!(
                second.at.0 >= alone.last().unwrap().at.0 + first.at.0 && second.latency == first.latency
            );
        }
    }
    // A heading within a recording, whose times go on.
    let heading = biosnoop.lines().next().unwrap();
    let within = biosnoop.lines().flat_map(|line| [line, heading]).collect::<Vec<_>>().join("\n");
    let mut trace = Trace::open(within.as_bytes(), &Options::default()).unwrap();
    assert_eq!((trace.by_ref().count(), trace.counts().recordings), (5, 1));
}

#[test]
fn a_request_that_the_device_did_not_take_counts_when_it_is_issued_again() {
    let text = "8,0 1 1 0.001 7 D W 8 + 8 [a]\n8,0 1 2 0.002 7 R W 8 + 8 [0]\n8,0 1 3 0.005 7 D W 8 + 8 [a]\n\
                8,0 1 4 0.006 7 C W 8 [0]\n";
    let wanted = [Record { client: 7, latency: Some(Nanos(MS)), ..record(0, Op::Write, 4096, 4096) }];
    assert_eq!(read(text.as_bytes(), &Options::default()).unwrap(), wanted);
    let events = [
        event(false, 1, 8, 4096, WRITE | ISSUE),
        event(false, 2, 8, 4096, WRITE | 6),
        event(false, 5, 8, 4096, WRITE | ISSUE),
        event(false, 9, 8, 0, WRITE | COMPLETE),
    ];
    let read = read(&events.concat(), &Options::default()).unwrap();
    assert_eq!(read.iter().map(|one| one.latency).collect::<Vec<_>>(), [Some(Nanos(4))]);
}

#[test]
fn commands_that_a_program_sent_to_the_device_are_no_requests() {
    let text = "8,0 1 1 0.001 7 D R 36 (12 01 00 00 24 00) [smartctl]\n8,0 1 2 0.002 0 C R 0 [0]\n\
                8,0 1 3 0.003 7 D R 8 + 8 [a]\n8,0 1 4 0.004 7 D DS 64 + 8 [a]\n8,0 1 5 0.004 0 C DS 64 + 8 [0]\n\
                8,0 1 6 0.005 7 D N 0 [a]\n8,0 1 7 0.005 7 D WS 99 [a]\n8,0 1 8 0.006 0 m N cfq7 dispatch\n";
    let (read, left) = left_out(text.as_bytes());
    let kind = |text: &str| (text.to_owned(), 1);
    let wanted = [
        kind("commands passed through to the device"),
        kind("discards (DS)"),
        kind("requests without data (N)"),
        kind("requests without data"),
    ];
    assert_eq!((read, &left[..]), (1, &wanted[..]));
}

#[test]
fn a_last_row_that_is_cut_off_is_counted_in_each_format() {
    for (format, text) in TEXTS {
        let cut = match format {
            // Its summary has no such end.
            Format::Blkparse => &text[..text.rfind("D WS").unwrap()],
            // The last line has no data.
            Format::Iolog => &text[..text.rfind("write").unwrap() + 2],
            _ => &text[..text.trim_end().len() - text.lines().last().unwrap().len() + 6],
        };
        let (read, left) = left_out(cut.as_bytes());
        assert_eq!(
            (read, left.last()),
            (1, Some(&("cut off at the end of the file".to_owned(), 1))),
            "{cut}"
        );
    }
    let events = [event(false, 1, 8, 512, READ | ISSUE), event(false, 9, 8, 512, READ | ISSUE)].concat();
    for bytes in [1, 47, 49] {
        let (read, left) = left_out(&events[..51 + bytes]);
        assert_eq!((read, left.len()), (1, 1), "{bytes}");
    }
}

#[test]
fn rows_of_other_kinds_and_headings_do_not_end_a_trace_of_any_format() {
    let msr = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1,usr,0,Read,0,512,9\n2,usr,0,Flush,0,0,9\n";
    let alibaba = "device_id,opcode,offset,length,timestamp\n1,R,0,512,5\n# a remark\n1,D,0,512,6\n";
    let tencent = "Timestamp,Offset,Size,IOType,VolumeID\n5,0,8,0,1\n6,0,8,2,1\n";
    let systor = "Timestamp,Response,IOType,LUN,Offset,Size\n5.0,0.1,R,1,0,512\n6.0,0.1,T,1,0,512\n";
    let fiu = "5 1 a 0 8 R 6 0 ff\n6 1 a 0 8 D 6 0 ff\n";
    let spc = "0,0,512,R,0.1\n0,0,512,t,0.2\n";
    let iolog = "fio version 3 iolog\n0 f add\n1 f read 0 512\n2 f trim 0 512\n";
    for (text, kind) in [
        (msr, "requests of kind 'Flush'"),
        (alibaba, "discards (D)"),
        (tencent, "requests of kind '2'"),
        (systor, "requests of kind 'T'"),
        (fiu, "discards (D)"),
        (spc, "requests of kind 't'"),
        (iolog, "trims"),
    ] {
        assert_eq!(left_out(text.as_bytes()), (1, vec![(kind.to_owned(), 1)]), "{text}");
    }
}

#[test]
fn events_that_the_recorder_lost_are_counted() {
    for line in [
        "lost 12 events on CPU #1",
        "Possibly lost 12 samples",
        "Lost 12 events",
        "CPU:3 [LOST 12 EVENTS]",
        "You have 12 ( 0.5%) dropped events",
    ] {
        let text = format!("8,0 1 1 0.001 7 D R 8 + 8 [a]\n{line}\n8,0 1 3 0.003 7 D R 8 + 8 [a]\n");
        assert_eq!(left_out(text.as_bytes()), (2, vec![("lost by the recorder".to_owned(), 12)]), "{line}");
    }
}

#[test]
fn waits_of_fios_second_version_are_taken_as_its_source_has_them() {
    let text = include_str!("samples/iolog-wait.txt");
    let times = |unit_ns| {
        let read = read(text.as_bytes(), &Options { unit_ns, ..Options::default() }).unwrap();
        read.iter().map(|one| one.at.0 / 1_000).collect::<Vec<_>>()
    };
    // 1 s and 3 s after the beginning, as fio 3.33 replays it in 3 s.
    assert_eq!(times(None), [1_000_000, 3_000_000]);
    assert_eq!(times(Some(MS)), [1_000_000, 3_000_000]);
    // As fio's documentation has it: 1 ms, and 3 ms after that.
    assert_eq!(times(Some(1_000)), [1_000, 4_000]);
    // A wait that is over when it is read is none.
    let text = "fio version 2 iolog\nf read 0 512\nf wait 50 0\nf read 0 512\nf wait 20 0\nf read 0 512\n";
    let times: Vec<u64> =
        read(text.as_bytes(), &Options::default()).unwrap().iter().map(|one| one.at.0 / MS).collect();
    assert_eq!(times, [0, 50, 50]);
}

#[test]
fn the_output_of_tools_that_lack_what_a_replay_needs_is_named() {
    let error = |text: &str| read(text.as_bytes(), &Options::default()).unwrap_err().to_string();
    let bpftrace = "Attaching 4 probes...\nTIME(ms)     DISK    COMM             PID    LAT(ms)\n611          nvme0n1 bash             4179        10\n";
    assert!(error(bpftrace).contains("bpftrace's biosnoop: it lacks the sector"), "{}", error(bpftrace));
    let perf = "mysqld-4021 [003] d..1. 12.5: block_rq_issue: 259,0 WS 16384 () 40960 + 32 [mysqld]\n";
    assert!(error(perf).contains("perf or ftrace"), "{}", error(perf));
    let custom = "D 40960 32 mysqld\n";
    assert!(error(custom).contains("no known format"), "{}", error(custom));
}
