//! The server: its sockets, its limits, and its end.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::deadline::DeadlineStream;
use crate::host::is_this_machine;
use crate::{LoopbackAddress, Site};

/// How many connections are served at a time; more wait in the kernel's queue. A browser has six, a scraper one.
const MAX_CONNECTIONS: usize = 64;
/// The most headers of a request; more are answered with 431.
const MAX_HEADERS: usize = 64;
/// The longest line of a request with its headers.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// How long a client may take for the head of a request. An idle connection ends after that, too: it is longer than a minute, at which
/// many scrapers come again.
const HEAD_TIMEOUT: Duration = Duration::from_secs(70);
/// How long a client may take nothing of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Threads of the connections.
const THREADS: usize = 1;
/// Threads of pages, which may wait for locks.
const PAGE_THREADS: usize = 4;
/// How long requests may take that are being answered when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How long clients may take.
#[derive(Debug, Clone, Copy)]
struct Patience {
    head: Duration,
    answer: Duration,
}

/// A listening server. It stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    runtime: Option<Runtime>,
    acceptor: JoinHandle<()>,
    graceful: Graceful,
    /// Ends the feeds, whose answers would go on.
    stopping: watch::Sender<bool>,
}

/// Ends connections after their requests; none once it does.
type Graceful = Arc<Mutex<Option<GracefulShutdown>>>;

impl Server {
    /// Listens at an address, and answers with the pages of a site from then on.
    ///
    /// # Errors
    /// The address cannot be listened at, or no thread can be started.
    pub fn start(address: LoopbackAddress, site: Site) -> io::Result<Self> {
        Self::start_with(address, site, Patience { head: HEAD_TIMEOUT, answer: ANSWER_TIMEOUT })
    }

    fn start_with(address: LoopbackAddress, site: Site, patience: Patience) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(PAGE_THREADS)
            .thread_name("http")
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind(address.socket()))?;
        let address = listener.local_addr()?;
        let graceful: Graceful = Arc::new(Mutex::new(Some(GracefulShutdown::new())));
        let (stopping, stopped) = watch::channel(false);
        let acceptor =
            runtime.spawn(accept(listener, site.router(&stopped), patience, Arc::clone(&graceful)));
        Ok(Self { address, runtime: Some(runtime), acceptor, graceful, stopping })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more connections, and waits until the requests that are being answered have their answers, for 5 s at most.
    pub fn stop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        self.acceptor.abort();
        self.stopping.send_replace(true);
        let graceful = self.graceful.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(graceful) = graceful {
            let ended = runtime.block_on(async { timeout(STOP_TIMEOUT, graceful.shutdown()).await });
            if ended.is_err() {
                tracing::warn!("some requests for pages did not end in time");
            }
        }
        runtime.shutdown_timeout(STOP_TIMEOUT);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn accept(listener: TcpListener, router: Router, patience: Patience, graceful: Graceful) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let locked = graceful.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(watcher) = locked.as_ref().map(GracefulShutdown::watcher) else { return };
                drop(locked);
                let router = router.clone();
                tokio::spawn(async move {
                    serve(stream, router, patience, watcher).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!("the server of pages cannot accept a client: {error}");
                // Out of file descriptors, most likely: others must close theirs first.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, router: Router, patience: Patience, watcher: Watcher) {
    // An answer is one small write, which must not wait for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    let routes = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        let answered = is_this_machine(&request).then(|| routes.call(request));
        async move {
            match answered {
                Some(answered) => answered.await,
                None => Ok(refuse_host()),
            }
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(DeadlineStream::new(stream, patience.answer)), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!("a connection for pages ended: {error}");
    }
}

fn refuse_host() -> Response {
    let text = "this server answers to localhost and loopback addresses alone: name it so in the URL\n";
    (StatusCode::FORBIDDEN, text).into_response()
}

#[cfg(test)]
mod tests;
