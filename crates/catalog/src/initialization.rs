//! How a volume from a snapshot gets its blocks (AWS: volume initialization), as text and as data of the catalogue.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{CatalogError, DataError, data::InitializationRules, error::data, service::curve};

/// How a volume from a snapshot gets its blocks, as text: `lazy`, `rate=200MiB/s` or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Initialization {
    /// Each block when it is touched first: what EBS does by default, without the background of which AWS publishes no
    /// rate.
    Lazy,
    /// Besides, all blocks in their order at a provisioned rate (the API's `VolumeInitializationRate`).
    Rate {
        /// In MiB/s.
        mib_s: u64,
    },
    /// All blocks are there from the beginning.
    None,
}

/// A text that is no [`Initialization`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an initialization: give lazy, none, or a rate like rate=200MiB/s")]
pub struct InitializationError(String);

impl FromStr for Initialization {
    type Err = InitializationError;

    fn from_str(text: &str) -> Result<Self, InitializationError> {
        let bad = || InitializationError(text.to_owned());
        match text.trim() {
            "lazy" => Ok(Self::Lazy),
            "none" => Ok(Self::None),
            other => {
                let rate = other.strip_prefix("rate=").ok_or_else(bad)?;
                let number = rate.strip_suffix("MiB/s").unwrap_or(rate);
                if !number.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(bad());
                }
                Ok(Self::Rate { mib_s: number.parse().map_err(|_| bad())? })
            }
        }
    }
}

impl fmt::Display for Initialization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lazy => f.write_str("lazy"),
            Self::Rate { mib_s } => write!(f, "rate={mib_s}MiB/s"),
            Self::None => f.write_str("none"),
        }
    }
}

impl From<Initialization> for String {
    fn from(initialization: Initialization) -> Self {
        initialization.to_string()
    }
}

impl TryFrom<String> for Initialization {
    type Error = InitializationError;

    fn try_from(text: String) -> Result<Self, InitializationError> {
        text.parse()
    }
}

/// Refuses rules that contradict themselves.
pub(crate) fn check(rules: &InitializationRules) -> Result<(), CatalogError> {
    let refuse = |cause: DataError| data("initialization", cause);
    if rules.min_mib_s == 0 || rules.min_mib_s > rules.max_mib_s || rules.max_mib_s > 1 << 20 {
        return Err(refuse(DataError::InitializationRates));
    }
    if rules.block_kib << 10 != ebbtide_volume::LOAD_BLOCK_BYTES {
        return Err(refuse(DataError::LoadBlock));
    }
    curve(&rules.first_touch).map_err(|error| refuse(error.into())).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_initialization_reads_back_as_it_is_written() {
        for (text, wanted) in [
            ("lazy", Initialization::Lazy),
            ("none", Initialization::None),
            ("rate=100MiB/s", Initialization::Rate { mib_s: 100 }),
        ] {
            let read: Initialization = text.parse().unwrap();
            assert_eq!((read, read.to_string().as_str()), (wanted, text));
        }
        assert_eq!("rate=250".parse(), Ok(Initialization::Rate { mib_s: 250 }));
        for text in ["", "fast", "rate=", "rate=+5", "rate=100MB/s", "rate", "rate=99999999999999999999"] {
            let error = text.parse::<Initialization>().unwrap_err();
            assert!(error.to_string().contains("rate=200MiB/s"), "{text}: {error}");
        }
    }
}
