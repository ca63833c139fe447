//! The text of a scrape: servers under the names of mysqld_exporter, the machine under those of node_exporter and of the EBS CSI driver,
//! alarms and forecasts, and this process.

use super::state::{WatchOptions, WatchState};
use crate::alarm::alarm_text;
use crate::exposition::{Exposition, Number};
use crate::host::host_text;
use crate::names::BUILD_INFO;
use crate::process;
use crate::server::{Families, ServerLabels, add_server};

/// The text, of what was read last.
pub(super) fn scrape(state: &mut WatchState, options: &WatchOptions) -> String {
    let mut own = Exposition::default();
    let [version, commit] = options.build;
    own.add(&BUILD_INFO, &[("version", version), ("commit", commit)], Number::Whole(1));
    if let Some(usage) = &state.looks.process {
        process::add(&mut own, usage);
    }
    let mut text = own.into_text();
    text.push_str(&servers(state, options));
    if let Some(host) = &state.looks.host {
        let node_name = options.node_name.as_deref().map(|name| ("node_name", name));
        text.push_str(&host_text(&host.reading, node_name.as_slice()));
    }
    text.push_str(&alarm_text(&mut state.alarms, &state.readings));
    text
}

fn servers(state: &WatchState, options: &WatchOptions) -> String {
    let mut families = Families::default();
    for look in &state.looks.servers {
        let Some(track) = state.servers.get(&look.name) else { continue };
        let labels = ServerLabels {
            service_name: options.has_service_name.then(|| look.name.clone()),
            node_name: options.node_name.clone(),
        };
        add_server(&mut families, &look.reading, track.trend(), &labels);
    }
    families.text()
}
