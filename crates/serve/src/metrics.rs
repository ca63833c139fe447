//! `serve --metrics`: the volumes of the server as Prometheus reads them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use ebbtide_control::{LiveControl, VolumeObserver};
use ebbtide_http::{AddressError, LoopbackAddress, Page, Rendered, Server, Site, Unavailable};
use ebbtide_proc::process::{OwnUsage, own_usage};
use ebbtide_watch::{Build, CONTENT_TYPE, Scrape, scrape_text};

use crate::error::ServeError;

/// The path of the metrics.
const PATH: &str = "/metrics";

/// What `--metrics` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsTarget {
    /// No metrics.
    Off,
    /// Metrics at an address of this machine.
    At(LoopbackAddress),
}

impl FromStr for MetricsTarget {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text == "off" { Ok(Self::Off) } else { text.parse().map(Self::At) }
    }
}

impl fmt::Display for MetricsTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

/// Metrics that are served. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct MetricsServer(Server);

impl MetricsServer {
    /// Serves the metrics of the volumes of a control plane.
    ///
    /// # Errors
    /// The address is taken, or cannot be listened at: [`ServeError::Metrics`].
    pub(crate) fn start(
        address: LoopbackAddress,
        plane: &Arc<LiveControl>,
        build: Build<'static>,
    ) -> Result<Self, ServeError> {
        let observer: Arc<dyn VolumeObserver> = Arc::<LiveControl>::clone(plane);
        let started_unix_s = own_usage().map(|usage| usage.started_unix_s);
        let site = Site::default().with(PATH, MetricsPage { observer, started_unix_s, build });
        let server =
            Server::start(address, site).map_err(|source| ServeError::Metrics { address, source })?;
        let serving = Self(server);
        tracing::info!(url = serving.url(), "serving metrics");
        Ok(serving)
    }

    /// The URL of the metrics.
    pub(crate) fn url(&self) -> String {
        format!("http://{}{PATH}", self.0.address())
    }

    /// Whether they are served at an address already. Port 0 asks for another one.
    pub(crate) fn is_at(&self, address: LoopbackAddress) -> bool {
        self.0.address() == address.socket()
    }
}

/// The page of the metrics.
#[derive(Debug)]
struct MetricsPage {
    observer: Arc<dyn VolumeObserver>,
    /// Read once: the kernel's time of the boot, from which it is computed, may move by a second.
    started_unix_s: Option<f64>,
    /// The program that serves.
    build: Build<'static>,
}

impl Page for MetricsPage {
    fn render(&self) -> Result<Rendered, Unavailable> {
        let begun = Instant::now();
        let volumes = self.observer.observe().map_err(|error| Unavailable(error.to_string()))?;
        let process = own_usage().map(|usage| OwnUsage {
            started_unix_s: self.started_unix_s.unwrap_or(usage.started_unix_s),
            ..usage
        });
        let scrape = Scrape { volumes: &volumes, process, build: self.build };
        Ok(Rendered { content_type: CONTENT_TYPE, body: scrape_text(&scrape, || begun.elapsed()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_off_or_an_address_and_is_written_as_it_is_read() {
        for (text, written) in [("off", "off"), ("9421", "127.0.0.1:9421"), ("[::1]:0", "[::1]:0")] {
            let target: MetricsTarget = text.parse().unwrap();
            assert_eq!(target.to_string(), written);
            assert_eq!(written.parse(), Ok(target));
        }
        assert!("on".parse::<MetricsTarget>().is_err());
        assert!("0.0.0.0:9421".parse::<MetricsTarget>().is_err());
    }
}
