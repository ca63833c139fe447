//! Real servers, brought up and taken down: those of `./dev servers` and the system's.

mod life;
mod support;
