//! The vendor's numbers: what a gp3 or an r5.large may do, with source and date.
//!
//! This is the only crate that contains them. They are data files under `data/`, built in; a user's
//! own file can override them. A [`Spec`] is the text that names a volume everywhere;
//! [`Catalog::resolve`] turns it into the [`ebbtide_volume::Limits`] that the physics runs on, or
//! refuses it in the words that AWS would use.
//!
//! # Where to begin reading
//!
//! [`Catalog::resolve`] in `src/resolve.rs` makes limits of a spec such as `gp3:size=500GiB`. How long a write to several copies
//! takes is `Quorum::points` in `src/quorum.rs`. [`price_list::PriceList::read`] reads a price list of AWS. How to add a type of
//! volume: docs/extending.md.
#![forbid(unsafe_code)]

mod asof;
mod spec;

mod catalog;
mod completion;
mod data;
mod describe;
mod initialization;
mod instance;
mod instance_table;
mod loader;
mod managed;
mod money;
mod monthly_cost;
mod overrides;
mod price_book;
pub mod price_list;
mod prices;
mod provisioning;
mod quorum;
mod resolve;
mod resolved;
mod rules;
mod service;
mod share;

pub mod calibrate;
pub mod modify;

mod data_error;
mod error;
mod numbers;

pub use asof::{AsOf, AsOfError};
pub use catalog::{Catalog, TypeInfo};
pub use completion::spec_completions;
pub use data::EbsOptimized;
pub use data_error::{
    CurveError, DataError, InstanceDataError, OverrideError, PeriodError, PriceDataError, ServiceError,
    TypeDataError,
};
pub use error::{CatalogError, ModifyRejection, Rejection};
pub use initialization::{Initialization, InitializationError};
pub use instance::{InstanceType, NO_LIMITS};
pub use managed::{
    AuroraInstancePrice, AuroraPrices, AuroraStoragePrice, HOURS_A_MONTH, InstancePrice, ManagedPrices,
    RdsInstancePrice, RdsPrices, RdsStoragePrice,
};
pub use modify::ModificationRate;
pub use money::{Usd, UsdError};
pub use monthly_cost::{Charge, Charged, MonthlyCost};
pub use prices::Prices;
pub use provisioning::{IopsRange, Provisioning, ThroughputRange};
pub use resolved::{Provenance, Resolved, VolumeFigures};
pub use spec::{CreditShare, Raid0, Spec, SpecError, VolumeSpec};
