//! A password that no list of processes shows: typed on the terminal, or read from a file.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::exit::Refusal;

/// The longest password that is read, bytes.
const LONGEST: u64 = 4096;

/// The password that the options ask for: on the terminal where `is_asked`, else of a file; None: that of option files or of the
/// environment.
///
/// # Errors
/// No terminal; a file that cannot be read, or that others may read (exit code 2).
pub(crate) fn password(is_asked: bool, file: Option<&Path>) -> anyhow::Result<Option<String>> {
    if is_asked {
        let typed = ask().map_err(|error| {
            if error.kind() == io::ErrorKind::Interrupted {
                return Refusal::cancelled("ended before a password was given").into();
            }
            let refusal = Refusal::usage("-p needs a terminal to ask for the password on")
                .hint("use --mysql-password-file, an option file or EBBTIDE_MYSQL_PASSWORD");
            anyhow::Error::new(error).context(refusal)
        })?;
        return Ok(Some(typed));
    }
    file.map(of_file).transpose()
}

fn of_file(path: &Path) -> anyhow::Result<String> {
    let unreadable = |error: io::Error| {
        let refusal = Refusal::usage(format!("cannot read the password in {}", path.display()));
        anyhow::Error::new(error).context(refusal)
    };
    let about = fs::metadata(path).map_err(unreadable)?;
    if about.permissions().mode() & 0o077 != 0 && about.is_file() {
        let message = format!("{} has a password, and others may read it", path.display());
        return Err(Refusal::usage(message).hint(format!("chmod 600 {}", path.display())).into());
    }
    if about.len() > LONGEST {
        let message =
            format!("{} has {} bytes, and a password has at most {LONGEST}", path.display(), about.len());
        return Err(Refusal::usage(message).into());
    }
    // What is no file, such as a pipe, has no length before it is read.
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text)).map_err(unreadable)?;
    if text.len() as u64 > LONGEST {
        let message =
            format!("{} has over {LONGEST} bytes, and a password has at most so many", path.display());
        return Err(Refusal::usage(message).into());
    }
    Ok(without_end(&text).to_owned())
}

/// A line without its end.
fn without_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// Asks on the terminal, which shows nothing of what is typed.
fn ask() -> io::Result<String> {
    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let quiet = Quiet::new(&terminal)?;
    (&terminal).write_all(b"Enter password: ")?;
    let line = line(&terminal, quiet.interrupt);
    drop(quiet);
    (&terminal).write_all(b"\n")?;
    line
}

/// A line without its end. The character that interrupts ends it too, as an error: a signal would leave the terminal silent.
fn line(mut terminal: impl Read, interrupt: u8) -> io::Result<String> {
    let (mut line, mut chunk) = (Vec::new(), [0; 256]);
    while !line.ends_with(b"\n") && line.len() as u64 <= LONGEST {
        let read = terminal.read(&mut chunk)?;
        if chunk[..read].contains(&interrupt) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if read == 0 {
            break;
        }
        line.extend_from_slice(&chunk[..read]);
    }
    let line = String::from_utf8(line).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(without_end(&line).to_owned())
}

/// A terminal that does not show what is typed, until this is dropped.
#[derive(Debug)]
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
    /// The character that interrupts, Ctrl-C on most terminals.
    interrupt: u8,
}

impl<'a> Quiet<'a> {
    fn new(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        let interrupt = before.special_codes[SpecialCodeIndex::VINTR];
        // It ends a line, so that it is read at once.
        quiet.special_codes[SpecialCodeIndex::VEOL] = interrupt;
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before, interrupt })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_password_without_the_end_of_its_line_and_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        fs::write(&path, "a secret \r\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(of_file(&path).unwrap(), "a secret ");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = of_file(&path).unwrap_err().to_string();
        assert!(error.contains("others may read it") && !error.contains("secret"), "{error}");
        assert!(of_file(&dir.path().join("none")).unwrap_err().to_string().contains("none"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, vec![b'x'; 5_000]).unwrap();
        assert!(of_file(&path).unwrap_err().to_string().contains("4096"));
        let endless = of_file(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(endless.contains("over 4096 bytes"), "{endless}");
    }

    #[test]
    fn a_line_ends_with_its_end_and_an_interrupt_ends_it_as_an_error() {
        const INTERRUPT: u8 = 3;
        let of = |bytes: &[u8]| line(bytes, INTERRUPT);
        assert_eq!(of(b"a secret \n").unwrap(), "a secret ");
        assert_eq!(of(b"").unwrap(), "");
        assert_eq!(of(b"sec\x03").unwrap_err().kind(), io::ErrorKind::Interrupted);
    }
}
