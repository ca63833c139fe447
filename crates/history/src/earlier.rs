//! Chunks of before version 4 of the file: the minutes of volumes and instances as CloudWatch recorded them.
//!
//! Version 1 has no balances of instances, version 2 has them. Both are points of the layout of volumes.

use crate::layout::{Number, Value};
use crate::varint::{get, get_text, take, unzigzag};

/// Numbers of a minute.
const FIELDS: usize = 20;

/// The number that says which values there are.
const FLAGS: usize = 15;

/// Visits the points of a chunk behind its version; none of what is not complete.
pub(crate) fn unpack(version: u8, mut bytes: &[u8], mut visit: impl FnMut(u64, &str, &[Option<Value>])) {
    if !matches!(version, 1 | 2) {
        return;
    }
    let (mut kind, mut numbers) = (String::new(), [0; FIELDS]);
    while let Some(number) = take(&mut bytes) {
        let Some(()) = read(&mut bytes, &mut kind, &mut numbers) else { break };
        visit(u64::from(number), &kind, &values(&numbers));
    }
}

fn read(bytes: &mut &[u8], kind: &mut String, numbers: &mut [u64; FIELDS]) -> Option<()> {
    let flags = get(bytes)?;
    if flags & 1 != 0 {
        *kind = get_text(bytes)?;
    }
    for (place, number) in numbers.iter_mut().enumerate() {
        if flags >> (place + 1) & 1 != 0 {
            *number = number.wrapping_add(unzigzag(get(bytes)?));
        }
    }
    Some(())
}

/// The numbers as values of the layout of volumes.
fn values(numbers: &[u64; FIELDS]) -> [Option<Value>; FIELDS - 1] {
    // Behind the flags, each value that may be absent has a bit of its own.
    let optional = [(1, Number::Real), (2, Number::Whole), (4, Number::Real), (8, Number::Real)];
    std::array::from_fn(|place| match place.checked_sub(FLAGS) {
        None => Some(Value::Whole(numbers[place])),
        Some(behind) => {
            let (bit, kind) = optional[behind];
            (numbers[FLAGS] & bit != 0).then(|| kind.value(numbers[place + 1]))
        }
    })
}

#[cfg(test)]
pub(crate) mod written;

#[cfg(test)]
mod tests {
    use ebbtide_volume::{Nanos, OpStats, Stats, VolumeInterval};

    use super::written;
    use crate::packed;
    use crate::volume::{Balances, LAYOUT, VolumeMinute};

    fn minute(number: u64) -> VolumeMinute {
        let ops = |ops: u64| OpStats { ops, bytes: ops << 14, time: Nanos(ops * 612_345) };
        let counters = Stats {
            at: Nanos(60_000_000_000 + number * 977),
            read: ops(150_000 + number),
            write: ops(90_000 / (number + 1)),
            consumed_ops: u64::MAX - number,
            queue: number % 5,
            queue_time: Nanos(number * 1_299_709),
            // Longer than the minute, as a late sample may have it.
            idle_time: Nanos(60_000_000_000 + number * 978),
            volume_iops_exceeded: Nanos(number),
            volume_throughput_exceeded: Nanos(number * 2),
            instance_iops_exceeded: Nanos(number * 3),
            instance_throughput_exceeded: Nanos(number * 4),
            credit_share: number.is_multiple_of(2).then_some(1.0 / (number + 1) as f64),
            iops_rate: (!number.is_multiple_of(3)).then_some(3_000),
            ..Stats::default()
        };
        let balances =
            Balances { io: number.is_multiple_of(4).then_some(0.25), bytes: Some(number as f64 / 60.0) };
        VolumeMinute { counters: VolumeInterval::of_growth(counters), balances }
    }

    fn unpack(bytes: &[u8]) -> Vec<(u64, String, VolumeMinute)> {
        let mut found = Vec::new();
        packed::unpack(bytes, &LAYOUT, |number, kind, values| {
            found.push((number, kind.to_owned(), VolumeMinute::read(&LAYOUT, values)));
        });
        found
    }

    #[test]
    fn what_version_2_packed_is_read_whatever_is_cut_off() {
        let hour: Vec<_> =
            (0..60).map(|number| (number, if number < 9 { "gp2" } else { "gp3" }, minute(number))).collect();
        let bytes = written::pack(&hour);
        let found = unpack(&bytes);
        assert_eq!(found.len(), 60);
        for ((number, kind, minute), (n, k, m)) in hour.iter().zip(&found) {
            assert_eq!((number, *kind, minute), (n, k.as_str(), m));
        }
        for length in 0..bytes.len() {
            assert!(unpack(&bytes[..length]).iter().zip(&found).all(|(a, b)| a == b), "{length}");
        }
    }

    #[test]
    fn what_version_1_packed_is_read_without_balances() {
        let hour: Vec<_> = (0..3)
            .map(|number| (number, "gp3", VolumeMinute { balances: Balances::default(), ..minute(number) }))
            .collect();
        let mut bytes = written::pack(&hour);
        bytes[0] = 1;
        let found: Vec<_> = unpack(&bytes).into_iter().map(|(_, _, minute)| minute).collect();
        assert_eq!(found, hour.iter().map(|(_, _, minute)| *minute).collect::<Vec<_>>());
    }
}
