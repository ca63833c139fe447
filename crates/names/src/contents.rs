//! What the file of names says, key by key, and what is wrong with it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use ebbtide_catalog::{Catalog, Spec};
use ebbtide_device::host::FsType;
use ebbtide_observe::Role;
use ebbtide_text::{closest, did_you_mean};
use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Kind;

/// The tables of the file.
const TABLES: [&str; 4] = ["servers", "volumes", "instances", "regions"];
/// The keys of a server.
const SERVER_KEYS: [&str; 10] =
    ["socket", "host", "port", "user", "database", "defaults_file", "ssl_ca", "volumes", "instance", "fs"];
/// Parts of keys whose values are secrets.
const SECRETS: [&str; 5] = ["password", "passwd", "pwd", "secret", "token"];
/// A command of the doctor, which a server cannot be named like.
const CAPTURE: &str = "capture";
/// The longest name.
const LONGEST: usize = 63;

/// A server that has a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NamedServer {
    /// Its Unix socket; null where it is reached by host and port.
    pub socket: Option<PathBuf>,
    /// Its host.
    pub host: Option<String>,
    /// Its port.
    pub port: Option<u16>,
    /// The account.
    pub user: Option<String>,
    /// The database.
    pub database: Option<String>,
    /// The option file with its password.
    pub defaults_file: Option<PathBuf>,
    /// The authority that signs its certificate.
    pub ssl_ca: Option<PathBuf>,
    /// Its volumes by role: specs, or names of volumes.
    pub volumes: BTreeMap<String, String>,
    /// Its instance: a type, or the name of an instance.
    pub instance: Option<String>,
    /// The file system of its data.
    pub fs: Option<String>,
}

impl fmt::Display for NamedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = |path: &PathBuf| path.display().to_string();
        let volumes = (!self.volumes.is_empty()).then(|| {
            let volumes = self.volumes.iter().map(|(role, volume)| format!("{role}={volume}"));
            volumes.collect::<Vec<_>>().join(" ")
        });
        let parts = [
            ("socket", self.socket.as_ref().map(path)),
            ("host", self.host.clone()),
            ("port", self.port.map(|port| port.to_string())),
            ("user", self.user.clone()),
            ("database", self.database.clone()),
            ("defaults file", self.defaults_file.as_ref().map(path)),
            ("CA", self.ssl_ca.as_ref().map(path)),
            ("volumes", volumes),
            ("instance", self.instance.clone()),
            ("file system", self.fs.clone()),
        ];
        let parts = parts.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?)));
        f.write_str(&parts.collect::<Vec<_>>().join(", "))
    }
}

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Servers by name.
    pub servers: BTreeMap<String, NamedServer>,
    /// Specs by name.
    pub volumes: BTreeMap<String, String>,
    /// Instance types, with an id where there is one, by name.
    pub instances: BTreeMap<String, String>,
    /// Regions by name.
    pub regions: BTreeMap<String, String>,
    /// The lines of names, by table and name.
    lines: BTreeMap<(&'static str, String), usize>,
}

/// Something that is wrong with the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Its line, from 1 on.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Problem {
    /// The problem with its place.
    #[must_use]
    pub fn placed(&self, path: &Path) -> String {
        format!("{} line {}: {}", path.display(), self.line, self.message)
    }
}

impl Names {
    /// Reads the text of the file: its names, and what is wrong with it by itself.
    #[must_use]
    pub fn read(text: &str) -> (Self, Vec<Problem>) {
        let mut reader = Reader { text, names: Self::default(), problems: Vec::new() };
        match DeTable::parse(text) {
            Ok(table) => reader.tables(table.get_ref()),
            Err(error) => {
                let offset = error.span().map_or(0, |span| span.start);
                reader.wrong(offset, error.message().trim_end().replace('\n', "; "));
            }
        }
        let Reader { names, mut problems, .. } = reader;
        problems.sort_by_key(|problem| problem.line);
        (names, problems)
    }

    /// The names of a kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> Box<dyn Iterator<Item = &str> + '_> {
        match kind {
            Kind::Server => Box::new(self.servers.keys().map(String::as_str)),
            Kind::Volume => Box::new(self.volumes.keys().map(String::as_str)),
            Kind::Instance => Box::new(self.instances.keys().map(String::as_str)),
            Kind::Region => Box::new(self.regions.keys().map(String::as_str)),
        }
    }

    /// What a name is; None for a server, which is more than a text.
    #[must_use]
    pub fn value(&self, kind: Kind, name: &str) -> Option<&str> {
        match kind {
            Kind::Server => None,
            Kind::Volume => self.volumes.get(name).map(String::as_str),
            Kind::Instance => self.instances.get(name).map(String::as_str),
            Kind::Region => self.regions.get(name).map(String::as_str),
        }
    }

    /// What is wrong beside the catalogue: types and regions that do not exist, and names that are theirs.
    #[must_use]
    pub fn problems(&self, catalog: &Catalog) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut check = |table: &'static str, name: &str, wrong: Option<String>| {
            if let Some(message) = wrong {
                let line = self.lines.get(&(table, name.to_owned())).copied().unwrap_or(1);
                problems.push(Problem { line, message: format!("{table}.{name}: {message}") });
            }
        };
        for (name, spec) in &self.volumes {
            check("volumes", name, wrong_spec(spec, catalog).or_else(|| taken(Kind::Volume, name, catalog)));
        }
        for (name, value) in &self.instances {
            let kind = value.split('/').next().unwrap_or_default();
            let unknown = catalog.instance(kind).err().map(|error| error.to_string());
            check("instances", name, unknown.or_else(|| taken(Kind::Instance, name, catalog)));
        }
        for (name, region) in &self.regions {
            let unknown = catalog.prices(Some(region)).err().map(|error| error.to_string());
            check("regions", name, unknown.or_else(|| taken(Kind::Region, name, catalog)));
        }
        for (name, server) in &self.servers {
            for (role, volume) in &server.volumes {
                // A name whose own spec is wrong is refused where it stands.
                let is_name = self.lines.contains_key(&("volumes", volume.clone()));
                let wrong = wrong_spec(volume, catalog).filter(|_| !is_name);
                let nearest = closest(volume, self.volumes.keys().map(String::as_str));
                check(
                    "servers",
                    name,
                    wrong.map(|why| format!("volumes.{role}: {why}{}", did_you_mean(nearest))),
                );
            }
            if let Some(instance) =
                server.instance.as_ref().filter(|name| !self.instances.contains_key(*name))
            {
                let wrong = catalog.instance(instance).err();
                let nearest = closest(instance, self.instances.keys().map(String::as_str));
                let named = nearest.map(|name| format!("; the file has the instance '{name}'"));
                check(
                    "servers",
                    name,
                    wrong.map(|error| format!("instance: {error}{}", named.unwrap_or_default())),
                );
            }
        }
        problems
    }
}

fn wrong_spec(spec: &str, catalog: &Catalog) -> Option<String> {
    match Spec::parse(spec) {
        Ok(parsed) => catalog.resolve(&parsed).err().map(|error| match error.hint() {
            Some(hint) => format!("{error} {hint}"),
            None => error.to_string(),
        }),
        Err(error) => Some(error.to_string()),
    }
}

/// A name that the catalogue has already.
fn taken(kind: Kind, name: &str, catalog: &Catalog) -> Option<String> {
    kind.is_known(name, catalog).then(|| format!("'{name}' is the catalogue's own word: choose another name"))
}

/// A text being read.
struct Reader<'a> {
    text: &'a str,
    names: Names,
    problems: Vec<Problem>,
}

type Entry<'a, 'b> = (&'a Spanned<std::borrow::Cow<'b, str>>, &'a Spanned<DeValue<'b>>);

impl Reader<'_> {
    fn line(&self, offset: usize) -> usize {
        self.text.get(..offset).unwrap_or(self.text).matches('\n').count() + 1
    }

    fn wrong(&mut self, offset: usize, message: impl Into<String>) {
        let problem = Problem { line: self.line(offset), message: message.into() };
        self.problems.push(problem);
    }

    /// Refuses a key that does not exist, and a secret whatever it is called; its value is not repeated.
    fn unknown_key(&mut self, offset: usize, key: &str, place: &str, keys: &[&str]) {
        let lower = key.to_ascii_lowercase();
        if SECRETS.iter().any(|secret| lower.contains(secret)) {
            let message = format!(
                "'{key}' in {place}: no secret is kept in this file. Write the password to an option file that others cannot \
                 read ([client], password=...), and name that: defaults_file = \"~/.shop.cnf\""
            );
            return self.wrong(offset, message);
        }
        let nearest = did_you_mean(closest(key, keys.iter().copied()));
        self.wrong(
            offset,
            format!("unknown key '{key}' in {place}{nearest}; the keys are {}", keys.join(", ")),
        );
    }

    fn tables(&mut self, root: &DeTable<'_>) {
        for (key, value) in root.iter() {
            let (name, offset) = (key.get_ref().as_ref(), key.span().start);
            let Some(table) = TABLES.into_iter().find(|table| *table == name) else {
                self.unknown_key(offset, name, "the file", &TABLES);
                continue;
            };
            let DeValue::Table(entries) = value.get_ref() else {
                self.wrong(offset, format!("{table} is a table: write [{table}]"));
                continue;
            };
            for entry in entries.iter() {
                self.entry(table, entry);
            }
        }
    }

    fn entry(&mut self, table: &'static str, (key, value): Entry<'_, '_>) {
        let (name, offset) = (key.get_ref().as_ref().to_owned(), key.span().start);
        let of_servers = table == "servers";
        if !is_name(&name) || (of_servers && name == CAPTURE) {
            let rule =
                "a name has 1 to 63 letters, digits, '.', '_' and '-', and begins with a letter or digit";
            let other = if of_servers { "; no server is called 'capture'" } else { "" };
            return self.wrong(offset, format!("{table}.\"{name}\": {rule}{other}"));
        }
        let line = self.line(offset);
        self.names.lines.insert((table, name.clone()), line);
        if table == "servers" {
            let DeValue::Table(keys) = value.get_ref() else {
                return self.wrong(offset, format!("servers.{name} is a table: write [servers.{name}]"));
            };
            let server = self.server(&name, keys);
            if server.socket.is_some() && (server.host.is_some() || server.port.is_some()) {
                self.wrong(offset, format!("servers.{name} has a socket, and a host or a port: one of both"));
            }
            self.names.servers.insert(name, server);
            return;
        }
        let Some(text) = self.string(&format!("{table}.{name}"), value) else { return };
        if table == "volumes"
            && let Err(error) = Spec::parse(&text)
        {
            return self.wrong(offset, format!("volumes.{name}: {error}"));
        }
        let names = match table {
            "volumes" => &mut self.names.volumes,
            "instances" => &mut self.names.instances,
            _ => &mut self.names.regions,
        };
        names.insert(name, text);
    }

    fn server(&mut self, name: &str, keys: &DeTable<'_>) -> NamedServer {
        let mut server = NamedServer::default();
        for (key, value) in keys.iter() {
            let (key, offset) = (key.get_ref().as_ref(), key.span().start);
            let place = format!("servers.{name}.{key}");
            match key {
                "socket" => server.socket = self.path(&place, value),
                "defaults_file" => server.defaults_file = self.path(&place, value),
                "ssl_ca" => server.ssl_ca = self.path(&place, value),
                "host" => server.host = self.string(&place, value),
                "user" => server.user = self.string(&place, value),
                "database" => server.database = self.string(&place, value),
                "instance" => server.instance = self.string(&place, value),
                "port" => server.port = self.port(&place, value),
                "fs" => {
                    server.fs = self.string(&place, value);
                    let wrong = server.fs.as_ref().and_then(|fs| fs.parse::<FsType>().err());
                    wrong.into_iter().for_each(|error| self.wrong(offset, format!("{place}: {error}")));
                }
                "volumes" => server.volumes = self.volumes(&place, value),
                _ => self.unknown_key(offset, key, &format!("[servers.{name}]"), &SERVER_KEYS),
            }
        }
        server
    }

    fn volumes(&mut self, place: &str, value: &Spanned<DeValue<'_>>) -> BTreeMap<String, String> {
        let mut volumes = BTreeMap::new();
        let DeValue::Table(roles) = value.get_ref() else {
            self.wrong(value.span().start, format!("{place}: write {{ data = \"NAME or SPEC\" }}"));
            return volumes;
        };
        for (role, volume) in roles.iter() {
            let (name, offset) = (role.get_ref().as_ref(), role.span().start);
            if let Err(error) = Role::named(name) {
                self.wrong(offset, format!("{place}: {error}"));
            } else if let Some(volume) = self.string(&format!("{place}.{name}"), volume) {
                volumes.insert(name.to_owned(), volume);
            }
        }
        volumes
    }

    fn string(&mut self, place: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            _ => {
                self.wrong(value.span().start, format!("{place}: it is a text in quotes, and not empty"));
                None
            }
        }
    }

    fn port(&mut self, place: &str, value: &Spanned<DeValue<'_>>) -> Option<u16> {
        let port = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse().ok().filter(|port| *port > 0),
            _ => None,
        };
        if port.is_none() {
            self.wrong(value.span().start, format!("{place}: it is a whole number from 1 to 65535"));
        }
        port
    }

    /// A path that is the same from every directory.
    fn path(&mut self, place: &str, value: &Spanned<DeValue<'_>>) -> Option<PathBuf> {
        let text = self.string(place, value)?;
        let path = expanded(&text);
        if path.is_absolute() {
            return Some(path);
        }
        self.wrong(value.span().start, format!("{place}: '{text}' has to begin with / or ~/"));
        None
    }
}

/// A path with the user's home directory in place of `~`.
#[must_use]
pub fn expanded(text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

/// Whether a text can be a name.
#[must_use]
pub fn is_name(text: &str) -> bool {
    text.len() <= LONGEST
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = "\
[servers.shop]
socket = \"/run/shop.sock\"
user = \"ebbtide\"
defaults_file = \"/etc/shop.cnf\"
volumes = { data = \"shop-data\", redo = \"io2:size=20GiB,iops=3000\" }
instance = \"web\"
fs = \"xfs\"
[volumes]
shop-data = \"gp3:size=500GiB,iops=6000\"
[instances]
web = \"r6i.large/web1\"
[regions]
home = \"eu-west-1\"
";

    fn problems(text: &str) -> Vec<String> {
        let (names, mut problems) = Names::read(text);
        problems.extend(names.problems(&Catalog::builtin()));
        problems.iter().map(|problem| format!("{}: {}", problem.line, problem.message)).collect()
    }

    #[test]
    fn names_of_every_kind_are_read() {
        let (names, wrong) = Names::read(SHOP);
        assert_eq!(wrong, []);
        assert_eq!(problems(SHOP), Vec::<String>::new());
        let shop = &names.servers["shop"];
        assert_eq!(shop.socket.as_deref(), Some(Path::new("/run/shop.sock")));
        assert_eq!(shop.volumes["data"], "shop-data");
        assert_eq!(names.value(Kind::Volume, "shop-data"), Some("gp3:size=500GiB,iops=6000"));
        assert_eq!(names.value(Kind::Instance, "web"), Some("r6i.large/web1"));
        assert_eq!(names.of(Kind::Server).collect::<Vec<_>>(), ["shop"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_what_was_meant() {
        for (text, parts) in [
            ("[server.shop]\n", &["1: ", "'server'", "did you mean 'servers'?"][..]),
            ("[servers.shop]\nsokcet = \"/s\"\n", &["2: ", "'sokcet'", "did you mean 'socket'?"]),
            ("[servers.shop]\nsocket = \"s\"\n", &["2: ", "begin with /"]),
            ("[servers.shop]\nsocket = \"/s\"\nport = 3306\n", &["1: ", "a socket, and a host or a port"]),
            ("[servers.shop]\nport = 70000\n", &["2: ", "1 to 65535"]),
            ("[servers.shop]\nfs = \"btrfs\"\n", &["2: ", "btrfs"]),
            ("[servers.shop]\nvolumes = { logs = \"gp3\" }\n", &["2: ", "logs"]),
            ("[servers.capture]\n", &["1: ", "no server is called 'capture'"]),
            (
                "[servers.shop]\nvolumes = { data = \"shop-dta\" }\n[volumes]\nshop-data = \"gp3:size=1GiB\"\n",
                &["1: ", "did you mean 'shop-data'?"],
            ),
            ("[servers.shop]\ninstance = \"r6i.lage\"\n", &["1: ", "r6i.lage"]),
            ("[volumes]\n\nshop = \"gp3:size=100GB\"\n", &["3: ", "100GiB or 93GiB"]),
            ("[volumes]\nshop = \"gp33:size=100GiB\"\n", &["2: ", "Did you mean 'gp3'?"]),
            ("[volumes]\ngp3 = \"gp3:size=100GiB\"\n", &["2: ", "the catalogue's own word"]),
            ("[volumes]\n\"a b\" = \"gp3:size=100GiB\"\n", &["2: ", "letters, digits"]),
            ("[instances]\nweb = \"r6i.lrage\"\n", &["2: ", "r6i.large"]),
            ("[regions]\nhome = \"eu-wst-1\"\n", &["2: ", "eu-west-1"]),
            ("[volumes]\nshop = 7\n", &["2: ", "a text in quotes"]),
            ("[volumes\n", &["1: "]),
        ] {
            let problems = problems(text);
            let [problem] = &problems[..] else { panic!("{text}: {problems:?}") };
            for part in parts {
                assert!(problem.contains(part), "'{part}' is not in: {problem}");
            }
        }
    }

    #[test]
    fn a_secret_is_refused_wherever_it_stands_and_is_not_repeated() {
        for text in [
            "[servers.shop]\npassword = \"hunter2\"\n",
            "[servers.shop]\nmysql_password = \"hunter2\"\n",
            "mysql-pwd = \"hunter2\"\n",
            "[secrets]\nshop = \"hunter2\"\n",
        ] {
            let problems = problems(text);
            let [problem] = &problems[..] else { panic!("{text}: {problems:?}") };
            assert!(problem.contains("option file") && !problem.contains("hunter2"), "{problem}");
        }
    }
}
