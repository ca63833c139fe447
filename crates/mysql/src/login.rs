//! The password of a server's `root`: one for each start, in memory and in two files that the server's user alone can
//! read.
//!
//! Data are made without a password, copied for each trial, and recovered from power cuts. So the password is no part of
//! them: each start sets a new one, before the server answers anybody. The statements keep out of the binary log.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read as _};

use crate::binary::Binary;

/// The account that the data are made with.
pub(crate) const USER: &str = "root";
/// Random bytes of a password. MySQL takes at most 32 characters as the password of a replica.
const BYTES: usize = 12;
/// What a password begins with, so that a server with rules for passwords takes it.
const CLASSES: &str = "Eb1-";
/// The operating system's source of random bytes, which never runs out: random(4).
const SOURCE: &str = "/dev/urandom";

/// A password that nobody can guess: letters, digits and a hyphen.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(String);

impl Password {
    /// A new one, of 96 random bits.
    pub(crate) fn random() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        File::open(SOURCE)?.read_exact(&mut bytes)?;
        let mut text = CLASSES.to_owned();
        bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a string takes everything"));
        Ok(Self(text))
    }

    /// A given one.
    #[cfg(test)]
    pub(crate) fn fixed(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The option file of the servers' clients.
    pub(crate) fn client_options(&self) -> String {
        format!("[client]\nuser={USER}\npassword={}\n", self.0)
    }

    /// What the server runs at its start (`init_file`), a statement a line.
    pub(crate) fn statements(&self, binary: &Binary) -> String {
        let password = &self.0;
        let mut statements = vec!["SET SESSION sql_log_bin=0".to_owned()];
        if binary.is_mariadb() {
            // Data of MariaDB have an account `root` for each name and address of the machine that made them.
            statements.extend([
                format!(
                    "UPDATE mysql.global_priv SET Priv=JSON_SET(Priv, '$.plugin', 'mysql_native_password', \
                     '$.authentication_string', PASSWORD('{password}')) WHERE User='{USER}'"
                ),
                // On disk before the load begins: Aria keeps pages in memory for half a minute.
                "FLUSH LOCAL TABLES mysql.global_priv".to_owned(),
                "FLUSH LOCAL PRIVILEGES".to_owned(),
            ]);
        } else {
            statements.push(format!("ALTER USER '{USER}'@'localhost' IDENTIFIED BY '{password}'"));
        }
        statements.iter().map(|statement| format!("{statement};\n")).collect()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::{Flavour, Version};

    #[test]
    fn no_two_passwords_are_alike_and_none_is_printed() {
        let (first, second) = (Password::random().unwrap(), Password::random().unwrap());
        assert_ne!(first, second);
        assert_eq!(first.text().len(), CLASSES.len() + 2 * BYTES);
        assert!(first.text().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'));
        assert!(!format!("{first:?}").contains(first.text()));
    }

    #[test]
    fn no_statement_of_a_password_is_logged_for_replicas() {
        for flavour in [Flavour::MariaDb, Flavour::MySql] {
            let binary =
                Binary { path: "/x".into(), flavour, version: Version::new(9, 0, 0), text: String::new() };
            let statements = Password::fixed("secret").statements(&binary);
            let lines: Vec<&str> = statements.lines().collect();
            assert_eq!(lines[0], "SET SESSION sql_log_bin=0;");
            assert!(lines.len() > 1 && lines[1].contains("'secret'"), "{statements}");
            assert!(lines.iter().all(|line| line.ends_with(';')), "{statements}");
        }
    }
}
