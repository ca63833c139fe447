//! AWS's price lists, read from files into the catalogue.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use ebbtide_captured::packed::unpacked;
use ebbtide_catalog::price_list::{PriceList, PriceListError};
use ebbtide_catalog::{Catalog, CatalogError};

/// A price list that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceListRead {
    /// The region whose prices it has.
    pub region: String,
    /// Its file, prices and date, for people.
    pub words: String,
}

/// A price list that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PricesError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is no price list.
    #[error(transparent)]
    List(#[from] PriceListError),
    /// The catalogue does not take its prices.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// Reads price lists, packed or not, into the catalogue.
///
/// # Errors
/// The first list that cannot be used.
pub fn take_prices(catalog: &mut Catalog, paths: &[PathBuf]) -> Result<Vec<PriceListRead>, PricesError> {
    paths.iter().map(|path| take(catalog, path)).collect()
}

fn take(catalog: &mut Catalog, path: &Path) -> Result<PriceListRead, PricesError> {
    let input = File::open(path)
        .and_then(unpacked)
        .map_err(|error| PricesError::Read { path: path.to_owned(), error })?;
    let list = PriceList::read(&path.display().to_string(), input)?;
    catalog.take_prices(&list)?;
    let words = format!(
        "{}: {} prices of {}, published {}",
        path.display(),
        list.prices(),
        list.region(),
        list.as_of()
    );
    Ok(PriceListRead { region: list.region().to_owned(), words })
}
