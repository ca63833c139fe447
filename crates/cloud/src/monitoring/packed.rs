//! An hour of the minutes of a volume or an instance in a few bytes each.
//!
//! Of each minute there is only what differs from the one before, as differences of variable length. A volume without I/O
//! needs about 6 bytes a minute, a busy one about 50.

use ebbtide_control::{InstanceBalances, Nanos, OpStats, Stats};

use super::minute::Minute;

/// The first byte. What version 1 wrote is read as it is: it has no balances of instances.
const VERSION: u8 = 2;

/// Numbers of a minute.
const FIELDS: usize = 20;

/// The counters as numbers. A value that may be absent is two: whether it is there, and what it is.
fn numbers(Minute { counters: stats, balances }: &Minute) -> [u64; FIELDS] {
    // The bits that change least are the highest.
    let share = |share: Option<f64>| share.map_or(0, |share| share.to_bits().swap_bytes());
    [
        stats.at.0,
        stats.read.ops,
        stats.read.bytes,
        stats.read.time.0,
        stats.write.ops,
        stats.write.bytes,
        stats.write.time.0,
        stats.consumed_ops,
        stats.queue,
        stats.queue_time.0,
        // What is left of the minute: 0 without I/O, whatever its length.
        stats.at.0.wrapping_sub(stats.idle_time.0),
        stats.volume_iops_exceeded.0,
        stats.volume_throughput_exceeded.0,
        stats.instance_iops_exceeded.0,
        stats.instance_throughput_exceeded.0,
        u64::from(stats.credit_share.is_some())
            | u64::from(stats.iops_rate.is_some()) << 1
            | u64::from(balances.io.is_some()) << 2
            | u64::from(balances.bytes.is_some()) << 3,
        share(stats.credit_share),
        stats.iops_rate.unwrap_or_default(),
        share(balances.io),
        share(balances.bytes),
    ]
}

fn minute(n: &[u64; FIELDS]) -> Minute {
    let ops = |at: usize| OpStats { ops: n[at], bytes: n[at + 1], time: Nanos(n[at + 2]) };
    let share = |bit: u64, at: usize| (n[15] & bit != 0).then(|| f64::from_bits(n[at].swap_bytes()));
    let counters = Stats {
        at: Nanos(n[0]),
        read: ops(1),
        write: ops(4),
        consumed_ops: n[7],
        queue: n[8],
        queue_time: Nanos(n[9]),
        idle_time: Nanos(n[0].wrapping_sub(n[10])),
        volume_iops_exceeded: Nanos(n[11]),
        volume_throughput_exceeded: Nanos(n[12]),
        instance_iops_exceeded: Nanos(n[13]),
        instance_throughput_exceeded: Nanos(n[14]),
        credit_share: share(1, 16),
        iops_rate: (n[15] & 2 != 0).then_some(n[17]),
        ..Stats::default()
    };
    Minute { counters, balances: InstanceBalances { io: share(4, 18), bytes: share(8, 19) } }
}

/// Packs minutes of one hour, by their numbers in it, with the volume's type in each.
pub(super) fn pack<'a>(minutes: impl IntoIterator<Item = (u8, &'a str, &'a Minute)>) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    let (mut kind, mut before) = ("", [0; FIELDS]);
    for (number, of_kind, counters) in minutes {
        bytes.push(number);
        let now = numbers(counters);
        let changed = (0..FIELDS).filter(|at| now[*at] != before[*at]);
        let mask = changed.clone().fold(0, |mask, at| mask | 1 << at);
        let has_kind = of_kind != kind;
        put(&mut bytes, mask << 1 | u64::from(has_kind));
        if has_kind {
            put(&mut bytes, u64::try_from(of_kind.len()).unwrap_or_default());
            bytes.extend(of_kind.bytes());
        }
        for at in changed {
            put(&mut bytes, zigzag(now[at].wrapping_sub(before[at])));
        }
        (kind, before) = (of_kind, now);
    }
    bytes
}

/// The minutes of an hour; none of what is not complete.
pub(super) fn unpack(mut bytes: &[u8]) -> Vec<(u8, String, Minute)> {
    let mut minutes = Vec::new();
    if !matches!(take(&mut bytes), Some(1..=VERSION)) {
        return minutes;
    }
    let (mut kind, mut numbers) = (String::new(), [0; FIELDS]);
    while let Some(number) = take(&mut bytes) {
        let Some(()) = read(&mut bytes, &mut kind, &mut numbers) else { break };
        minutes.push((number, kind.clone(), minute(&numbers)));
    }
    minutes
}

fn read(bytes: &mut &[u8], kind: &mut String, numbers: &mut [u64; FIELDS]) -> Option<()> {
    let flags = get(bytes)?;
    if flags & 1 != 0 {
        let length = usize::try_from(get(bytes)?).ok()?;
        let (text, rest) = bytes.split_at_checked(length)?;
        *kind = String::from_utf8(text.to_vec()).ok()?;
        *bytes = rest;
    }
    for (at, number) in numbers.iter_mut().enumerate() {
        if flags >> (at + 1) & 1 != 0 {
            *number = number.wrapping_add(unzigzag(get(bytes)?));
        }
    }
    Some(())
}

fn take(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

/// Small differences of either sign are small numbers.
const fn zigzag(difference: u64) -> u64 {
    if difference >> 63 == 1 { !(difference << 1) } else { difference << 1 }
}

const fn unzigzag(number: u64) -> u64 {
    if number & 1 == 1 { !(number >> 1) } else { number >> 1 }
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

fn get(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes)?;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of minutes that samples end up to 1 ms late.
    fn idle(number: u64) -> Minute {
        let minute = Nanos(60_000_000_000 + number * 977_111 % 1_000_003);
        Minute { counters: Stats { at: minute, idle_time: minute, ..Stats::default() }, ..Minute::default() }
    }

    fn busy(number: u64) -> Minute {
        let ops = |ops: u64| OpStats { ops, bytes: ops << 14, time: Nanos(ops * 612_345) };
        let counters = Stats {
            at: Nanos(60_000_000_000 + number * 977 % 1_000_003),
            read: ops(150_000 + number * 7_919 % 30_000),
            write: ops(90_000 + number * 104_729 % 20_000),
            consumed_ops: u64::MAX - number,
            queue: number % 5,
            queue_time: Nanos(number * 1_299_709),
            credit_share: Some(1.0 / (number + 1) as f64),
            iops_rate: (!number.is_multiple_of(3)).then_some(3_000),
            ..Stats::default()
        };
        Minute { counters, ..Minute::default() }
    }

    #[test]
    fn what_is_packed_is_unpacked_again() {
        let kinds = |number: u64| if number < 30 { "gp2" } else { "io2/multi-attach" };
        let hour: Vec<_> = (0_u64..60)
            .map(|number| {
                let minute = if number.is_multiple_of(7) { idle(number) } else { busy(number) };
                let share = |every: u64| number.is_multiple_of(every).then(|| 1.0 / (number + 2) as f64);
                Minute { balances: InstanceBalances { io: share(2), bytes: share(5) }, ..minute }
            })
            .collect();
        let rows = (0..60).zip(&hour).map(|(number, minute)| (number, kinds(u64::from(number)), minute));
        let bytes = pack(rows.clone());
        let found = unpack(&bytes);
        assert_eq!(found.len(), 60);
        for ((number, kind, minute), (n, k, m)) in rows.zip(&found) {
            assert_eq!((number, kind, minute), (*n, k.as_str(), m));
        }
        // Whatever is cut off: no panic, and what is whole before it.
        for length in 0..bytes.len() {
            assert!(unpack(&bytes[..length]).iter().zip(&found).all(|(a, b)| a == b), "{length}");
        }
    }

    #[test]
    fn what_version_1_packed_is_read_without_balances() {
        let hour: Vec<_> = (0..3).map(busy).collect();
        let mut bytes = pack((0..).zip(&hour).map(|(number, minute)| (number, "gp3", minute)));
        bytes[0] = 1;
        let found: Vec<_> = unpack(&bytes).into_iter().map(|(_, _, minute)| minute).collect();
        assert_eq!(found, hour);
        bytes[0] = VERSION + 1;
        assert!(unpack(&bytes).is_empty());
    }

    #[test]
    fn an_idle_minute_takes_few_bytes() {
        let (idle, busy): (Vec<_>, Vec<_>) = (0..60).map(|number| (idle(number), busy(number))).unzip();
        let size =
            |hour: &[Minute]| pack((0..60).zip(hour).map(|(number, minute)| (number, "gp3", minute))).len();
        assert!(size(&idle) <= 6 * 60, "{} bytes", size(&idle));
        assert!(size(&busy) <= 60 * 60, "{} bytes", size(&busy));
        println!("an hour: idle {} bytes, busy {} bytes", size(&idle), size(&busy));
    }
}
