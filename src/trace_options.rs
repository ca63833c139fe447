//! The values of options that say how a trace is read.

use ebbtide_twin::trace::Format;

use crate::exit::Refusal;

/// The value of `--trace-format`.
///
/// # Errors
/// An unknown name: a [`Refusal`].
pub(crate) fn format(name: &str) -> anyhow::Result<Format> {
    name.parse().map_err(|()| unknown("--trace-format", name, &Format::names()))
}

/// Nanoseconds of the value of `--trace-unit`.
///
/// # Errors
/// An unknown name: a [`Refusal`].
pub(crate) fn unit_ns(name: &str) -> anyhow::Result<u64> {
    match name {
        "ns" => Ok(1),
        "us" => Ok(1_000),
        "ms" => Ok(1_000_000),
        "s" => Ok(1_000_000_000),
        _ => Err(unknown("--trace-unit", name, "ns, us, ms, s")),
    }
}

fn unknown(option: &str, value: &str, known: &str) -> anyhow::Error {
    Refusal::usage(format!("{option} {value}: expected one of {known}")).into()
}
