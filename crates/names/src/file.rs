//! Where the file of names is, and whether it may be believed.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::NamesError;

/// The largest file that is read, bytes.
const LARGEST: u64 = 1 << 20;
/// The permissions by which others than the owner may change a file.
const OTHERS_WRITE: u32 = 0o022;
/// The variable that names the file.
const VARIABLE: &str = "EBBTIDE_CONFIG";

/// Where the file is.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    /// Its path.
    pub path: PathBuf,
    /// Whether `EBBTIDE_CONFIG` names it: then it has to be there.
    is_named: bool,
    /// Who called `sudo`, where this process runs under it.
    caller: Option<String>,
}

impl Place {
    /// Where the file of this user is; None without a home directory.
    #[must_use]
    pub fn find() -> Option<Self> {
        Self::by(|name| std::env::var_os(name), rustix::process::geteuid().is_root())
    }

    /// A file that an option names: it has to be there.
    #[must_use]
    pub const fn named(path: PathBuf) -> Self {
        Self { path, is_named: true, caller: None }
    }

    fn by(variable: impl Fn(&str) -> Option<OsString>, is_root: bool) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let caller = set("SUDO_USER").filter(|_| is_root).map(|user| user.to_string_lossy().into_owned());
        if let Some(path) = set(VARIABLE) {
            return Some(Self { path: path.into(), is_named: true, caller });
        }
        // A relative path there is to be ignored, as the XDG base directory specification has it.
        let own = set("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = own.or_else(|| set("HOME").map(|home| Path::new(&home).join(".config")))?;
        Some(Self { path: folder.join("ebbtide/config.toml"), is_named: false, caller })
    }

    /// The text of the file; None where there is none and nobody has named it. Under `sudo`, `note` is told which file
    /// that is.
    ///
    /// # Errors
    /// A file that others may write, that is another user's, or that cannot be read.
    pub fn read(&self, note: &mut dyn FnMut(&str)) -> Result<Option<String>, NamesError> {
        let text = self.text()?;
        if let Some(caller) = &self.caller {
            let path = self.path.display();
            let read = if text.is_some() { "read from" } else { "looked for in" };
            let other = if self.is_named {
                String::new()
            } else {
                format!(", not in {caller}'s file; {VARIABLE} names another")
            };
            note(&format!("note: this runs under sudo: names are {read} {path}{other}"));
        }
        Ok(text)
    }

    /// The same without a word, and without an error.
    pub(crate) fn read_quietly(&self) -> Option<String> {
        self.text().ok().flatten()
    }

    fn text(&self) -> Result<Option<String>, NamesError> {
        let unreadable = |source| NamesError::Unreadable { path: self.path.clone(), source };
        // A pipe that nobody writes must not hold a command up.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&self.path);
        let file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound && !self.is_named => return Ok(None),
            opened => opened.map_err(unreadable)?,
        };
        // Of what was opened, and not of the path: it may be another file by now.
        let about = file.metadata().map_err(unreadable)?;
        if let Some((why, hint)) = self.distrust(&about) {
            return Err(NamesError::Untrusted { path: self.path.clone(), why, hint });
        }
        let mut text = String::new();
        file.take(LARGEST).read_to_string(&mut text).map_err(unreadable)?;
        Ok(Some(text))
    }

    /// Why a file is not believed, and what to do: it could name servers and option files that its writer has chosen.
    fn distrust(&self, about: &std::fs::Metadata) -> Option<(String, String)> {
        let path = self.path.display();
        let (owner, user) = (about.uid(), rustix::process::geteuid().as_raw());
        if !about.is_file() {
            return Some(("it is not an ordinary file".to_owned(), "name a file".to_owned()));
        }
        if owner != user && owner != 0 {
            let why = format!("it belongs to user {owner}, and this process runs as user {user}");
            return Some((why, format!("name a file of your own with {VARIABLE}")));
        }
        if about.mode() & OTHERS_WRITE != 0 {
            let why = format!("others may write it (mode {:o})", about.mode() & 0o777);
            return Some((why, format!("look at what it says, then 'chmod go-w {path}'")));
        }
        if about.len() > LARGEST {
            let why = format!("it has {} bytes, and {LARGEST} are read at most", about.len());
            return Some((why, "it has names alone".to_owned()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn place(variables: &[(&str, &str)], is_root: bool) -> Option<Place> {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        Place::by(find, is_root)
    }

    #[test]
    fn the_file_is_the_named_one_or_in_the_folder_of_settings() {
        let path = |variables: &[(&str, &str)]| place(variables, false).map(|place| place.path);
        let home = ("HOME", "/home/anna");
        assert_eq!(path(&[home]), Some("/home/anna/.config/ebbtide/config.toml".into()));
        assert_eq!(path(&[home, ("XDG_CONFIG_HOME", "/x")]), Some("/x/ebbtide/config.toml".into()));
        let relative = path(&[home, ("XDG_CONFIG_HOME", "x")]);
        assert_eq!(relative, Some("/home/anna/.config/ebbtide/config.toml".into()));
        assert_eq!(path(&[home, (VARIABLE, "/etc/names.toml")]), Some("/etc/names.toml".into()));
        assert_eq!(path(&[(VARIABLE, "")]), None);
    }

    #[test]
    fn who_called_sudo_is_known_to_root_alone() {
        let variables = [("HOME", "/root"), ("SUDO_USER", "anna")];
        assert_eq!(place(&variables, true).unwrap().caller.as_deref(), Some("anna"));
        assert_eq!(place(&variables, false).unwrap().caller, None);
    }

    #[test]
    fn a_file_that_others_may_write_or_that_is_no_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: PathBuf, is_named| Place { path, is_named, caller: None };
        let path = dir.path().join("config.toml");
        assert_eq!(at(path.clone(), false).text().unwrap(), None);
        at(path.clone(), true).text().unwrap_err();
        std::fs::write(&path, "[volumes]\n").unwrap();
        for (mode, is_read) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = at(path.clone(), false).text();
            assert_eq!(read.is_ok(), is_read, "{mode:o}: {read:?}");
        }
        let error = at(dir.path().to_owned(), true).text().unwrap_err().to_string();
        assert!(error.contains("not an ordinary file"), "{error}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
            let error = at(path, false).text().unwrap_err().to_string();
            assert!(error.contains("belongs to user 12345"), "{error}");
        }
    }
}
