//! The kinds of files that the model writes and reads, and the volumes that they lie on.

use ebbtide_observe::{Role, Volumes};

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

    /// What names the volume that it lies on where it has one of its own.
    #[must_use]
    pub const fn role(self) -> Role {
        match self {
            Self::DataRead | Self::DataWrite | Self::Doublewrite => Role::Data,
            Self::Redo => Role::Redo,
            Self::Binlog => Role::Binlog,
        }
    }

    /// The kinds that lie on one of the volumes; none where the role has no volume of its own.
    pub(crate) fn on<T>(volumes: &Volumes<T>, role: Role) -> Vec<Self> {
        Self::ALL.into_iter().filter(|kind| volumes.role_of(kind.role()) == role).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_file_lies_on_the_volume_of_its_role_or_of_the_data() {
        let one = Volumes::new("a");
        assert_eq!(FileKind::on(&one, Role::Data), FileKind::ALL);
        assert!(FileKind::on(&one, Role::Redo).is_empty());
        let two = one.clone().with(Role::Redo, "b");
        assert_eq!(FileKind::on(&two, Role::Redo), [FileKind::Redo]);
        assert!(FileKind::on(&two, Role::Data).contains(&FileKind::Binlog));
        let logs = one.with(Role::Logs, "b");
        assert_eq!(FileKind::on(&logs, Role::Logs), [FileKind::Redo, FileKind::Binlog]);
        assert!(FileKind::on(&logs, Role::Redo).is_empty() && FileKind::on(&logs, Role::Binlog).is_empty());
    }
}
