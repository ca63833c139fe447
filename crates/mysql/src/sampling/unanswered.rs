//! Why a server gave no sample, as an alarm tells it apart.

use std::error::Error as _;

use ebbtide_load::LoadError;

use super::connection::is_timeout;
use super::sampler::SampleError;

/// Errors with which a server refuses a login: `ER_DBACCESS_DENIED_ERROR`, `ER_ACCESS_DENIED_ERROR`, `ER_HOST_IS_BLOCKED`,
/// `ER_HOST_NOT_PRIVILEGED`, `ER_ACCESS_DENIED_NO_PASSWORD_ERROR`, `ER_MUST_CHANGE_PASSWORD`, `ER_MUST_CHANGE_PASSWORD_LOGIN`,
/// `ER_ACCOUNT_HAS_BEEN_LOCKED` of MySQL and of MariaDB, `ER_SECURE_TRANSPORT_REQUIRED`.
const REFUSES_LOGIN: [u16; 10] = [1044, 1045, 1129, 1130, 1698, 1820, 1862, 3118, 3159, 4151];

/// Why a server gave no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// There is no connection, or it was lost.
    Down,
    /// The server refuses the login.
    LoginRefused,
    /// The server took the connection or the question, and did not answer in time.
    Hangs,
}

impl SampleError {
    /// Why there is no sample.
    #[must_use]
    pub fn unanswered(&self) -> Unanswered {
        match self {
            Self::Hangs { .. } => Unanswered::Hangs,
            Self::Lost { source, .. } if is_timeout(source) => Unanswered::Hangs,
            Self::Lost { .. } => Unanswered::Down,
            Self::Connect(LoadError::Server { code, .. }) if REFUSES_LOGIN.contains(code) => {
                Unanswered::LoginRefused
            }
            Self::Connect(LoadError::Authentication { .. } | LoadError::ClearPassword { .. }) => {
                Unanswered::LoginRefused
            }
            Self::Connect(source) if is_timeout(source) => Unanswered::Hangs,
            Self::Connect(_) => Unanswered::Down,
        }
    }

    /// The error and its cause in one text. A cause has its own causes in its text.
    #[must_use]
    pub fn reason(&self) -> String {
        self.source().map_or_else(|| self.to_string(), |cause| format!("{self}: {cause}"))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_refused_login_and_a_server_that_hangs_are_told_from_one_that_is_down() {
        let server = |code: u16| {
            let (state, message) = ("28000".to_owned(), "Access denied for user 'x'@'y'".to_owned());
            SampleError::Connect(LoadError::Server { code, state, message, statement: None })
        };
        assert_eq!(server(1045).unanswered(), Unanswered::LoginRefused);
        assert_eq!(server(1040).unanswered(), Unanswered::Down, "too many connections");
        assert!(server(1045).reason().contains("1045"), "{}", server(1045).reason());
        let broken = |kind: io::ErrorKind| LoadError::Broken { during: "the answer", source: kind.into() };
        let lost =
            |kind| SampleError::Lost { statement: "SHOW GLOBAL STATUS".to_owned(), source: broken(kind) };
        assert_eq!(lost(io::ErrorKind::TimedOut).unanswered(), Unanswered::Hangs);
        assert_eq!(lost(io::ErrorKind::BrokenPipe).unanswered(), Unanswered::Down);
        assert_eq!(SampleError::Connect(broken(io::ErrorKind::TimedOut)).unanswered(), Unanswered::Hangs);
    }
}
