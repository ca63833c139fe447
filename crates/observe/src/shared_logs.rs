//! The volume that the logs of an observed server share.

use std::fmt;

use crate::facts::switch;
use crate::host::{Device, Files};
use crate::observation::Observation;
use crate::role::Role;

/// A volume that holds the redo log and the binary log, and no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedLogs<'a> {
    /// Its device, such as `nvme2n1`; None where it is not known.
    pub device: Option<&'a str>,
    /// The spec of its volume; None: no one named it.
    pub spec: Option<&'a str>,
}

/// Two specs for the one device of both logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TwoSpecs {
    /// The device; None where it is not known.
    pub device: Option<String>,
    /// The spec that the redo log has.
    pub redo: String,
    /// The spec that the binary log has.
    pub binlog: String,
}

impl fmt::Display for TwoSpecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.device.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        write!(
            f,
            "the redo log and the binary log lie on one device{device}, and two volumes are named for it: redo={} and \
             binlog={}",
            self.redo, self.binlog
        )
    }
}

impl std::error::Error for TwoSpecs {}

impl Observation {
    /// The volume that both logs share: someone named it, or both lie on one device without the data. None where they lie
    /// apart or with the data, or where neither is known.
    ///
    /// # Errors
    /// The redo log and the binary log have different specs, which one device cannot have.
    pub fn shared_logs(&self) -> Result<Option<SharedLogs<'_>>, TwoSpecs> {
        let [data, redo, binlog] = [Files::Data, Files::Redo, Files::Binlog].map(|files| self.device(files));
        let is_one_device = match (data, redo, binlog) {
            (Some(data), Some(redo), Some(binlog)) => redo.shares_with(binlog) && !redo.shares_with(data),
            _ => false,
        };
        if !is_one_device && self.volumes.get(Role::Logs).is_none() {
            return Ok(None);
        }
        let device = redo.or(binlog).map(|device| device.name.as_str());
        match (self.spec(Role::Redo), self.spec(Role::Binlog)) {
            (Some(redo), Some(binlog)) if redo != binlog => Err(TwoSpecs {
                device: device.map(str::to_owned),
                redo: redo.to_owned(),
                binlog: binlog.to_owned(),
            }),
            (redo, binlog) => Ok(Some(SharedLogs { device, spec: redo.or(binlog) })),
        }
    }

    /// The devices of the redo log and of the binary log where they have none in common; None where they have, and where
    /// one is not known.
    #[must_use]
    pub fn devices_of_logs_apart(&self) -> Option<[&str; 2]> {
        let (redo, binlog) = (self.device(Files::Redo)?, self.device(Files::Binlog)?);
        (!redo.shares_with(binlog)).then_some([redo.name.as_str(), binlog.name.as_str()])
    }

    /// Whether the server is known to write no binary log.
    #[must_use]
    pub fn is_without_binlog(&self) -> bool {
        let word = self.variables.as_ref().and_then(|all| all.get("log_bin"));
        word.and_then(switch) == Some(false)
    }

    fn device(&self, files: Files) -> Option<&Device> {
        self.host.as_ref()?.place(files)?.device.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Origin, ServerDirectory, Volumes};

    fn seen(devices: [&str; 3], redo: Option<&str>, binlog: Option<&str>) -> Observation {
        let files = [Files::Data, Files::Redo, Files::Binlog];
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
        let places = files.into_iter().zip(devices).map(place).collect();
        let mut seen = Observation {
            host: Some(Host { places, ..Host::default() }),
            ..Observation::of(Origin::Capture { path: "/c".into() })
        };
        for (role, spec) in [(Role::Redo, redo), (Role::Binlog, binlog)] {
            if spec.is_some() {
                seen.volumes.set(role, spec.map(str::to_owned));
            }
        }
        seen
    }

    #[test]
    fn logs_on_one_device_share_a_volume_whichever_of_them_names_it() {
        let spec = |redo, binlog| {
            let seen = seen(["a", "b", "b"], redo, binlog);
            let shared = seen.shared_logs().unwrap().unwrap();
            (shared.device.unwrap().to_owned(), shared.spec.map(str::to_owned))
        };
        let one = Some("nvme");
        for (redo, binlog) in [(one, one), (one, None), (None, one)] {
            assert_eq!(spec(redo, binlog), ("b".to_owned(), Some("nvme".to_owned())));
        }
        assert_eq!(spec(None, None), ("b".to_owned(), None));
    }

    #[test]
    fn logs_apart_or_with_the_data_or_on_unknown_devices_share_none_of_their_own() {
        for devices in [["a", "b", "c"], ["a", "a", "a"], ["a", "b", "a"], ["a", "a", "b"]] {
            assert_eq!(seen(devices, Some("nvme"), Some("nvme")).shared_logs(), Ok(None), "{devices:?}");
        }
        let unknown = Observation { host: None, ..seen(["a", "b", "b"], Some("nvme"), Some("nvme")) };
        assert_eq!(unknown.shared_logs(), Ok(None));
    }

    #[test]
    fn a_volume_that_is_named_for_both_logs_is_shared_without_a_device() {
        let both = || Volumes::default().with(Role::Logs, Some("nvme".to_owned()));
        let named = Observation { host: None, volumes: both(), ..seen(["a", "b", "b"], None, None) };
        assert_eq!(named.shared_logs(), Ok(Some(SharedLogs { device: None, spec: Some("nvme") })));
        assert_eq!(named.devices_of_logs_apart(), None);
        let apart = Observation { volumes: both(), ..seen(["a", "b", "c"], None, None) };
        assert_eq!(apart.devices_of_logs_apart(), Some(["b", "c"]));
    }

    #[test]
    fn two_specs_for_one_device_are_an_error_that_names_all_three() {
        let error = seen(["a", "b", "b"], Some("nvme"), Some("gp3:size=5GiB")).shared_logs().unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("(b)") && text.contains("redo=nvme") && text.contains("binlog=gp3:size=5GiB"),
            "{text}"
        );
    }
}
