//! Which checks mean nothing on Aurora.

/// Checks of what Aurora's storage does in place of the server: it takes redo records, and neither pages nor files.
pub(crate) const NOT_ON_AURORA: [&str; 29] = [
    "D04", "D05", "D06", "D08", "R01", "R02", "R04", "R05", "R06", "R07", "R08", "R09", "F01", "F02", "F03",
    "F04", "F05", "F06", "F07", "F08", "F09", "F10", "F11", "W01", "W02", "W03", "W04", "C07", "C10",
];

/// Whether a check means something on Aurora.
#[must_use]
pub fn is_of_aurora(code: &str) -> bool {
    !NOT_ON_AURORA.contains(&code)
}
