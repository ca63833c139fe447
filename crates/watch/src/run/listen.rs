//! Serves pages and metrics on this machine.

use std::sync::Arc;

use ebbtide_http::{LoopbackAddress, Page, Rendered, Server, Site, Unavailable};

use super::error::RunError;
use crate::CONTENT_TYPE;
use crate::live::LiveSource;
use crate::page::pages;
use crate::view::ViewSource;

/// The path of the metrics.
const METRICS: &str = "/metrics";

/// Serves the pages of a watcher, and its metrics.
///
/// # Errors
/// The address is taken, or cannot be listened at.
pub(super) fn start(address: LoopbackAddress, source: &Arc<LiveSource>) -> Result<Server, RunError> {
    let site = Site::default().with(METRICS, MetricsPage(Arc::clone(source)));
    let shown: Arc<dyn ViewSource> = Arc::<LiveSource>::clone(source);
    serve(address, pages(site, &shown))
}

/// Serves the pages of a replay, which has no metrics.
///
/// # Errors
/// As [`start`].
pub(super) fn start_replay(
    address: LoopbackAddress,
    source: &Arc<dyn ViewSource>,
) -> Result<Server, RunError> {
    serve(address, pages(Site::default(), source))
}

fn serve(address: LoopbackAddress, site: Site) -> Result<Server, RunError> {
    Server::start(address, site).map_err(|source| RunError::Listen { address, source })
}

/// The page of the metrics: of the last readings, so that a scrape asks no server.
#[derive(Debug)]
struct MetricsPage(Arc<LiveSource>);

impl Page for MetricsPage {
    fn render(&self) -> Result<Rendered, Unavailable> {
        Ok(Rendered { content_type: CONTENT_TYPE, body: self.0.metrics() })
    }
}
