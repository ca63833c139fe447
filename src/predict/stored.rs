//! What must lie on the volumes of a profile's server.

use ebbtide_catalog::Resolved;
use ebbtide_text::size;
use ebbtide_twin::innodb::Volumes;
use ebbtide_twin::profile::Planned;

use crate::exit::Refusal;

/// Files of a server by their size, bytes. A profile has no size of the binary log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The data; zero where the profile does not say how much there are.
    data: u64,
    /// The redo log.
    redo: u64,
}

impl Stored {
    /// Those of a profile.
    pub(crate) fn of(planned: &Planned) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
        let data = planned.data_bytes.unwrap_or(0.0) as u64;
        Self { data, redo: planned.settings.redo_capacity_bytes }
    }

    /// All of them, bytes.
    pub(crate) const fn together(self) -> u64 {
        self.data.saturating_add(self.redo)
    }

    /// All of them in words.
    pub(crate) fn words(self) -> String {
        format!("{} of data and {} of redo log", size(self.data), size(self.redo))
    }

    /// Refuses volumes that are smaller than what lies on them. `spec` is their text.
    ///
    /// # Errors
    /// The first volume that is too small, with the figures: exit code 2.
    pub(super) fn fit(self, spec: &str, volumes: &Volumes<Resolved>) -> Result<(), Refusal> {
        let on_data = match &volumes.redo {
            Some(_) => (self.data, format!("{} of data", size(self.data))),
            None => (self.together(), self.words()),
        };
        let on_redo = (self.redo, format!("{} of redo log", size(self.redo)));
        let redo = volumes.redo.iter().map(|volume| ("redo log", volume, on_redo.clone()));
        for (of, volume, (least, words)) in std::iter::once(("data", &volumes.data, on_data)).chain(redo) {
            if volume.size_bytes() < least {
                let message = format!(
                    "--volume {spec}: the volume of the {of} has {}, and {} must lie on it: {words}",
                    size(volume.size_bytes()),
                    size(least)
                );
                return Err(Refusal::usage(message).hint(format!(
                    "give a size of {} or more; --set server.redo_log_capacity=SIZE predicts with another redo log",
                    size(least)
                )));
            }
        }
        Ok(())
    }
}
