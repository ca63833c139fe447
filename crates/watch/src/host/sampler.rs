//! What the history records of a machine: growth between two readings, and gauges.
//!
//! Growth is computed once, here. A counter belongs to a life: the identity of a device, the attachment of a volume. A device that is
//! another one, or whose counters fell, has no point of that interval: a gap, and no spike. A time that the kernel counts in 32 bits
//! goes on over its end.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use ebbtide_history::{
    Aggregate, DEVICE, FILE_SYSTEM, Layout, MACHINE, Number, SPAN, Sample, SeriesKey, Value,
};
use ebbtide_proc::{BlockStatistics, Pressure};
use ebbtide_volume::Nanos;

use super::reading::{EbsVolume, HostDisk, HostFileSystem, HostReading};
use crate::exceeded::ExceededTrack;
use crate::reading::ExceededReading;

/// Columns of a device, times in nanoseconds. Those of EBS have no value for other devices.
const DEVICE_COLUMNS: [(&str, Aggregate, Number); 17] = {
    use Aggregate::{Latest, Sum};
    use Number::Whole;
    [
        (SPAN, Sum, Whole),
        ("reads", Sum, Whole),
        ("read_bytes", Sum, Whole),
        ("read_time", Sum, Whole),
        ("writes", Sum, Whole),
        ("written_bytes", Sum, Whole),
        ("write_time", Sum, Whole),
        ("busy_time", Sum, Whole),
        ("queue_time", Sum, Whole),
        ("flushes", Sum, Whole),
        ("flush_time", Sum, Whole),
        ("in_flight", Latest, Whole),
        ("volume_iops_exceeded", Sum, Whole),
        ("volume_throughput_exceeded", Sum, Whole),
        ("instance_iops_exceeded", Sum, Whole),
        ("instance_throughput_exceeded", Sum, Whole),
        ("volume_queue", Latest, Whole),
    ]
};

/// Columns of a file system.
const FILE_SYSTEM_COLUMNS: [(&str, Aggregate, Number); 4] = [
    (SPAN, Aggregate::Sum, Number::Whole),
    ("size_bytes", Aggregate::Latest, Number::Whole),
    ("available_bytes", Aggregate::Latest, Number::Whole),
    ("files_free", Aggregate::Latest, Number::Whole),
];

/// Columns of the pressure of a machine, times in nanoseconds.
const MACHINE_COLUMNS: [(&str, Aggregate, Number); 6] = [
    (SPAN, Aggregate::Sum, Number::Whole),
    ("cpu_waiting", Aggregate::Sum, Number::Whole),
    ("io_waiting", Aggregate::Sum, Number::Whole),
    ("io_stalled", Aggregate::Sum, Number::Whole),
    ("memory_waiting", Aggregate::Sum, Number::Whole),
    ("memory_stalled", Aggregate::Sum, Number::Whole),
];

static DEVICE_LAYOUT: LazyLock<Arc<Layout>> = LazyLock::new(|| Arc::new(Layout::new(DEVICE_COLUMNS)));
static FILE_SYSTEM_LAYOUT: LazyLock<Arc<Layout>> =
    LazyLock::new(|| Arc::new(Layout::new(FILE_SYSTEM_COLUMNS)));
static MACHINE_LAYOUT: LazyLock<Arc<Layout>> = LazyLock::new(|| Arc::new(Layout::new(MACHINE_COLUMNS)));

/// Makes samples of the readings of one machine.
#[derive(Debug, Clone)]
pub struct HostSampler {
    /// The name of the machine, which is a label of each series.
    machine: String,
    before: Option<(Nanos, HostReading)>,
    /// The space that was recorded last, by the number of its reading, and when.
    spaced: Option<(Nanos, u64)>,
    /// Times over limits, by the device.
    exceeded: BTreeMap<String, ExceededTrack>,
}

impl HostSampler {
    /// One for a machine of this name.
    #[must_use]
    pub const fn new(machine: String) -> Self {
        Self { machine, before: None, spaced: None, exceeded: BTreeMap::new() }
    }

    /// The samples of a reading: what grew since the one before. None with the first one. `elapsed` is by a clock that never runs back.
    pub fn sample(&mut self, elapsed: Nanos, reading: HostReading) -> Vec<Sample> {
        self.take_pages(&reading);
        let Some((earlier, before)) = self.before.take() else {
            self.before = Some((elapsed, reading));
            return Vec::new();
        };
        // Without any time between, the growth is that of the next reading.
        if elapsed <= earlier {
            self.before = Some((earlier, before));
            return Vec::new();
        }
        let span = elapsed.since(earlier);
        let mut samples: Vec<Sample> =
            Vec::with_capacity(reading.disks.len() + reading.file_systems.len() + 1);
        samples.extend(reading.disks.iter().filter_map(|disk| self.device(span, disk, &before, &reading)));
        // Space is read once a minute: what was recorded before is not recorded again.
        if self.spaced.is_none_or(|(_, number)| number != reading.refreshes) {
            let span = self.spaced.map_or(span, |(spaced, _)| elapsed.since(spaced));
            self.spaced = Some((elapsed, reading.refreshes));
            samples.extend(self.file_systems(span, &reading.file_systems));
        }
        samples.push(self.pressure(span, &before.pressure, &reading.pressure));
        self.before = Some((elapsed, reading));
        samples
    }

    fn key(&self, subject: &'static str, own: Option<(&'static str, &str)>) -> SeriesKey {
        let own = own.map(|(name, value)| (name, value.to_owned()));
        SeriesKey::new(subject, own.into_iter().chain([("host", self.machine.clone())]))
    }

    fn device(
        &self,
        span: Nanos,
        disk: &HostDisk,
        before: &HostReading,
        now: &HostReading,
    ) -> Option<Sample> {
        let name = disk.statistics.name.as_str();
        let earlier = before.disks.iter().find(|earlier| is_same_device(earlier, disk))?;
        let mut values = vec![Some(span.0)];
        values.extend(growth(&earlier.statistics, &disk.statistics)?);
        values.push(Some(disk.statistics.in_flight));
        let shares = self.exceeded.get(name).and_then(ExceededTrack::shares);
        let spent = |place: usize| shares.map(|shares| part(span, shares[place]));
        values.extend((0..4).map(spent));
        let volume = now.ebs.iter().find(|volume| volume.device == name);
        values.push(volume.map(|volume| volume.page.queue_length));
        Some(Sample {
            key: self.key(DEVICE, Some(("device", name))),
            kind: disk.udev.model.clone(),
            layout: Arc::clone(&DEVICE_LAYOUT),
            values: whole(&values),
        })
    }

    /// Takes the times over limits of all volumes. Pages are read less often than the counters: in each interval there is the part of it
    /// that the last two pages give.
    fn take_pages(&mut self, reading: &HostReading) {
        self.exceeded.retain(|name, _| reading.disks.iter().any(|disk| disk.statistics.name == *name));
        for disk in &reading.disks {
            let name = &disk.statistics.name;
            let track = self.exceeded.entry(name.clone()).or_default();
            match reading.ebs.iter().find(|volume| volume.device == *name) {
                Some(EbsVolume { volume_id, read_at, page, .. }) => {
                    track.take(volume_id, Some(ExceededReading { read: *read_at, times: page.exceeded() }));
                }
                // Without a page now, nothing is known of this interval.
                None => track.miss(),
            }
        }
    }

    /// File systems on block devices, each directory once: what is mounted later hides what was there.
    fn file_systems(&self, span: Nanos, mounts: &[HostFileSystem]) -> Vec<Sample> {
        let on_devices = mounts.iter().filter(|mount| mount.device.starts_with("/dev/"));
        let mounted: BTreeMap<&str, &HostFileSystem> =
            on_devices.map(|mount| (mount.mount_point.as_str(), mount)).collect();
        mounted.into_values().filter_map(|mount| self.file_system(span, mount)).collect()
    }

    fn file_system(&self, span: Nanos, mount: &HostFileSystem) -> Option<Sample> {
        let space = mount.space.as_ref().ok()?;
        let values = [span.0, space.size_bytes, space.available_bytes, space.files_free];
        Some(Sample {
            key: self.key(FILE_SYSTEM, Some(("mountpoint", mount.mount_point.as_str()))),
            kind: mount.fs_type.clone(),
            layout: Arc::clone(&FILE_SYSTEM_LAYOUT),
            values: whole(&values.map(Some)),
        })
    }

    fn pressure(&self, span: Nanos, before: &Pressure, now: &Pressure) -> Sample {
        let totals = |pressure: &Pressure| {
            let Pressure { cpu, io, memory, .. } = *pressure;
            let some = [cpu, io, memory].map(|stall| stall?.some_us);
            let full = [io, memory].map(|stall| stall?.full_us);
            [some[0], some[1], full[0], some[2], full[1]]
        };
        let grown = totals(before)
            .into_iter()
            .zip(totals(now))
            .map(|(before, now)| Some(now?.checked_sub(before?)?.saturating_mul(1_000)));
        Sample {
            key: self.key(MACHINE, None),
            kind: String::new(),
            layout: Arc::clone(&MACHINE_LAYOUT),
            values: whole(&[Some(span.0)].into_iter().chain(grown).collect::<Vec<_>>()),
        }
    }
}

fn whole(values: &[Option<u64>]) -> Vec<Option<Value>> {
    values.iter().map(|value| value.map(Value::Whole)).collect()
}

/// Whether two readings are of one device, and not of another one of its name.
fn is_same_device(earlier: &HostDisk, later: &HostDisk) -> bool {
    let identity = |disk: &HostDisk| (disk.statistics.major, disk.statistics.minor);
    identity(earlier) == identity(later)
        && earlier.statistics.name == later.statistics.name
        && earlier.udev.serial == later.udev.serial
        && earlier.udev.wwn == later.udev.wwn
}

/// What a device did between two readings, in the order of the columns from `reads` to `flush_time`. None where a counter fell: it is
/// another device, or its counters began again.
fn growth(before: &BlockStatistics, now: &BlockStatistics) -> Option<[Option<u64>; 10]> {
    let bytes = |before: u64, now: u64| Some(now.checked_sub(before)?.saturating_mul(512));
    let flushes = before.flushes.zip(now.flushes);
    let flushed = match flushes {
        Some((before, now)) => {
            [Some(now.count.checked_sub(before.count)?), Some(grown_ns(before.ms, now.ms)?)]
        }
        None => [None; 2],
    };
    Some([
        Some(now.reads.checked_sub(before.reads)?),
        Some(bytes(before.read_sectors, now.read_sectors)?),
        Some(grown_ns(before.read_ms, now.read_ms)?),
        Some(now.writes.checked_sub(before.writes)?),
        Some(bytes(before.written_sectors, now.written_sectors)?),
        Some(grown_ns(before.write_ms, now.write_ms)?),
        Some(grown_ns(before.busy_ms, now.busy_ms)?),
        Some(grown_ns(before.queue_ms, now.queue_ms)?),
        flushed[0],
        flushed[1],
    ])
}

/// How much a time grew, ns. The kernel prints the milliseconds of `/proc/diskstats` as 32 bits (`diskstats_show` in `block/genhd.c`): after
/// 49.7 days of I/O they begin again. A step over the end is less than half of them; more is a counter that fell.
fn grown_ns(before_ms: u64, now_ms: u64) -> Option<u64> {
    const END: u64 = 1 << 32;
    let grown_ms = match now_ms.checked_sub(before_ms) {
        Some(grown) => grown,
        None => now_ms
            .saturating_add(END)
            .checked_sub(before_ms)
            .filter(|grown| before_ms < END && *grown < END / 2)?,
    };
    Some(grown_ms.saturating_mul(1_000_000))
}

/// A share of a time, ns.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a time is a time")]
fn part(span: Nanos, share: f64) -> u64 {
    (span.0 as f64 * share).round() as u64
}

#[cfg(test)]
mod tests {
    use ebbtide_proc::{Flushes, Stall};

    use super::*;
    use crate::host::ebs_page::EbsPage;
    use crate::host::reading::Space;
    use crate::host::udev::UdevProperties;

    fn disk(reads: u64, serial: &str) -> HostDisk {
        let statistics = BlockStatistics {
            major: 259,
            name: "nvme1n1".to_owned(),
            reads,
            read_sectors: reads * 8,
            read_ms: reads / 2,
            queue_ms: reads / 2,
            in_flight: 3,
            flushes: Some(Flushes { count: reads / 10, ms: reads / 100 }),
            ..BlockStatistics::default()
        };
        let udev = UdevProperties {
            serial: serial.to_owned(),
            model: "EBS".to_owned(),
            ..UdevProperties::default()
        };
        HostDisk { statistics, udev, is_rotational: false }
    }

    fn reading(disk: HostDisk) -> HostReading {
        HostReading { disks: vec![disk], ..HostReading::default() }
    }

    /// The value of a column of the series of a subject; None without such a sample, or without a value.
    fn value(samples: &[Sample], subject: &str, name: &str) -> Option<f64> {
        let sample = samples.iter().find(|sample| sample.key.subject() == subject)?;
        let place = sample.layout.columns().iter().position(|column| column.name == name).unwrap();
        Some(sample.values[place]?.as_f64())
    }

    #[test]
    fn a_device_has_what_grew_since_the_reading_before_and_nothing_with_the_first() {
        let mut sampler = HostSampler::new("db1".to_owned());
        assert!(sampler.sample(Nanos::from_secs(5), reading(disk(1_000, "a"))).is_empty());
        let samples = sampler.sample(Nanos::from_ms(6_500), reading(disk(4_000, "a")));
        let of_device = |name| value(&samples, DEVICE, name);
        assert_eq!((of_device(SPAN), of_device("reads")), (Some(1.5e9), Some(3_000.0)));
        assert_eq!(of_device("read_bytes"), Some(3_000.0 * 4_096.0));
        assert_eq!((of_device("read_time"), of_device("flush_time")), (Some(1.5e9), Some(3e7)));
        assert_eq!((of_device("in_flight"), of_device("volume_queue")), (Some(3.0), None));
        let sample = &samples[0];
        assert_eq!((sample.key.label("device"), sample.key.label("host")), (Some("nvme1n1"), Some("db1")));
        assert_eq!((sample.kind.as_str(), sample.values.len()), ("EBS", sample.layout.columns().len()));
        // Without any time between there is no sample, and nothing of the growth is lost.
        assert!(sampler.sample(Nanos::from_ms(6_500), reading(disk(5_000, "a"))).is_empty());
        let samples = sampler.sample(Nanos::from_secs(8), reading(disk(5_500, "a")));
        assert_eq!(value(&samples, DEVICE, "reads"), Some(1_500.0));
    }

    #[test]
    fn another_device_of_the_name_and_counters_that_fell_are_a_gap() {
        let mut sampler = HostSampler::new(String::new());
        let mut reads = |second: u64, disk: HostDisk| {
            value(&sampler.sample(Nanos::from_secs(second), reading(disk)), DEVICE, "reads")
        };
        assert_eq!(reads(1, disk(1_000, "a")), None);
        assert_eq!(reads(2, disk(9_000, "b")), None, "another serial number");
        assert_eq!(reads(3, disk(9_100, "b")), Some(100.0));
        assert_eq!(reads(4, disk(50, "b")), None, "attached anew");
        assert_eq!(reads(5, disk(60, "b")), Some(10.0));
    }

    #[test]
    fn a_time_of_32_bits_goes_on_over_its_end() {
        let end = 1_u64 << 32;
        assert_eq!(grown_ns(end - 300, 700), Some(1_000_000_000));
        assert_eq!(grown_ns(500, 700), Some(200_000_000));
        assert_eq!(grown_ns(1_000, 700), None, "it fell");
        assert_eq!(grown_ns(end + 5, 700), None, "a kernel with longer times");
    }

    #[test]
    fn a_volume_has_its_times_over_limits_also_between_its_pages_and_none_of_an_old_page() {
        let mut sampler = HostSampler::new("db1".to_owned());
        let mut seconds = |second: u64, page: Option<(u64, u64)>| {
            let ebs = page.map(|(read_s, exceeded_ms)| EbsVolume {
                volume_id: "vol-1".to_owned(),
                device: "nvme1n1".to_owned(),
                mount_path: String::new(),
                read_at: Nanos::from_secs(read_s),
                page: EbsPage {
                    volume_iops_exceeded: Nanos::from_ms(exceeded_ms),
                    queue_length: 9,
                    ..EbsPage::default()
                },
            });
            let reading = HostReading { ebs: ebs.into_iter().collect(), ..reading(disk(second, "a")) };
            let samples = sampler.sample(Nanos::from_secs(second), reading);
            ["volume_iops_exceeded", "volume_queue"].map(|name| value(&samples, DEVICE, name))
        };
        assert_eq!(seconds(10, Some((10, 1_000))), [None, None], "the first reading");
        assert_eq!(seconds(11, Some((10, 1_000))), [None, Some(9.0)]);
        assert_eq!(seconds(20, Some((20, 3_500)))[0], Some(0.25 * 9e9), "a quarter of the 9 s of the sample");
        assert_eq!(seconds(21, Some((20, 3_500)))[0], Some(0.25e9));
        assert_eq!(seconds(22, None), [None, None]);
        assert_eq!(seconds(30, Some((30, 10)))[0], None, "attached anew");
    }

    #[test]
    fn a_machine_has_its_pressure_and_each_file_system_its_space_once() {
        let mut sampler = HostSampler::new("db1".to_owned());
        let stall = |us| Some(Stall { some_us: Some(us), full_us: Some(us / 2) });
        let mount = |available_bytes| HostFileSystem {
            device: "/dev/nvme1n1".to_owned(),
            mount_point: "/data".to_owned(),
            fs_type: "xfs".to_owned(),
            major: 259,
            minor: 0,
            is_read_only: false,
            space: Ok(Space { size_bytes: 100, available_bytes, ..Space::default() }),
        };
        let reading = |us| HostReading {
            pressure: Pressure { io: stall(us), memory: None, ..Pressure::default() },
            file_systems: vec![
                mount(70),
                mount(60),
                HostFileSystem { device: "tmpfs".to_owned(), mount_point: "/run".to_owned(), ..mount(50) },
            ],
            ..HostReading::default()
        };
        sampler.sample(Nanos::from_secs(1), reading(10));
        let samples = sampler.sample(Nanos::from_secs(2), reading(30));
        assert_eq!(samples.len(), 2);
        assert_eq!(value(&samples, MACHINE, "io_waiting"), Some(20_000.0));
        assert_eq!(value(&samples, MACHINE, "io_stalled"), Some(10_000.0));
        assert_eq!(
            (value(&samples, MACHINE, "memory_waiting"), value(&samples, MACHINE, SPAN)),
            (None, Some(1e9))
        );
        assert_eq!(
            value(&samples, FILE_SYSTEM, "available_bytes"),
            Some(60.0),
            "the later mount hides the other"
        );
        // A total that fell is no growth.
        let samples = sampler.sample(Nanos::from_secs(3), reading(5));
        assert_eq!(value(&samples, MACHINE, "io_waiting"), None);
        assert_eq!(value(&samples, FILE_SYSTEM, "available_bytes"), None, "its space was not read again");
        let refreshed = HostReading { refreshes: 1, ..reading(6) };
        let samples = sampler.sample(Nanos::from_secs(62), refreshed);
        assert_eq!(value(&samples, FILE_SYSTEM, SPAN), Some(60e9), "since the sample before");
    }
}
