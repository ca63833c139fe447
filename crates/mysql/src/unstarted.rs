//! What is known of a server program without starting it: what was noted when it was fetched, and its package.

use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::{Binary, Flavour, Version, fetched_servers, parse_version, program_at, program_in_path};
use crate::error::ServerError;

/// Where dpkg keeps the packages of Debian and Ubuntu.
const DPKG: &str = "/var/lib/dpkg";
/// What a fetched server printed as its version when it was fetched (scripts/servers.sh).
const VERSION_FILE: &str = "version";

impl Binary {
    /// As [`Binary::detect`], without starting the program: its version is that of the package that it belongs to (Debian,
    /// Ubuntu), or what it printed when it was fetched.
    ///
    /// # Errors
    /// [`ServerError::NotFound`]; [`ServerError::VersionUnknown`]; [`ServerError::WrongVersion`] as there.
    pub fn unstarted(path: Option<&Path>) -> Result<Self, ServerError> {
        let path = match path {
            Some(path) => program_at(path)?,
            None => program_in_path()?,
        };
        let known = noted(&path, &fetched_servers()).or_else(|| packaged(&path, Path::new(DPKG)));
        let (flavour, version, text) =
            known.ok_or_else(|| ServerError::VersionUnknown { path: path.clone() })?;
        let binary = Self { path, flavour, version, text };
        binary.check_age()?;
        Ok(binary)
    }
}

/// What a program printed when it was fetched, where it is a fetched one.
fn noted(program: &Path, fetched: &Path) -> Option<(Flavour, Version, String)> {
    let (real, root) = (program.canonicalize().ok()?, fetched.canonicalize().ok()?);
    let name = real.strip_prefix(&root).ok()?.components().next()?;
    let text = fs::read_to_string(root.join(name).join(VERSION_FILE)).ok()?.trim().to_owned();
    let (flavour, version) = parse_version(&text)?;
    Some((flavour, version, text))
}

/// The version of the installed package that a program belongs to.
fn packaged(program: &Path, dpkg: &Path) -> Option<(Flavour, Version, String)> {
    let real = program.canonicalize().ok()?;
    let package = package_of(&[program, &real], dpkg)?;
    let flavour = match &package {
        name if name.contains("mariadb") => Flavour::MariaDb,
        name if name.contains("percona") => Flavour::Percona,
        _ => Flavour::MySql,
    };
    let status = fs::read_to_string(dpkg.join("status")).ok()?;
    let whole = installed_version(&status, &package)?;
    // Without the epoch, as in 1:10.11.19-0+deb12u1.
    let version = Version::parse(whole.split_once(':').map_or(whole, |(_, rest)| rest))?;
    let text = format!("{flavour} {version} ({}, package {package} {whole})", program.display());
    Some((flavour, version, text))
}

/// The package of one of these files, among those of servers.
fn package_of(files: &[&Path], dpkg: &Path) -> Option<String> {
    let of_server = |name: &str| ["mariadb", "mysql", "percona"].iter().any(|word| name.contains(word));
    let mut lists: Vec<PathBuf> =
        fs::read_dir(dpkg.join("info")).ok()?.flatten().map(|entry| entry.path()).collect();
    lists.sort();
    lists.into_iter().find_map(|list| {
        let name = list.file_name()?.to_str()?.strip_suffix(".list").filter(|name| of_server(name))?;
        let text = fs::read_to_string(&list).ok()?;
        let has = text.lines().any(|line| files.iter().any(|file| *file == Path::new(line)));
        // The list of a package for several processors is NAME:amd64.list.
        has.then(|| name.split(':').next().unwrap_or(name).to_owned())
    })
}

/// The version of a package in dpkg's file `status`, if it is installed.
fn installed_version<'a>(status: &'a str, package: &str) -> Option<&'a str> {
    let is_installed = |paragraph: &&str| {
        field(paragraph, "Package") == Some(package)
            && field(paragraph, "Status").is_some_and(|words| words.ends_with(" installed"))
    };
    field(status.split("\n\n").find(is_installed)?, "Version")
}

/// The value of a field of a paragraph.
fn field<'a>(paragraph: &'a str, name: &str) -> Option<&'a str> {
    paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_packages_program_is_read_from_the_packages_and_of_no_other_program() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let program = put("bin/mariadbd", "");
        let (link, other) = (dir.path().join("bin/mysqld"), put("bin/other", ""));
        std::os::unix::fs::symlink(&program, &link).unwrap();
        put("info/mariadb-server-core:amd64.list", &format!("/.\n{}\n", program.display()));
        put("info/bash.list", &format!("{}\n", other.display()));
        put("info/mysql-common.list", "/etc/mysql\n");
        put(
            "status",
            "Package: mysql-common\nStatus: install ok installed\nVersion: 5.8\n\nPackage: mariadb-server-core\n\
             Status: deinstall ok config-files\nVersion: 1:10.6.1-1\n\nPackage: mariadb-server-core\n\
             Status: install ok installed\nVersion: 1:10.11.19-0+deb12u1\n\n",
        );
        for path in [&program, &link] {
            let (flavour, version, text) = packaged(path, dir.path()).unwrap();
            assert_eq!((flavour, version), (Flavour::MariaDb, Version::new(10, 11, 19)));
            assert!(text.ends_with("package mariadb-server-core 1:10.11.19-0+deb12u1)"), "{text}");
        }
        assert_eq!(packaged(&other, dir.path()), None);
        assert_eq!(packaged(&dir.path().join("none"), dir.path()), None);
    }

    #[test]
    fn a_fetched_servers_version_is_what_was_noted_when_it_was_fetched() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("fetched/mysql-9.7/bin");
        fs::create_dir_all(&bin).unwrap();
        let program = bin.join("mysqld");
        fs::write(&program, "").unwrap();
        let fetched = root.path().join("fetched");
        assert_eq!(noted(&program, &fetched), None);
        let text = "/x/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))";
        fs::write(fetched.join("mysql-9.7/version"), format!("{text}\n")).unwrap();
        let expected = (Flavour::MySql, Version::new(9, 7, 4), text.to_owned());
        assert_eq!(noted(&program, &fetched), Some(expected));
        let outside = root.path().join("mysqld");
        fs::write(&outside, "").unwrap();
        assert_eq!(noted(&fetched.join("mysql-9.7/../../mysqld"), &fetched), None, "not one of them");
    }

    #[test]
    fn the_machines_own_server_is_known_as_when_it_is_started() {
        let Ok(unstarted) = Binary::unstarted(None) else {
            return println!(
                "SKIPPED: the version of this machine's server is in no package that is read here"
            );
        };
        let started = Binary::detect(None).unwrap();
        assert_eq!(
            (unstarted.path, unstarted.flavour, unstarted.version),
            (started.path, started.flavour, started.version)
        );
    }
}
