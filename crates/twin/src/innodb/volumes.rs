//! The volumes of a server: one for all of its files, or logs on volumes of their own.

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
    /// Data files and the doublewrite file, and each log without a volume of its own.
    Data,
    /// The redo log.
    Redo,
    /// The binary log.
    Binlog,
}

impl VolumeRole {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Data, Self::Redo, Self::Binlog];

    /// Its name, as `--volume` takes it: `data`, `redo` or `binlog`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Redo => "redo",
            Self::Binlog => "binlog",
        }
    }

    /// The role whose volume a kind of file lies on, where every role has one.
    const fn of(kind: FileKind) -> Self {
        match kind {
            FileKind::DataRead | FileKind::DataWrite | FileKind::Doublewrite => Self::Data,
            FileKind::Redo => Self::Redo,
            FileKind::Binlog => Self::Binlog,
        }
    }
}

/// Something for each volume of a server: its limits, its spec, or what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volumes<T> {
    /// The volume of the data.
    pub data: T,
    /// That of the redo log; None: it lies on the data's.
    pub redo: Option<T>,
    /// That of the binary log; None: it lies on the data's.
    pub binlog: Option<T>,
}

impl<T> From<T> for Volumes<T> {
    /// One volume for all files.
    fn from(data: T) -> Self {
        Self { data, redo: None, binlog: None }
    }
}

impl<T> Volumes<T> {
    /// The same by reference.
    pub const fn as_ref(&self) -> Volumes<&T> {
        Volumes { data: &self.data, redo: self.redo.as_ref(), binlog: self.binlog.as_ref() }
    }

    /// Whether all files lie on one volume.
    pub const fn is_one(&self) -> bool {
        self.redo.is_none() && self.binlog.is_none()
    }

    /// Each volume with its role, that of the data first.
    pub fn roles(&self) -> impl Iterator<Item = (VolumeRole, &T)> {
        let logs = [(VolumeRole::Redo, &self.redo), (VolumeRole::Binlog, &self.binlog)];
        let logs = logs.into_iter().filter_map(|(role, one)| Some((role, one.as_ref()?)));
        std::iter::once((VolumeRole::Data, &self.data)).chain(logs)
    }

    /// The kinds of files that lie on the volume of a role; none where the role has no volume of its own.
    pub fn files(&self, role: VolumeRole) -> Vec<FileKind> {
        let place = |kind: &FileKind| match VolumeRole::of(*kind) {
            VolumeRole::Redo if self.redo.is_some() => VolumeRole::Redo,
            VolumeRole::Binlog if self.binlog.is_some() => VolumeRole::Binlog,
            _ => VolumeRole::Data,
        };
        FileKind::ALL.into_iter().filter(|kind| place(kind) == role).collect()
    }

    /// The same of each volume.
    pub fn map<U>(&self, mut of: impl FnMut(&T) -> U) -> Volumes<U> {
        Volumes {
            data: of(&self.data),
            redo: self.redo.as_ref().map(&mut of),
            binlog: self.binlog.as_ref().map(&mut of),
        }
    }

    /// The same of each volume.
    ///
    /// # Errors
    /// The first error of `of`.
    pub fn try_map<U, E>(&self, mut of: impl FnMut(&T) -> Result<U, E>) -> Result<Volumes<U>, E> {
        Ok(Volumes {
            data: of(&self.data)?,
            redo: self.redo.as_ref().map(&mut of).transpose()?,
            binlog: self.binlog.as_ref().map(&mut of).transpose()?,
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
}
