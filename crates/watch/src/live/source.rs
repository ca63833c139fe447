//! What terminal, pages and scrapes read of a watcher.

use std::sync::Arc;

use ebbtide_history::Samples;
use parking_lot::{Mutex, RwLock};

use super::builder::true_alarms;
use super::gone::with_gone;
use super::graphs::{History, graphs};
use super::scrape::scrape;
use super::state::{WatchOptions, WatchState};
use crate::alarm::Alarm;
use crate::view::{Graph, Range, Subject, View, ViewSource};

/// The last view of a watcher, its graphs, and the text of a scrape. None of them asks a server or a device.
#[derive(Debug)]
pub struct LiveSource {
    pub(super) options: WatchOptions,
    pub(super) state: Mutex<WatchState>,
    view: RwLock<Arc<View>>,
    history: Option<Arc<Samples>>,
}

impl LiveSource {
    pub(super) fn new(options: WatchOptions, history: Option<Arc<Samples>>) -> Self {
        Self { options, state: Mutex::default(), view: RwLock::default(), history }
    }

    pub(super) fn publish(&self, view: View) {
        *self.view.write() = Arc::new(view);
    }

    /// The text of a scrape, as [`CONTENT_TYPE`](crate::CONTENT_TYPE) says, of the last readings: a scrape asks nobody.
    #[must_use]
    pub fn metrics(&self) -> String {
        scrape(&mut self.state.lock(), &self.options)
    }

    /// All alarms as they are, by subject and rule.
    #[must_use]
    pub fn alarms(&self) -> Vec<Alarm> {
        self.state.lock().alarms.all().collect()
    }

    /// The last view with the alarms whose rule is true now, whether or not it has been true for long enough: what a look of a moment
    /// can say.
    #[must_use]
    pub fn single_look(&self) -> View {
        let view = self.view();
        View { alarms: true_alarms(&self.state.lock()), ..view.as_ref().clone() }
    }
}

impl ViewSource for LiveSource {
    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read())
    }

    fn graphs(&self, subject: &Subject, range: Range) -> Vec<Graph> {
        let Some(samples) = &self.history else { return Vec::new() };
        let store = samples.store();
        let machine = &self.options.machine;
        let view = with_gone(&store, machine, self.view(), subject);
        graphs(&History { store: &store, machine, view: &view }, subject, range)
    }
}
