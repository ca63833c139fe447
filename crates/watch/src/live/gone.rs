//! Subjects that are not in the view any more, and have a history.

use std::sync::Arc;

use ebbtide_history::{DEVICE, SERVER, Selector, Store};

use super::columns::STORAGE;
use crate::view::{ServerView, StorageView, Subject, View};

/// The view, with a subject that it lacks where the history has a series of it: by its name alone. A history that cannot be read has
/// none.
pub(super) fn with_gone(store: &Store, machine: &str, view: Arc<View>, subject: &Subject) -> Arc<View> {
    let is_recorded = |kind: &str, labels: &[(&str, &str)]| {
        let series = store.series(Selector { subject: Some(kind), labels });
        series.is_ok_and(|series| !series.is_empty())
    };
    match subject {
        Subject::Server(name) => {
            let is_gone = view.servers.iter().all(|server| server.name != *name);
            if is_gone && is_recorded(SERVER, &[("server", name.as_str())]) {
                let mut view = view.as_ref().clone();
                view.servers.push(ServerView { name: name.clone(), ..ServerView::default() });
                return Arc::new(view);
            }
        }
        Subject::Storage(name) => {
            if view.storage.iter().any(|storage| storage.name == *name) {
                return view;
            }
            let exact = is_recorded(STORAGE, &[("storage", name.as_str())]);
            if exact || is_recorded(DEVICE, &[("device", name.as_str()), ("host", machine)]) {
                let mut view = view.as_ref().clone();
                view.storage.push(StorageView { name: name.clone(), exact, ..StorageView::default() });
                return Arc::new(view);
            }
        }
    }
    view
}
