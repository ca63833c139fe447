//! As whom a server runs: never as root.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};

use crate::error::ServerError;

/// Users without privileges, in the order in which they are taken.
const USERS: [&str; 2] = ["mysql", "nobody"];
const SETPRIV: &str = "/usr/bin/setpriv";

/// The user that a server runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    name: String,
    uid: u32,
    gid: u32,
    /// Whether we have to become it: we are root.
    switch: bool,
}

impl Account {
    /// `mysql`, else `nobody`, where we are root; otherwise ourselves.
    pub(crate) fn for_server() -> Result<Self, ServerError> {
        if !rustix::process::geteuid().is_root() {
            let uid = rustix::process::geteuid().as_raw();
            let gid = rustix::process::getegid().as_raw();
            return Ok(Self { name: format!("uid {uid}"), uid, gid, switch: false });
        }
        let passwd = std::fs::read_to_string("/etc/passwd").map_err(ServerError::io("read /etc/passwd"))?;
        let (name, uid, gid) = unprivileged(&passwd).ok_or_else(|| ServerError::NoUser {
            why: format!("/etc/passwd has no user {}", USERS.join(" or ")),
        })?;
        if !Path::new(SETPRIV).exists() {
            return Err(ServerError::NoUser { why: format!("{SETPRIV} (package util-linux) is missing") });
        }
        Ok(Self { name, uid, gid, switch: true })
    }

    /// The user that a server on these data runs as: the owner of the data directory, where it has one that is not root.
    /// Data that were made as one user stay readable when the machine gets another user for servers.
    pub(crate) fn for_data(data: &Path) -> Result<Self, ServerError> {
        let account = Self::for_server()?;
        match std::fs::symlink_metadata(data) {
            Ok(facts) => Ok(account.of_owner(facts.uid(), facts.gid())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(account),
            Err(error) => Err(ServerError::at("look at", data)(error)),
        }
    }

    /// The user that owns files which a server is to read. Root owns what no server has had yet.
    fn of_owner(self, uid: u32, gid: u32) -> Self {
        if !self.switch || uid == 0 || (uid, gid) == (self.uid, self.gid) {
            return self;
        }
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        Self { name: name_of(&passwd, uid), uid, gid, switch: true }
    }

    /// Its name, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The words before the server's command that make it run as this user and end with our thread, so
    /// that a killed process leaves no server behind.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.switch || Path::new(SETPRIV).exists() {
            words.extend([SETPRIV.to_owned(), "--pdeathsig=KILL".to_owned()]);
        }
        if self.switch {
            words.extend([
                format!("--reuid={}", self.uid),
                format!("--regid={}", self.gid),
                "--clear-groups".to_owned(),
            ]);
        }
        if !words.is_empty() {
            words.push("--".to_owned());
        }
        words
    }

    /// Makes a directory where it is missing, and this user its owner.
    pub(crate) fn give_dir(&self, dir: &Path) -> Result<(), ServerError> {
        match std::fs::create_dir(dir) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(ServerError::at("create", dir)(error));
            }
            _ => {}
        }
        self.give(dir)
    }

    /// Makes this user the owner of a file or directory.
    pub(crate) fn give(&self, path: &Path) -> Result<(), ServerError> {
        if !self.switch {
            return Ok(());
        }
        chown(path, Some(self.uid), Some(self.gid)).map_err(ServerError::at("change the owner of", path))
    }

    /// Checks that this user may enter every directory on the way to `dir`.
    pub(crate) fn check_reach(&self, dir: &Path) -> Result<(), ServerError> {
        for parent in dir.ancestors().skip(1) {
            let facts = std::fs::metadata(parent).map_err(ServerError::at("look at", parent))?;
            let bit = match (facts.uid() == self.uid, facts.gid() == self.gid) {
                (true, _) => 0o100,
                (false, true) => 0o010,
                (false, false) => 0o001,
            };
            if facts.mode() & bit == 0 {
                return Err(ServerError::NotReachable {
                    parent: PathBuf::from(parent),
                    user: self.name.clone(),
                });
            }
        }
        Ok(())
    }
}

/// The name of a user in a passwd file, or its number.
fn name_of(passwd: &str, uid: u32) -> String {
    let named = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse::<u32>() == Ok(uid)).then(|| name.to_owned())
    });
    named.unwrap_or_else(|| format!("uid {uid}"))
}

/// The first of [`USERS`] in a passwd file, with its user and group.
fn unprivileged(passwd: &str) -> Option<(String, u32, u32)> {
    let find = |wanted: &str| {
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| *name == wanted)?;
            let uid = fields.nth(1)?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            (uid != 0).then(|| (name.to_owned(), uid, gid))
        })
    };
    USERS.into_iter().find_map(find)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_mysql_user_is_taken_before_nobody_and_root_never() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533::/:/x\nmysql:x:103:112::/:/x\n";
        assert_eq!(unprivileged(passwd), Some(("mysql".into(), 103, 112)));
        assert_eq!(unprivileged(&passwd.replace("mysql", "other")), Some(("nobody".into(), 65534, 65533)));
        assert_eq!(unprivileged("mysql:x:0:0::/:/x\n"), None);
    }

    #[test]
    fn data_keep_the_user_that_they_were_made_as() {
        let now = Account { name: "mysql".into(), uid: 103, gid: 112, switch: true };
        assert_eq!(now.clone().of_owner(0, 0), now, "nobody has run on them yet");
        assert_eq!(now.clone().of_owner(103, 112), now);
        let before = now.clone().of_owner(4_000_001, 4_000_002);
        assert_eq!((before.uid, before.gid, before.name.as_str()), (4_000_001, 4_000_002, "uid 4000001"));
        let ourselves = Account { switch: false, ..now };
        assert_eq!(ourselves.clone().of_owner(4_000_001, 4_000_002), ourselves, "only root becomes another");
        let passwd = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533::/:/x\n";
        assert_eq!((name_of(passwd, 65_534), name_of(passwd, 7)), ("nobody".into(), "uid 7".into()));
    }

    #[test]
    fn a_directory_that_the_user_may_not_enter_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let account = Account { name: "stranger".into(), uid: 4_000_000, gid: 4_000_000, switch: false };
        let inner = dir.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let open = |mode| {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        open(0o711);
        account.check_reach(&inner).unwrap();
        open(0o700);
        let error = account.check_reach(&inner).unwrap_err();
        assert!(
            matches!(&error, ServerError::NotReachable { parent, .. } if parent == dir.path()),
            "{error}"
        );
    }
}
