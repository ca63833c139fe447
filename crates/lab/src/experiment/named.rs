//! Enumerations whose values have names in experiment files.

/// Names for the values of an enumeration: as files have them, from its table `ALL`.
macro_rules! named {
    ($($kind:ty),*) => {$(
        impl $kind {
            /// The value of this name.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
            }

            /// Its name, as files have it.
            #[must_use]
            pub fn name(self) -> &'static str {
                Self::ALL.iter().find(|(value, _)| *value == self).map_or("", |(_, name)| name)
            }

            /// All names, for messages.
            #[must_use]
            pub fn names() -> String {
                Self::ALL.map(|(_, name)| name).join(", ")
            }
        }
    )*};
}
pub(super) use named;
