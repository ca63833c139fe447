//! The text of a scrape: servers under the names of mysqld_exporter, the machine under those of node_exporter and of the EBS CSI driver,
//! alarms and forecasts, and this process.

use super::looks::ServerState;
use super::state::{WatchOptions, WatchState};
use crate::alarm::alarm_text;
use crate::exposition::{Exposition, Number};
use crate::host::host_text;
use crate::names::BUILD_INFO;
use crate::process;
use crate::server::{Families, ServerLabels, add_server, add_silent_server};

/// The text, of what was read last and is not too old.
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
    let latest = state.latest.readings(state.readings.moment);
    text.push_str(&alarm_text(&mut state.alarms, &latest));
    text
}

fn servers(state: &WatchState, options: &WatchOptions) -> String {
    let fresh_from = state.readings.moment.elapsed.since(options.stale_after());
    let mut families = Families::default();
    for look in &state.looks.servers {
        let Some(track) = state.servers.get(&look.name) else { continue };
        let labels = ServerLabels {
            service_name: options.has_service_name.then(|| look.name.clone()),
            node_name: options.node_name.clone(),
        };
        // A question that is not answered yet is known here before the reading has it.
        let is_up = look.reading.up && !matches!(look.state, ServerState::Unanswered { .. });
        if is_up && track.seen() >= fresh_from {
            add_server(&mut families, &look.reading, track.trend(), &labels);
        } else {
            add_silent_server(&mut families, &look.reading, is_up, &labels);
        }
    }
    families.text()
}
