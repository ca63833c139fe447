//! The control plane on a real host: block store, engine and NBD exports, without root.
#![allow(clippy::unwrap_used)]

mod answers;
mod callers;
mod counting;
mod creation;
mod following;
mod inventory;
mod life;
mod loading;
mod nbd;
mod observing;
mod snapshots;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ebbtide_catalog::Spec;
use ebbtide_control::{
    AttachVolume, ControlError, ControlPlane, CreateVolume, DetachVolume, Export, LiveControl, NbdAddress,
    VolumeDetail,
};
use ebbtide_device::host::{Home, Host, HostOptions};

/// A control plane of an empty home.
struct Fixture {
    plane: LiveControl,
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        calibrate(&home.calibration_file());
        let host = Host::open(home.lock().unwrap(), HostOptions::default()).unwrap();
        Self { plane: LiveControl::new(host), dir }
    }

    fn create(&self, name: &str, spec: &str) -> Result<VolumeDetail, ControlError> {
        self.plane.create_volume(&asked(name, spec))
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.sock"))
    }

    fn attach(&self, name: &str) -> Result<VolumeDetail, ControlError> {
        self.attach_with(name, &[])
    }

    fn attach_with(&self, name: &str, shadows: &[&str]) -> Result<VolumeDetail, ControlError> {
        let request = AttachVolume {
            name: name.to_owned(),
            export: Export::Nbd(NbdAddress::Unix(self.socket(name))),
            instance: None,
            // The machine of a test may be slower than any volume.
            over_limit: true,
            shadows: shadows.iter().map(|spec| Spec::parse(spec).unwrap()).collect(),
        };
        self.plane.attach_volume(&request, &|_| ())
    }

    fn detach(&self, name: &str) -> Result<(), ControlError> {
        let request = DetachVolume { name: name.to_owned(), force: false };
        let view = self.plane.detach_volume(&request, &|_| ())?;
        assert!(view.is_lossless(), "{view:?}");
        Ok(())
    }
}

/// Gives a home the figures of this machine, which are measured once for all tests.
fn calibrate(file: &Path) {
    static MEASURED: OnceLock<Vec<u8>> = OnceLock::new();
    let measured = MEASURED.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let host = Host::open(home.lock().unwrap(), HostOptions::default()).unwrap();
        LiveControl::new(host).calibrate(true, &|_| ()).unwrap();
        std::fs::read(home.calibration_file()).unwrap()
    });
    std::fs::write(file, measured).unwrap();
}

fn asked(name: &str, spec: &str) -> CreateVolume {
    CreateVolume {
        name: name.to_owned(),
        spec: Spec::parse(spec).unwrap(),
        snapshot: None,
        initialization: None,
        block_size: 512,
        seed: None,
        region: None,
        token: None,
        key: None,
        owner: None,
    }
}
