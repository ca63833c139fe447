//! What is known of the volumes themselves: the statistics of EBS over NVMe, and the volumes of Ebbtide's own.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ebbtide_catalog::{CreditShare, Spec};
use ebbtide_control::VolumeView;
use ebbtide_device::host::Home;
use ebbtide_device::nvme::{EbsStatistics, ebs_statistics};
use ebbtide_observe::{Device, Exceeded, Files, Host, NotSeen, Observation};

use crate::control::{Request, ask_if_there};
use crate::volume::args::ListArgs;

/// The counters of EBS at the beginning of an interval, by the name of the device.
#[derive(Debug, Default)]
pub(super) struct EbsLook {
    before: BTreeMap<String, EbsStatistics>,
    /// Why a device that is an EBS volume did not answer.
    refused: Option<String>,
}

impl EbsLook {
    /// Asks each EBS volume below the server's files.
    pub(super) fn of(host: &Host) -> Self {
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
    pub(super) fn finish(self, seen: &mut Observation, seconds: f64) {
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

/// How long the server of the home may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Names the volumes that the server of the home has attached below the files of a server. Where none runs, or none of its
/// volumes is there, nothing changes.
pub(super) fn name_own_volumes(seen: &mut Observation, home: Option<&Home>) {
    let Some(host) = &seen.host else { return };
    // Its devices are loop devices; without one the home's server need not be asked.
    if !devices(host).any(|device| device.name.starts_with("loop")) {
        return;
    }
    let ask = |home| ask_if_there(home, &Request::VolumeList(ListArgs { region: None }), PATIENCE);
    let Some(value) = home.and_then(ask) else { return };
    let Ok(volumes) = serde_json::from_value::<Vec<VolumeView>>(value) else { return };
    let attached = volumes.into_iter().filter_map(|volume| {
        let spec = with_credits(volume.spec, volume.credit_pct);
        Some((volume.attachment?.device?, spec))
    });
    let specs: BTreeMap<String, String> = attached.collect();
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
    use ebbtide_observe::ServerDirectory;

    use super::*;

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
            ..Observation::of(ebbtide_observe::Origin::Capture { path: "/c".into() })
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
