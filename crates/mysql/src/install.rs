//! What is installed next to a server program: messages, character sets, plugins, and MariaDB's SQL.

use std::path::{Path, PathBuf};

use crate::binary::Binary;
use crate::error::ServerError;

/// MariaDB's statements that make the system tables, in the order in which they are run. The help tables
/// are left out: they take longest, and no server needs them.
const SYSTEM_SQL: [&str; 5] = [
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "mysql_sys_schema.sql",
];

/// Where the files of an installed or unpacked server are; none for what was not found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Install {
    /// The directory that `share` and `lib` are in.
    base: Option<PathBuf>,
    /// The directory of messages, character sets and SQL.
    share: Option<PathBuf>,
    plugins: Option<PathBuf>,
}

impl Install {
    /// Looks around the program: next to it, and next to what it is a link to.
    pub(crate) fn of(binary: &Binary) -> Self {
        let real = binary.path.canonicalize().unwrap_or_else(|_| binary.path.clone());
        for program in [&binary.path, &real] {
            // bin, sbin or libexec is in the base, or a wrapper's bin is next to an unpacked usr.
            let Some(above) = program.parent().and_then(Path::parent) else { continue };
            for base in [above.to_owned(), above.join("usr")] {
                if let Some(share) = share_in(&base) {
                    let plugins = plugins_in(&base);
                    return Self { base: Some(base), share: Some(share), plugins };
                }
            }
        }
        Self::default()
    }

    /// Option lines that point the server to its own files.
    pub(crate) fn options(&self) -> Vec<(&'static str, PathBuf)> {
        let charsets = self.share.as_ref().map(|share| share.join("charsets")).filter(|dir| dir.is_dir());
        let named = [
            ("basedir", self.base.clone()),
            ("lc-messages-dir", self.share.clone()),
            ("character-sets-dir", charsets),
            ("plugin-dir", self.plugins.clone()),
        ];
        named.into_iter().filter_map(|(name, dir)| Some((name, dir?))).collect()
    }

    /// MariaDB's statements for the system tables, with an account `root` that has no password.
    pub(crate) fn system_sql(&self, binary: &Binary) -> Result<Vec<u8>, ServerError> {
        let incomplete = |missing: String| ServerError::Incomplete { path: binary.path.clone(), missing };
        let share = self.share.as_deref().ok_or_else(|| {
            incomplete("a directory share/mysql or share/mariadb with messages and SQL next to it".into())
        })?;
        let mut sql = b"create database if not exists mysql;\nuse mysql;\n\
            SET @auth_root_socket=NULL;\nSET @skip_auth_anonymous=1;\n"
            .to_vec();
        for name in SYSTEM_SQL {
            // Releases after 10.6 print maria and mariadb in turn.
            let names = [
                name.to_owned(),
                name.replacen("mysql_", "mariadb_", 1),
                name.replacen("maria_", "mariadb_", 1),
            ];
            let path = names.iter().map(|name| share.join(name)).find(|path| path.is_file());
            let path = path.ok_or_else(|| incomplete(format!("{} in {}", name, share.display())))?;
            sql.extend(std::fs::read(&path).map_err(ServerError::at("read", &path))?);
            sql.push(b'\n');
        }
        Ok(sql)
    }
}

/// The directory below `share` that holds the server's messages: `mysql`, `mariadb`, `mysql-8.4`, or
/// `share` itself in the makers' archives.
fn share_in(base: &Path) -> Option<PathBuf> {
    let share = base.join("share");
    let mut candidates = vec![share.clone()];
    for entry in std::fs::read_dir(&share).ok()?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if ["mysql", "mariadb", "percona"].iter().any(|start| name.starts_with(start)) {
            candidates.push(entry.path());
        }
    }
    candidates.sort();
    candidates.into_iter().find(|dir| dir.join("english/errmsg.sys").is_file())
}

fn plugins_in(base: &Path) -> Option<PathBuf> {
    let libs = ["lib", "lib64", "usr/lib"].map(|lib| base.join(lib));
    let dirs = ["plugin", "mysql/plugin", "mariadb/plugin", "mariadb19/plugin"];
    libs.iter().flat_map(|lib| dirs.iter().map(move |dir| lib.join(dir))).find(|dir| dir.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::{Flavour, Version};

    fn make(root: &Path, files: &[&str]) {
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
    }

    fn binary(path: PathBuf) -> Binary {
        Binary { path, flavour: Flavour::MariaDb, version: Version::new(11, 8, 6), text: String::new() }
    }

    #[test]
    fn the_files_of_an_unpacked_server_are_found_next_to_its_wrapper() {
        let root = tempfile::tempdir().unwrap();
        make(
            root.path(),
            &[
                "bin/mariadbd",
                "usr/share/mysql/english/errmsg.sys",
                "usr/share/mysql/charsets/Index.xml",
                "usr/share/mysqlsomething/x",
                "usr/lib/mysql/plugin/x.so",
            ],
        );
        let options = Install::of(&binary(root.path().join("bin/mariadbd"))).options();
        let at = |path: &str| root.path().join(path);
        let expected = [
            ("basedir", at("usr")),
            ("lc-messages-dir", at("usr/share/mysql")),
            ("character-sets-dir", at("usr/share/mysql/charsets")),
            ("plugin-dir", at("usr/lib/mysql/plugin")),
        ];
        assert_eq!(options, expected);
    }

    #[test]
    fn sql_that_is_missing_is_named() {
        let root = tempfile::tempdir().unwrap();
        make(root.path(), &["bin/mariadbd", "share/english/errmsg.sys", "share/mysql_system_tables.sql"]);
        let binary = binary(root.path().join("bin/mariadbd"));
        let error = Install::of(&binary).system_sql(&binary).unwrap_err().to_string();
        assert!(error.contains("mysql_performance_tables.sql in ") && error.contains("/share"), "{error}");
    }
}
