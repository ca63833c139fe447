//! The volumes of a server as specs, and as the catalogue resolves them.

use ebbtide_catalog::{Catalog, CatalogError, Resolved, Spec, SpecError};
use ebbtide_observe::{Role, Volumes, WrongVolumes};
use ebbtide_twin::innodb::Settings;

/// Volumes that a server cannot have.
#[derive(Debug, thiserror::Error)]
pub enum VolumesError {
    /// A text that names no volumes of a server.
    #[error(transparent)]
    Wrong(#[from] WrongVolumes),
    /// The binary log has a volume, and the server writes none.
    #[error("{volumes}: the server of the profile writes no binary log (log_bin = false)")]
    NoBinlog {
        /// The specs.
        volumes: String,
        /// The role of the volume.
        role: Role,
    },
    /// A text that is no spec.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A spec that no volume can have.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// Reads the specs of a server's volumes, as [`Volumes::parse`] does.
///
/// # Errors
/// A text that names no volumes of a server, or a spec that is none.
pub fn parse(text: &str) -> Result<Volumes<Spec>, VolumesError> {
    Volumes::parse(text)?.try_map(|spec| Ok(Spec::parse(spec)?))
}

/// Refuses a volume of the binary log for a server that writes none.
///
/// # Errors
/// It has one.
pub(crate) fn refuse_idle(volumes: &Volumes<Spec>, server: &Settings) -> Result<(), VolumesError> {
    let role = volumes.role_of(Role::Binlog);
    if server.log_bin || role == Role::Data {
        return Ok(());
    }
    Err(VolumesError::NoBinlog { volumes: volumes.to_string(), role })
}

/// The volumes of specs, divided as the machine is.
///
/// # Errors
/// A volume that there is not.
pub(crate) fn resolved(
    catalog: &Catalog,
    specs: &Volumes<Spec>,
    divided_by: u32,
) -> Result<Volumes<Resolved>, VolumesError> {
    specs.try_map(|spec| Ok(catalog.resolve(spec)?.divided(divided_by)))
}

/// The volumes in words, with their limits.
#[must_use]
pub fn description(volumes: &Volumes<Resolved>) -> String {
    volumes.joined("; ", |resolved| resolved.description.clone())
}

#[cfg(test)]
mod tests {
    use ebbtide_twin::innodb::Flavour;

    use super::*;

    #[test]
    fn specs_are_written_as_they_are_read() {
        for text in [
            "gp3:size=500GiB,iops=6000",
            "data=raid0(2x gp3:size=1TiB,iops=4000),binlog=gp3:size=50GiB",
            "data=gp3:size=500GiB,iops=6000,redo=io2:size=20GiB,iops=3000,binlog=gp2:size=50GiB",
            "data=gp3:size=500GiB,redo+binlog=io2:size=20GiB,iops=3000",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        let later = parse("redo=io2:size=20GiB,iops=3000,data=gp3:size=500GiB").unwrap();
        assert_eq!(later.get(Role::Redo).unwrap().to_string(), "io2:size=20GiB,iops=3000");
        assert!(matches!(parse("data=gp3:size=5GiB,redo=gp3:size=5"), Err(VolumesError::Spec(_))));
    }

    #[test]
    fn a_volume_of_a_binary_log_that_is_not_written_is_refused() {
        let with = |log_bin| Settings { log_bin, ..Settings::of(Flavour::MariaDb105, 1 << 30) };
        let why = |text: &str| refuse_idle(&parse(text).unwrap(), &with(false)).unwrap_err().to_string();
        let own = "data=nvme,binlog=gp3:size=50GiB";
        assert!(why(own).contains("log_bin = false") && why(own).contains(own), "{}", why(own));
        assert!(why("data=nvme,redo+binlog=gp3:size=50GiB").contains("no binary log"));
        for fine in ["nvme", "data=nvme,redo=gp3:size=50GiB"] {
            refuse_idle(&parse(fine).unwrap(), &with(false)).unwrap();
        }
        refuse_idle(&parse(own).unwrap(), &with(true)).unwrap();
    }

    #[test]
    fn wrong_roles_are_refused_with_what_to_write() {
        let why = |text: &str| format!("{:#}", parse(text).unwrap_err());
        assert!(why("logs=gp3:size=5GiB").contains("logs is no role"), "{}", why("logs=gp3:size=5GiB"));
        assert!(why("redo=gp3:size=5GiB").contains("no volume for the data"));
        assert!(why("data=gp3:size=5GiB,data=gp3:size=5GiB").contains("two volumes for data"));
        assert!(why("data=gp3:size=5GiB,undo=gp3:size=5GiB").contains("undo is no role"));
    }
}
