//! Asks EBS volumes for their statistics pages, seldom: each is a command to the controller of the device, and may wait for it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use ebbtide_volume::Nanos;

use super::ebs_page::EbsPage;
use super::reading::{EbsPages, EbsReads, EbsVolume};

/// How often a volume is asked.
const EVERY: Nanos = Nanos::from_secs(10);
/// How often one is asked at least, whose pages are slow or refused.
const LONGEST_PAUSE: Nanos = Nanos::from_secs(600);
/// A page that takes longer is slow.
const SLOW: Nanos = Nanos::from_ms(100);

/// How a page of a device such as `/dev/nvme1n1` is asked for.
pub type AskPage = fn(&Path) -> io::Result<Vec<u8>>;

/// A block device that is an EBS volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EbsDevice {
    /// The id of the volume, such as `vol-0123456789abcdef0`.
    pub volume_id: String,
    /// The name of the device, such as `nvme1n1`.
    pub name: String,
}

/// Asks volumes for their pages, again and again. It needs a thread of its own: a device may not answer.
#[derive(Debug)]
pub struct PageReader {
    ask: AskPage,
    /// What is known of each volume, by the name of its device.
    volumes: BTreeMap<String, Asked>,
    reads: EbsReads,
}

/// What is known of a volume.
#[derive(Debug)]
struct Asked {
    volume_id: String,
    /// When it is to be asked next.
    next: Nanos,
    pause: Nanos,
    /// The newest page.
    volume: Option<EbsVolume>,
}

impl Asked {
    const fn new(volume_id: String) -> Self {
        Self { volume_id, next: Nanos::ZERO, pause: EVERY, volume: None }
    }
}

impl PageReader {
    /// One that has asked nothing. `ask` asks a device for its page (`ebbtide_device::nvme::ebs_log_page`), and may wait for as long as
    /// the kernel waits for the device.
    #[must_use]
    pub fn new(ask: AskPage) -> Self {
        Self { ask, volumes: BTreeMap::new(), reads: EbsReads::default() }
    }

    /// Asks the volumes that are due: each every 10 s. One that refuses, or takes more than 100 ms, is asked half as often each time, down
    /// to once in 10 minutes. Returns the newest page of each; how old it is says [`EbsVolume::read_at`], by the `clock`.
    pub fn read(&mut self, devices: &[EbsDevice], clock: impl Fn() -> Nanos) -> EbsPages {
        self.volumes.retain(|name, asked| {
            devices.iter().any(|device| device.name == *name && device.volume_id == asked.volume_id)
        });
        for device in devices {
            let begun = clock();
            let asked = self.volumes.entry(device.name.clone());
            let asked = asked.or_insert_with(|| Asked::new(device.volume_id.clone()));
            if begun < asked.next {
                continue;
            }
            self.reads.asked += 1;
            let bytes = (self.ask)(&Path::new("/dev").join(&device.name)).ok();
            let page = bytes.and_then(|bytes| EbsPage::parse(&bytes).ok());
            let ended = clock();
            let is_slow = ended.since(begun) > SLOW;
            asked.pause =
                if page.is_none() || is_slow { Nanos(asked.pause.0 * 2).min(LONGEST_PAUSE) } else { EVERY };
            asked.next = begun + asked.pause;
            match page {
                Some(page) => {
                    asked.volume = Some(EbsVolume {
                        volume_id: device.volume_id.clone(),
                        device: device.name.clone(),
                        mount_path: String::new(),
                        read_at: ended,
                        page,
                    });
                }
                None => self.reads.failed += 1,
            }
        }
        let volumes = self.volumes.values().filter_map(|asked| asked.volume.clone()).collect();
        EbsPages { volumes, reads: self.reads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ebs_page::tests::{NUMBERS, page};

    fn no_page(_: &Path) -> io::Result<Vec<u8>> {
        Err(io::Error::other("this machine has no volume of EBS"))
    }

    fn recorded_page(_: &Path) -> io::Result<Vec<u8>> {
        Ok(page(NUMBERS, &[]))
    }

    fn device() -> EbsDevice {
        EbsDevice { volume_id: "vol-1".to_owned(), name: "nvme1n1".to_owned() }
    }

    /// How many pages are asked for in so many seconds, with a look each second.
    fn asked(reader: &mut PageReader, seconds: std::ops::Range<u64>) -> u64 {
        let before = reader.reads.asked;
        for second in seconds {
            reader.read(&[device()], || Nanos::from_secs(second));
        }
        reader.reads.asked - before
    }

    #[test]
    fn a_page_is_asked_for_every_10_s_and_one_that_is_refused_at_last_every_10_min() {
        let mut reader = PageReader::new(recorded_page);
        assert_eq!(asked(&mut reader, 0..60), 6);
        let pages = reader.read(&[device()], || Nanos::from_secs(59));
        assert_eq!(
            (pages.volumes[0].page.queue_length, pages.volumes[0].read_at),
            (12, Nanos::from_secs(50))
        );
        reader.ask = no_page;
        // At 60, 80, 120, 200, 360 and 680 s, and then every 600 s.
        assert_eq!(asked(&mut reader, 60..60 + 621), 6);
        assert_eq!(asked(&mut reader, 681..681 + 1_200), 2);
        assert_eq!((reader.reads.failed, pages.reads.failed), (8, 0));
        reader.ask = recorded_page;
        assert_eq!(asked(&mut reader, 2_000..3_000), 52, "from 2,480 s on every 10 s again");
    }

    #[test]
    fn a_slow_page_is_taken_and_asked_for_less_often() {
        let mut reader = PageReader::new(recorded_page);
        let times = std::cell::Cell::new(Nanos::ZERO);
        let slow = || {
            times.set(times.get() + Nanos::from_ms(500));
            times.get()
        };
        let pages = reader.read(&[device()], slow);
        assert_eq!((pages.volumes.len(), reader.volumes["nvme1n1"].pause), (1, Nanos::from_secs(20)));
    }

    #[test]
    fn another_volume_under_the_name_has_no_page_of_the_one_before() {
        let mut reader = PageReader::new(recorded_page);
        reader.read(&[device()], || Nanos::from_secs(1));
        reader.ask = no_page;
        let other = EbsDevice { volume_id: "vol-2".to_owned(), ..device() };
        let pages = reader.read(&[other], || Nanos::from_secs(2));
        assert!(pages.volumes.is_empty());
        assert_eq!(pages.reads, EbsReads { asked: 2, failed: 1 });
    }
}
