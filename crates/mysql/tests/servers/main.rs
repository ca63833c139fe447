//! Real servers, brought up and taken down: those of `./dev servers` and the system's.

#![allow(clippy::unwrap_used)] // in a test a failed step is a failed test

mod life;
mod settings;
mod status;
mod support;
