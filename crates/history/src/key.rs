//! Which series: its subject and its labels.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The subject of a volume's series. Its label `volume` has the name.
pub const VOLUME: &str = "volume";

/// The subject of the series of an EC2 instance itself.
pub const INSTANCE: &str = "instance";

/// The subject of the series of one value. Its label `metric` has the name.
pub const GAUGE: &str = "gauge";

/// The subject of a database server's series. Its label `server` has the name.
pub const SERVER: &str = "server";

/// The subject of the series of a block device of a machine. Its label `device` has the name.
pub const DEVICE: &str = "device";

/// The subject of the series of a file system of a machine. Its label `mountpoint` has the directory.
pub const FILE_SYSTEM: &str = "filesystem";

/// The subject of the series of a machine itself, such as its pressure.
pub const MACHINE: &str = "machine";

/// A series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeriesKey {
    subject: Cow<'static, str>,
    /// By name.
    labels: Vec<(Cow<'static, str>, String)>,
}

impl SeriesKey {
    /// The series of a subject with labels. Each name is given once.
    pub fn new(subject: &'static str, labels: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let labels = labels.into_iter().map(|(name, value)| (Cow::Borrowed(name), value));
        let mut labels: Vec<_> = labels.collect();
        labels.sort_unstable();
        Self { subject: subject.into(), labels }
    }

    /// The series of a volume that has nothing but its name.
    #[must_use]
    pub fn volume(name: String) -> Self {
        Self::new(VOLUME, [("volume", name)])
    }

    /// The subject.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The value of a label; none without it.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(label, _)| label == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The labels, by name.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter().map(|(name, value)| (&**name, value.as_str()))
    }

    /// The labels as a text, the same for equal labels.
    pub(crate) fn labels_text(&self) -> String {
        let labels: BTreeMap<&str, &str> = self.labels().collect();
        serde_json::to_string(&labels).expect("texts under texts")
    }

    /// What [`Self::labels_text`] wrote.
    pub(crate) fn read(subject: String, labels: &str) -> Result<Self, serde_json::Error> {
        let labels: BTreeMap<String, String> = serde_json::from_str(labels)?;
        let labels = labels.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Ok(Self { subject: subject.into(), labels })
    }
}

/// Series that have something in common.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selector<'a> {
    /// Their subject; none: any.
    pub subject: Option<&'a str>,
    /// Labels that each of them has. The first one is looked for, so it should be the one that the fewest series have.
    pub labels: &'a [(&'a str, &'a str)],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_in_any_order_are_the_same_series_also_after_they_are_stored() {
        let labels = [("volume", "v\"1".to_owned()), ("instance", String::new())];
        let key = SeriesKey::new(VOLUME, labels.clone());
        assert_eq!(key, SeriesKey::new(VOLUME, labels.into_iter().rev()));
        assert_eq!(key.labels_text(), r#"{"instance":"","volume":"v\"1"}"#);
        assert_eq!(SeriesKey::read(VOLUME.to_owned(), &key.labels_text()).unwrap(), key);
        assert_eq!((key.label("instance"), key.label("owner")), (Some(""), None));
        assert!(SeriesKey::read(VOLUME.to_owned(), "[]").is_err());
    }
}
