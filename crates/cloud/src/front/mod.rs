//! The HTTP side of the endpoint: sockets, TLS, limits, and a graceful stop.
//!
//! Connections are served by a few threads that never wait for a service: calls run on threads of their own.

mod pipeline;
mod places;
mod regions;
mod room;
#[cfg(test)]
mod tests;
pub mod tls;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::get;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;

pub use pipeline::{Clock, Peer, Pipeline, Settings};
pub use regions::{MOST_OTHERS, Regions};
pub use room::Room;

use places::{Phase, Place, Places, Watched};

/// The path that reports whether the endpoint works, without a key.
pub const HEALTH: &str = "/_ebbtide/health";

/// The longest body of a request: a block of 512 KiB, or as much as AWS takes of parameters.
const MAX_BODY_BYTES: usize = 1 << 20;
/// The most headers of a request; more are answered with 431.
const MAX_HEADERS: usize = 100;
/// The longest line of a request with its headers: a presigned request has all parameters in it.
const MAX_HEAD_BYTES: usize = 128 << 10;
/// How many connections are served at a time. More take the places of those that wait for a request ([`places`]), or wait.
const MAX_CONNECTIONS: usize = 256;
/// How often it is looked for a connection that gives its place up, while none does.
const PLACE_INTERVAL: Duration = Duration::from_millis(100);
/// Threads of calls, which wait for volumes.
const MAX_CALLS: usize = 32;
/// How many of them calls can have that do more than read: those can wait for volumes for minutes.
const MAX_LONG_CALLS: usize = 24;
/// One in so many places is kept for other peers than the one that has all others.
const KEPT_PLACES: usize = 8;
/// Threads of connections.
const THREADS: usize = 2;
/// How long a client may take for a handshake, or for the head of a request; idle connections end after that, too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client may take for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client may take nothing of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long requests may take that are being answered when the endpoint stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A listening endpoint. It stops when it is dropped.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    runtime: Option<Runtime>,
    acceptor: JoinHandle<()>,
    graceful: Graceful,
}

/// Ends connections after their requests; none once it does.
type Graceful = Arc<Mutex<Option<GracefulShutdown>>>;

impl Endpoint {
    /// Listens at an address, and answers requests from then on.
    ///
    /// # Errors
    /// The address cannot be listened at, or no thread can be started.
    pub fn start(
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        pipeline: Arc<Pipeline>,
    ) -> io::Result<Self> {
        Self::start_with(address, tls, pipeline, MAX_CONNECTIONS, ANSWER_TIMEOUT)
    }

    /// The same with a number of connections that are served at a time, and of the time in which a client takes a part of an
    /// answer.
    fn start_with(
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        pipeline: Arc<Pipeline>,
        connections: usize,
        answer_timeout: Duration,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(MAX_CALLS)
            .thread_name("aws")
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let graceful: Graceful = Arc::new(Mutex::new(Some(GracefulShutdown::new())));
        let connections = Connections {
            router: router(pipeline),
            tls: tls.map(TlsAcceptor::from),
            free: Arc::new(Semaphore::new(connections)),
            most_of_peer: connections - connections / KEPT_PLACES,
            has_kept: connections >= KEPT_PLACES,
            answer_timeout,
            places: Places::default(),
            graceful: Arc::clone(&graceful),
        };
        let acceptor = runtime.spawn(connections.accept(listener));
        Ok(Self { address, runtime: Some(runtime), acceptor, graceful })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more connections, and waits until the requests that are being answered have their answers.
    pub fn stop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        self.acceptor.abort();
        let graceful = self.graceful.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(graceful) = graceful {
            let ended = runtime.block_on(async { timeout(STOP_TIMEOUT, graceful.shutdown()).await });
            if ended.is_err() {
                tracing::warn!("some requests of the AWS endpoint did not end in time");
            }
        }
        runtime.shutdown_timeout(STOP_TIMEOUT);
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Connections {
    router: Router,
    tls: Option<TlsAcceptor>,
    free: Arc<Semaphore>,
    /// How many places one peer can have.
    most_of_peer: usize,
    /// Whether there are more places than that.
    has_kept: bool,
    answer_timeout: Duration,
    places: Places,
    graceful: Graceful,
}

impl Connections {
    async fn accept(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    if !self.has_room_for(from.ip()) {
                        tracing::debug!(%from, "a connection more than a peer can have is closed");
                        continue;
                    }
                    let Some(permit) = self.permit().await else { return };
                    let (router, tls) = (self.router.clone(), self.tls.clone());
                    let graceful = self.graceful.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(watcher) = graceful.as_ref().map(GracefulShutdown::watcher) else { return };
                    drop(graceful);
                    let (place, ended) = self.places.enter(from.ip(), Instant::now());
                    let answer_timeout = self.answer_timeout;
                    tokio::spawn(async move {
                        let served = serve(stream, from.ip(), router, tls, watcher, (place, answer_timeout));
                        if places::ends_before(ended, served).await {
                            tracing::debug!(%from, "a connection without a whole request gave its place up");
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!("the AWS endpoint cannot accept a client: {error}");
                    // Out of file descriptors, most likely: others must close theirs first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Whether a peer has fewer places than one peer can have, after one of its own that waits for a request has given its
    /// place up.
    fn has_room_for(&self, peer: IpAddr) -> bool {
        !self.has_kept
            || self.places.count(peer) < self.most_of_peer
            || self.places.end_one(Some(peer), Instant::now()).is_some()
    }

    /// A place for a connection. Where all are taken, one that waits for a request gives its place up. None at the end.
    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(permit);
        }
        let mut acquire = pin!(Arc::clone(&self.free).acquire_owned());
        loop {
            let has_ended = self.places.end_one(None, Instant::now()).is_some();
            match timeout(PLACE_INTERVAL, acquire.as_mut()).await {
                Ok(permit) => return permit.ok(),
                // The one that ends may be slow, but it does: another need not go for the same place.
                Err(_) if has_ended => return acquire.await.ok(),
                Err(_) => {}
            }
        }
    }
}

async fn serve(
    stream: TcpStream,
    from: IpAddr,
    router: Router,
    tls: Option<TlsAcceptor>,
    watcher: Watcher,
    place: (Arc<Place>, Duration),
) {
    // An answer is one small write, which must not wait for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    let peer = |is_secure: bool| Peer { address: from, is_secure };
    match tls {
        None => serve_on(stream, peer(false), router, watcher, place).await,
        Some(tls) => match timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => serve_on(stream, peer(true), router, watcher, place).await,
            Ok(Err(error)) => tracing::debug!(%from, "no TLS handshake: {error}"),
            Err(_) => tracing::debug!(%from, "no TLS handshake in time"),
        },
    }
}

async fn serve_on<S>(
    stream: S,
    peer: Peer,
    router: Router,
    watcher: Watcher,
    (place, answer_timeout): (Arc<Place>, Duration),
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let stream = Watched::new(stream, Arc::clone(&place), answer_timeout);
    let service = service_fn(move |mut request: Request<Incoming>| {
        place.is_now(Phase::Body, Instant::now());
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(Arc::clone(&place));
        let (answered, place) = (service.call(request), Arc::clone(&place));
        async move {
            let answer = answered.await;
            place.is_now(Phase::Answer, Instant::now());
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(from = %peer.address, "a connection ended: {error}");
    }
}

fn router(pipeline: Arc<Pipeline>) -> Router {
    let health = pipeline.health();
    let long_calls = Arc::new(Semaphore::new(MAX_LONG_CALLS));
    Router::new()
        .route(
            HEALTH,
            get(move || {
                let health = health.clone();
                async move { ([("content-type", "application/json")], health) }
            }),
        )
        .fallback(move |request: Request| answer(Arc::clone(&pipeline), Arc::clone(&long_calls), request))
}

async fn answer(pipeline: Arc<Pipeline>, long_calls: Arc<Semaphore>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let peer = parts.extensions.get().copied();
    let read = timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY_BYTES).collect()).await;
    let body = match read {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let text = format!("The body of a request has at most {MAX_BODY_BYTES} bytes.");
            return pipeline.refuse_body(&parts, 413, "RequestEntityTooLarge", &text).map(Body::from);
        }
        Ok(Err(_)) => {
            return pipeline
                .refuse_body(&parts, 400, "IncompleteBody", "The body did not arrive whole.")
                .map(Body::from);
        }
        Err(_) => {
            return pipeline
                .refuse_body(&parts, 408, "RequestTimeout", "The body did not arrive in time.")
                .map(Body::from);
        }
    };
    let place = parts.extensions.get::<Arc<Place>>();
    if place.is_some_and(|place| !place.is_now(Phase::Call, Instant::now())) {
        // The connection has lost its place while the body came. Nobody reads this.
        return pipeline
            .refuse_body(&parts, 408, "RequestTimeout", "The body did not arrive in time.")
            .map(Body::from);
    }
    // Calls that only read are short, and do not wait behind those that change volumes.
    let turn = if pipeline::only_reads(&parts, &body) { None } else { long_calls.acquire_owned().await.ok() };
    let in_call = Arc::clone(&pipeline);
    let parts = Arc::new(parts);
    let of_call = Arc::clone(&parts);
    let answered = tokio::task::spawn_blocking(move || {
        // Held by the call itself, which goes on where its client goes away.
        let _turn = turn;
        in_call.answer(&of_call, &body, peer)
    });
    let answered = answered.await;
    answered
        .unwrap_or_else(|error| {
            tracing::error!("a call of the AWS endpoint ended by a panic: {error}");
            pipeline.refuse_body(&parts, 500, "InternalFailure", "An internal error has occurred.")
        })
        .map(Body::from)
}
