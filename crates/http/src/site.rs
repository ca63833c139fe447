//! The pages of a server, and the routes to them.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

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
pub struct Site(Vec<(&'static str, Arc<dyn Page>)>);

impl Site {
    /// This site with one page more, at a path such as `/metrics`. A path stands for itself: it has no `{` in it.
    #[must_use]
    pub fn with(mut self, path: &'static str, page: impl Page) -> Self {
        self.0.push((path, Arc::new(page)));
        self
    }

    /// The routes: GET and HEAD of each page, 405 for other methods, and 404 with the links for other paths.
    pub(crate) fn router(self) -> Router {
        let link = |(path, _): &(&'static str, _)| format!("<li><a href=\"{path}\">{path}</a></li>\n");
        let links: String = self.0.iter().map(link).collect();
        let missing: Arc<str> = MISSING.replace("LINKS", &links).into();
        let mut router = Router::new();
        for (path, page) in self.0 {
            router = router.route(path, get(move || answer(Arc::clone(&page))));
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
