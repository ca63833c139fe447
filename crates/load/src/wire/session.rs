//! One connection, spoken to blocking: for setting up, loading rows, and asking small questions.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

use super::answer::{Answer, AnswerReader, Dialect, LOCAL_INFILE, refused};
use super::capture::ColumnType;
use super::command;
use super::handshake;
use super::packet::{Packets, length_encoded};
use super::transport::Transport;
use crate::error::LoadError;
use crate::options::{Endpoint, Target};

/// How long a server may take to let us in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// The server's code for a statement that has no prepared form (ER_UNSUPPORTED_PS).
const UNSUPPORTED_PREPARED: u16 = 1295;
/// Codes of servers that take no data from clients: ER_NOT_ALLOWED_COMMAND; MySQL's ER_CLIENT_LOCAL_FILES_DISABLED;
/// MariaDB's ER_LOAD_INFILE_CAPABILITY_DISABLED.
const NO_LOCAL_FILES: [u16; 3] = [1148, 3948, 4166];
/// The first byte of an answer that refuses.
const REFUSAL: u8 = 0xFF;
/// Statements asked to be prepared before the first answer is read.
const PREPARE_WINDOW: usize = 64;
/// How much of a statement an error message shows.
const SHOWN: usize = 120;

/// A statement that the server has prepared.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) id: u32,
    /// The types of its columns, as they were then.
    pub(crate) columns: Vec<ColumnType>,
}

/// A logged-in connection.
#[derive(Debug)]
pub struct Session {
    packets: Packets,
    dialect: Dialect,
    version: String,
}

impl Session {
    /// Connects, logs in and chooses the target's database.
    ///
    /// # Errors
    /// Everything from no server to a wrong password and a missing database (1049).
    pub fn open(target: &Target, endpoint: &Endpoint) -> Result<Self, LoadError> {
        let mut session = Self::open_without_database(target, endpoint)?;
        session.use_database(&target.database)?;
        Ok(session)
    }

    /// Connects and logs in, without a database.
    ///
    /// # Errors
    /// Everything from no server to a wrong password.
    pub fn open_without_database(target: &Target, endpoint: &Endpoint) -> Result<Self, LoadError> {
        let transport = Transport::connect(endpoint)?;
        transport.set_read_timeout(Some(LOGIN_TIMEOUT)).map_err(LoadError::broken("setting a timeout"))?;
        let mut packets = Packets::new(transport);
        let agreed = handshake::log_in(&mut packets, target, endpoint)?;
        packets.transport().set_read_timeout(None).map_err(LoadError::broken("setting a timeout"))?;
        Ok(Self { packets, dialect: agreed.dialect, version: agreed.version })
    }

    /// Has a question end with an error where the server sends nothing for so long. Without this, one that hangs is waited for
    /// without end.
    ///
    /// # Errors
    /// The operating system's.
    pub fn limit_answers(&mut self, limit: Duration) -> Result<(), LoadError> {
        self.packets.transport().set_read_timeout(Some(limit)).map_err(LoadError::broken("setting a timeout"))
    }

    /// Waits for the rest of an answer that did not come in time: true where nothing comes within `wait`, which is over 0. False where
    /// something has come, or the connection has ended. In either case the session is of no other use any more: nobody has read
    /// the answer.
    pub fn is_silent(&mut self, wait: Duration) -> bool {
        if self.packets.transport().set_read_timeout(Some(wait)).is_err() {
            return false;
        }
        let more = self.packets.more("waiting for an answer");
        matches!(more, Err(LoadError::Broken { source, .. }) if source.kind() == ErrorKind::TimedOut)
    }

    /// Chooses a database.
    ///
    /// # Errors
    /// The server's, 1049 where there is none of that name.
    pub fn use_database(&mut self, name: &str) -> Result<(), LoadError> {
        self.execute(&format!("USE {}", quoted(name))).map(drop)
    }

    /// The server's version, in its own words.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.packets.is_encrypted()
    }

    /// Bytes that were sent and received since the connection was made, the login's included; over TLS, before encryption.
    #[must_use]
    pub fn carried_bytes(&self) -> u64 {
        self.packets.carried()
    }

    /// Executes a statement; answers with the number of changed (or returned) rows.
    ///
    /// # Errors
    /// The server's, or a broken connection.
    pub fn execute(&mut self, sql: &str) -> Result<u64, LoadError> {
        self.send_query(sql.as_bytes())?;
        self.finish_query().map_err(|error| error.for_statement(sql))
    }

    /// Sends a statement without waiting for its answer.
    pub(crate) fn send_query(&mut self, sql: &[u8]) -> Result<(), LoadError> {
        let mut out = Vec::with_capacity(sql.len() + 5);
        command::query(&mut out, |out| out.extend_from_slice(sql));
        self.packets.send(&out)
    }

    /// Waits for the answer to the statement sent longest ago.
    pub(crate) fn finish_query(&mut self) -> Result<u64, LoadError> {
        match self.answer()? {
            Answer::Done { affected } => Ok(affected),
            Answer::Rows(rows) => Ok(rows),
            Answer::Refused(refusal) => Err(refusal.into()),
        }
    }

    /// Sends LOAD DATA LOCAL; false where the server takes no data from clients so. Then follow [`Self::send_lines`] and
    /// [`Self::finish_lines`].
    ///
    /// # Errors
    /// The server's, and a broken connection.
    pub(crate) fn begin_lines(&mut self, sql: &str) -> Result<bool, LoadError> {
        self.send_query(sql.as_bytes())?;
        let packet = self.packets.read("waiting for an answer")?;
        match packet.first() {
            Some(&LOCAL_INFILE) => Ok(true),
            Some(&REFUSAL) => match refused(&packet).for_statement(sql) {
                error if error.code().is_some_and(|code| NO_LOCAL_FILES.contains(&code)) => Ok(false),
                error => Err(error),
            },
            _ => Err(LoadError::Protocol("LOAD DATA was answered before its data".into())),
        }
    }

    /// Sends lines to a server that waits for them; less than 16 MiB at a time, and whole or parts of lines.
    pub(crate) fn send_lines(&mut self, lines: &[u8]) -> Result<(), LoadError> {
        self.packets.write(|out| out.extend_from_slice(lines))
    }

    /// Ends the lines; answers with the number of rows that the server has taken.
    ///
    /// # Errors
    /// The server's.
    pub(crate) fn finish_lines(&mut self) -> Result<u64, LoadError> {
        self.packets.write(|_| ())?;
        self.finish_query()
    }

    fn answer(&mut self) -> Result<Answer, LoadError> {
        // Columns are left out of repeated prepared executions only.
        let mut reader = AnswerReader::new(self.dialect);
        loop {
            let (used, answer) = reader.feed(self.packets.unread())?;
            self.packets.consume(used);
            if let Some(answer) = answer {
                return Ok(answer);
            }
            self.packets.more("waiting for an answer")?;
        }
    }

    /// Executes a query and answers with its rows, as text.
    ///
    /// # Errors
    /// The server's, or a broken connection.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, LoadError> {
        self.send_query(sql.as_bytes())?;
        let first = self.packets.read("waiting for an answer")?;
        let columns = match first.first() {
            Some(0x00) => return Ok(Vec::new()),
            Some(0xFF) => return Err(refused(&first).for_statement(sql)),
            _ => length_encoded(&first).ok_or_else(|| LoadError::Protocol("a short column count".into()))?.0,
        };
        for _ in 0..columns + u64::from(!self.dialect.deprecate_eof) {
            self.packets.read("reading columns")?;
        }
        self.text_rows(sql)
    }

    /// The first row of a query's answer by the names of its columns, NULLs left out; none without a row. For
    /// statements whose columns are others from version to version, such as SHOW SLAVE STATUS.
    ///
    /// # Errors
    /// The server's, or a broken connection.
    pub fn named_row(&mut self, sql: &str) -> Result<Option<BTreeMap<String, String>>, LoadError> {
        Ok(self.named_rows(sql)?.into_iter().next())
    }

    /// All rows of a query's answer by the names of their columns, NULLs left out.
    ///
    /// # Errors
    /// The server's, or a broken connection.
    pub fn named_rows(&mut self, sql: &str) -> Result<Vec<BTreeMap<String, String>>, LoadError> {
        self.send_query(sql.as_bytes())?;
        let first = self.packets.read("waiting for an answer")?;
        let columns = match first.first() {
            Some(0x00) => return Ok(Vec::new()),
            Some(0xFF) => return Err(refused(&first).for_statement(sql)),
            _ => length_encoded(&first).ok_or_else(|| LoadError::Protocol("a short column count".into()))?.0,
        };
        let mut names = Vec::new();
        for _ in 0..columns {
            let packet = self.packets.read("reading columns")?;
            // Catalogue, database, table and its real name come before it.
            let name = column_texts(&packet).nth(4);
            names.push(name.ok_or_else(|| LoadError::Protocol("a short column".into()))?);
        }
        if !self.dialect.deprecate_eof {
            self.packets.read("reading columns")?;
        }
        let named = |row: Vec<Option<String>>| {
            names.iter().zip(row).filter_map(|(name, value)| Some((name.clone(), value?))).collect()
        };
        Ok(self.text_rows(sql)?.into_iter().map(named).collect())
    }

    fn text_rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, LoadError> {
        let mut rows = Vec::new();
        loop {
            let packet = self.packets.read("reading rows")?;
            match packet.first() {
                Some(0xFE) if self.dialect.deprecate_eof || packet.len() < 9 => return Ok(rows),
                Some(0xFF) => return Err(refused(&packet).for_statement(sql)),
                _ => rows.push(text_row(&packet)?),
            }
        }
    }

    /// The first column of the first row.
    ///
    /// # Errors
    /// The server's, or a broken connection.
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, LoadError> {
        Ok(self.rows(sql)?.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
    }

    /// Prepares statements and answers with their ids and the types of their columns; none for what the server
    /// cannot prepare, such as BEGIN on MySQL. Asks for many before it waits.
    pub(crate) fn prepare(&mut self, texts: &[String]) -> Result<Vec<Option<Prepared>>, LoadError> {
        let mut ids = Vec::with_capacity(texts.len());
        for window in texts.chunks(PREPARE_WINDOW) {
            let mut out = Vec::new();
            for text in window {
                command::prepare(&mut out, text);
            }
            self.packets.send(&out)?;
            for text in window {
                match self.prepared() {
                    Ok(prepared) => ids.push(Some(prepared)),
                    Err(error) if error.code() == Some(UNSUPPORTED_PREPARED) => ids.push(None),
                    Err(error) => return Err(error.for_statement(text)),
                }
            }
        }
        Ok(ids)
    }

    fn prepared(&mut self) -> Result<Prepared, LoadError> {
        let packet = self.packets.read("preparing statements")?;
        let [0, a, b, c, d, columns_low, columns_high, params_low, params_high, ..] = packet[..] else {
            return Err(refused(&packet));
        };
        let mut types = Vec::new();
        for (count, of_columns) in [
            (u16::from_le_bytes([params_low, params_high]), false),
            (u16::from_le_bytes([columns_low, columns_high]), true),
        ] {
            for _ in 0..count {
                let packet = self.packets.read("preparing statements")?;
                if of_columns {
                    types.push(ColumnType::of(&packet)?);
                }
            }
            if count > 0 && !self.dialect.deprecate_eof {
                self.packets.read("preparing statements")?;
            }
        }
        Ok(Prepared { id: u32::from_le_bytes([a, b, c, d]), columns: types })
    }

    /// Hands the connection to an event loop. Nothing of an answer may be outstanding.
    pub(crate) fn into_transport(self) -> (Transport, Dialect) {
        (self.packets.into_transport(), self.dialect)
    }
}

impl LoadError {
    fn for_statement(self, sql: &str) -> Self {
        match self {
            Self::Server { code, state, message, .. } => {
                let mut shown: String = sql.chars().take(SHOWN).collect();
                if shown.len() < sql.len() {
                    shown.push_str("...");
                }
                Self::Server { code, state, message, statement: Some(shown) }
            }
            other => other,
        }
    }
}

/// An identifier in backticks.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The texts that a column's description begins with.
fn column_texts(packet: &[u8]) -> impl Iterator<Item = String> + '_ {
    let mut rest = packet;
    std::iter::from_fn(move || {
        let (length, used) = length_encoded(rest)?;
        let end = used.checked_add(usize::try_from(length).ok()?)?;
        let text = String::from_utf8_lossy(rest.get(used..end)?).into_owned();
        rest = &rest[end..];
        Some(text)
    })
}

fn text_row(packet: &[u8]) -> Result<Vec<Option<String>>, LoadError> {
    let short = || LoadError::Protocol("a short row".into());
    let mut row = Vec::new();
    let mut rest = packet;
    while let Some(&first) = rest.first() {
        if first == 0xFB {
            row.push(None);
            rest = &rest[1..];
            continue;
        }
        let (length, used) = length_encoded(rest).ok_or_else(short)?;
        let end =
            usize::try_from(length).ok().and_then(|length| used.checked_add(length)).ok_or_else(short)?;
        let value = rest.get(used..end).ok_or_else(short)?;
        row.push(Some(String::from_utf8_lossy(value).into_owned()));
        rest = &rest[end..];
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// The greeting of a server with the capabilities of MySQL 5.7, and the answer that lets in.
    fn greeting() -> Vec<u8> {
        let mut payload = vec![10];
        payload.extend(b"5.7.44\0");
        payload.extend([1, 0, 0, 0]);
        payload.extend(b"aaaaaaaa\0");
        payload.extend([0x01, 0x82, 45, 2, 0, 0x08, 0x00, 21]);
        payload.extend([0; 10]);
        payload.extend(b"bbbbbbbbbbbb\0mysql_native_password\0");
        let mut packet = vec![u8::try_from(payload.len()).unwrap(), 0, 0, 0];
        packet.extend(payload);
        packet
    }

    #[test]
    fn a_server_that_hangs_after_the_login_is_not_waited_for_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            client.write_all(&greeting()).unwrap();
            assert!(client.read(&mut [0; 4096]).unwrap() > 4);
            client.write_all(&[7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0]).unwrap();
            // Until the client goes.
            let _ = client.read_to_end(&mut Vec::new());
        });
        let endpoint = Endpoint::Unix(path);
        let target = Target {
            endpoints: vec![endpoint.clone()],
            user: "u".into(),
            password: String::new(),
            database: "d".into(),
            tls: None,
        };
        let mut session = Session::open_without_database(&target, &endpoint).unwrap();
        session.limit_answers(Duration::from_millis(50)).unwrap();
        let error = session.rows("SHOW GLOBAL STATUS").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the connection to the server broke while waiting for an answer: the server does not answer"
        );
        assert!(session.is_silent(Duration::from_millis(10)), "it hangs still");
        assert!(session.carried_bytes() > 4, "the login is counted");
        drop(session);
        server.join().unwrap();
    }

    /// Asks a client that logs in for the password itself, and returns what it answers.
    fn ask_for_the_password(mut client: impl std::io::Read + std::io::Write) -> Vec<u8> {
        client.write_all(&greeting()).unwrap();
        assert!(client.read(&mut [0; 4096]).unwrap() > 4);
        let switch = b"\xfemysql_clear_password\0";
        let mut packet = vec![u8::try_from(switch.len()).unwrap(), 0, 0, 2];
        packet.extend(switch);
        client.write_all(&packet).unwrap();
        let mut answer = vec![0; 4096];
        let read = client.read(&mut answer).unwrap_or(0);
        answer.truncate(read);
        if !answer.is_empty() {
            client.write_all(&[7, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0]).unwrap();
        }
        answer
    }

    #[test]
    fn a_password_is_sent_as_it_is_through_a_socket_and_to_a_server_that_is_known_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let unix = UnixListener::bind(&path).unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            [ask_for_the_password(unix.accept().unwrap().0), ask_for_the_password(tcp.accept().unwrap().0)]
        });
        let open = |endpoint: Endpoint| {
            let target = Target {
                endpoints: vec![endpoint.clone()],
                user: "u".into(),
                password: "s3cret".into(),
                database: "d".into(),
                tls: None,
            };
            Session::open_without_database(&target, &endpoint)
        };
        open(Endpoint::Unix(path)).unwrap();
        let error = open(Endpoint::Tcp { host: "127.0.0.1".into(), port }).unwrap_err();
        assert!(
            matches!(&error, LoadError::ClearPassword { plugin, .. } if plugin == "mysql_clear_password"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("--mysql-ssl-ca"));
        let [socket, network] = server.join().unwrap();
        assert_eq!(&socket[4..], b"s3cret\0");
        // The client says that it goes, and no more.
        assert_eq!(network, [1, 0, 0, 0, 1]);
    }
}
