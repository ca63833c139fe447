//! What is known of the volumes themselves: what the user names, the statistics of EBS over NVMe, and the volumes of Ebbtide's
//! own.

use std::collections::BTreeMap;
use std::path::Path;

use ebbtide_catalog::{Catalog, CatalogError, CreditShare, Spec, SpecError};
use ebbtide_device::nvme::{EbsStatistics, ebs_statistics};
use ebbtide_observe::{Device, Exceeded, FileSystem, Files, Host, NotSeen, Observation, VolumeFiles};

/// What is known of a server's storage beforehand: no server can be asked for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamedStorage {
    /// Specs of volumes by what lies on them.
    pub volumes: Vec<(VolumeFiles, String)>,
    /// The EC2 instance type, such as `r6i.large`.
    pub instance: Option<String>,
    /// The file system of the data.
    pub file_system: Option<FileSystem>,
}

/// Storage that there is not, or that the server does not have.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// Two volumes for the same files.
    #[error("the volume of the {} is named twice", .0.name())]
    NamedTwice(Files),
    /// A text that is no spec.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A volume or an instance that AWS does not have.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// One volume for both logs, which lie on two devices.
    #[error(
        "one volume is named for both logs, and the redo log lies on {redo} and the binary log on {binlog}"
    )]
    TwoDevices {
        /// The device of the redo log.
        redo: String,
        /// The device of the binary log.
        binlog: String,
    },
}

impl NamedStorage {
    /// Refuses volumes and instances that there are not: before a server is looked at.
    ///
    /// # Errors
    /// Files with two volumes, and what the catalogue refuses.
    pub fn check(&self, catalog: &Catalog) -> Result<(), StorageError> {
        for (place, (of, spec)) in self.volumes.iter().enumerate() {
            let before = || self.volumes[..place].iter().flat_map(|(other, _)| other.files());
            if let Some(files) = of.files().iter().find(|files| before().any(|other| other == *files)) {
                return Err(StorageError::NamedTwice(*files));
            }
            catalog.resolve(&Spec::parse(spec)?)?;
        }
        if let Some(name) = &self.instance {
            catalog.instance(name)?;
        }
        Ok(())
    }

    /// Adds the volumes to what was seen.
    ///
    /// # Errors
    /// One volume for both logs, which lie on two devices.
    pub fn name_volumes(&self, seen: &mut Observation) -> Result<(), StorageError> {
        for (files, spec) in &self.volumes {
            let spec = Some(spec.clone());
            match files {
                VolumeFiles::Data => seen.volume = spec,
                VolumeFiles::Redo => seen.redo_volume = spec,
                VolumeFiles::Binlog => seen.binlog_volume = spec,
                VolumeFiles::Logs => (seen.redo_volume, seen.binlog_volume) = (spec.clone(), spec),
            }
            // A capture may have another word for it.
            seen.logs_share_volume = match files {
                VolumeFiles::Data => seen.logs_share_volume,
                VolumeFiles::Redo | VolumeFiles::Binlog => false,
                VolumeFiles::Logs => true,
            };
        }
        let apart =
            seen.devices_of_logs_apart().filter(|_| seen.logs_share_volume && !seen.is_without_binlog());
        let Some([redo, binlog]) = apart else { return Ok(()) };
        Err(StorageError::TwoDevices { redo: redo.to_owned(), binlog: binlog.to_owned() })
    }

    /// Adds the instance and the file system to what was seen: what is named goes before what was found.
    pub fn name_machine(&self, seen: &mut Observation) {
        seen.instance = self.instance.clone().or_else(|| seen.instance.take());
        seen.file_system = self.file_system.clone().or_else(|| seen.file_system.take());
    }
}

/// The counters of EBS at the beginning of an interval, by the name of the device.
#[derive(Debug, Default)]
pub(crate) struct EbsLook {
    before: BTreeMap<String, EbsStatistics>,
    /// Why a device that is an EBS volume did not answer.
    refused: Option<String>,
}

impl EbsLook {
    /// Asks each EBS volume below the server's files.
    pub(crate) fn of(host: &Host) -> Self {
        let mut look = Self::default();
        for name in devices(host).filter(|device| device.is_ebs()).flat_map(Device::names) {
            match ebs_statistics(&Path::new("/dev").join(name)) {
                Ok(Some(statistics)) => {
                    look.before.insert(name.to_owned(), statistics);
                }
                Ok(None) => {}
                Err(error) => look.refused = Some(format!("/dev/{name}: {error}; it needs root")),
            }
        }
        look
    }

    /// Asks again, and notes for how much of the `seconds` between each volume was over a limit.
    pub(crate) fn finish(self, seen: &mut Observation, seconds: f64) {
        let Some(host) = &mut seen.host else { return };
        for device in host.places.iter_mut().filter_map(|place| place.device.as_mut()) {
            let of = |name: &str| {
                let after = ebs_statistics(&Path::new("/dev").join(name)).ok()??;
                shares(*self.before.get(name)?, after, seconds)
            };
            device.exceeded = device.names().filter_map(of).reduce(larger);
        }
        if let Some(why) = self.refused {
            seen.not_seen.push(NotSeen { what: "statistics of EBS over NVMe".into(), why });
        }
    }
}

fn devices(host: &Host) -> impl Iterator<Item = &Device> {
    host.places.iter().filter_map(|place| place.device.as_ref())
}

/// Shares of the interval over each limit; None for counters that went back, as after a new attachment.
fn shares(before: EbsStatistics, after: EbsStatistics, seconds: f64) -> Option<Exceeded> {
    let share = |before: u64, after: u64| {
        let grown = after.checked_sub(before)? as f64 / 1e6;
        (seconds > 0.0).then(|| (grown / seconds).min(1.0))
    };
    Some(Exceeded {
        volume_iops: share(before.volume_iops_exceeded_us, after.volume_iops_exceeded_us)?,
        volume_throughput: share(before.volume_throughput_exceeded_us, after.volume_throughput_exceeded_us)?,
        instance_iops: share(before.instance_iops_exceeded_us, after.instance_iops_exceeded_us)?,
        instance_throughput: share(
            before.instance_throughput_exceeded_us,
            after.instance_throughput_exceeded_us,
        )?,
    })
}

fn larger(one: Exceeded, other: Exceeded) -> Exceeded {
    Exceeded {
        volume_iops: one.volume_iops.max(other.volume_iops),
        volume_throughput: one.volume_throughput.max(other.volume_throughput),
        instance_iops: one.instance_iops.max(other.instance_iops),
        instance_throughput: one.instance_throughput.max(other.instance_throughput),
    }
}

/// A volume of Ebbtide's own that is attached.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnVolume {
    /// Its block device, such as `/dev/loop1`.
    pub device: String,
    /// What it was created or modified as.
    pub spec: String,
    /// Burst credits that are left, percent; None where it has none.
    pub credit_percent: Option<f64>,
}

/// Names the volumes of Ebbtide's own that lie below the files of a server. `attached` is asked for them only where there is a
/// loop device, which each of them is; where none of them is there, nothing changes.
pub fn name_own_volumes(seen: &mut Observation, attached: impl FnOnce() -> Vec<OwnVolume>) {
    let Some(host) = &seen.host else { return };
    if !devices(host).any(|device| device.name.starts_with("loop")) {
        return;
    }
    let spec = |volume: OwnVolume| (volume.device, with_credits(volume.spec, volume.credit_percent));
    let specs: BTreeMap<String, String> = attached().into_iter().map(spec).collect();
    if specs.is_empty() {
        return;
    }
    let [data, redo, binlog] = specs_of(host, &specs);
    (seen.volume, seen.redo_volume, seen.binlog_volume) = (data, redo, binlog);
}

/// The spec of a volume with the percent of its burst credits that are left now: those of its spec are of its creation.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
fn with_credits(spec: String, percent: Option<f64>) -> String {
    let now = || {
        let mut parsed = Spec::parse(&spec).ok()?;
        // A tenth of a percent is what `volume list` shows.
        parsed.volume.credits = Some(CreditShare::from_ppm((percent? * 10.0).round() as u32 * 1_000));
        Some(parsed.to_string())
    };
    now().unwrap_or(spec)
}

/// The volumes of the data, the redo log and the binary log, of specs by device; files on the device of the data have none
/// of their own.
fn specs_of(host: &Host, specs: &BTreeMap<String, String>) -> [Option<String>; 3] {
    let device = |files| host.place(files).and_then(|place| place.device.as_ref()).map(|device| &device.name);
    let spec = |name: &String| specs.get(&format!("/dev/{name}")).cloned();
    let data = device(Files::Data);
    let own = |files| device(files).filter(|name| data != Some(name)).and_then(spec);
    [data.and_then(spec), own(Files::Redo), own(Files::Binlog)]
}

#[cfg(test)]
mod tests {
    use ebbtide_observe::{Origin, ServerDirectory, Variables};

    use super::*;

    fn name(seen: &mut Observation, volume: (VolumeFiles, String)) -> Result<(), StorageError> {
        NamedStorage { volumes: vec![volume], ..NamedStorage::default() }.name_volumes(seen)
    }

    fn on(redo: &str, binlog: &str, log_bin: &str) -> Observation {
        let place = |(files, name): (Files, &str)| ServerDirectory {
            files,
            directory: "/d".into(),
            mount_point: "/d".into(),
            file_system: "xfs".into(),
            options: Vec::new(),
            size_bytes: None,
            free_bytes: None,
            device: Some(Device { name: name.into(), ..Device::default() }),
        };
        let places = [(Files::Data, "a"), (Files::Redo, redo), (Files::Binlog, binlog)].map(place).into();
        let variables: Variables = [("log_bin", log_bin)].into_iter().collect();
        Observation {
            host: Some(Host { places, ..Host::default() }),
            variables: Some(variables),
            ..Observation::of(Origin::Capture { path: "/c".into() })
        }
    }

    #[test]
    fn one_volume_for_both_logs_is_that_of_each_and_a_later_word_for_one_of_them_ends_it() {
        let named = |files, spec: &str| (files, spec.to_owned());
        let mut seen = Observation::of(Origin::Capture { path: "/c".into() });
        name(&mut seen, named(VolumeFiles::Logs, "nvme")).unwrap();
        let shared = seen.shared_logs().unwrap().unwrap();
        assert_eq!((shared.device, shared.spec), (None, Some("nvme")));
        // As where the file is a capture of that.
        name(&mut seen, named(VolumeFiles::Data, "gp3:size=5GiB")).unwrap();
        assert!(seen.logs_share_volume);
        name(&mut seen, named(VolumeFiles::Redo, "gp3:size=5GiB")).unwrap();
        assert_eq!(seen.shared_logs(), Ok(None));
        assert_eq!([seen.redo_volume.unwrap(), seen.binlog_volume.unwrap()], ["gp3:size=5GiB", "nvme"]);
    }

    #[test]
    fn one_volume_for_logs_on_two_devices_is_refused_with_both() {
        let named = || (VolumeFiles::Logs, "nvme".to_owned());
        let error = name(&mut on("b", "c", "ON"), named()).unwrap_err().to_string();
        assert!(error.contains("redo log lies on b") && error.contains("binary log on c"), "{error}");
        name(&mut on("b", "b", "ON"), named()).unwrap();
        name(&mut on("b", "a", "OFF"), named()).unwrap();
    }

    #[test]
    fn volumes_are_named_by_the_device_below_the_files_and_one_for_all_files_is_that_of_the_data() {
        let specs = BTreeMap::from([
            ("/dev/loop1".to_owned(), "gp3:size=500GiB".to_owned()),
            ("/dev/loop12".to_owned(), "io2:size=50GiB,iops=1000".to_owned()),
        ]);
        let place = |files, name: &str| ServerDirectory {
            files,
            directory: "/d".into(),
            mount_point: "/".into(),
            file_system: "xfs".into(),
            options: Vec::new(),
            size_bytes: None,
            free_bytes: None,
            device: Some(Device { name: name.into(), ..Device::default() }),
        };
        let host = |[data, redo, binlog]: [&str; 3]| {
            let places = [(Files::Data, data), (Files::Redo, redo), (Files::Binlog, binlog)];
            let places = places.map(|(files, name)| place(files, name)).into();
            Host { places, ..Host::default() }
        };
        let gp3 = Some("gp3:size=500GiB".to_owned());
        let io2 = Some("io2:size=50GiB,iops=1000".to_owned());
        assert_eq!(specs_of(&host(["loop1", "loop12", "loop1"]), &specs), [gp3.clone(), io2.clone(), None]);
        let shared = host(["loop1", "loop12", "loop12"]);
        let [data, redo, binlog] = specs_of(&shared, &specs);
        assert_eq!([&data, &redo, &binlog], [&gp3, &io2, &io2]);
        let seen = Observation {
            host: Some(shared),
            redo_volume: redo,
            binlog_volume: binlog,
            ..Observation::of(Origin::Capture { path: "/c".into() })
        };
        assert_eq!(seen.shared_logs().unwrap().and_then(|logs| logs.spec), io2.as_deref());
        assert_eq!(specs_of(&host(["loop12", "loop12", "loop12"]), &specs), [io2, None, None]);
        assert_eq!(specs_of(&host(["loop2", "nvme0n1", "loop2"]), &specs), [None, None, None]);
    }

    #[test]
    fn credits_are_those_of_now() {
        let now = |spec: &str, percent| with_credits(spec.to_owned(), percent);
        assert_eq!(
            now("gp2:size=100GiB,credits=50%,twp=on", Some(1.96)),
            "gp2:size=100GiB,credits=2%,twp=on"
        );
        assert_eq!(now("gp2:size=100GiB", Some(0.0)), "gp2:size=100GiB,credits=0%");
        assert_eq!(now("gp3:size=100GiB", None), "gp3:size=100GiB");
    }

    #[test]
    fn the_time_over_a_limit_is_a_share_of_the_interval_and_of_members_the_largest() {
        let before = EbsStatistics { volume_iops_exceeded_us: 1_000_000, ..EbsStatistics::default() };
        let after = EbsStatistics {
            volume_iops_exceeded_us: 3_500_000,
            instance_throughput_exceeded_us: 20_000_000,
            ..EbsStatistics::default()
        };
        let over = shares(before, after, 10.0).unwrap();
        assert_eq!((over.volume_iops, over.instance_throughput), (0.25, 1.0));
        assert_eq!((shares(after, before, 10.0), shares(before, after, 0.0)), (None, None));
        let other = Exceeded { volume_iops: 0.5, ..Exceeded::default() };
        assert_eq!((larger(over, other).volume_iops, larger(over, other).instance_throughput), (0.5, 1.0));
    }
}
