//! Troubles of sources that are said once: when they begin, and when they end.

use std::collections::BTreeMap;

/// So many troubles are kept at a time: their names come from others.
const MOST: usize = 1_024;

/// The troubles that last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Complaints {
    open: BTreeMap<String, u64>,
    begun: u64,
}

impl Complaints {
    /// Takes how an attempt at `task` ended, and returns the sentence that is to be said: at the first failure of a row, and at the
    /// first success after one.
    pub fn take(&mut self, task: &str, outcome: Result<(), String>) -> Option<String> {
        match outcome {
            Ok(()) => self.open.remove(task).map(|failures| {
                let noun = if failures == 1 { "attempt" } else { "attempts" };
                format!("{task}: works again after {failures} failed {noun}")
            }),
            Err(reason) => {
                if let Some(failures) = self.open.get_mut(task) {
                    *failures += 1;
                    return None;
                }
                if self.open.len() < MOST {
                    self.open.insert(task.to_owned(), 1);
                }
                self.begun += 1;
                Some(format!("{task}: {reason}"))
            }
        }
    }

    /// Troubles that have begun so far, ended ones included.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_said_when_it_begins_and_when_it_ends() {
        let mut complaints = Complaints::default();
        let full = || Err("no space left on device".to_owned());
        assert_eq!(complaints.take("history", Ok(())), None);
        assert_eq!(complaints.take("history", full()).as_deref(), Some("history: no space left on device"));
        assert_eq!(complaints.take("history", full()), None);
        let ended = complaints.take("history", Ok(())).unwrap();
        assert_eq!(ended, "history: works again after 2 failed attempts");
        assert!(complaints.take("history", full()).is_some());
        assert_eq!(complaints.begun(), 2);
    }
}
