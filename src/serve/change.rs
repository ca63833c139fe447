//! `serve --change`: what a running server takes without a restart, the AWS endpoint, its metrics and the level of its log.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ebbtide_cloud::front::Clock as _;
use ebbtide_control::protocol::{Request, ServerChange, ServerChanged};
use ebbtide_control::{ControlPlane, LiveControl, Names};
use ebbtide_device::host::Home;

use super::aws::{self, AwsArgs, Ec2Resources, Listening, SystemClock};
use super::log::{self, LogLevel};
use super::metrics::{MetricsServer, MetricsTarget};
use super::sampling::{Sampling, Volumes};
use crate::control;
use crate::exit::{Exit, Refusal};
use crate::refusal::refuse;
use crate::text;

/// How long the endpoint waits for requests that are being carried out.
const PATIENCE: Duration = Duration::from_secs(5);

/// What samples the volumes: the endpoint does so for itself, and two would write the same history.
#[derive(Debug)]
struct Sampler {
    listening: Option<Listening>,
    sampling: Option<Sampling>,
}

/// The parts of a running server that can be changed.
#[derive(Debug)]
pub(super) struct Changeable<'a> {
    plane: &'a Arc<LiveControl>,
    home: &'a Home,
    log: LogLevel,
    sampler: Mutex<Sampler>,
    ec2: RwLock<Ec2Resources>,
    metrics: Mutex<Option<MetricsServer>>,
}

impl<'a> Changeable<'a> {
    /// A server with the endpoint and the metrics of its command line.
    ///
    /// # Errors
    /// As of [`aws::start`] and [`MetricsServer::start`]; the system refuses a thread.
    pub(super) fn start(
        plane: &'a Arc<LiveControl>,
        home: &'a Home,
        log: LogLevel,
        args: &AwsArgs,
        metrics: Option<MetricsTarget>,
    ) -> anyhow::Result<Self> {
        let metrics = match metrics {
            Some(MetricsTarget::At(address)) => Some(MetricsServer::start(address, plane)?),
            Some(MetricsTarget::Off) | None => None,
        };
        let (listening, ec2) = aws::start(args, home, Arc::clone(plane))?;
        let sampling = if listening.is_none() { Some(sample(plane, home)?) } else { None };
        let sampler = Mutex::new(Sampler { listening, sampling });
        Ok(Self { plane, home, log, sampler, ec2: RwLock::new(ec2), metrics: Mutex::new(metrics) })
    }

    /// What EC2 has in this home. While it is held, no endpoint begins.
    pub(super) fn ec2(&self) -> RwLockReadGuard<'_, Ec2Resources> {
        self.ec2.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of a volume by its name or its id.
    pub(super) fn name_of(&self, volume: &str) -> String {
        self.plane.name_of(volume).into_owned()
    }

    /// The id of a volume by its name or its id; None of one that is missing.
    pub(super) fn volume_id(&self, volume: &str) -> Option<String> {
        self.plane.volume_id(volume)
    }

    /// The names in the home.
    pub(super) fn known_names(&self) -> Names {
        self.plane.known_names()
    }

    /// URL of the metrics; none where none are served.
    pub(super) fn metrics_url(&self) -> Option<String> {
        self.metrics().as_ref().map(MetricsServer::url)
    }

    /// Carries a change out: all of it, or what an error leaves.
    pub(super) fn apply(&self, change: &ServerChange) -> anyhow::Result<ServerChanged> {
        let filter = change.log.as_deref().map(log::parse_option).transpose()?;
        let target = change.metrics.as_deref().map(str::parse::<MetricsTarget>).transpose();
        let target = target.map_err(|error| Refusal::usage(format!("--metrics {error}")))?;
        if !change.aws.is_empty() {
            self.begin_endpoint(&AwsArgs::of_words(&change.aws)?)?;
        }
        if let Some(target) = target {
            self.change_metrics(target)?;
        }
        if let Some(filter) = filter {
            self.log.set(filter)?;
            tracing::info!(log = change.log, "the log was changed");
        }
        Ok(ServerChanged { log: change.log.clone(), aws: aws::url(self.home), metrics: self.metrics_url() })
    }

    fn change_metrics(&self, target: MetricsTarget) -> anyhow::Result<()> {
        let mut metrics = self.metrics();
        match target {
            MetricsTarget::Off => *metrics = None,
            MetricsTarget::At(address) if metrics.as_ref().is_some_and(|served| served.is_at(address)) => {}
            // The new ones begin first: where they cannot, the old ones stay.
            MetricsTarget::At(address) => *metrics = Some(MetricsServer::start(address, self.plane)?),
        }
        Ok(())
    }

    fn metrics(&self) -> MutexGuard<'_, Option<MetricsServer>> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_endpoint(&self, args: &AwsArgs) -> anyhow::Result<()> {
        let mut sampler = self.sampler();
        if sampler.listening.is_some() {
            let url = aws::url(self.home).unwrap_or_default();
            return Err(Refusal::usage(format!("the AWS endpoint is served already, at {url}"))
                .hint("its options change with a restart: 'ebbtide serve --stop'")
                .into());
        }
        let mut ec2 = self.alone()?;
        // By its record an instance has it, which would find it attached otherwise.
        for volume in self.plane.volumes(None).map_err(refuse)? {
            let (name, id) = (&volume.name, volume.id.as_deref().unwrap_or(&volume.name));
            if volume.attachment.is_some() && ec2.hold(id)?.is_some() {
                return Err(Refusal::environment(format!(
                    "volume '{name}' is attached to an instance of EC2 of this home, and a command has attached it"
                ))
                .hint(format!("'ebbtide volume detach {name}', then change the server again"))
                .into());
            }
        }
        // It stores what it has of the present minute, which the endpoint reads.
        sampler.sampling = None;
        match aws::start(args, self.home, Arc::clone(self.plane)) {
            Ok(started) => {
                (sampler.listening, *ec2) = started;
                Ok(())
            }
            Err(error) => {
                match sample(self.plane, self.home) {
                    Ok(sampling) => sampler.sampling = Some(sampling),
                    Err(error) => tracing::error!("metrics are lost from now on: {error:#}"),
                }
                Err(error)
            }
        }
    }

    fn sampler(&self) -> MutexGuard<'_, Sampler> {
        self.sampler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// EC2's resources while no request looks at them. It is not waited for long: a stop waits for this.
    fn alone(&self) -> anyhow::Result<RwLockWriteGuard<'_, Ec2Resources>> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            match self.ec2.try_write() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < give_up => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Refusal::environment(
                        "a request is being carried out, and the AWS endpoint cannot begin meanwhile",
                    )
                    .hint("wait until it has ended, then change the server again")
                    .into());
                }
            }
        }
    }

    /// Ends the metrics and the endpoint, and takes the last samples.
    pub(super) fn stop(&self) {
        *self.metrics() = None;
        let mut sampler = self.sampler();
        if let Some(listening) = &mut sampler.listening {
            listening.stop();
        }
        sampler.sampling = None;
    }
}

/// Samples the volumes of a server without the AWS endpoint, from now on.
fn sample(plane: &Arc<LiveControl>, home: &Home) -> anyhow::Result<Sampling> {
    let volumes = Volumes::new(Arc::clone(plane), home.clone(), SystemClock.now_ms());
    Sampling::start(volumes, Arc::new(SystemClock))
        .context(Refusal::environment("the server cannot sample its volumes"))
}

/// Asks the server of a home to change.
///
/// # Errors
/// Nothing to change; what the server refuses; no server.
pub(super) fn ask(
    home: &Home,
    log: Option<&str>,
    aws: &AwsArgs,
    metrics: Option<MetricsTarget>,
    json: bool,
) -> anyhow::Result<Exit> {
    aws.check()?;
    let words = aws.words()?.into_iter().map(std::ffi::OsString::into_string);
    let aws = words.collect::<Result<Vec<_>, _>>().map_err(|_| Refusal::usage("a path is not UTF-8"))?;
    if log.is_none() && aws.is_empty() && metrics.is_none() {
        return Err(Refusal::usage("--change changes nothing by itself")
            .hint("give --log FILTER, --metrics PORT or off, or --aws ADDRESS with its options")
            .into());
    }
    log.map(log::parse_option).transpose()?;
    let is_about_metrics = metrics.is_some();
    let metrics = metrics.map(|target| target.to_string());
    let change = ServerChange { log: log.map(str::to_owned), aws, metrics };
    let answer = control::ask(home, &Request::ServerChange(change))?;
    if json {
        text::print_json(&answer.value);
        return Ok(answer.exit);
    }
    let ServerChanged { log, aws, metrics } = serde_json::from_value(answer.value)?;
    log.iter().for_each(|filter| text::line(&format!("log: {filter}")));
    aws.iter().for_each(|url| text::line(&format!("AWS endpoint: {url}")));
    match metrics {
        Some(url) => text::line(&format!("metrics: {url}")),
        None if is_about_metrics => text::line("metrics: off"),
        None => {}
    }
    Ok(answer.exit)
}
