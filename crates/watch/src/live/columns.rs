//! What the history keeps of a view, column by column: how a figure is written, and how a replay reads it.
//!
//! Devices, file systems and the machine are recorded by [`HostSampler`](crate::host::HostSampler), whose columns of a device have the
//! names of those of storage here.

use std::sync::{Arc, LazyLock};

use ebbtide_history::{Aggregate, Layout, Number, Replayed, SERVER, SPAN, Sample, SeriesKey, Value};

use crate::view::{CreditsView, RedoView, ServerView, StorageView};

/// The subject of the series of a volume of Ebbtide's own, as `watch` sees it. Its label `storage` has the name. What `serve` records
/// of the same volumes is of another subject, with other columns.
pub(super) const STORAGE: &str = "storage";

/// How a figure is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// A rate a second, as the whole number that it stands for in the time of the sample.
    Growth,
    /// A time spent, as a share of the time; as nanoseconds.
    Time,
    /// A whole number of the moment.
    Whole,
    /// Another number of the moment.
    Real,
}

/// A figure of a view `T`.
struct Column<T> {
    name: &'static str,
    keep: Keep,
    get: fn(&T) -> Option<f64>,
    set: fn(&mut T, f64),
}

macro_rules! column {
    ($keep:ident $name:literal, $field:ident) => {
        Column {
            name: $name,
            keep: Keep::$keep,
            get: |view| view.$field,
            set: |view, value| view.$field = Some(value),
        }
    };
}

const SERVER_COLUMNS: [Column<ServerView>; 22] = [
    column!(Growth "statements", statements),
    column!(Growth "write_statements", write_statements),
    column!(Growth "commits", commits),
    column!(Growth "page_reads", page_reads),
    column!(Growth "page_writes", page_writes),
    column!(Growth "log_waits", log_waits),
    column!(Growth "free_waits", free_waits),
    column!(Growth "row_lock_waits", row_lock_waits),
    Column {
        name: "redo_written",
        keep: Keep::Growth,
        get: |view| view.redo?.written,
        set: |view, value| redo(view).written = Some(value),
    },
    column!(Whole "uptime", uptime_s),
    column!(Whole "threads_running", threads_running),
    Column {
        name: "connections",
        keep: Keep::Whole,
        get: |view| Some(view.connections?.0),
        set: |view, value| view.connections.get_or_insert_default().0 = value,
    },
    Column {
        name: "most_connections",
        keep: Keep::Whole,
        get: |view| Some(view.connections?.1),
        set: |view, value| view.connections.get_or_insert_default().1 = value,
    },
    column!(Real "pool_hits", pool_hits),
    column!(Real "dirty", dirty),
    column!(Real "log_time", log_time),
    column!(Real "main_thread", main_thread),
    column!(Whole "history", history),
    Column {
        name: "redo_used",
        keep: Keep::Whole,
        get: |view| view.redo?.used_bytes,
        set: |view, value| redo(view).used_bytes = Some(value),
    },
    Column {
        name: "redo_capacity",
        keep: Keep::Whole,
        get: |view| Some(view.redo?.capacity_bytes),
        set: |view, value| redo(view).capacity_bytes = value,
    },
    Column {
        name: "redo_sync_flush",
        keep: Keep::Real,
        get: |view| view.redo?.sync_flush_s,
        set: |view, value| redo(view).sync_flush_s = Some(value),
    },
    // The channel that is furthest behind. Which one it is, is not kept.
    Column {
        name: "lag",
        keep: Keep::Real,
        get: |view| view.replicas.iter().filter_map(|replica| replica.lag_s).reduce(f64::max),
        set: |_, _| {},
    },
];

const STORAGE_COLUMNS: [Column<StorageView>; 12] = [
    column!(Growth "reads", reads),
    column!(Growth "writes", writes),
    column!(Growth "read_bytes", read_bytes),
    column!(Growth "written_bytes", written_bytes),
    // Times of all operations together; a replay divides them by the operations, which stand before them.
    Column {
        name: "read_time",
        keep: Keep::Time,
        get: |view| Some(view.reads? * view.read_s.unwrap_or(0.0)),
        set: |view, value| view.read_s = view.reads.filter(|reads| *reads > 0.0).map(|reads| value / reads),
    },
    Column {
        name: "write_time",
        keep: Keep::Time,
        get: |view| Some(view.writes? * view.write_s.unwrap_or(0.0)),
        set: |view, value| {
            view.write_s = view.writes.filter(|writes| *writes > 0.0).map(|writes| value / writes);
        },
    },
    Column {
        name: "queue_time",
        keep: Keep::Time,
        get: |view| view.queue,
        set: |view, value| view.queue = Some(value),
    },
    Column {
        name: "throttled",
        keep: Keep::Time,
        get: |view| view.throttled,
        set: |view, value| view.throttled = Some(value),
    },
    Column {
        name: "credit_share",
        keep: Keep::Real,
        get: |view| Some(view.credits?.share),
        set: |view, value| credits(view).share = value,
    },
    Column {
        name: "credits_end",
        keep: Keep::Real,
        get: |view| view.credits?.end_s,
        set: |view, value| credits(view).end_s = Some(value),
    },
    column!(Whole "iops_limit", iops_limit),
    column!(Whole "bytes_limit", bytes_limit),
];

fn redo(view: &mut ServerView) -> &mut RedoView {
    view.redo.get_or_insert_default()
}

fn credits(view: &mut StorageView) -> &mut CreditsView {
    view.credits.get_or_insert_default()
}

fn layout<T>(columns: &[Column<T>]) -> Arc<Layout> {
    let kept = columns.iter().map(|column| match column.keep {
        Keep::Growth | Keep::Time => (column.name, Aggregate::Sum, Number::Whole),
        Keep::Whole => (column.name, Aggregate::Latest, Number::Whole),
        Keep::Real => (column.name, Aggregate::Latest, Number::Real),
    });
    Arc::new(Layout::new([(SPAN, Aggregate::Sum, Number::Whole)].into_iter().chain(kept)))
}

static SERVER_LAYOUT: LazyLock<Arc<Layout>> = LazyLock::new(|| layout(&SERVER_COLUMNS));
static STORAGE_LAYOUT: LazyLock<Arc<Layout>> = LazyLock::new(|| layout(&STORAGE_COLUMNS));

/// The series of a server.
pub(super) fn server_key(name: &str) -> SeriesKey {
    SeriesKey::new(SERVER, [("server", name.to_owned())])
}

/// The series of a volume of Ebbtide's own.
pub(super) fn storage_key(name: &str) -> SeriesKey {
    SeriesKey::new(STORAGE, [("storage", name.to_owned())])
}

/// What is recorded of a server that was looked at `seconds` after the look before.
pub(super) fn server_sample(view: &ServerView, seconds: f64) -> Sample {
    Sample {
        key: server_key(&view.name),
        kind: view.version.clone(),
        layout: Arc::clone(&SERVER_LAYOUT),
        values: values(&SERVER_COLUMNS, view, seconds),
    }
}

/// What is recorded of a volume of Ebbtide's own.
pub(super) fn storage_sample(view: &StorageView, seconds: f64) -> Sample {
    Sample {
        key: storage_key(&view.name),
        kind: view.spec.clone(),
        layout: Arc::clone(&STORAGE_LAYOUT),
        values: values(&STORAGE_COLUMNS, view, seconds),
    }
}

fn values<T>(columns: &[Column<T>], view: &T, seconds: f64) -> Vec<Option<Value>> {
    let kept = columns.iter().map(|column| {
        let figure = (column.get)(view).filter(|figure| figure.is_finite())?;
        Some(match column.keep {
            Keep::Growth => Value::Whole(whole(figure * seconds)),
            Keep::Time => Value::Whole(whole(figure * seconds * 1e9)),
            Keep::Whole => Value::Whole(whole(figure)),
            Keep::Real => Value::Real(figure),
        })
    });
    [Some(Value::Whole(whole(seconds * 1e9)))].into_iter().chain(kept).collect()
}

/// The nearest whole number that is not below 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
fn whole(figure: f64) -> u64 {
    figure.round() as u64
}

/// A server as a point of the history has it.
pub(super) fn server_of(point: &Replayed) -> Option<ServerView> {
    let name = point.key.label("server")?.to_owned();
    let mut view =
        ServerView { address: name.clone(), name, version: point.kind.clone(), ..ServerView::default() };
    read(&SERVER_COLUMNS, point, &mut view);
    Some(view)
}

/// A volume of Ebbtide's own, or a device, as a point of the history has it.
pub(super) fn storage_of(point: &Replayed) -> Option<StorageView> {
    let own = point.key.label("storage");
    let name = own.or_else(|| point.key.label("device"))?.to_owned();
    let mut view =
        StorageView { name, spec: point.kind.clone(), exact: own.is_some(), ..StorageView::default() };
    read(&STORAGE_COLUMNS, point, &mut view);
    Some(view)
}

fn read<T>(columns: &[Column<T>], point: &Replayed, view: &mut T) {
    let seconds = sum(point, SPAN).map(|span| span / 1e9).filter(|seconds| *seconds > 0.0);
    for column in columns {
        let figure = match column.keep {
            Keep::Growth => sum(point, column.name).zip(seconds).map(|(grown, seconds)| grown / seconds),
            Keep::Time => sum(point, column.name).zip(seconds).map(|(grown, seconds)| grown / 1e9 / seconds),
            Keep::Whole | Keep::Real => gauge(point, column.name),
        };
        if let Some(figure) = figure {
            (column.set)(view, figure);
        }
    }
}

fn value(point: &Replayed, name: &str, aggregate: Aggregate) -> Option<f64> {
    // The place is not known: it is looked for.
    point.layout.value(&point.values, usize::MAX, (name, aggregate)).map(Value::as_f64)
}

fn sum(point: &Replayed, name: &str) -> Option<f64> {
    value(point, name, Aggregate::Sum)
}

/// A value of the moment in seconds, and its mean in longer intervals.
pub(super) fn gauge(point: &Replayed, name: &str) -> Option<f64> {
    value(point, name, Aggregate::Latest).or_else(|| {
        let count = value(point, name, Aggregate::Count).filter(|count| *count > 0.0)?;
        Some(sum(point, name)? / count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(sample: Sample) -> Replayed {
        Replayed { key: sample.key, kind: sample.kind, layout: sample.layout, values: sample.values }
    }

    #[test]
    fn a_server_is_read_as_it_was_written() {
        let view = ServerView {
            name: "shop".to_owned(),
            address: "shop".to_owned(),
            version: "MariaDB 11.8.9".to_owned(),
            uptime_s: Some(77.0),
            statements: Some(812.0),
            connections: Some((3.0, 151.0)),
            pool_hits: Some(0.998),
            redo: Some(RedoView {
                capacity_bytes: 1e8,
                used_bytes: Some(5e7),
                written: Some(1e6),
                sync_flush_s: Some(33.5),
            }),
            ..ServerView::default()
        };
        assert_eq!(server_of(&point(server_sample(&view, 2.0))), Some(view));
    }

    #[test]
    fn a_volume_is_read_as_it_was_written_and_what_is_not_known_stays_so() {
        let view = StorageView {
            name: "db".to_owned(),
            spec: "gp2:size=100GiB".to_owned(),
            exact: true,
            reads: Some(100.0),
            writes: Some(0.0),
            read_s: Some(0.002),
            credits: Some(CreditsView { share: 0.25, end_s: Some(900.0), full_s: None }),
            ..StorageView::default()
        };
        let read = storage_of(&point(storage_sample(&view, 1.0))).unwrap();
        assert_eq!(read, view);
    }
}
