//! What must lie on the volumes of a profile's server.

use ebbtide_catalog::Resolved;
use ebbtide_text::size;
use ebbtide_twin::innodb::Volumes;
use ebbtide_twin::profile::Planned;

/// A volume that is smaller than what must lie on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the volume of the {files} has {}, and {} must lie on it: {stored}",
    size(*volume_bytes),
    size(*least_bytes)
)]
pub struct VolumeTooSmall {
    /// The volumes, as they were given.
    pub spec: String,
    /// Whose volume it is: `data` or `redo log`.
    files: &'static str,
    volume_bytes: u64,
    /// What must lie on it, bytes.
    pub least_bytes: u64,
    /// The same in words.
    stored: String,
}

/// Files of a server by their size, bytes. A profile has no size of the binary log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// The data; zero where the profile does not say how much there are.
    data: u64,
    /// The redo log.
    redo: u64,
}

impl Stored {
    /// Those of a profile.
    #[must_use]
    pub fn of(planned: &Planned) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
        let data = planned.data_bytes.unwrap_or(0.0) as u64;
        Self { data, redo: planned.settings.redo_capacity_bytes }
    }

    /// All of them, bytes.
    #[must_use]
    pub const fn together(self) -> u64 {
        self.data.saturating_add(self.redo)
    }

    /// All of them in words.
    #[must_use]
    pub fn words(self) -> String {
        format!("{} of data and {} of redo log", size(self.data), size(self.redo))
    }

    /// Refuses volumes that are smaller than what lies on them. `spec` is their text.
    ///
    /// # Errors
    /// The first volume that is too small.
    pub fn fit(self, spec: &str, volumes: &Volumes<Resolved>) -> Result<(), VolumeTooSmall> {
        let on_data = match &volumes.redo {
            Some(_) => (self.data, format!("{} of data", size(self.data))),
            None => (self.together(), self.words()),
        };
        let on_redo = (self.redo, format!("{} of redo log", size(self.redo)));
        let redo = volumes.redo.iter().map(|volume| ("redo log", volume, on_redo.clone()));
        for (files, volume, (least_bytes, stored)) in
            std::iter::once(("data", &volumes.data, on_data)).chain(redo)
        {
            let volume_bytes = volume.size_bytes();
            if volume_bytes < least_bytes {
                return Err(VolumeTooSmall {
                    spec: spec.to_owned(),
                    files,
                    volume_bytes,
                    least_bytes,
                    stored,
                });
            }
        }
        Ok(())
    }
}
