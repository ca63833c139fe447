//! Seconds as columns. A field that is added to one of these structures does not compile until it has a
//! column here, and does not pass a test until the schema has it too. The metrics of a server need neither: both are made
//! of their table.

use rusqlite::Row;
use rusqlite::types::{ToSqlOutput, Value};

use crate::record::{HostSecond, LimitShares, LoadSecond, ReplicaSecond, ServerSecond, VolumeSecond};

/// A structure each of whose fields is a column.
pub(super) trait Columns: Sized {
    /// Names of the columns, which are those of the fields.
    const NAMES: &'static [&'static str];

    /// One value for each name.
    fn values(&self) -> Vec<Value>;

    /// From the columns that begin at `first`.
    fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Self>;
}

/// A field as SQLite stores it.
fn value(field: &impl rusqlite::ToSql) -> Value {
    match field.to_sql() {
        Ok(ToSqlOutput::Owned(value)) => value,
        Ok(ToSqlOutput::Borrowed(value)) => value.into(),
        // Counts over 2^63 do not happen; NULL in a column that takes none makes the insert fail.
        _ => Value::Null,
    }
}

macro_rules! columns {
    ($structure:ident { $($field:ident),+ $(,)? }) => {
        impl Columns for $structure {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];

            fn values(&self) -> Vec<Value> {
                vec![$(value(&self.$field)),+]
            }

            fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
                let mut at = first..;
                let mut next = || at.next().expect("places do not end");
                Ok(Self { $($field: row.get(next())?),+ })
            }
        }
    };
}

columns!(LoadSecond { tps, qps, p50_us, p95_us, p99_us, p99_9_us, max_us, errors });
columns!(HostSecond {
    server_cpus,
    load_cpus,
    busy_cpus,
    steal_cpus,
    memory_bytes,
    pacing_p99_us,
    sampler_cpus,
});

/// The columns are the metrics of the table in `ebbtide-observe`.
impl Columns for ServerSecond {
    const NAMES: &'static [&'static str] = Self::NAMES;

    fn values(&self) -> Vec<Value> {
        self.to_values().iter().map(value).collect()
    }

    fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        let places = first..first + Self::NAMES.len();
        let values: Vec<Option<f64>> = places.map(|place| row.get(place)).collect::<rusqlite::Result<_>>()?;
        Ok(Self::from_fn(|place, _| values[place]))
    }
}

columns!(ReplicaSecond { lag_s, lag_transactions, behind_s });

columns!(LimitShares { volume_iops, volume_throughput, instance_iops, instance_throughput });

/// The columns of a volume but for those of its limits, which follow them.
const VOLUME: &[&str] = &[
    "read_iops",
    "write_iops",
    "consumed_iops",
    "read_mib",
    "write_mib",
    "read_us",
    "write_us",
    "queue",
    "flushes",
    "credits",
    "limited",
];

impl Columns for VolumeSecond {
    const NAMES: &'static [&'static str] = VOLUME;

    fn values(&self) -> Vec<Value> {
        let Self {
            read_iops,
            write_iops,
            consumed_iops,
            read_mib,
            write_mib,
            read_us,
            write_us,
            queue,
            flushes,
            credits,
            limited,
            limits: _,
        } = self;
        let first =
            [read_iops, write_iops, consumed_iops, read_mib, write_mib, read_us, write_us, queue, flushes];
        let mut values: Vec<Value> = first.iter().map(|field| value(*field)).collect();
        values.extend([value(credits), value(limited)]);
        values
    }

    fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        let at = |place: usize| row.get(first + place);
        Ok(Self {
            read_iops: at(0)?,
            write_iops: at(1)?,
            consumed_iops: at(2)?,
            read_mib: at(3)?,
            write_mib: at(4)?,
            read_us: at(5)?,
            write_us: at(6)?,
            queue: at(7)?,
            flushes: at(8)?,
            credits: row.get(first + 9)?,
            limited: at(10)?,
            limits: LimitShares::read(row, first + VOLUME.len())?,
        })
    }
}
