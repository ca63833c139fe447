//! The AWS endpoint of a server: where it listens, and the one list of its services.

mod address;
mod places;
mod target;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ebbtide_cloud::Service;
use ebbtide_cloud::ebs::Ebs;
use ebbtide_cloud::ec2::{self, AttachAs, Ec2, StoredRecords};
use ebbtide_cloud::front::{Clock as _, Endpoint, Pipeline, Regions, Room, Settings, tls};
use ebbtide_cloud::iam::Sealer;
use ebbtide_cloud::kms::Kms;
use ebbtide_cloud::monitoring::{self, Monitoring};
use ebbtide_cloud::rbin::Rbin;
use ebbtide_cloud::sessions::Sessions;
use ebbtide_cloud::sts::Sts;
use ebbtide_cloud::users::{ACCOUNT, KeyRing, UserStore};
use ebbtide_control::{ControlPlane, LiveControl, Owner};
use ebbtide_device::host::{Home, HomeError, HomeFolder};

pub use self::address::{EndpointAddress, NotAnAddress};
pub use self::target::{EventTarget, EventTargetError};
use crate::clock::SystemClock;
use crate::error::{EndpointError, ServeError};
use crate::resources::Ec2Resources;
use crate::sampling::Sampling;

/// The file in the home's folder of AWS that has the endpoint's URL while it listens.
const URL_FILE: &str = "endpoint";

/// What an endpoint is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointOptions {
    /// Where it listens.
    pub address: EndpointAddress,
    /// The user's certificate; None: one is made in the home, where HTTPS is spoken.
    pub certificate: Option<CertificateFiles>,
    /// Whether everyone may do everything: no signature is verified, and no policy holds.
    pub is_open: bool,
    /// The only region that is served; None: each, as a request is signed for it.
    pub region: Option<String>,
    /// Whether every state is reached at once.
    pub is_instant: bool,
    /// What the files of the home may take, bytes, before calls that store something are refused; None: no bound.
    pub most_bytes: Option<u64>,
    /// Whether tags of instances may export volumes over TCP.
    pub has_tcp_exports: bool,
    /// Where events go; empty: to a file of the home.
    pub events: Vec<EventTarget>,
}

/// A certificate of the user's, in PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate with its chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl EndpointOptions {
    fn has_tls(&self) -> bool {
        self.address.has_tls(self.certificate.is_some())
    }

    /// Block devices need root; without it an attachment is a socket of the NBD protocol in the home.
    fn for_ec2(&self, home: &Home) -> ec2::Options {
        let is_root = rustix::process::geteuid().is_root();
        let attach_as = if is_root { AttachAs::BlockDevice } else { AttachAs::NbdSocket(home.aws_dir()) };
        let device_links = is_root.then(|| ec2::DEVICE_LINKS.into());
        let nbd_sockets = Some(home.aws_dir());
        let tcp_exports = self.has_tcp_exports;
        let options =
            ec2::Options { attach_as, nbd_sockets, tcp_exports, device_links, ..ec2::Options::default() };
        if self.is_instant { options.instant() } else { options }
    }
}

/// A listening endpoint, and the file that has its URL.
#[derive(Debug)]
pub(crate) struct Listening {
    endpoint: Endpoint,
    folder: HomeFolder,
    sampling: Sampling,
}

impl Listening {
    /// Accepts no more requests, and waits for those that are being answered.
    pub(crate) fn stop(&mut self) {
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

/// The URL of the AWS endpoint of a running server; None where it has no endpoint.
#[must_use]
pub fn endpoint_url(home: &Home) -> Option<String> {
    fs::read_to_string(home.aws_dir().join(URL_FILE)).ok().map(|url| url.trim().to_owned())
}

/// Starts the endpoint, if one is wanted, over the volumes of `control`; says what EC2 has in this home.
///
/// # Errors
/// As of [`listen`]; a home that cannot be written; records of EC2 that cannot be used.
pub(crate) fn start(
    options: Option<&EndpointOptions>,
    home: &Home,
    control: &Arc<LiveControl>,
) -> Result<(Option<Listening>, Ec2Resources), ServeError> {
    // That of a server that was killed.
    if let Some(folder) = home.aws_folder().map_err(|error| cannot_write(home, error))? {
        folder.remove(URL_FILE).map_err(|error| cannot_write(home, error))?;
    }
    let Some(options) = options else {
        // Encrypted volumes can be attached without the endpoint, too.
        if Kms::is_in(home.root()) {
            open_kms(home, control)?;
        }
        let stored = StoredRecords::open(home.root()).map_err(ServeError::Records)?;
        return Ok((None, Ec2Resources::Stored(stored)));
    };
    let (listening, ec2) = listen(options, home, control)?;
    Ok((Some(listening), Ec2Resources::Served(ec2)))
}

/// Starts an endpoint.
///
/// # Errors
/// The address is taken; a certificate that cannot be used; a home that cannot be written; records of the services that
/// cannot be used.
fn listen(
    options: &EndpointOptions,
    home: &Home,
    control: &Arc<LiveControl>,
) -> Result<(Listening, Arc<Ec2>), EndpointError> {
    let own = home.make_aws().map_err(|error| cannot_write(home, error))?;
    let kms = open_kms(home, control)?;
    name_default_owner(options, control);
    let control: Arc<dyn ControlPlane> = Arc::<LiveControl>::clone(control);
    let folder = home.aws_dir();
    let tls = if options.has_tls() { Some(certificate(options, &folder)?) } else { None };
    let is_tls = tls.is_some();
    let sealer = Arc::new(Sealer::new().ok_or(EndpointError::NoRandom)?);
    let users = UserStore::new(&folder);
    let has_no_users = users.list().map_err(EndpointError::Users)?.is_empty();
    let sessions = Sessions::open(home.root()).map_err(EndpointError::Sessions)?;
    let keys = Arc::new(KeyRing::new(users, sessions));
    let sts = Sts::new(Arc::clone(&sealer), Arc::clone(&keys));
    let settings = Settings {
        is_open: options.is_open,
        region: options.region.clone(),
        regions: Regions::open(&folder).map_err(EndpointError::Regions)?,
        room: options.most_bytes.map(|most| Room::new(home.root(), most)),
        keys,
        sealer,
        clock: Arc::new(SystemClock),
    };
    let Services { all, ec2, monitoring } = services(options, home, &own, &control, sts, &kms)?;
    let sampling = Sampling::start(monitoring, Arc::new(SystemClock)).map_err(EndpointError::Sampling)?;
    let pipeline = Arc::new(Pipeline::new(settings, all));
    let endpoint = Endpoint::start(options.address.socket(), tls, pipeline)
        .map_err(|source| EndpointError::Listen { address: options.address.text().to_owned(), source })?;
    let url = format!("{}://{}", if is_tls { "https" } else { "http" }, endpoint.address());
    let listening = Listening { endpoint, folder: own, sampling };
    listening
        .folder
        .write(URL_FILE, format!("{url}\n").as_bytes())
        .map_err(|error| cannot_write(home, error))?;
    tracing::info!(url, "answering AWS's APIs");
    if options.is_open {
        tracing::warn!(
            "authorization of the AWS endpoint is off: every process of this machine may do everything"
        );
    } else if has_no_users {
        tracing::warn!("the AWS endpoint has no users yet; 'ebbtide user create NAME' creates one");
    }
    Ok((listening, ec2))
}

fn cannot_write(home: &Home, source: HomeError) -> EndpointError {
    EndpointError::Folder { folder: home.aws_dir(), source }
}

/// The services that the endpoint answers for.
struct Services {
    all: Vec<Arc<dyn Service>>,
    ec2: Arc<Ec2>,
    /// Samples the volumes.
    monitoring: Arc<Monitoring>,
}

/// Opens the services. This is their only list.
fn services(
    options: &EndpointOptions,
    home: &Home,
    folder: &HomeFolder,
    control: &Arc<dyn ControlPlane>,
    sts: Sts,
    kms: &Arc<Kms>,
) -> Result<Services, EndpointError> {
    // Before EC2 attaches what it has.
    let began_ms = SystemClock.now_ms();
    let ec2 =
        Ec2::open(home.root(), Arc::clone(control), options.for_ec2(home)).map_err(EndpointError::Ec2)?;
    let events = target::open(&options.events, folder).map_err(EndpointError::Events)?;
    let ec2 = Arc::new(ec2.with_events(Arc::clone(&events)).with_kms(Arc::clone(kms)));
    let ebs = Ebs::open(home.root(), Arc::clone(&ec2)).map_err(EndpointError::Ebs)?;
    let of_monitoring = monitoring::Options {
        instant: options.is_instant,
        events: Some(events),
        began_ms,
        ..monitoring::Options::default()
    };
    let inventory = Arc::<Ec2>::clone(&ec2);
    let monitoring = Monitoring::open(home.root(), Arc::clone(control), inventory, of_monitoring)
        .map_err(EndpointError::CloudWatch)?;
    let monitoring = Arc::new(monitoring);
    let rbin = Rbin::new(Arc::clone(&ec2));
    let kms = Arc::<Kms>::clone(kms);
    let cloudwatch = Arc::<Monitoring>::clone(&monitoring);
    let answering = Arc::<Ec2>::clone(&ec2);
    let all: Vec<Arc<dyn Service>> =
        vec![answering, Arc::new(ebs), kms, cloudwatch, Arc::new(rbin), Arc::new(sts)];
    Ok(Services { all, ec2, monitoring })
}

/// Opens the keys of a home, and lets its volumes use them.
fn open_kms(home: &Home, control: &LiveControl) -> Result<Arc<Kms>, EndpointError> {
    let kms = Arc::new(Kms::open(home.root()).map_err(EndpointError::Keys)?);
    control.set_key_unwrapper(Arc::<Kms>::clone(&kms));
    Ok(kms)
}

/// Names the owner of volumes that commands create without one. Where one region is served, they are there: no other is answered for.
fn name_default_owner(options: &EndpointOptions, control: &LiveControl) {
    if let Some(region) = &options.region {
        control.set_default_owner(Owner { account: ACCOUNT.to_owned(), zone: ec2::first_zone(region) });
    }
}

fn certificate(options: &EndpointOptions, folder: &Path) -> Result<Arc<rustls::ServerConfig>, EndpointError> {
    if let Some(CertificateFiles { certificate, key }) = &options.certificate {
        return tls::from_files(certificate, key).map_err(EndpointError::Certificate);
    }
    let ip = options.address.socket().ip();
    let more = if ip.is_unspecified() { Vec::new() } else { vec![ip.to_string()] };
    let (config, file) = tls::generated(folder, &more).map_err(EndpointError::Certificate)?;
    tracing::info!(AWS_CA_BUNDLE = %file.display(), "clients of the AWS endpoint must trust its certificate");
    Ok(config)
}
