//! Specs and the catalogue of a home, for adapters and for commands that need no server.

use ebbtide_catalog::{Catalog, Initialization, Resolved, Spec};
use ebbtide_device::host::Home;

use crate::ControlError;

/// The built-in catalogue, with a home's overrides where it has any. Without a home there are none.
///
/// # Errors
/// [`ControlError::Overrides`] where they cannot be used.
pub fn catalog(home: Option<&Home>) -> Result<Catalog, ControlError> {
    let overrides = home.map(Home::overrides_file).filter(|file| file.exists());
    let Some(file) = overrides else { return Ok(Catalog::builtin()) };
    Catalog::with_overrides(&file).map_err(|source| ControlError::Overrides { file, source })
}

/// What a spec's text means in a home, or where there is none.
///
/// # Errors
/// A text that is no spec, and what AWS would refuse.
pub fn resolve(home: Option<&Home>, text: &str) -> Result<Resolved, ControlError> {
    let spec = Spec::parse(text)?;
    Ok(catalog(home)?.resolve(&spec)?)
}

/// Refuses what cannot be created in a home, or where there is none: by its spec and its initialization. Refuses a region
/// without prices too.
///
/// # Errors
/// As [`resolve`], a rate that AWS does not offer, and a region without prices.
pub fn check(
    home: Option<&Home>,
    text: &str,
    initialization: Option<Initialization>,
    region: Option<&str>,
) -> Result<(), ControlError> {
    let spec = Spec::parse(text)?;
    let catalog = catalog(home)?;
    catalog.resolve(&spec)?;
    initialization.map(|wanted| catalog.loader(wanted)).transpose()?;
    catalog.prices(region)?;
    Ok(())
}
