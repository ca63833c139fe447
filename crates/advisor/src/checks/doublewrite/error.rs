//! Why an observation cannot be judged.

use ebbtide_catalog::{CatalogError, SpecError};

/// Why an observation cannot be judged.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NotJudged {
    /// Storage that takes no pages.
    #[error("this is Aurora {version}: its storage takes redo and no pages, so none is written twice")]
    Aurora {
        /// Its version.
        version: String,
    },
    /// No variable `innodb_doublewrite`.
    #[error("the server has no innodb_doublewrite: is InnoDB off?")]
    NoDoublewrite,
    /// A value of it that is not known here.
    #[error("innodb_doublewrite is {word}, which is not known here")]
    UnknownDoublewrite {
        /// The value, in upper case.
        word: String,
    },
    /// No variable `innodb_page_size`.
    #[error("the server has no innodb_page_size")]
    NoPageSize,
    /// Counters went back because the server was started again.
    #[error("the server was started again between the two looks: its counters began anew")]
    Restarted,
    /// Counters that are needed.
    #[error("these counters of the server went back or are not there: {}", .names.join(", "))]
    NotCounted {
        /// Their names.
        names: Vec<&'static str>,
    },
    /// The server's variables were not observed.
    #[error("the server's settings were not observed")]
    NoFacts,
    /// The server's counters were not observed.
    #[error("the server's counters were not observed")]
    NoRates,
    /// A volume whose operations cannot be counted here.
    #[error("{spec}: an operation there takes a whole unit, which is not reckoned here")]
    WholeUnits {
        /// Its spec.
        spec: String,
    },
    /// A text that is no spec of a volume.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A volume that there is not.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}
