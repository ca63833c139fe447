//! The regions that a home is called in. A caller may sign for any name, and records follow: made-up ones are bounded.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::ec2::is_enabled_region;
use crate::sigv4;

/// How many regions a home can be called in besides those that are enabled without being asked for: as many as AWS has of
/// others, and some.
pub const MOST_OTHERS: usize = 32;

/// The file with their names, a line for each.
const FILE: &str = "regions";

/// The regions besides those that are enabled without being asked for.
#[derive(Debug, Default)]
pub struct Regions {
    /// None: they are known as long as this process.
    file: Option<PathBuf>,
    others: Mutex<BTreeSet<String>>,
}

impl Regions {
    /// Those that a folder has the names of, and keeps the names of.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let file = folder.join(FILE);
        let text = match std::fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        // A kill can cut the last line.
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let others = whole.filter(|name| sigv4::is_region(name)).map(str::to_owned).collect();
        Ok(Self { file: Some(file), others: Mutex::new(others) })
    }

    /// Whether calls in a region are answered: there is room for it, or it was called in before.
    ///
    /// # Errors
    /// The name of a new one cannot be stored.
    pub(super) fn admit(&self, region: &str) -> io::Result<bool> {
        if is_enabled_region(region) {
            return Ok(true);
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if others.contains(region) {
            return Ok(true);
        }
        if others.len() >= MOST_OTHERS {
            return Ok(false);
        }
        if let Some(file) = &self.file {
            let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(file)?;
            file.write_all(format!("{region}\n").as_bytes())?;
        }
        others.insert(region.to_owned());
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_regions_are_bounded_also_after_a_start_and_known_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let regions = Regions::open(dir.path()).unwrap();
        for number in 0..MOST_OTHERS {
            assert!(regions.admit(&format!("xx-made-{number}")).unwrap());
        }
        let regions = Regions::open(dir.path()).unwrap();
        assert!(!regions.admit("xx-made-99").unwrap(), "one more");
        assert!(regions.admit("xx-made-0").unwrap() && regions.admit("us-east-1").unwrap());
    }

    #[test]
    fn a_line_that_a_kill_has_cut_is_none() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "xx-west-1\nno region\nxx-we").unwrap();
        let regions = Regions::open(dir.path()).unwrap();
        assert_eq!(regions.others.lock().unwrap().iter().collect::<Vec<_>>(), ["xx-west-1"]);
    }
}
