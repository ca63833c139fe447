//! A running server of a home, and what can change in it without a restart: the AWS endpoint, and the metrics.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};
use std::time::{Duration, Instant};

use ebbtide_cloud::front::Clock as _;
use ebbtide_control::{ControlPlane as _, LiveControl, Names};
use ebbtide_device::host::Home;
use ebbtide_watch::Build;

use crate::clock::SystemClock;
use crate::endpoint::{self, EndpointOptions, Listening, endpoint_url};
use crate::error::{ServeError, chain};
use crate::metrics::{MetricsServer, MetricsTarget};
use crate::resources::Ec2Resources;
use crate::sampling::{Sampling, Volumes};

/// How long the endpoint waits for requests that are being carried out.
const PATIENCE: Duration = Duration::from_secs(5);

/// What samples the volumes: the endpoint does so for itself, and two would write the same history.
#[derive(Debug)]
struct Sampler {
    listening: Option<Listening>,
    sampling: Option<Sampling>,
}

/// A running server of a home: its volumes, with the endpoint, the samples and the metrics of them.
#[derive(Debug)]
pub struct RunningServer<'a> {
    plane: &'a Arc<LiveControl>,
    home: &'a Home,
    build: Build<'static>,
    sampler: Mutex<Sampler>,
    ec2: RwLock<Ec2Resources>,
    metrics: Mutex<Option<MetricsServer>>,
}

impl<'a> RunningServer<'a> {
    /// Starts a server of a home whose volumes `plane` has, with an endpoint and metrics if they are wanted. `build` is the
    /// program, for the metrics.
    ///
    /// # Errors
    /// An address that is taken; an endpoint that cannot begin; records of EC2 that cannot be read; no thread.
    pub fn start(
        plane: &'a Arc<LiveControl>,
        home: &'a Home,
        build: Build<'static>,
        endpoint: Option<&EndpointOptions>,
        metrics: Option<MetricsTarget>,
    ) -> Result<Self, ServeError> {
        let metrics = match metrics {
            Some(MetricsTarget::At(address)) => Some(MetricsServer::start(address, plane, build)?),
            Some(MetricsTarget::Off) | None => None,
        };
        let (listening, ec2) = endpoint::start(endpoint, home, plane)?;
        let sampling = if listening.is_none() { Some(sample(plane, home)?) } else { None };
        let sampler = Mutex::new(Sampler { listening, sampling });
        Ok(Self { plane, home, build, sampler, ec2: RwLock::new(ec2), metrics: Mutex::new(metrics) })
    }

    /// What EC2 has in this home. While it is held, no endpoint begins.
    pub(crate) fn ec2(&self) -> RwLockReadGuard<'_, Ec2Resources> {
        self.ec2.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of a volume by its name or its id.
    pub(crate) fn name_of(&self, volume: &str) -> String {
        self.plane.name_of(volume).into_owned()
    }

    /// The id of a volume by its name or its id; None of one that is missing.
    pub(crate) fn volume_id(&self, volume: &str) -> Option<String> {
        self.plane.volume_id(volume)
    }

    /// The names in the home.
    pub(crate) fn known_names(&self) -> Names {
        self.plane.known_names()
    }

    /// URL of the metrics; None where none are served.
    #[must_use]
    pub fn metrics_url(&self) -> Option<String> {
        self.metrics().as_ref().map(MetricsServer::url)
    }

    /// Serves metrics at another address, or none any more.
    ///
    /// # Errors
    /// The address is taken, or cannot be listened at: then the metrics stay as they are.
    pub fn change_metrics(&self, target: MetricsTarget) -> Result<(), ServeError> {
        let mut metrics = self.metrics();
        match target {
            MetricsTarget::Off => *metrics = None,
            MetricsTarget::At(address) if metrics.as_ref().is_some_and(|served| served.is_at(address)) => {}
            // The new ones begin first: where they cannot, the old ones stay.
            MetricsTarget::At(address) => {
                *metrics = Some(MetricsServer::start(address, self.plane, self.build)?);
            }
        }
        Ok(())
    }

    fn metrics(&self) -> MutexGuard<'_, Option<MetricsServer>> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to answer AWS's APIs.
    ///
    /// # Errors
    /// There is an endpoint; a command has attached a volume of an instance; a request takes longer than 5 s; an endpoint that
    /// cannot begin. The server goes on as before.
    pub fn begin_endpoint(&self, options: &EndpointOptions) -> Result<(), ServeError> {
        let mut sampler = self.sampler();
        if sampler.listening.is_some() {
            let url = endpoint_url(self.home).unwrap_or_default();
            return Err(ServeError::EndpointServed { url });
        }
        let mut ec2 = self.alone()?;
        // By its record an instance has it, which would find it attached otherwise.
        for volume in self.plane.volumes(None)? {
            let (name, id) = (&volume.name, volume.id.as_deref().unwrap_or(&volume.name));
            if volume.attachment.is_some() && ec2.hold(id)?.is_some() {
                return Err(ServeError::AttachedByCommand { volume: name.clone() });
            }
        }
        // It stores what it has of the present minute, which the endpoint reads.
        sampler.sampling = None;
        match endpoint::start(Some(options), self.home, self.plane) {
            Ok(started) => {
                (sampler.listening, *ec2) = started;
                Ok(())
            }
            Err(error) => {
                match sample(self.plane, self.home) {
                    Ok(sampling) => sampler.sampling = Some(sampling),
                    Err(error) => tracing::error!("metrics are lost from now on: {}", chain(&error)),
                }
                Err(error)
            }
        }
    }

    fn sampler(&self) -> MutexGuard<'_, Sampler> {
        self.sampler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// EC2's resources while no request looks at them. It is not waited for long: a stop waits for this.
    fn alone(&self) -> Result<RwLockWriteGuard<'_, Ec2Resources>, ServeError> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            match self.ec2.try_write() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < give_up => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => return Err(ServeError::Busy),
            }
        }
    }

    /// Ends the metrics and the endpoint, and takes the last samples.
    pub fn stop(&self) {
        *self.metrics() = None;
        let mut sampler = self.sampler();
        if let Some(listening) = &mut sampler.listening {
            listening.stop();
        }
        sampler.sampling = None;
    }
}

/// Samples the volumes of a server without the AWS endpoint, from now on.
fn sample(plane: &Arc<LiveControl>, home: &Home) -> Result<Sampling, ServeError> {
    let volumes = Volumes::new(Arc::clone(plane), home.clone(), SystemClock.now_ms());
    Sampling::start(volumes, Arc::new(SystemClock)).map_err(ServeError::Sampling)
}
