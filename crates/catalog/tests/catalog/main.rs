//! The catalogue against the published tables and texts.
#![allow(clippy::unwrap_used)] // a test fails by a panic

mod aurora;
mod calibrate;
mod data;
mod dates;
mod formulas;
mod instances;
mod modify;
mod overrides;
mod price_list;
mod prices;
mod rejections;
mod service;
mod spec;
mod support;
