//! The experiments that come with the program.

/// An experiment that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shipped {
    /// Its name, as the command line takes it.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What it asks.
    pub question: &'static str,
    /// The file.
    pub text: &'static str,
}

/// All shipped experiments, in the order in which they are listed.
#[must_use]
pub fn shipped() -> &'static [Shipped] {
    &[]
}
