//! Short ways to what the tests ask of the catalogue.

use ebbtide_catalog::{Catalog, CatalogError, Resolved, Spec};

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn spec(text: &str) -> Spec {
    Spec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(crate) fn resolve(text: &str) -> Resolved {
    Catalog::builtin().resolve(&spec(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(crate) fn refused(text: &str) -> CatalogError {
    match Catalog::builtin().resolve(&spec(text)) {
        Ok(resolved) => panic!("{text} was not refused: {}", resolved.description),
        Err(error) => error,
    }
}
