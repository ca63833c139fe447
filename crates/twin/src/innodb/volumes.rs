//! The volumes of a server: one for all of its files, or logs on volumes of their own, apart or together.

/// The kind of file that an I/O goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Data files, read.
    DataRead,
    /// Data files, written.
    DataWrite,
    /// The doublewrite file.
    Doublewrite,
    /// The redo log.
    Redo,
    /// The binary log, and the file system's journal that its growth needs.
    Binlog,
}

impl FileKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::DataRead, Self::DataWrite, Self::Doublewrite, Self::Redo, Self::Binlog];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataRead => "data_read",
            Self::DataWrite => "data_write",
            Self::Doublewrite => "doublewrite",
            Self::Redo => "redo",
            Self::Binlog => "binlog",
        }
    }
}

/// What lies on a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VolumeRole {
    /// Data files and the doublewrite file, and each log without another volume.
    Data,
    /// The redo log.
    Redo,
    /// The binary log.
    Binlog,
    /// Both logs.
    Logs,
}

impl VolumeRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Data, Self::Redo, Self::Binlog, Self::Logs];

    /// Its name, as `--volume` takes it: `data`, `redo`, `binlog` or `redo+binlog`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Redo => "redo",
            Self::Binlog => "binlog",
            Self::Logs => "redo+binlog",
        }
    }
}

/// Which volume the binary log lies on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BinlogVolume<T> {
    /// That of the data.
    #[default]
    Data,
    /// That of the redo log, which takes both streams; that of the data where the redo log has none of its own.
    Redo,
    /// One of its own.
    Own(T),
}

impl<T> BinlogVolume<T> {
    /// The volume of its own; None where the binary log shares one.
    pub const fn own(&self) -> Option<&T> {
        match self {
            Self::Own(volume) => Some(volume),
            Self::Data | Self::Redo => None,
        }
    }

    /// The same with another value of the volume.
    fn try_map<U, E>(&self, of: impl FnOnce(&T) -> Result<U, E>) -> Result<BinlogVolume<U>, E> {
        Ok(match self {
            Self::Data => BinlogVolume::Data,
            Self::Redo => BinlogVolume::Redo,
            Self::Own(volume) => BinlogVolume::Own(of(volume)?),
        })
    }
}

/// Something for each volume of a server: its limits, its spec, or what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volumes<T> {
    /// The volume of the data.
    pub data: T,
    /// That of the redo log; None: it lies on the data's.
    pub redo: Option<T>,
    /// That of the binary log.
    pub binlog: BinlogVolume<T>,
}

impl<T> From<T> for Volumes<T> {
    /// One volume for all files.
    fn from(data: T) -> Self {
        Self { data, redo: None, binlog: BinlogVolume::Data }
    }
}

impl<T> Volumes<T> {
    /// The same by reference.
    pub const fn as_ref(&self) -> Volumes<&T> {
        let binlog = match &self.binlog {
            BinlogVolume::Data => BinlogVolume::Data,
            BinlogVolume::Redo => BinlogVolume::Redo,
            BinlogVolume::Own(volume) => BinlogVolume::Own(volume),
        };
        Volumes { data: &self.data, redo: self.redo.as_ref(), binlog }
    }

    /// Whether all files lie on one volume.
    pub const fn is_one(&self) -> bool {
        self.redo.is_none() && self.binlog.own().is_none()
    }

    /// Each volume with its role, that of the data first.
    pub fn roles(&self) -> impl Iterator<Item = (VolumeRole, &T)> {
        let logs = [(self.role_of_redo(), self.redo.as_ref()), (VolumeRole::Binlog, self.binlog.own())];
        let logs = logs.into_iter().filter_map(|(role, one)| Some((role, one?)));
        std::iter::once((VolumeRole::Data, &self.data)).chain(logs)
    }

    /// The role of the volume that the redo log lies on.
    const fn role_of_redo(&self) -> VolumeRole {
        match (&self.redo, &self.binlog) {
            (None, _) => VolumeRole::Data,
            (Some(_), BinlogVolume::Redo) => VolumeRole::Logs,
            (Some(_), BinlogVolume::Data | BinlogVolume::Own(_)) => VolumeRole::Redo,
        }
    }

    /// The role of the volume that the binary log lies on.
    pub const fn role_of_binlog(&self) -> VolumeRole {
        match &self.binlog {
            BinlogVolume::Data => VolumeRole::Data,
            BinlogVolume::Redo => self.role_of_redo(),
            BinlogVolume::Own(_) => VolumeRole::Binlog,
        }
    }

    /// The role of the volume that a kind of file lies on.
    const fn role_of(&self, kind: FileKind) -> VolumeRole {
        match kind {
            FileKind::DataRead | FileKind::DataWrite | FileKind::Doublewrite => VolumeRole::Data,
            FileKind::Redo => self.role_of_redo(),
            FileKind::Binlog => self.role_of_binlog(),
        }
    }

    /// The kinds of files that lie on the volume of a role; none where the role has no volume of its own.
    pub fn files(&self, role: VolumeRole) -> Vec<FileKind> {
        FileKind::ALL.into_iter().filter(|kind| self.role_of(*kind) == role).collect()
    }

    /// The volume that a kind of file lies on.
    pub fn of_file(&self, kind: FileKind) -> &T {
        let place = self.role_of(kind);
        self.roles().find(|(role, _)| *role == place).map_or(&self.data, |(_, volume)| volume)
    }

    /// The same of each volume.
    pub fn map<U>(&self, mut of: impl FnMut(&T) -> U) -> Volumes<U> {
        let Ok(all) = self.try_map(|one| Ok::<_, std::convert::Infallible>(of(one)));
        all
    }

    /// The same of each volume.
    ///
    /// # Errors
    /// The first error of `of`.
    pub fn try_map<U, E>(&self, mut of: impl FnMut(&T) -> Result<U, E>) -> Result<Volumes<U>, E> {
        Ok(Volumes {
            data: of(&self.data)?,
            redo: self.redo.as_ref().map(&mut of).transpose()?,
            binlog: self.binlog.try_map(&mut of)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_a_volume_lies_on_that_of_the_data() {
        let one = Volumes::from("a");
        assert_eq!(one.files(VolumeRole::Data), FileKind::ALL);
        assert!(one.is_one() && one.files(VolumeRole::Redo).is_empty());
        let two = Volumes { redo: Some("b"), ..one };
        assert_eq!(two.files(VolumeRole::Redo), [FileKind::Redo]);
        assert!(two.files(VolumeRole::Data).contains(&FileKind::Binlog));
        assert_eq!(two.roles().collect::<Vec<_>>(), [(VolumeRole::Data, &"a"), (VolumeRole::Redo, &"b")]);
    }

    #[test]
    fn a_volume_that_both_logs_lie_on_is_one_volume_with_both_files() {
        let logs = Volumes { data: "a", redo: Some("b"), binlog: BinlogVolume::Redo };
        assert_eq!(logs.roles().collect::<Vec<_>>(), [(VolumeRole::Data, &"a"), (VolumeRole::Logs, &"b")]);
        assert_eq!(logs.files(VolumeRole::Logs), [FileKind::Redo, FileKind::Binlog]);
        assert!(logs.files(VolumeRole::Redo).is_empty() && logs.files(VolumeRole::Binlog).is_empty());
        assert_eq!(logs.map(|name| name.len()).binlog, BinlogVolume::Redo);
        // Without a volume of the redo log, both lie on that of the data.
        let one = Volumes { redo: None, ..logs };
        assert!(one.is_one() && one.files(VolumeRole::Data) == FileKind::ALL);
    }
}
