//! A sweep: one key of a volume takes one value after the other.

use std::str::FromStr;

use ebbtide_catalog::Spec;
use ebbtide_twin::innodb::{BinlogVolume, VolumeRole, Volumes};
use ebbtide_volume::GIB;

use super::error::{MOST_VOLUMES, PredictionError};

/// A key of a volume's spec, and the values that it takes: `iops=1000..30000:1000`, or `redo.iops=1000..5000:500` of the
/// redo log's volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The key, as it was given: it may name a role.
    key: String,
    /// The values, both ends included; one more than are predicted where there are too many.
    values: Vec<u64>,
}

/// A text that is no sweep.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text} is no sweep: expected iops, throughput or size, and FROM..TO:STEP")]
pub struct NoSweep {
    /// The text.
    text: String,
}

impl FromStr for Sweep {
    type Err = NoSweep;

    fn from_str(text: &str) -> Result<Self, NoSweep> {
        let bad = || NoSweep { text: text.to_owned() };
        let parse = || {
            let (key, range) = text.split_once('=')?;
            let (from, rest) = range.split_once("..")?;
            let (to, step) = rest.split_once(':')?;
            let number = |text: &str| text.trim().parse::<u64>().ok();
            Some((key.trim().to_owned(), number(from)?, number(to)?, number(step)?))
        };
        let (key, from, to, step) = parse().ok_or_else(bad)?;
        let (role, key_of_spec) = key.split_once('.').unwrap_or(("data", &key));
        if !VolumeRole::ALL.iter().any(|known| known.name() == role)
            || !["iops", "throughput", "size"].contains(&key_of_spec)
            || step == 0
            || from > to
            || from == 0
        {
            return Err(bad());
        }
        let values = (from..=to).step_by(usize::try_from(step).unwrap_or(usize::MAX)).take(MOST_VOLUMES + 1);
        Ok(Self { values: values.collect(), key })
    }
}

impl Sweep {
    /// The key, as it was given.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The specs with each value, in their order.
    ///
    /// # Errors
    /// A role without a volume of its own.
    pub(super) fn of(&self, specs: &Volumes<Spec>) -> Result<Vec<(u64, Volumes<Spec>)>, PredictionError> {
        self.values.iter().map(|value| Ok((*value, self.with(specs, *value)?))).collect()
    }

    /// The specs with another value of the key.
    fn with(&self, specs: &Volumes<Spec>, value: u64) -> Result<Volumes<Spec>, PredictionError> {
        let mut specs = specs.clone();
        let (role, key) = self.key.split_once('.').unwrap_or(("data", &self.key));
        let spec = match (role, &mut specs.binlog) {
            ("data", _) => Some(&mut specs.data),
            ("redo", _) | ("binlog" | "redo+binlog", BinlogVolume::Redo) => specs.redo.as_mut(),
            ("binlog", BinlogVolume::Own(volume)) => Some(volume),
            _ => None,
        };
        let spec = spec
            .ok_or_else(|| PredictionError::NoVolumeToSweep { role: role.to_owned(), key: key.to_owned() })?;
        *spec = with_key(spec, key, value);
        Ok(specs)
    }
}

/// A spec with another value of a key of a sweep. With RAID 0 each member has it.
fn with_key(spec: &Spec, key: &str, value: u64) -> Spec {
    let mut spec = spec.clone();
    let volume = &mut spec.volume;
    match key {
        "iops" => volume.iops = Some(value),
        "throughput" => volume.throughput_mib_s = Some(value),
        _ => volume.size_bytes = Some(value.saturating_mul(GIB)),
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volumes::{parse, text};

    #[test]
    fn a_sweep_has_both_its_ends_and_replaces_its_key() {
        let sweep: Sweep = "iops=1000..3000:1000".parse().unwrap();
        assert_eq!((sweep.key(), &sweep.values[..]), ("iops", &[1_000, 2_000, 3_000][..]));
        let swept = |specs: &Volumes<Spec>, key: &str, value| {
            Sweep { key: key.into(), values: Vec::new() }.with(specs, value)
        };
        let both = parse("data=gp3:size=1TiB,redo=gp3:size=20GiB").unwrap();
        let of_redo = swept(&both, "redo.iops", 4_000).unwrap();
        assert_eq!(text(&of_redo), "data=gp3:size=1TiB,redo=gp3:size=20GiB,iops=4000");
        let logs = parse("data=gp3:size=1TiB,redo+binlog=gp3:size=20GiB").unwrap();
        for key in ["redo.iops", "binlog.iops", "redo+binlog.iops"] {
            let shown = text(&swept(&logs, key, 4_000).unwrap());
            assert_eq!(shown, "data=gp3:size=1TiB,redo+binlog=gp3:size=20GiB,iops=4000", "{key}");
        }
        assert!(swept(&both, "redo+binlog.iops", 5).is_err());
        let error = swept(&both, "binlog.size", 5).unwrap_err().to_string();
        assert!(error.contains("no volume for binlog"), "{error}");
        let with = |spec: &str, key, value| with_key(&Spec::parse(spec).unwrap(), key, value).to_string();
        assert_eq!(with("gp3:size=1TiB,iops=5000", "iops", 4_000), "gp3:size=1TiB,iops=4000");
        assert_eq!(with("gp2:size=1TiB", "size", 300), "gp2:size=300GiB");
        assert_eq!(with("raid0(2x gp3:size=1TiB)", "iops", 4_000), "raid0(2x gp3:size=1TiB,iops=4000)");
    }

    #[test]
    fn what_is_no_sweep_is_refused_with_its_text() {
        for text in [
            "iops",
            "iops=1..2",
            "iops=5..1:1",
            "iops=1..5:0",
            "colour=1..5:1",
            "iops=a..5:1",
            "tmp.iops=1..5:1",
        ] {
            let error = text.parse::<Sweep>().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
