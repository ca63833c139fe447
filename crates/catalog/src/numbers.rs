//! From the data files' numbers to the whole numbers of the physics.

/// The nearest whole number of a finite figure from a data file; below zero counts as zero.
pub(crate) fn whole(figure: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "figures are far below 2^63, and the cast saturates"
    )]
    let rounded = figure.round() as u64;
    rounded
}

/// The nearest whole number that fits 32 bits.
pub(crate) fn whole_u32(figure: f64) -> u32 {
    u32::try_from(whole(figure)).unwrap_or(u32::MAX)
}

/// The nearest whole number that fits 16 bits.
pub(crate) fn whole_u16(figure: f64) -> u16 {
    u16::try_from(whole(figure)).unwrap_or(u16::MAX)
}
