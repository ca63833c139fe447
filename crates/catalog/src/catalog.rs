//! The catalogue: what is built in, and what a user overrides.

use std::path::Path;

use crate::{CatalogError, InstanceType, Provenance, Resolved, Spec};

/// All volume and instance types.
#[derive(Debug, Clone)]
pub struct Catalog {
    instances: Vec<InstanceType>,
    types: Vec<TypeInfo>,
}

/// A volume type, for listings.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TypeInfo {
    /// `gp3`.
    pub name: String,
    /// One line of what it is.
    pub summary: String,
    /// First day on which it could be created, where it was ever launched.
    pub launched: Option<String>,
    /// Keys that a spec may give for it.
    pub keys: Vec<&'static str>,
    /// Where its present figures come from.
    pub provenance: Provenance,
}

impl Catalog {
    /// The built-in catalogue.
    #[must_use]
    pub fn builtin() -> Self {
        Self { instances: Vec::new(), types: Vec::new() }
    }

    /// The built-in catalogue with a user's overrides; a file that does not exist is an error.
    ///
    /// # Errors
    /// A file that cannot be read, does not parse, or leads to contradictory figures.
    pub fn with_overrides(_path: &Path) -> Result<Self, CatalogError> {
        unimplemented!("the signature is published first")
    }

    /// The limits that a spec describes.
    ///
    /// # Errors
    /// What AWS would refuse, in its words; a type that did not exist on the day asked for.
    pub fn resolve(&self, _spec: &Spec) -> Result<Resolved, CatalogError> {
        unimplemented!("the signature is published first")
    }

    /// An instance type.
    ///
    /// # Errors
    /// Where the catalogue does not know it.
    pub fn instance(&self, name: &str) -> Result<InstanceType, CatalogError> {
        self.instances
            .iter()
            .find(|instance| instance.name == name)
            .cloned()
            .ok_or_else(|| CatalogError::UnknownInstance { name: name.into(), nearest: None })
    }

    /// All instance types, in the order of the table.
    #[must_use]
    pub fn instances(&self) -> &[InstanceType] {
        &self.instances
    }

    /// All volume types.
    #[must_use]
    pub fn types(&self) -> &[TypeInfo] {
        &self.types
    }
}
