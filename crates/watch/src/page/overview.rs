//! The first page: graphs of a server, and everything that is watched in tables.

use super::alarms;
use super::figures::{bytes, share, span};
use super::layout::{Sheet, no_alarm, not_seen};
use super::markup::{Cell, Table};
use super::{links, server, storage};
use crate::view::{FileSystemView, Subject, View};

/// The page.
pub(super) fn sheet(view: &View) -> Sheet {
    let mut sheet = Sheet::new("Overview", "/".to_owned());
    sheet.graphs(&subjects(view));
    let servers = Table {
        caption: "Servers",
        columns: server::COLUMNS,
        rows: view.servers.iter().map(server::row).collect(),
    };
    sheet.table("servers", &servers, "No server is watched.");
    sheet.table("storage", &storage::table(view, |_| true), "No volume is watched.");
    let file_systems = Table {
        caption: "File systems",
        columns: &["Mounted at", "Device", "Size", "Free", "Free share", "Full in"],
        rows: view.file_systems.iter().map(|file_system| file_system_row(view, file_system)).collect(),
    };
    sheet.table("file-systems", &file_systems, "No file system is watched.");
    sheet.table("alarms", &alarms::table(view, |_| true), no_alarm(view));
    if !view.not_seen.is_empty() {
        sheet.table("not-seen", &not_seen(view, |_| true), "");
    }
    sheet
}

/// What has graphs: the servers, then the volumes.
fn subjects(view: &View) -> Vec<Subject> {
    let servers = view.servers.iter().map(|server| Subject::Server(server.name.clone()));
    servers.chain(view.storage.iter().map(|storage| Subject::Storage(storage.name.clone()))).collect()
}

fn file_system_row(view: &View, file_system: &FileSystemView) -> Vec<Cell> {
    let FileSystemView { mount, device, size_bytes, free_bytes, full_s } = file_system;
    let free_share = (*size_bytes > 0.0).then(|| free_bytes / size_bytes);
    let device_subject = Subject::Storage(device.clone());
    let device_cell = if links::has(view, &device_subject) {
        Cell::link(device, links::path(&device_subject))
    } else {
        Cell::from(device.clone())
    };
    let full = full_s.map_or_else(|| "it does not grow".to_owned(), |seconds| span(Some(seconds)));
    vec![
        Cell::from(mount.clone()),
        device_cell,
        Cell::from(bytes(Some(*size_bytes))),
        Cell::from(bytes(Some(*free_bytes))),
        Cell::from(share(free_share)),
        Cell::from(full),
    ]
}
