//! Ids of resources: their form, and new ones.

/// A kind of resource that has ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Volume,
    Snapshot,
    Instance,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Volume, Self::Snapshot, Self::Instance];

    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Volume => "vol-",
            Self::Snapshot => "snap-",
            Self::Instance => "i-",
        }
    }

    /// As `ResourceType` of tags has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            Self::Snapshot => "snapshot",
            Self::Instance => "instance",
        }
    }

    /// The kind that an id's prefix names.
    pub(super) fn of(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| id.starts_with(kind.prefix()))
    }

    /// Whether a text has the form of an id: the prefix and 8 or 17 hexadecimal digits, not all zero.
    pub(super) fn is_id(self, text: &str) -> bool {
        text.strip_prefix(self.prefix()).is_some_and(|digits| {
            matches!(digits.len(), 8 | 17)
                && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
                && digits.bytes().any(|b| b != b'0')
        })
    }
}

/// Makes ids from a seed. The caller repeats it until an id is free.
#[derive(Debug)]
pub(super) struct Ids {
    state: u64,
}

impl Ids {
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// An id of the kind: the prefix, 0 and 16 digits.
    pub(super) fn next(&mut self, kind: Kind) -> String {
        format!("{}0{:016x}", kind.prefix(), self.draw())
    }

    /// An id of a reservation of instances.
    pub(super) fn reservation(&mut self) -> String {
        format!("r-0{:016x}", self.draw())
    }

    /// SplitMix64 (Steele, Lea, Flood 2014), which gives each number once.
    const fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_eight_or_seventeen_lower_case_digits() {
        for good in ["vol-0123456789abcdef0", "vol-1234abcd"] {
            assert!(Kind::Volume.is_id(good), "{good}");
        }
        for bad in
            ["vol-", "vol-1234abcg", "vol-1234ABCD", "vol-00000000", "vol-123456789", "snap-1234abcd", ""]
        {
            assert!(!Kind::Volume.is_id(bad), "{bad}");
        }
    }

    #[test]
    fn new_ids_are_valid_differ_and_repeat_with_their_seed() {
        let draw = |seed| {
            let mut ids = Ids::new(seed);
            (0..1_000).map(|_| ids.next(Kind::Snapshot)).collect::<Vec<_>>()
        };
        let ids = draw(7);
        assert!(ids.iter().all(|id| Kind::Snapshot.is_id(id)), "{ids:?}");
        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len());
        assert_eq!(ids, draw(7));
        assert_ne!(ids, draw(8));
    }
}
