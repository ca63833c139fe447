//! The pages of a server, and the routes to them.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::sync::{Semaphore, watch};

use crate::feed::{Feed, MAX_STREAMS, Streams};
use crate::resource::{self, Resource};

/// The answer to a path that no page has; LINKS stands for those that there are.
const MISSING: &str = include_str!("../assets/missing.html");
const HTML: &str = "text/html; charset=utf-8";

/// A page that is made anew for each request. It is called on a thread that may wait.
pub trait Page: fmt::Debug + Send + Sync + 'static {
    /// The page as it is now.
    ///
    /// # Errors
    /// [`Unavailable`], which is answered with status 503.
    fn render(&self) -> Result<Rendered, Unavailable>;
}

/// What a page answers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Its media type, with parameters.
    pub content_type: &'static str,
    /// Its text.
    pub body: String,
}

/// Why a page cannot be had now, as a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// Pages by their paths.
#[derive(Debug, Default)]
pub struct Site {
    pages: Vec<(&'static str, Arc<dyn Page>)>,
    resources: Vec<(&'static str, Arc<dyn Resource>)>,
    feeds: Vec<(&'static str, Arc<dyn Feed>)>,
}

impl Site {
    /// This site with one page more, at a path such as `/metrics`. A path stands for itself: it has no `{` in it.
    #[must_use]
    pub fn with(mut self, path: &'static str, page: impl Page) -> Self {
        self.pages.push((path, Arc::new(page)));
        self
    }

    /// This site with one resource more. A path that ends with `/`, such as `/server/`, has all paths below it too; `/` alone is only
    /// itself.
    #[must_use]
    pub fn with_resource(mut self, path: &'static str, resource: impl Resource) -> Self {
        self.resources.push((path, Arc::new(resource)));
        self
    }

    /// This site with one feed of events more. Each feed has up to 16 clients at a time.
    #[must_use]
    pub fn with_feed(mut self, path: &'static str, feed: impl Feed) -> Self {
        self.feeds.push((path, Arc::new(feed)));
        self
    }

    /// The routes: GET and HEAD of each page, 405 for other methods, and 404 with the links for other paths. Feeds end when `stopped`
    /// changes.
    pub(crate) fn router(self, stopped: &watch::Receiver<bool>) -> Router {
        let paths =
            self.pages.iter().map(|(path, _)| *path).chain(self.resources.iter().map(|(path, _)| *path));
        let link = |path: &str| format!("<li><a href=\"{path}\">{path}</a></li>\n");
        // What has names below it is no page by itself.
        let links: String = paths.filter(|path| *path == "/" || !path.ends_with('/')).map(link).collect();
        let missing: Arc<str> = MISSING.replace("LINKS", &links).into();
        let mut router = Router::new();
        for (path, page) in self.pages {
            router = router.route(path, get(move || answer(Arc::clone(&page))));
        }
        for (path, resource) in self.resources {
            let answered =
                get(move |request: Request| resource::answer(path, Arc::clone(&resource), request));
            if path != "/" && path.ends_with('/') {
                router = router.route(&format!("{path}{{*below}}"), answered.clone());
            }
            router = router.route(path, answered);
        }
        for (path, feed) in self.feeds {
            let places = Arc::new(Semaphore::new(MAX_STREAMS));
            let streams = Streams { feed, places, stopped: stopped.clone() };
            router = router.route(path, get(move || async move { streams.open() }));
        }
        router.fallback(move || {
            let missing = missing.to_string();
            async move { (StatusCode::NOT_FOUND, [(CONTENT_TYPE, HTML)], missing) }
        })
    }
}

async fn answer(page: Arc<dyn Page>) -> Response {
    // A page takes locks and reads files: not on the threads of the connections.
    match tokio::task::spawn_blocking(move || page.render()).await {
        Ok(Ok(Rendered { content_type, body })) => ([(CONTENT_TYPE, content_type)], body).into_response(),
        Ok(Err(unavailable)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{unavailable}\n")).into_response(),
        Err(error) => {
            tracing::error!("a page ended by a panic: {error}");
            (StatusCode::INTERNAL_SERVER_ERROR, "an internal error has occurred\n").into_response()
        }
    }
}
