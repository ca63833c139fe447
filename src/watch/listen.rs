//! Serves pages and metrics on this machine.

use std::sync::Arc;

use ebbtide_http::{LoopbackAddress, Page, Rendered, Server, Site, Unavailable};
use ebbtide_watch::CONTENT_TYPE;
use ebbtide_watch::live::LiveSource;
use ebbtide_watch::page::pages;
use ebbtide_watch::view::ViewSource;

use crate::exit::Refusal;

/// The path of the metrics.
const METRICS: &str = "/metrics";

/// Serves the pages of a watcher, and its metrics.
///
/// # Errors
/// The address is taken, or cannot be listened at: exit code 3.
pub(super) fn start(address: LoopbackAddress, source: &Arc<LiveSource>) -> anyhow::Result<Server> {
    let site = Site::default().with(METRICS, MetricsPage(Arc::clone(source)));
    let shown: Arc<dyn ViewSource> = Arc::<LiveSource>::clone(source);
    serve(address, pages(site, &shown))
}

/// Serves the pages of a replay, which has no metrics.
///
/// # Errors
/// As [`start`].
pub(super) fn start_replay(address: LoopbackAddress, source: &Arc<dyn ViewSource>) -> anyhow::Result<Server> {
    serve(address, pages(Site::default(), source))
}

fn serve(address: LoopbackAddress, site: Site) -> anyhow::Result<Server> {
    Server::start(address, site).map_err(|error| {
        let refusal = Refusal::environment(format!("cannot listen at {address}"))
            .hint("choose another port for --listen; port 0 takes one that is free");
        anyhow::Error::new(error).context(refusal)
    })
}

/// The page of the metrics: of the last readings, so that a scrape asks no server.
#[derive(Debug)]
struct MetricsPage(Arc<LiveSource>);

impl Page for MetricsPage {
    fn render(&self) -> Result<Rendered, Unavailable> {
        Ok(Rendered { content_type: CONTENT_TYPE, body: self.0.metrics() })
    }
}
