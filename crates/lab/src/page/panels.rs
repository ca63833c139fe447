//! The charts over time: load, volumes, server, processors.

use std::collections::BTreeSet;

use ebbtide_catalog::{Catalog, InstanceType, Spec};
use ebbtide_report::Format::{Bytes, Microseconds, Number, Percent};
use ebbtide_report::Line::{Dashed, Limit, Solid};
use ebbtide_report::Width::{Full, Half};
use ebbtide_report::{Block, Plots, Scale, Section};

use super::timeline::Timeline;
use super::{PageContext, text};
use crate::experiment::{Arm, Role};
use crate::record::{ReplicaSecond, Second, ServerSecond, Trial, VolumeSecond};

const MIB: f64 = 1_048_576.0;

/// One section for each thing that was looked at.
pub(super) fn sections(page: &PageContext) -> Vec<Section> {
    let timeline = Timeline::new(page);
    if timeline.is_empty() {
        return Vec::new();
    }
    let lead = timeline.averaged().map(|seconds| format!("Each point is the mean of {seconds} seconds."));
    let roles: BTreeSet<Role> =
        page.run.experiment.arms.iter().flat_map(|arm| arm.volumes.keys().copied()).collect();
    let volumes: Vec<Plots> =
        roles.iter().filter_map(|role| volume(&timeline, page, *role, roles.len() > 1)).collect();
    let parts = [
        (
            "Throughput and response time over time",
            load(&timeline).into_iter().collect::<Vec<_>>(),
            lead.unwrap_or_default(),
        ),
        ("What the volume did", volumes, VOLUME.into()),
        ("What the replicas did", replicas(&timeline).into_iter().collect(), String::new()),
        ("What the server did", server(&timeline).into_iter().collect(), SERVER.into()),
        ("Processors and memory", host(&timeline, page).into_iter().collect(), host_lead(page)),
    ];
    let present = parts.into_iter().filter(|(_, plots, _)| !plots.is_empty());
    present
        .map(|(heading, plots, lead)| {
            Section::new(heading, plots.into_iter().map(Block::Plots).collect()).lead(lead)
        })
        .collect()
}

const VOLUME: &str = "As the block device saw it, all files together. Operations are counted as the volume's limits \
                      count them: large ones several times, neighbours merged.";
const SERVER: &str = "From the server's own status, once a second. Where the checkpoint age comes near its limit, the \
                      server writes pages to make room in the redo log and not because the disk is idle; pages \
                      flushed from the LRU list, and waits for a free page, mean that the buffer pool is too small.";

fn load(timeline: &Timeline) -> Option<Plots> {
    let mut panel = timeline.panel();
    panel.chart(
        ("Throughput", "transactions a second", Scale::Linear, Number, Full),
        &[("", Solid, &|s| Some(s.load.tps))],
    );
    panel.chart_of_trials(
        ("TPC-C", "New-Orders a minute (tpmC)", Scale::Linear, Number, Full),
        &|trial, second| Some(60.0 * second.load.tps * new_order_share(trial)?),
    );
    panel.chart(
        ("Response time, 95th percentile", "log scale", Scale::Log, Microseconds, Full),
        &[("", Solid, &|s| Some(s.load.p95_us))],
    );
    panel.chart(
        ("Response time, median", "log scale", Scale::Log, Microseconds, Half),
        &[("", Solid, &|s| Some(s.load.p50_us))],
    );
    panel.chart(
        ("Response time, 99th percentile", "log scale", Scale::Log, Microseconds, Half),
        &[("", Solid, &|s| Some(s.load.p99_us))],
    );
    panel.chart(
        ("Errors", "a second", Scale::Linear, Number, Half),
        &[("", Solid, &|s| Some(s.load.errors as f64))],
    );
    panel.plots("")
}

/// New-Orders as a share of all finished transactions of a trial; None where its load is another. The seconds of a trial do
/// not count kinds of transactions: the share is drawn, and the same for all of them.
fn new_order_share(trial: &Trial) -> Option<f64> {
    let of =
        trial.load.as_ref()?.tpcc()?.tpcc.by_transaction.iter().find(|of| of.transaction == "new_order")?;
    Some(of.share_pct / 100.0)
}

fn volume(timeline: &Timeline, page: &PageContext, role: Role, several: bool) -> Option<Plots> {
    let catalog = page.run.catalog();
    let limits: Vec<Option<Limits>> =
        page.run.experiment.arms.iter().map(|arm| Limits::of(&catalog, arm, role)).collect();
    let limit = |allowed: fn(&Limits, Option<f64>) -> Option<f64>| {
        let limits = &limits;
        move |group: usize, second: &Second| {
            allowed(limits.get(group)?.as_ref()?, second.volumes.get(&role)?.credits)
        }
    };
    let of = |figure: fn(&VolumeSecond) -> Option<f64>| {
        move |second: &Second| second.volumes.get(&role).and_then(figure)
    };
    let mut panel = timeline.panel();
    panel.chart(
        ("Operations", "IOPS", Scale::Linear, Number, Half),
        &[("", Solid, &of(|v| Some(v.consumed_iops)))],
    );
    panel.limit("Operations", &limit(Limits::iops));
    panel.chart(
        ("Throughput", "MiB/s", Scale::Linear, Number, Half),
        &[("read", Solid, &of(|v| Some(v.read_mib))), ("written", Dashed, &of(|v| Some(v.write_mib)))],
    );
    panel.limit("Throughput", &limit(Limits::mib));
    panel.chart(
        ("Read latency", "mean, log scale", Scale::Log, Microseconds, Half),
        &[("", Solid, &of(|v| Some(v.read_us)))],
    );
    panel.chart(
        ("Write latency", "mean, log scale", Scale::Log, Microseconds, Half),
        &[("", Solid, &of(|v| Some(v.write_us)))],
    );
    panel.chart(
        ("Queue length", "I/Os in flight, mean", Scale::Linear, Number, Half),
        &[("", Solid, &of(|v| Some(v.queue)))],
    );
    panel.chart(
        ("Held back by a limit", "% of the time", Scale::Percent, Percent, Half),
        &[("", Solid, &of(|v| Some(v.limited * 100.0)))],
    );
    panel.chart(
        ("Burst credits", "% left", Scale::Linear, Percent, Half),
        &[("", Solid, &of(|v| v.credits.map(|share| share * 100.0)))],
    );
    panel.chart(
        ("Flushes", "a second", Scale::Linear, Number, Half),
        &[("", Solid, &of(|v| Some(v.flushes)))],
    );
    let heading = if several { format!("Volume of the {}", role.holds()) } else { String::new() };
    panel.plots(&heading)
}

fn replicas(timeline: &Timeline) -> Option<Plots> {
    let of = |figure: fn(&ReplicaSecond) -> Option<f64>| {
        move |second: &Second| second.replica.as_ref().and_then(figure)
    };
    let mut panel = timeline.panel();
    panel.chart(
        ("Replication lag", "age of the newest applied heartbeat, log scale", Scale::Log, Microseconds, Half),
        &[("", Solid, &of(|replica| Some(replica.lag_s * 1e6)))],
    );
    panel.chart(
        ("Transactions not applied", "number", Scale::Linear, Number, Half),
        &[("", Solid, &of(|replica| replica.lag_transactions))],
    );
    panel.chart(
        ("The replica's own estimate", "Seconds_Behind_Source, s", Scale::Linear, Number, Half),
        &[("", Solid, &of(|replica| replica.behind_s))],
    );
    let data = |figure: fn(&VolumeSecond) -> f64| {
        move |second: &Second| second.replica_volumes.first()?.get(&Role::Data).map(figure)
    };
    panel.chart(
        ("Operations of a replica's data volume", "IOPS", Scale::Linear, Number, Half),
        &[("", Solid, &data(|volume| volume.consumed_iops))],
    );
    panel.chart(
        ("Queue of a replica's data volume", "I/Os in flight, mean", Scale::Linear, Number, Half),
        &[("", Solid, &data(|volume| volume.queue))],
    );
    panel.chart(
        ("A replica's data volume held back by a limit", "% of the time", Scale::Percent, Percent, Half),
        &[("", Solid, &data(|volume| volume.limited * 100.0))],
    );
    panel.plots("")
}

fn server(timeline: &Timeline) -> Option<Plots> {
    let of = |figure: fn(&ServerSecond) -> Option<f64>| {
        move |second: &Second| second.server.as_ref().and_then(figure)
    };
    let mut panel = timeline.panel();
    panel.chart(
        ("Checkpoint age", "dotted: where writers must wait", Scale::Linear, Bytes, Half),
        &[
            ("", Solid, &of(|s| s.checkpoint_age)),
            ("most", Limit, &of(|s| s.checkpoint_age_max.filter(|most| *most > 0.0))),
        ],
    );
    panel.chart(
        ("Dirty pages", "% of the buffer pool's pages with data", Scale::Percent, Percent, Half),
        &[("", Solid, &of(dirty_percent))],
    );
    panel.chart(
        ("Buffer pool misses", "page reads a second", Scale::Linear, Number, Half),
        &[("", Solid, &of(|s| s.page_reads))],
    );
    panel.chart(
        ("Pages flushed, by reason", "pages a second", Scale::Linear, Number, Half),
        &[
            ("checkpoint or dirty share", Solid, &of(|s| s.list_flushed)),
            ("LRU list: room for reads", Dashed, &of(|s| s.lru_flushed)),
        ],
    );
    panel.chart(
        ("Pages flushed as the redo log was nearly full", "a second", Scale::Linear, Number, Half),
        &[("", Solid, &of(|s| s.sync_flushed))],
    );
    panel.chart(
        ("Redo written", "MiB/s", Scale::Linear, Number, Half),
        &[("", Solid, &of(|s| s.redo_bytes.map(|bytes| bytes / MIB)))],
    );
    panel.chart(
        ("Syncs", "a second", Scale::Linear, Number, Half),
        &[
            ("redo log, or all files where it is not counted", Solid, &of(|s| s.redo_syncs.or(s.syncs))),
            ("data files", Dashed, &of(|s| s.data_syncs)),
        ],
    );
    panel.chart(
        ("Time of a redo log sync", "mean, log scale", Scale::Log, Microseconds, Half),
        &[("", Solid, &of(|s| s.redo_sync_us))],
    );
    panel.chart(
        ("Doublewrite", "pages a second", Scale::Linear, Number, Half),
        &[("", Solid, &of(|s| s.doublewrite_pages))],
    );
    panel.chart(
        ("Binary log written", "MiB/s", Scale::Linear, Number, Half),
        &[("", Solid, &of(|s| s.binlog_bytes.map(|bytes| bytes / MIB)))],
    );
    waits(&mut panel);
    panel.plots("")
}

/// What the server waited for.
fn waits(panel: &mut super::timeline::Panel) {
    let of = |figure: fn(&ServerSecond) -> Option<f64>| {
        move |second: &Second| second.server.as_ref().and_then(figure)
    };
    panel.chart(
        ("Waits for a free page", "a second", Scale::Linear, Number, Half),
        &[("", Solid, &of(|s| s.wait_free))],
    );
    panel.chart(
        ("Waits for the log buffer", "a second", Scale::Linear, Number, Half),
        &[("", Solid, &of(|s| s.log_waits))],
    );
    panel.chart(
        ("Threads in the redo log's file I/O", "mean number", Scale::Linear, Number, Half),
        &[("", Solid, &of(|s| s.redo_wait))],
    );
    panel.chart(
        ("Threads in other files' I/O", "mean number", Scale::Linear, Number, Half),
        &[("data files", Solid, &of(|s| s.data_wait)), ("binary log", Dashed, &of(|s| s.binlog_wait))],
    );
    panel.chart(
        ("Row lock waits", "a second", Scale::Linear, Number, Half),
        &[("", Solid, &of(|s| s.row_lock_waits))],
    );
    panel.chart(
        ("Undo waiting to be purged", "history list length", Scale::Linear, Number, Half),
        &[("", Solid, &of(|s| s.history_length))],
    );
    panel.chart(
        ("Threads running", "number", Scale::Linear, Number, Half),
        &[("", Solid, &of(|s| s.threads_running))],
    );
}

fn dirty_percent(server: &ServerSecond) -> Option<f64> {
    let data = server.data_pages.filter(|pages| *pages > 0.0)?;
    Some((server.dirty_pages? / data * 100.0).min(100.0))
}

fn host(timeline: &Timeline, page: &PageContext) -> Option<Plots> {
    let mut panel = timeline.panel();
    panel.chart(
        ("Processors", "kept busy", Scale::Linear, Number, Half),
        &[
            ("server", Solid, &|s| Some(s.host.server_cpus)),
            ("all of the machine", Dashed, &|s| Some(s.host.busy_cpus)),
        ],
    );
    panel.chart(
        ("The load's own processors", "kept busy", Scale::Linear, Number, Half),
        &[("", Solid, &|s| Some(s.host.load_cpus))],
    );
    panel.chart(
        ("Stolen by the hypervisor", "processors", Scale::Linear, Number, Half),
        &[("", Solid, &|s| Some(s.host.steal_cpus))],
    );
    panel.at_least(f64::from(page.run.host.cpus));
    panel.chart(
        ("Memory", "of the server and its page cache", Scale::Linear, Bytes, Half),
        &[("", Solid, &|s| Some(s.host.memory_bytes))],
    );
    panel.chart(
        (
            "How late the volumes answered",
            "99th percentile so far, log scale",
            Scale::Log,
            Microseconds,
            Half,
        ),
        &[("", Solid, &|s| Some(s.host.pacing_p99_us))],
    );
    panel.plots("")
}

fn host_lead(page: &PageContext) -> String {
    match page.run.host.cpus {
        0 => String::new(),
        cpus => format!(
            "The machine has {}, which the server, the load and the emulated volumes share.",
            text::count(cpus, "processor")
        ),
    }
}

/// What a volume and its instance allow together.
struct Limits {
    iops: Option<f64>,
    burst_iops: Option<f64>,
    mib: Option<f64>,
    burst_mib: Option<f64>,
    instance_iops: Option<f64>,
    instance_mib: Option<f64>,
}

impl Limits {
    /// None where the catalogue does not know the volume any more.
    fn of(catalog: &Catalog, arm: &Arm, role: Role) -> Option<Self> {
        let spec: Spec = arm.volumes.get(&role)?.parse().ok()?;
        let figures = catalog.resolve(&spec).ok()?.figures;
        let share = f64::from(spec.members()) / f64::from(arm.instance.divided_by.max(1));
        let instance = arm.instance.kind.as_ref().and_then(|kind| catalog.instance(kind).ok());
        let instance = instance.filter(InstanceType::has_limits);
        let of_instance = |limits: fn(&InstanceType) -> (u64, u64)| {
            let (baseline, maximum) = limits(instance.as_ref()?);
            let rate = if arm.instance.burst { maximum } else { baseline };
            Some(rate as f64 / f64::from(arm.instance.divided_by.max(1)))
        };
        Some(Self {
            iops: figures.iops.map(|iops| iops as f64 * share),
            burst_iops: figures.burst_iops.map(|iops| iops as f64 * share),
            mib: figures.throughput_mib_s.map(|mib| mib * share),
            burst_mib: figures.burst_throughput_mib_s.map(|mib| mib * share),
            instance_iops: of_instance(|it| (it.baseline_iops, it.maximum_iops)),
            instance_mib: of_instance(|it| (it.baseline_mbps, it.maximum_mbps))
                .map(|mbps| mbps * 1e6 / 8.0 / MIB),
        })
    }

    /// Operations a second that are allowed in a second with these credits.
    fn iops(&self, credits: Option<f64>) -> Option<f64> {
        least(bursting(credits, self.burst_iops).or(self.iops), self.instance_iops)
    }

    /// MiB/s that are allowed in a second with these credits.
    fn mib(&self, credits: Option<f64>) -> Option<f64> {
        least(bursting(credits, self.burst_mib).or(self.mib), self.instance_mib)
    }
}

/// Credits below this share are gone: an empty bucket refills a little between two I/Os.
const GONE: f64 = 0.000_5;

fn bursting(credits: Option<f64>, burst: Option<f64>) -> Option<f64> {
    burst.filter(|_| credits.is_some_and(|share| share > GONE))
}

fn least(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
