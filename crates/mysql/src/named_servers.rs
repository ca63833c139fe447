//! Server programs that a file names: an experiment, or the results of a run. Whoever wrote the file chose them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::binary::{Binary, fetched_servers, program_at, system_programs};
use crate::error::ServerError;

/// Which server programs that a file names are taken, and whether they are started to learn their version.
///
/// The machine's own server and those that `./dev servers` has fetched always are.
#[derive(Debug, Clone, Default)]
pub struct NamedServers {
    any: bool,
    named: BTreeSet<String>,
    unstarted: bool,
}

impl NamedServers {
    /// Takes whatever a file names, if `any`.
    #[must_use]
    pub fn and_any(self, any: bool) -> Self {
        Self { any, ..self }
    }

    /// Takes programs that the user has named, in the words by which they are looked for.
    #[must_use]
    pub fn and_named(self, words: impl IntoIterator<Item = String>) -> Self {
        Self { named: self.named.into_iter().chain(words).collect(), ..self }
    }

    /// Starts none of them: a version that is not known without that is [`ServerError::VersionUnknown`].
    #[must_use]
    pub fn unstarted(self) -> Self {
        Self { unstarted: true, ..self }
    }

    /// Whether none is started.
    #[must_use]
    pub const fn starts_none(&self) -> bool {
        self.unstarted
    }

    /// Finds a program by the words of a file, as [`Binary::detect`] does.
    ///
    /// # Errors
    /// [`ServerError::NotAllowed`] for a program that is not taken; nothing was started then. As [`Binary::detect`], and as
    /// [`Binary::unstarted`] where none is started.
    pub fn find(&self, words: &str) -> Result<Binary, ServerError> {
        let path = Path::new(words);
        let program = program_at(path)?;
        if !self.any && !self.named.contains(words) && !is_trusted(&program) {
            return Err(ServerError::NotAllowed { path: program });
        }
        if self.unstarted { Binary::unstarted(Some(path)) } else { Binary::detect(Some(path)) }
    }
}

/// Whether a program is the machine's own server or a fetched one, by whatever it is a link to.
#[must_use]
pub fn is_trusted(program: &Path) -> bool {
    let Ok(real) = program.canonicalize() else { return false };
    let is_fetched = fetched_servers().canonicalize().is_ok_and(|root| real.starts_with(root));
    let same = |own: PathBuf| own.canonicalize().is_ok_and(|own| own == real);
    is_fetched || system_programs().any(same)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A program that answers as a server does, and leaves a mark where it was started.
    fn stand_in(dir: &Path) -> (String, PathBuf) {
        fs::set_permissions(dir, Permissions::from_mode(0o777)).unwrap();
        let (program, mark) = (dir.join("mysqld"), dir.join("mark"));
        let text = format!(
            "#!/bin/sh\nid -u >'{}'\necho \"$(env)\" >>'{}'\necho 'mysqld  Ver 9.7.0 for Linux on x86_64 (x)'\n",
            mark.display(),
            mark.display()
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        (program.display().to_string(), mark)
    }

    #[test]
    fn a_program_that_a_file_names_is_not_started_unless_the_user_allows_it_and_never_as_root() {
        let dir = tempfile::tempdir().unwrap();
        let (words, mark) = stand_in(dir.path());
        let error = NamedServers::default().find(&words).unwrap_err();
        assert!(matches!(&error, ServerError::NotAllowed { path } if *path == Path::new(&words)), "{error}");
        let other = NamedServers::default().and_named(["/elsewhere".to_owned()]);
        assert!(matches!(other.find(&words), Err(ServerError::NotAllowed { .. })));
        let unstarted = NamedServers::default().and_any(true).unstarted().find(&words).unwrap_err();
        assert!(matches!(unstarted, ServerError::VersionUnknown { .. }), "{unstarted}");
        assert!(!mark.exists(), "nothing was started");

        for allowed in
            [NamedServers::default().and_any(true), NamedServers::default().and_named([words.clone()])]
        {
            assert_eq!(allowed.find(&words).unwrap().name(), "MySQL 9.7.0");
            let seen = fs::read_to_string(&mark).unwrap();
            let uid = seen.lines().next().unwrap();
            let ours = rustix::process::geteuid();
            assert!(if ours.is_root() { uid != "0" } else { uid == ours.as_raw().to_string() }, "{uid}");
            assert!(!seen.contains("CARGO"), "nothing of our environment: {seen}");
            fs::remove_file(&mark).unwrap();
        }
    }

    #[test]
    fn a_link_is_what_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let (words, _) = stand_in(dir.path());
        assert!(!is_trusted(Path::new(&words)));
        let Some(own) = system_programs().find(|own| own.is_file()) else {
            return println!("SKIPPED: this machine has no server");
        };
        let link = dir.path().join("link");
        symlink(&own, &link).unwrap();
        assert!(is_trusted(&own) && is_trusted(&link));
        let around = fetched_servers().join("..").join("..").join(words.trim_start_matches('/'));
        assert!(!is_trusted(&around), "{}", around.display());
    }
}
