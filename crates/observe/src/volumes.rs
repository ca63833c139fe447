//! The volume that a server's logs share, apart from its data.

use std::fmt;

use crate::host::Files;
use crate::observation::Observation;

/// A device that holds the redo log and the binary log, and no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedLogs<'a> {
    /// Its name, such as `nvme2n1`.
    pub device: &'a str,
    /// The spec of its volume; None: no one named it.
    pub spec: Option<&'a str>,
}

/// Two specs for the one device of both logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TwoSpecs {
    /// The device.
    pub device: String,
    /// The spec that the redo log has.
    pub redo: String,
    /// The spec that the binary log has.
    pub binlog: String,
}

impl fmt::Display for TwoSpecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the redo log and the binary log lie on one device ({}), and two volumes are named for it: redo={} and \
             binlog={}",
            self.device, self.redo, self.binlog
        )
    }
}

impl std::error::Error for TwoSpecs {}

impl Observation {
    /// The device that both logs share; None where they lie apart or with the data, or where the devices are not known.
    ///
    /// # Errors
    /// The redo log and the binary log have different specs, which one device cannot have.
    pub fn shared_logs(&self) -> Result<Option<SharedLogs<'_>>, TwoSpecs> {
        let device = |files| self.host.as_ref()?.place(files)?.device.as_ref();
        let [Some(data), Some(redo), Some(binlog)] = [Files::Data, Files::Redo, Files::Binlog].map(device)
        else {
            return Ok(None);
        };
        if !redo.shares_with(binlog) || redo.shares_with(data) {
            return Ok(None);
        }
        match (self.redo_volume.as_deref(), self.binlog_volume.as_deref()) {
            (Some(redo_spec), Some(binlog_spec)) if redo_spec != binlog_spec => Err(TwoSpecs {
                device: redo.name.clone(),
                redo: redo_spec.to_owned(),
                binlog: binlog_spec.to_owned(),
            }),
            (one, other) => Ok(Some(SharedLogs { device: &redo.name, spec: one.or(other) })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Host, Origin, ServerDirectory};

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
        Observation {
            host: Some(Host { places, ..Host::default() }),
            redo_volume: redo.map(str::to_owned),
            binlog_volume: binlog.map(str::to_owned),
            ..Observation::of(Origin::Capture { path: "/c".into() })
        }
    }

    #[test]
    fn logs_on_one_device_share_a_volume_whichever_of_them_names_it() {
        let spec = |redo, binlog| {
            let seen = seen(["a", "b", "b"], redo, binlog);
            let shared = seen.shared_logs().unwrap().unwrap();
            (shared.device.to_owned(), shared.spec.map(str::to_owned))
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
    fn two_specs_for_one_device_are_an_error_that_names_all_three() {
        let error = seen(["a", "b", "b"], Some("nvme"), Some("gp3:size=5GiB")).shared_logs().unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("(b)") && text.contains("redo=nvme") && text.contains("binlog=gp3:size=5GiB"),
            "{text}"
        );
    }
}
