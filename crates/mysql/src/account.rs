//! As whom a server runs: never as root.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ebbtide_dir::{Dir, Owner};

use crate::error::ServerError;

/// The first of the numbers of which one without a user is taken, and how many they are. No distribution gives them to
/// users, and systemd leaves them free (its page "Users, Groups, UIDs and GIDs on systemd Systems").
const FREE: std::ops::Range<u32> = 1_900_000_000..1_900_000_100;
/// Users without privileges, in the order in which they are taken where no free number can be had, as in a container
/// with few. The files of the machine's own server may be theirs.
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
    /// Where we are root, a number that no user has, else `mysql` or `nobody`; otherwise ourselves.
    pub(crate) fn for_server() -> Result<Self, ServerError> {
        if !rustix::process::geteuid().is_root() {
            let uid = rustix::process::geteuid().as_raw();
            let gid = rustix::process::getegid().as_raw();
            return Ok(Self { name: format!("uid {uid}"), uid, gid, switch: false });
        }
        let passwd = std::fs::read_to_string("/etc/passwd").map_err(ServerError::io("read /etc/passwd"))?;
        let of_machine = Numbers::read(&passwd);
        let free = of_machine.free().map(|number| (format!("uid {number}"), number, number));
        let (name, uid, gid) = free.or_else(|| unprivileged(&passwd)).ok_or_else(|| ServerError::NoUser {
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
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(account),
            Err(error) => Err(ServerError::at("look at", data)(error)),
        }
    }

    /// The user that owns files which a server is to read. Root owns what no server has had yet.
    fn of_owner(self, uid: u32, gid: u32) -> Self {
        if !self.switch || uid == 0 || (uid, gid) == (self.uid, self.gid) {
            return self;
        }
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        // Root's group can read what no server should.
        let gid = if gid == 0 { self.gid } else { gid };
        Self { name: name_of(&passwd, uid), uid, gid, switch: true }
    }

    /// Its name, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The words before the server's command that make it run as this user, without any way to more rights, and end with
    /// our thread, so that a killed process leaves no server behind.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.switch || Path::new(SETPRIV).exists() {
            words.extend([SETPRIV, "--pdeathsig=KILL", "--no-new-privs"].map(str::to_owned));
        }
        if self.switch {
            words.extend([
                format!("--reuid={}", self.uid),
                format!("--regid={}", self.gid),
                "--clear-groups".to_owned(),
                "--bounding-set=-all".to_owned(),
                "--inh-caps=-all".to_owned(),
            ]);
        }
        if !words.is_empty() {
            words.push("--".to_owned());
        }
        words
    }

    /// The owner of what is given to this user; none where it is this process's own.
    pub(crate) fn owner(&self) -> Option<Owner> {
        self.switch.then_some(Owner { uid: self.uid, gid: self.gid })
    }

    /// The owner of what this user may read and not change; none where it is this process's own.
    pub(crate) fn reader(&self) -> Option<Owner> {
        let uid = rustix::process::geteuid().as_raw();
        self.switch.then_some(Owner { uid, gid: self.gid })
    }

    /// Makes a directory where it is missing, and this user its owner, who alone may enter it. Its parent must be
    /// another's than this user's.
    pub(crate) fn give_dir(&self, path: &Path) -> Result<Dir, ServerError> {
        let dir = Dir::make_entry(path).map_err(ServerError::at("create", path))?;
        self.give(&dir).map_err(ServerError::at("change the owner of", path))?;
        Ok(dir)
    }

    /// Makes this user the owner of a directory, who alone may enter it.
    pub(crate) fn give(&self, dir: &Dir) -> io::Result<()> {
        self.owner().map_or_else(|| dir.make_private(), |owner| dir.give(owner))
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

/// Which numbers of users and groups this machine has taken, and which can be had here, as the texts of its files.
#[derive(Debug, Default)]
struct Numbers {
    passwd: String,
    group: String,
    /// `/etc/subuid` and `/etc/subgid`: ranges for containers.
    ranges: String,
    /// `/proc/self/uid_map` and `gid_map`: ranges that exist in this namespace.
    maps: [String; 2],
}

impl Numbers {
    fn read(passwd: &str) -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            passwd: passwd.to_owned(),
            group: text("/etc/group"),
            ranges: text("/etc/subuid") + &text("/etc/subgid"),
            maps: ["/proc/self/uid_map", "/proc/self/gid_map"].map(text),
        }
    }

    /// The first number that nobody has, as a user or as a group.
    fn free(&self) -> Option<u32> {
        FREE.into_iter().find(|number| self.is_mapped(*number) && !self.is_taken(*number))
    }

    fn is_taken(&self, number: u32) -> bool {
        let named = |line: &str, field: usize| {
            line.split(':').nth(field).and_then(|field| field.trim().parse().ok()) == Some(number)
        };
        let user = |line: &str| named(line, 2) || named(line, 3);
        let in_range = |line: &str| {
            let mut fields = line.split(':').skip(1).map(|field| field.trim().parse::<u32>().ok());
            let (first, count) = (fields.next().flatten(), fields.next().flatten());
            first.zip(count).is_some_and(|range| contains(range, number))
        };
        self.passwd.lines().any(user)
            || self.group.lines().any(|line| named(line, 2))
            || self.ranges.lines().any(in_range)
    }

    fn is_mapped(&self, number: u32) -> bool {
        let has = |line: &str| {
            let mut fields = line.split_whitespace().map(|field| field.parse::<u32>().ok());
            let (first, count) = (fields.next().flatten(), fields.nth(1).flatten());
            first.zip(count).is_some_and(|range| contains(range, number))
        };
        self.maps.iter().all(|map| map.lines().any(has))
    }
}

/// Whether a number is in a range of a first number and a count.
fn contains((first, count): (u32, u32), number: u32) -> bool {
    number.checked_sub(first).is_some_and(|offset| offset < count)
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
    fn a_number_is_free_that_no_user_no_group_and_no_container_has() {
        let all = "         0          0 4294967295\n";
        let free = |passwd: &str, group: &str, ranges: &str, map: &str| {
            let (passwd, group, ranges) = (passwd.to_owned(), group.to_owned(), ranges.to_owned());
            Numbers { passwd, group, ranges, maps: [map, all].map(str::to_owned) }.free()
        };
        let first = FREE.start;
        assert_eq!(free("", "", "", all), Some(first));
        assert_eq!(free(&format!("a:x:{first}:7::/:/x\n"), "", "", all), Some(first + 1));
        assert_eq!(free(&format!("a:x:7:{first}::/:/x\n"), "", "", all), Some(first + 1));
        assert_eq!(free("", &format!("a:x:{first}:\n"), "", all), Some(first + 1));
        assert_eq!(free("", "", &format!("a:{}:12\n", first - 10), all), Some(first + 2));
        assert_eq!(free("", "", "a:100000:65536\n", all), Some(first));
        assert_eq!(free("", "", "", "0 100000 65536\n"), None, "a container has no such number");
        assert_eq!(free("", "", "a:0:4294967295\n", all), None);
    }

    #[test]
    fn a_server_of_root_is_not_the_user_of_the_machines_own_server() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: root, who runs a server as another user");
            return;
        }
        let account = Account::for_server().unwrap();
        assert_ne!(account.uid, 0);
        if Numbers::read("").is_mapped(FREE.start) {
            assert!(FREE.contains(&account.uid) && account.gid == account.uid, "{account:?}");
        }
    }

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
        assert_eq!(now.clone().of_owner(4_000_001, 0).gid, 112, "never root's group");
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
