//! The view of a moment, of all that is kept.

use std::collections::BTreeMap;

use ebbtide_volume::Nanos;

use super::devices::{devices, file_system_reading, file_systems};
use super::looks::{HostLook, Looks, ServerLook};
use super::names::StorageNames;
use super::server_track::ServerTrack;
use super::server_view::server_view;
use super::state::{WatchOptions, WatchState};
use super::storage_track::StorageTrack;
use super::storage_view::{StorageFacts, storage_view};
use crate::alarm::{Alarm, AlarmSeverity, AlarmState, rule_of_name};
use crate::host::HostFileSystem;
use crate::reading::{Moment, VolumeLimits, VolumeReading};
use crate::view::{AlarmView, FileSystemView, NotSeenView, ServerView, StorageView, View};

/// The view of a moment. A source that gave nothing for too long has no figures: they would be of another moment.
pub(super) fn view(state: &mut WatchState, options: &WatchOptions, moment: Moment) -> View {
    let fresh_from = moment.elapsed.since(options.stale_after());
    let looks = std::mem::take(&mut state.looks);
    let names = StorageNames::new(&looks);
    let servers: Vec<ServerView> =
        looks.servers.iter().map(|look| server(state, look, &names, fresh_from)).collect();
    let mut storage = own_volumes(state, &looks, &servers, fresh_from);
    storage.extend(host_devices(state, options, &looks, (&names, servers.as_slice()), fresh_from));
    storage.sort_by_key(|subject| subject.roles.is_empty());
    let skipped: u64 = looks.servers.iter().map(|look| look.reading.cost.skipped).sum();
    let view = View {
        unix_s: moment.unix_s,
        utc_offset_s: moment.utc_offset_s,
        watched_s: state.begun.map(|begun| moment.elapsed.since(begun).as_secs_f64()),
        own: state.cost.cost(skipped + state.late_ticks),
        not_seen: not_seen(&looks),
        file_systems: looks.host.as_ref().map_or_else(Vec::new, |host| file_system_views(state, host)),
        alarms: alarms(state, moment),
        servers,
        storage,
    };
    state.looks = looks;
    view
}

fn server(state: &WatchState, look: &ServerLook, names: &StorageNames, fresh_from: Nanos) -> ServerView {
    let files = names.files(look);
    match state.servers.get(&look.name) {
        Some(track) => server_view(look, track, track.seen() >= fresh_from, files),
        None => server_view(look, &ServerTrack::default(), false, files),
    }
}

/// What lies on a volume or a device: of each server that has files there its roles.
fn roles(servers: &[ServerView], storage: &str) -> Vec<String> {
    let of_server = |server: &ServerView| {
        let here = server.files.iter().filter(|(_, name)| name == storage);
        let roles: Vec<&str> = here.map(|(role, _)| role.as_str()).collect();
        (!roles.is_empty()).then(|| format!("{} of {}", roles.join(", "), server.name))
    };
    servers.iter().filter_map(of_server).collect()
}

fn own_volumes(
    state: &mut WatchState,
    looks: &Looks,
    servers: &[ServerView],
    fresh_from: Nanos,
) -> Vec<StorageView> {
    let volumes = looks.own.iter().flat_map(|own| own.volumes.iter());
    volumes
        .map(|volume| {
            let facts = StorageFacts {
                spec: volume.spec.clone(),
                mounts: volume.mount.iter().cloned().collect(),
                roles: roles(servers, &volume.name),
                exact: true,
                credits_full_s: volume.credits_full_s,
            };
            storage(state, &volume.reading(), facts, fresh_from)
        })
        .collect()
}

fn host_devices(
    state: &mut WatchState,
    options: &WatchOptions,
    looks: &Looks,
    (names, servers): (&StorageNames, &[ServerView]),
    fresh_from: Nanos,
) -> Vec<StorageView> {
    let Some(host) = &looks.host else { return Vec::new() };
    let (specs, limits) = named(options, looks);
    let mut found = Vec::new();
    for device in devices(&host.reading, &limits).into_iter().filter(|device| !names.is_own(&device.name)) {
        let roles = roles(servers, &device.name);
        // A device that nobody has used since the boot, such as an empty drive, is not shown.
        if roles.is_empty() && device.read.ops + device.write.ops == 0 {
            continue;
        }
        let facts = StorageFacts {
            spec: specs.get(&device.name).cloned().unwrap_or_default(),
            mounts: mounts(host, &device.name),
            roles,
            exact: false,
            credits_full_s: None,
        };
        found.push(storage(state, &device.as_volume(host.elapsed), facts, fresh_from));
    }
    found
}

fn storage(
    state: &mut WatchState,
    reading: &VolumeReading,
    facts: StorageFacts,
    fresh_from: Nanos,
) -> StorageView {
    let forecast = state.alarms.credit_forecast(&reading.name);
    let unknown = StorageTrack::default();
    let track = state.storage.get(&reading.name).unwrap_or(&unknown);
    storage_view(reading, facts, (track, track.seen() >= fresh_from), forecast.as_ref())
}

/// Specs and limits of the devices that the user has named, by their names.
pub(super) fn named(
    options: &WatchOptions,
    looks: &Looks,
) -> (BTreeMap<String, String>, BTreeMap<String, VolumeLimits>) {
    let named = looks.servers.iter().flat_map(|server| options.named_devices(server));
    named
        .map(|(device, volume)| {
            ((device.to_owned(), volume.spec.clone()), (device.to_owned(), volume.limits))
        })
        .unzip()
}

/// Where a device is mounted.
fn mounts(host: &HostLook, device: &str) -> Vec<String> {
    let disk = host.reading.disks.iter().find(|disk| disk.statistics.name == device);
    let number = disk.map(|disk| (disk.statistics.major, disk.statistics.minor));
    let here = host.reading.file_systems.iter().filter(|mount| Some((mount.major, mount.minor)) == number);
    here.map(|mount| mount.mount_point.clone()).collect()
}

fn file_system_views(state: &WatchState, host: &HostLook) -> Vec<FileSystemView> {
    let view = |system: &HostFileSystem| {
        let reading = file_system_reading(system)?;
        let forecast = state.alarms.space_forecast(&reading);
        Some(FileSystemView {
            mount: system.mount_point.clone(),
            device: system.device.clone(),
            size_bytes: reading.size_bytes as f64,
            free_bytes: reading.free_bytes as f64,
            full_s: forecast.and_then(|forecast| forecast.full_in_s),
        })
    };
    file_systems(&host.reading).into_iter().filter_map(view).collect()
}

/// Alarms that are not OK, the most severe and the latest first. One that has never known anything is no news.
fn alarms(state: &WatchState, moment: Moment) -> Vec<AlarmView> {
    views(state, state.alarms.all().filter(|alarm| is_shown(state, alarm)).collect(), moment)
}

/// Alarms whose rule is true now, whether or not it has been true for long enough.
pub(super) fn true_alarms(state: &WatchState) -> Vec<AlarmView> {
    let begun = |alarm: Alarm| Alarm { state: AlarmState::Alarm, ..alarm };
    views(state, state.alarms.true_now().map(begun).collect(), state.readings.moment)
}

fn views(state: &WatchState, mut shown: Vec<Alarm>, moment: Moment) -> Vec<AlarmView> {
    shown.sort_by_key(|alarm| {
        (alarm.state != AlarmState::Alarm, std::cmp::Reverse((alarm.severity, alarm.since_unix_s)))
    });
    shown.into_iter().map(|alarm| alarm_view(state, alarm, moment)).collect()
}

fn is_shown(state: &WatchState, alarm: &Alarm) -> bool {
    match alarm.state {
        AlarmState::Alarm => true,
        AlarmState::Ok => false,
        // Each alarm begins so; a transition to it is a loss.
        AlarmState::InsufficientData => {
            let transition = state.transitions.get(&(alarm.rule, alarm.subject.clone()));
            transition.is_some_and(|transition| transition.state == AlarmState::InsufficientData)
        }
    }
}

fn alarm_view(state: &WatchState, alarm: Alarm, moment: Moment) -> AlarmView {
    let transition = state.transitions.get(&(alarm.rule, alarm.subject.clone()));
    let advice = || rule_of_name(alarm.rule).map_or_else(String::new, |rule| rule.advice.to_owned());
    let covering = state.alarms.silences().iter();
    let until = covering
        .filter(|silence| silence.covers(alarm.rule, &alarm.subject, moment.elapsed))
        .map(|silence| silence.until)
        .max();
    AlarmView {
        fix: transition.map_or_else(advice, |transition| transition.fix.clone()),
        silenced_until_s: until.map(|until| ahead(moment, until)),
        rule: alarm.rule.to_owned(),
        state: alarm.state.name().to_owned(),
        severity: severity(alarm.severity).to_owned(),
        since_s: alarm.since_unix_s,
        reason: alarm.reason,
        subject: alarm.subject.name,
    }
}

/// The word of a view for how bad an alarm is: those of the doctor.
const fn severity(severity: AlarmSeverity) -> &'static str {
    match severity {
        AlarmSeverity::Warning => "medium",
        AlarmSeverity::Critical => "critical",
    }
}

/// A later moment, in seconds since 1970.
fn ahead(moment: Moment, until: Nanos) -> i64 {
    let seconds = until.since(moment.elapsed).0 / Nanos::SECOND.0;
    moment.unix_s.saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX))
}

fn not_seen(looks: &Looks) -> Vec<NotSeenView> {
    let mut rows = Vec::new();
    for server in &looks.servers {
        rows.extend(server.reading.missing.iter().map(|missing| NotSeenView {
            subject: server.name.clone(),
            figure: missing.subject.clone(),
            reason: missing.reason.clone(),
            remedy: missing.enable.clone().unwrap_or_default(),
        }));
        rows.extend(server.elsewhere.iter().map(|reason| NotSeenView {
            subject: server.name.clone(),
            figure: "the devices of its files".to_owned(),
            reason: reason.clone(),
            remedy: String::new(),
        }));
    }
    let pages = looks.host.as_ref().map(|host| host.reading.ebs_reads).unwrap_or_default();
    if pages.failed > 0 && pages.failed == pages.asked {
        rows.push(NotSeenView {
            subject: "EBS volumes".to_owned(),
            figure: "time over limits, and latencies by the volume".to_owned(),
            reason: "the statistics page of the NVMe device cannot be read".to_owned(),
            remedy: "run as root, or with CAP_SYS_ADMIN".to_owned(),
        });
    }
    rows.extend(looks.faults.iter().map(|fault| NotSeenView {
        subject: fault.subject.clone(),
        figure: fault.figure.clone(),
        reason: fault.reason.clone(),
        remedy: fault.remedy.clone(),
    }));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_a_volume_is_said_once_of_each_server() {
        let server = |name: &str, files: &[(&str, &str)]| ServerView {
            name: name.to_owned(),
            files: files.iter().map(|(role, storage)| ((*role).to_owned(), (*storage).to_owned())).collect(),
            ..ServerView::default()
        };
        let servers = [
            server("shop", &[("data", "db"), ("redo", "db"), ("tmp", "vda"), ("undo", "db")]),
            server("app", &[("data", "vda")]),
            server("audit", &[("data", "db")]),
        ];
        assert_eq!(roles(&servers, "db"), ["data, redo, undo of shop", "data of audit"]);
        assert!(roles(&servers, "none").is_empty());
    }
}
