//! Volumes by what lies on them: `data=gp3:size=500GiB,redo=io2:size=20GiB,iops=3000`, or one spec for all files.

use ebbtide_catalog::{Catalog, CatalogError, Resolved, Spec, SpecError};
use ebbtide_twin::innodb::{BinlogVolume, Settings, VolumeRole, Volumes};

/// Volumes that a server cannot have.
#[derive(Debug, thiserror::Error)]
pub enum VolumesError {
    /// A role is there twice.
    #[error("{text} has two volumes for {}", role.name())]
    Twice {
        /// The specs as they were given.
        text: String,
        /// The role.
        role: VolumeRole,
    },
    /// Only logs have a volume.
    #[error("{text} has no volume for the data")]
    NoData {
        /// The specs as they were given.
        text: String,
    },
    /// A role that there is not.
    #[error("{name} is no role: use data, redo, binlog or redo+binlog, as in data=gp3:size=500GiB")]
    UnknownRole {
        /// Its name.
        name: String,
    },
    /// The binary log has a volume, and the server writes none.
    #[error("{volumes}: the server of the profile writes no binary log (log_bin = false)")]
    NoBinlog {
        /// The specs.
        volumes: String,
        /// The role of the volume.
        role: VolumeRole,
    },
    /// A text that is no spec.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A spec that no volume can have.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// Reads the specs of a server's volumes. A role begins the spec of its volume; a text without roles, or before the first one, is
/// the volume of the data and of each log without one. `redo+binlog` is one volume for both logs.
///
/// # Errors
/// A role that there is not or that is there twice, no volume of the data, or a spec that is none.
pub fn parse(text: &str) -> Result<Volumes<Spec>, VolumesError> {
    let mut data = None;
    let (mut redo, mut binlog) = (None, BinlogVolume::Data);
    for (role, text_of_spec) in by_role(text)? {
        let is_taken = match role {
            VolumeRole::Data => data.is_some(),
            VolumeRole::Redo => redo.is_some(),
            VolumeRole::Binlog => binlog != BinlogVolume::Data,
            VolumeRole::Logs => redo.is_some() || binlog != BinlogVolume::Data,
        };
        if is_taken {
            return Err(VolumesError::Twice { text: text.to_owned(), role });
        }
        let spec = Spec::parse(text_of_spec)?;
        match role {
            VolumeRole::Data => data = Some(spec),
            VolumeRole::Redo => redo = Some(spec),
            VolumeRole::Binlog => binlog = BinlogVolume::Own(spec),
            VolumeRole::Logs => (redo, binlog) = (Some(spec), BinlogVolume::Redo),
        }
    }
    let data = data.ok_or_else(|| VolumesError::NoData { text: text.to_owned() })?;
    Ok(Volumes { data, redo, binlog })
}

/// The role of a name.
fn role(name: &str) -> Option<VolumeRole> {
    VolumeRole::ALL.into_iter().find(|role| role.name() == name)
}

/// The parts of a text, each with its role.
fn by_role(text: &str) -> Result<Vec<(VolumeRole, &str)>, VolumesError> {
    let mut begins = Vec::new();
    let mut at = 0;
    for piece in text.split(',') {
        let (name, value) = piece.split_once('=').map_or((piece, ""), |(name, value)| (name.trim(), value));
        // A spec begins with a type, and `:` follows the type where it has keys; a role stands before a type.
        let has_type = name.contains([':', '(']) || !piece.contains('=');
        let is_role = role(name).is_some() || !has_type && (value.contains(':') || begins.is_empty());
        if is_role {
            let role = role(name).ok_or_else(|| VolumesError::UnknownRole { name: name.to_owned() })?;
            let spec = at + piece.len() - value.len();
            begins.push((role, at, spec));
        } else if begins.is_empty() {
            begins.push((VolumeRole::Data, at, at));
        }
        at += piece.len() + 1;
    }
    let ends = begins.iter().skip(1).map(|(_, at, _)| at - 1).chain([text.len()]);
    Ok(begins.iter().zip(ends).map(|((role, _, from), to)| (*role, &text[*from..to])).collect())
}

/// Refuses a volume of the binary log for a server that writes none.
///
/// # Errors
/// It has one.
pub(crate) fn refuse_idle(volumes: &Volumes<Spec>, server: &Settings) -> Result<(), VolumesError> {
    let role = volumes.role_of_binlog();
    if server.log_bin || role == VolumeRole::Data {
        return Ok(());
    }
    Err(VolumesError::NoBinlog { volumes: text(volumes), role })
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

/// The specs as a text that [`parse`] reads.
#[must_use]
pub fn text(specs: &Volumes<Spec>) -> String {
    joined(specs, ",", |spec| spec.to_string())
}

/// The volumes in words, with their limits.
#[must_use]
pub fn description(volumes: &Volumes<Resolved>) -> String {
    joined(volumes, "; ", |resolved| resolved.description.clone())
}

fn joined<T>(volumes: &Volumes<T>, between: &str, of: impl Fn(&T) -> String) -> String {
    if volumes.is_one() {
        return of(&volumes.data);
    }
    let each = volumes.roles().map(|(role, one)| format!("{}={}", role.name(), of(one)));
    each.collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use ebbtide_twin::innodb::Flavour;

    use super::*;

    fn shown(given: &str) -> String {
        text(&parse(given).unwrap_or_else(|error| panic!("{given}: {error}")))
    }

    #[test]
    fn a_spec_without_a_role_is_the_volume_of_all_files() {
        for spec in ["gp3:size=500GiB,iops=6000", "raid0(2x gp3:size=1TiB,iops=4000)", "nvme"] {
            let volumes = parse(spec).unwrap();
            assert!(volumes.is_one(), "{spec}");
            assert_eq!(text(&volumes), spec);
        }
    }

    #[test]
    fn roles_begin_the_spec_of_their_volume() {
        let both = "data=gp3:size=500GiB,iops=6000,redo=io2:size=20GiB,iops=3000,binlog=gp2:size=50GiB";
        assert_eq!(shown(both), both);
        assert_eq!(shown("data=gp3:size=500GiB"), "gp3:size=500GiB");
        assert_eq!(shown("gp3:size=500GiB,redo=gp3:size=20GiB"), "data=gp3:size=500GiB,redo=gp3:size=20GiB");
        let array = "data=raid0(2x gp3:size=1TiB,iops=4000),binlog=gp3:size=50GiB";
        assert_eq!(shown(array), array);
        assert_eq!(shown("data=nvme,redo=nvme"), "data=nvme,redo=nvme");
        let later = parse("redo=io2:size=20GiB,iops=3000,data=gp3:size=500GiB").unwrap();
        assert_eq!(later.redo.unwrap().to_string(), "io2:size=20GiB,iops=3000");
    }

    #[test]
    fn one_volume_may_have_both_logs() {
        let logs = "data=gp3:size=500GiB,redo+binlog=io2:size=20GiB,iops=3000";
        assert_eq!(shown(logs), logs);
        let volumes = parse(logs).unwrap();
        assert_eq!(volumes.binlog, BinlogVolume::Redo);
        assert_eq!(volumes.roles().count(), 2);
        let twice = |text: &str| format!("{:#}", parse(text).unwrap_err());
        for more in ["redo=nvme", "binlog=nvme", "redo+binlog=nvme"] {
            let error = twice(&format!("{logs},{more}"));
            assert!(error.contains("two volumes for"), "{error}");
        }
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
