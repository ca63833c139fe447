//! The AWS endpoint of `ebbtide serve`: where it listens, and the one list of its services.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::{Args, FromArgMatches as _};
use ebbtide_cloud::Service;
use ebbtide_cloud::ebs::Ebs;
use ebbtide_cloud::ec2::{self, AttachAs, DeleteError, Ec2, Hold, StoredRecords};
use ebbtide_cloud::front::{Clock, Endpoint, Pipeline, Regions, Room, Settings, tls};
use ebbtide_cloud::iam::Sealer;
use ebbtide_cloud::kms::Kms;
use ebbtide_cloud::monitoring::{
    self, Delivery, EventFile, EventPlace, EventSink, Monitoring, Sinks, Webhook, WebhookError,
};
use ebbtide_cloud::rbin::Rbin;
use ebbtide_cloud::sessions::Sessions;
use ebbtide_cloud::sigv4;
use ebbtide_cloud::sts::Sts;
use ebbtide_cloud::users::{ACCOUNT, KeyRing, UserStore};
use ebbtide_control::{ControlPlane, LiveControl, Owner};
use ebbtide_device::host::{Home, HomeFolder};
use ebbtide_volume::parse_size;

use super::events::{EventPath, HomeEvents};
use super::sampling::Sampling;
use crate::exit::Refusal;

/// The file in the home's folder of AWS that has the endpoint's URL while it listens.
const URL_FILE: &str = "endpoint";

/// The options of `serve` for the AWS endpoint.
#[derive(Debug, Args)]
pub(crate) struct AwsArgs {
    /// Answer AWS's APIs at this address, [http://|https://][HOST:]PORT: without HOST at 127.0.0.1, and with HTTPS
    /// alone where other machines reach it
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["stop", "status"])]
    aws: Option<Address>,
    /// The certificate of HTTPS, a PEM file with its chain; without one, a certificate is made in the home
    #[arg(long, value_name = "FILE", requires_all = ["aws", "aws_key"])]
    aws_cert: Option<PathBuf>,
    /// The private key of that certificate, a PEM file
    #[arg(long, value_name = "FILE", requires_all = ["aws", "aws_cert"])]
    aws_key: Option<PathBuf>,
    /// Let everyone who reaches the AWS endpoint do everything: no signature is verified, and no policy holds
    #[arg(long, requires = "aws")]
    open: bool,
    /// The only region that the AWS endpoint serves [default: each, as a request is signed for it]
    #[arg(long, value_name = "REGION", requires = "aws", value_parser = region)]
    region: Option<String>,
    /// Let every state of the AWS endpoint be reached at once, for tests: a new volume is available, a modification
    /// completed, a snapshot made
    #[arg(long, requires = "aws")]
    instant: bool,
    /// Refuse calls that store something while the files of the home take as much as SIZE, such as 50GiB; what databases write
    /// to attached volumes is not counted before it is there [default: no bound]
    #[arg(long, value_name = "SIZE", requires = "aws", value_parser = size)]
    most_bytes: Option<u64>,
    /// Let the tag ebbtide:attach=tcp:127.0.0.1:PORT of an instance export its volumes over TCP: every user and container of
    /// this machine can read and write them, whatever policies say. Encrypted volumes are never exported so
    #[arg(long, requires = "aws")]
    tcp_exports: bool,
    /// Where events in the form of EventBridge go (volumes, snapshots, alarms and their actions): a FILE, to which they are
    /// appended as lines of JSON; exec:COMMAND, which a shell runs for each event, with the event as its input; or a URL,
    /// http:// or https://, to which each is posted. May be given several times [default: aws/events.jsonl in the home]
    #[arg(long, value_name = "FILE|exec:COMMAND|URL", requires = "aws")]
    aws_events: Vec<EventTarget>,
}

fn region(text: &str) -> Result<String, String> {
    if sigv4::is_region(text) {
        Ok(text.to_owned())
    } else {
        Err("is no name of a region, such as us-east-1".to_owned())
    }
}

fn size(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err("is no room at all; give a size such as 50GiB".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// Where the endpoint listens.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    /// As it was given.
    text: String,
    /// Whether `http://` or `https://` was given.
    scheme: Option<Scheme>,
    socket: SocketAddr,
}

/// Where events go.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EventTarget {
    File(PathBuf),
    Command(String),
    Webhook(Webhook),
}

impl FromStr for EventTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(command) = text.strip_prefix("exec:") {
            if command.trim().is_empty() {
                return Err("has no command behind exec:".to_owned());
            }
            return Ok(Self::Command(command.to_owned()));
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return text.parse().map(Self::Webhook).map_err(|error: WebhookError| error.to_string());
        }
        if text.is_empty() || text.contains("://") {
            return Err("is neither a FILE, nor exec:COMMAND, nor a URL with http:// or https://".to_owned());
        }
        Ok(Self::File(text.into()))
    }
}

impl EventTarget {
    /// Refuses a file that cannot be written.
    fn check(&self) -> anyhow::Result<()> {
        let Self::File(file) = self else { return Ok(()) };
        EventPath(file.clone()).check().with_context(|| {
            let what = format!("events cannot be appended to {}", file.display());
            Refusal::environment(what).hint("name a file for --aws-events that this user can write")
        })
    }

    /// The word of the command line that names it, wherever the process works.
    fn word(&self) -> std::io::Result<std::ffi::OsString> {
        Ok(match self {
            Self::File(file) => std::path::absolute(file)?.into(),
            Self::Command(command) => format!("exec:{command}").into(),
            Self::Webhook(webhook) => webhook.to_string().into(),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, rest) = if let Some(rest) = text.strip_prefix("http://") {
            (Some(Scheme::Http), rest)
        } else if let Some(rest) = text.strip_prefix("https://") {
            (Some(Scheme::Https), rest)
        } else {
            (None, text)
        };
        let rest = rest.trim_end_matches('/');
        let of_port =
            |port: &str| port.parse().ok().map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
        let named = || of_port(rest.strip_prefix("localhost:")?);
        let socket = of_port(rest).or_else(named).or_else(|| rest.parse().ok());
        let socket =
            socket.ok_or("is neither PORT nor HOST:PORT with an IP address or localhost for HOST")?;
        Ok(Self { text: text.to_owned(), scheme, socket })
    }
}

impl AwsArgs {
    /// Refuses what is not safe or cannot work, before anything is started.
    ///
    /// # Errors
    /// A file of events that cannot be written; an endpoint for other machines without TLS, or without authorization.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for target in &self.aws_events {
            target.check()?;
        }
        let Some(address) = self.aws.as_ref().filter(|address| !address.socket.ip().is_loopback()) else {
            return Ok(());
        };
        if self.open {
            let what = format!("--open is for this machine alone, and others reach {}", address.text);
            return Err(Refusal::usage(what).hint("leave --open out, or listen at 127.0.0.1").into());
        }
        if !self.has_tls(address) {
            let what = format!("other machines reach {}, which needs HTTPS", address.text);
            return Err(Refusal::usage(what)
                .hint("give https:// or no scheme, or listen at 127.0.0.1")
                .into());
        }
        Ok(())
    }

    fn has_tls(&self, address: &Address) -> bool {
        match address.scheme {
            Some(scheme) => scheme == Scheme::Https,
            None => self.aws_cert.is_some() || !address.socket.ip().is_loopback(),
        }
    }

    /// The options as words, for the process that stays behind.
    ///
    /// # Errors
    /// The working directory is gone, and a file is given relative to it.
    pub(super) fn words(&self) -> anyhow::Result<Vec<std::ffi::OsString>> {
        let mut words: Vec<std::ffi::OsString> = Vec::new();
        let texts =
            [("--aws", self.aws.as_ref().map(|address| &address.text)), ("--region", self.region.as_ref())];
        for (option, text) in texts {
            words.extend(text.into_iter().flat_map(|text| [option.into(), text.into()]));
        }
        let files = [("--aws-cert", &self.aws_cert), ("--aws-key", &self.aws_key)];
        for (option, file) in files {
            if let Some(file) = file {
                words.extend([option.into(), std::path::absolute(file)?.into()]);
            }
        }
        for target in &self.aws_events {
            words.extend(["--aws-events".into(), target.word()?]);
        }
        if let Some(most) = self.most_bytes {
            words.extend(["--most-bytes".into(), most.to_string().into()]);
        }
        let flags = [("--open", self.open), ("--instant", self.instant), ("--tcp-exports", self.tcp_exports)];
        words.extend(flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag.into()));
        Ok(words)
    }

    /// The options of such words.
    ///
    /// # Errors
    /// Words of another version.
    pub(super) fn of_words(words: &[String]) -> anyhow::Result<Self> {
        let command = clap::Command::new("serve").no_binary_name(true);
        // Its options exclude these, which are not its own.
        let others = ["stop", "status"].map(|name| clap::Arg::new(name).long(name));
        let read = Self::augment_args(command).args(others).try_get_matches_from(words);
        read.and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| Refusal::usage(error.to_string()).into())
    }

    /// Whether the server is to warn that authorization is off.
    pub(super) const fn is_open(&self) -> bool {
        self.open
    }
}

/// The services that the endpoint answers for.
struct Services {
    all: Vec<Arc<dyn Service>>,
    ec2: Arc<Ec2>,
    /// Samples the volumes.
    monitoring: Arc<Monitoring>,
}

/// What EC2 knows of the volumes and snapshots.
#[derive(Debug)]
pub(super) enum Ec2Resources {
    /// The endpoint is served.
    Served(Arc<Ec2>),
    /// It is not, so that no call changes the records.
    Stored(StoredRecords),
}

/// Records of EC2 that cannot be read while a command is carried out.
fn unreadable() -> Refusal {
    Refusal::environment("the records of EC2 of this home cannot be read")
}

impl Ec2Resources {
    /// Why a command has to leave the volume with an id alone; None where it may do everything.
    ///
    /// # Errors
    /// Records that cannot be read.
    pub(super) fn hold(&self, id: &str) -> anyhow::Result<Option<Hold>> {
        match self {
            Self::Served(ec2) => Ok(ec2.hold(id)),
            Self::Stored(records) => records.hold(id).with_context(unreadable),
        }
    }

    /// Whether a snapshot of this name has a record.
    ///
    /// # Errors
    /// Records that cannot be read.
    pub(super) fn has_snapshot(&self, name: &str) -> anyhow::Result<bool> {
        match self {
            Self::Served(ec2) => Ok(ec2.has_snapshot(name)),
            Self::Stored(records) => records.has_snapshot(name).with_context(unreadable),
        }
    }

    /// Deletes a volume that has a record, by EC2's rules. False where it has none: then nothing is done.
    ///
    /// # Errors
    /// As of [`Ec2::delete_for_command`].
    pub(super) fn delete(&self, control: &dyn ControlPlane, id: &str) -> Result<bool, DeleteError> {
        let now_ms = SystemClock.now_ms();
        match self {
            Self::Served(ec2) => ec2.delete_for_command(id, now_ms),
            Self::Stored(records) => records.delete_for_command(control, id, now_ms),
        }
    }

    /// Does something with a volume that no instance has, while no call attaches or deletes it.
    ///
    /// # Errors
    /// What holds it; records that cannot be read.
    pub(super) fn while_free<T>(
        &self,
        id: &str,
        work: impl FnOnce() -> T,
    ) -> anyhow::Result<Result<T, Hold>> {
        match self {
            Self::Served(ec2) => Ok(ec2.while_free(id, work)),
            // Nothing else changes the records.
            Self::Stored(_) => Ok(match self.hold(id)? {
                Some(hold) => Err(hold),
                None => Ok(work()),
            }),
        }
    }

    /// Whether the endpoint is served.
    pub(super) const fn is_served(&self) -> bool {
        matches!(self, Self::Served(_))
    }
}

/// Opens the services. This is their only list.
fn services(
    args: &AwsArgs,
    home: &Home,
    folder: &HomeFolder,
    control: &Arc<dyn ControlPlane>,
    sts: Sts,
    kms: &Arc<Kms>,
) -> anyhow::Result<Services> {
    // Before EC2 attaches what it has.
    let began_ms = SystemClock.now_ms();
    let options = ec2_options(args, home);
    let ec2 = Ec2::open(home.root(), Arc::clone(control), options)
        .context(Refusal::environment("EC2 of this home cannot be answered for"))?;
    let events = events(&args.aws_events, folder)?;
    let ec2 = Arc::new(ec2.with_events(Arc::clone(&events)).with_kms(Arc::clone(kms)));
    let ebs = Ebs::open(home.root(), Arc::clone(&ec2))
        .context(Refusal::environment("the EBS direct APIs of this home cannot be answered for"))?;
    let options = monitoring::Options {
        instant: args.instant,
        events: Some(events),
        began_ms,
        ..monitoring::Options::default()
    };
    let inventory = Arc::<Ec2>::clone(&ec2);
    let monitoring = Monitoring::open(home.root(), Arc::clone(control), inventory, options)
        .context(Refusal::environment("CloudWatch of this home cannot be answered for"))?;
    let monitoring = Arc::new(monitoring);
    let rbin = Rbin::new(Arc::clone(&ec2));
    let kms = Arc::<Kms>::clone(kms);
    let cloudwatch = Arc::<Monitoring>::clone(&monitoring);
    let answering = Arc::<Ec2>::clone(&ec2);
    let all: Vec<Arc<dyn Service>> =
        vec![answering, Arc::new(ebs), kms, cloudwatch, Arc::new(rbin), Arc::new(sts)];
    Ok(Services { all, ec2, monitoring })
}

/// Where events go; without a target, to the file of the home.
fn events(targets: &[EventTarget], folder: &HomeFolder) -> anyhow::Result<Arc<dyn EventSink>> {
    let file = |place: Box<dyn EventPlace>| EventFile::new(place, EventFile::MOST_BYTES);
    let mut sinks: Vec<Arc<dyn EventSink>> = Vec::new();
    for target in targets {
        let no_thread = || Refusal::environment("events cannot be delivered");
        sinks.push(match target {
            EventTarget::File(path) => Arc::new(file(Box::new(EventPath(path.clone())))),
            EventTarget::Command(command) => {
                Arc::new(Delivery::to_command(command.clone()).with_context(no_thread)?)
            }
            EventTarget::Webhook(webhook) => {
                Arc::new(Delivery::to_webhook(webhook.clone()).with_context(no_thread)?)
            }
        });
    }
    if sinks.is_empty() {
        sinks.push(Arc::new(file(Box::new(HomeEvents(folder.clone())))));
    }
    Ok(Arc::new(Sinks(sinks)))
}

/// Opens the keys of a home, and lets its volumes use them.
fn open_kms(home: &Home, control: &LiveControl) -> anyhow::Result<Arc<Kms>> {
    let kms = Kms::open(home.root())
        .context(Refusal::environment("the keys of this home's encrypted volumes cannot be used"))?;
    let kms = Arc::new(kms);
    control.set_key_unwrapper(Arc::<Kms>::clone(&kms));
    Ok(kms)
}

/// Block devices need root; without it an attachment is a socket of the NBD protocol in the home.
fn ec2_options(args: &AwsArgs, home: &Home) -> ec2::Options {
    let is_root = rustix::process::geteuid().is_root();
    let attach_as = if is_root { AttachAs::BlockDevice } else { AttachAs::NbdSocket(home.aws_dir()) };
    let device_links = is_root.then(|| ec2::DEVICE_LINKS.into());
    let nbd_sockets = Some(home.aws_dir());
    let tcp_exports = args.tcp_exports;
    let options =
        ec2::Options { attach_as, nbd_sockets, tcp_exports, device_links, ..ec2::Options::default() };
    if args.instant { options.instant() } else { options }
}

/// A listening endpoint, and the file that has its URL.
#[derive(Debug)]
pub(super) struct Listening {
    endpoint: Endpoint,
    folder: HomeFolder,
    sampling: Sampling,
}

impl Listening {
    /// Accepts no more requests, and waits for those that are being answered.
    pub(super) fn stop(&mut self) {
        // It says where the endpoint listens; a missing file says as well that it does not.
        // In a home that was replaced meanwhile it is another server's, and is left alone.
        let _ = self.folder.remove(URL_FILE);
        self.endpoint.stop();
        self.sampling.stop();
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The URL of the endpoint of a running server; none where it has no endpoint.
pub(super) fn url(home: &Home) -> Option<String> {
    fs::read_to_string(home.aws_dir().join(URL_FILE)).ok().map(|url| url.trim().to_owned())
}

/// Starts the endpoint, if one is wanted, over the volumes of `control`; says what EC2 has in this home.
///
/// # Errors
/// The address is taken; a certificate that cannot be used; a home that cannot be written; records of EC2 that
/// cannot be used.
pub(super) fn start(
    args: &AwsArgs,
    home: &Home,
    control: Arc<LiveControl>,
) -> anyhow::Result<(Option<Listening>, Ec2Resources)> {
    let cannot_write = || Refusal::environment(format!("cannot write {}", home.aws_dir().display()));
    // That of a server that was killed.
    if let Some(folder) = home.aws_folder().with_context(cannot_write)? {
        folder.remove(URL_FILE).with_context(cannot_write)?;
    }
    let Some(address) = &args.aws else {
        // Encrypted volumes can be attached without the endpoint, too.
        if Kms::is_in(home.root()) {
            open_kms(home, &control)?;
        }
        let stored = StoredRecords::open(home.root()).with_context(unreadable)?;
        return Ok((None, Ec2Resources::Stored(stored)));
    };
    args.check()?;
    let own = home.make_aws().with_context(cannot_write)?;
    let kms = open_kms(home, &control)?;
    name_default_owner(args, &control);
    let control: Arc<dyn ControlPlane> = control;
    let folder = home.aws_dir();
    let tls = if args.has_tls(address) { Some(certificate(args, address, &folder)?) } else { None };
    let is_tls = tls.is_some();
    let sealer =
        Arc::new(Sealer::new().ok_or_else(|| Refusal::environment("the system has no random bytes"))?);
    let users = UserStore::new(&folder);
    let has_users =
        users.list().context(Refusal::environment("the AWS endpoint has no users that can be read"))?;
    let sessions = Sessions::open(home.root())
        .context(Refusal::environment("the temporary keys of this home cannot be used"))?;
    let keys = Arc::new(KeyRing::new(users, sessions));
    let sts = Sts::new(Arc::clone(&sealer), Arc::clone(&keys));
    let regions =
        Regions::open(&folder).context(Refusal::environment("the regions of this home cannot be read"))?;
    let settings = Settings {
        is_open: args.open,
        region: args.region.clone(),
        regions,
        room: args.most_bytes.map(|most| Room::new(home.root(), most)),
        keys,
        sealer,
        clock: Arc::new(SystemClock),
    };
    let Services { all, ec2, monitoring } = services(args, home, &own, &control, sts, &kms)?;
    let sampling = Sampling::start(monitoring, Arc::new(SystemClock))
        .context(Refusal::environment("the AWS endpoint cannot sample its volumes"))?;
    let pipeline = Arc::new(Pipeline::new(settings, all));
    let endpoint = Endpoint::start(address.socket, tls, pipeline).map_err(|error| {
        let refusal = Refusal::environment(format!("cannot listen at {}", address.text))
            .hint("choose another address for --aws; port 0 takes one that is free");
        anyhow::Error::new(error).context(refusal)
    })?;
    let url = format!("{}://{}", if is_tls { "https" } else { "http" }, endpoint.address());
    let listening = Listening { endpoint, folder: own, sampling };
    listening.folder.write(URL_FILE, format!("{url}\n").as_bytes()).with_context(cannot_write)?;
    tracing::info!(url, "answering AWS's APIs");
    if args.open {
        tracing::warn!(
            "authorization of the AWS endpoint is off: every process of this machine may do everything"
        );
    } else if has_users.is_empty() {
        tracing::warn!("the AWS endpoint has no users yet; 'ebbtide user create NAME' creates one");
    }
    Ok((Some(listening), Ec2Resources::Served(ec2)))
}

/// Names the owner of volumes that commands create without one. Where one region is served, they are there: no other is answered for.
fn name_default_owner(args: &AwsArgs, control: &LiveControl) {
    if let Some(region) = &args.region {
        control.set_default_owner(Owner { account: ACCOUNT.to_owned(), zone: ec2::first_zone(region) });
    }
}

fn certificate(
    args: &AwsArgs,
    address: &Address,
    folder: &Path,
) -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let refusal = || Refusal::environment("the AWS endpoint has no certificate");
    if let (Some(certificate), Some(key)) = (&args.aws_cert, &args.aws_key) {
        return tls::from_files(certificate, key).with_context(refusal);
    }
    let ip: IpAddr = address.socket.ip();
    let more = if ip.is_unspecified() { Vec::new() } else { vec![ip.to_string()] };
    let (config, file) = tls::generated(folder, &more).with_context(refusal)?;
    tracing::info!(AWS_CA_BUNDLE = %file.display(), "clients of the AWS endpoint must trust its certificate");
    Ok(config)
}

/// The clock of this machine.
#[derive(Debug)]
pub(super) struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(aws: &str) -> AwsArgs {
        AwsArgs {
            aws: Some(aws.parse().unwrap()),
            aws_cert: None,
            aws_key: None,
            open: false,
            region: None,
            instant: false,
            most_bytes: None,
            tcp_exports: false,
            aws_events: Vec::new(),
        }
    }

    #[test]
    fn an_address_is_on_this_machine_unless_another_is_named() {
        let socket = |text: &str| text.parse::<Address>().unwrap().socket.to_string();
        assert_eq!(socket("4599"), "127.0.0.1:4599");
        assert_eq!(socket("localhost:4599"), "127.0.0.1:4599");
        assert_eq!(socket("http://127.0.0.2:1/"), "127.0.0.2:1");
        assert_eq!(socket("https://[::1]:4599"), "[::1]:4599");
        for wrong in ["", "host:1", "127.0.0.1", "ftp://127.0.0.1:1", "70000"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn other_machines_need_tls_and_authorization() {
        args("4599").check().unwrap();
        args("0.0.0.0:4599").check().unwrap();
        assert!(args("0.0.0.0:4599").has_tls(&"0.0.0.0:4599".parse().unwrap()));
        assert!(!args("4599").has_tls(&"4599".parse().unwrap()));
        let error = args("http://0.0.0.0:4599").check().unwrap_err();
        assert!(error.to_string().contains("HTTPS"), "{error}");
        let error = AwsArgs { open: true, ..args("0.0.0.0:4599") }.check().unwrap_err();
        assert!(error.to_string().contains("--open"), "{error}");
        AwsArgs { open: true, ..args("4599") }.check().unwrap();
    }

    #[test]
    fn the_process_that_stays_behind_gets_every_option() {
        let all = AwsArgs {
            aws_cert: Some("/c.pem".into()),
            aws_key: Some("/k.pem".into()),
            aws_events: ["/e.jsonl", "exec:cat >> /e", "https://a.example/hook"]
                .map(|target| target.parse().unwrap())
                .to_vec(),
            open: true,
            instant: true,
            most_bytes: Some(1 << 40),
            tcp_exports: true,
            region: Some("eu-west-1".to_owned()),
            ..args("4599")
        };
        let words = all.words().unwrap();
        let texts: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(
            texts.join(" "),
            "--aws 4599 --region eu-west-1 --aws-cert /c.pem --aws-key /k.pem --aws-events /e.jsonl --aws-events exec:cat \
             >> /e --aws-events https://a.example/hook --most-bytes 1099511627776 --open --instant --tcp-exports"
        );
        let command = clap::Command::new("serve").no_binary_name(true);
        let command = AwsArgs::augment_args(command)
            .args(["stop", "status"].map(|name| clap::Arg::new(name).long(name)));
        let read = command.try_get_matches_from(words).unwrap();
        assert_eq!(read.get_one::<Address>("aws"), all.aws.as_ref());
        let targets = read.get_many::<EventTarget>("aws_events").unwrap().cloned().collect::<Vec<_>>();
        assert_eq!(targets, all.aws_events);
    }

    #[test]
    fn what_events_cannot_go_to_is_refused() {
        for wrong in ["", "exec:", "exec: ", "ftp://host/file", "http://", "https://user@host/"] {
            assert!(wrong.parse::<EventTarget>().is_err(), "{wrong}");
        }
    }
}
