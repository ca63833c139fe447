//! A profile of what was observed of a server: by `ebbtide doctor capture`, or from what other programs printed.

use ebbtide_observe::{Files, Observation, Rates, SharedLogs, TwoSpecs, Variables};
use ebbtide_twin::profile::{MachineTable, PagesTable, PointTable, Profile, WorkloadTable};

use super::settings::server_table;
use super::{Draft, DraftError, rounded};

/// The server reads so many times more pages than its device where the page cache has the rest.
const CACHED: f64 = 1.5;

/// The profile as far as the observation has it.
pub(super) fn draft(seen: &Observation) -> Result<Draft, DraftError> {
    let (Some(facts), Some(variables)) = (&seen.facts, &seen.variables) else {
        return Err(DraftError::NoVariables);
    };
    let place = seen.host.as_ref().and_then(|host| host.place(Files::Data));
    let file_system = seen.file_system.as_ref().map(|of| of.name.as_str());
    let file_system = file_system.or(place.map(|place| place.file_system.as_str()));
    let (server, mut notes) = server_table(facts, variables, file_system);
    if seen.partial_variables {
        notes.push("not all variables are known: the others have the defaults of the flavour".into());
    }
    let host = seen.host.as_ref();
    let whole = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
    let machine = MachineTable {
        vcpus: whole(host.and_then(|host| host.processors)),
        threads_per_core: whole(host.and_then(|host| host.threads_per_core)),
        instance: seen.instance.clone(),
        memory: host.and_then(|host| host.usable_memory_bytes()).map(ebbtide_volume::format_size),
        ..MachineTable::default()
    };
    let volume = volumes(seen, server.log_bin, &mut notes)?;
    let Measured { workload, point } = measured(seen, variables, &mut notes)?;
    let profile = Profile {
        name: name(seen),
        source: source(seen),
        server,
        machine,
        workload,
        points: vec![PointTable {
            volume,
            cpu_pct: host
                .and_then(|host| host.busy_share)
                .map(|share| rounded(share * 100.0))
                .filter(|pct| *pct > 0.0),
            ..point
        }],
    };
    Ok(Draft { profile, observed: None, notes })
}

/// The specs of the volumes, by role where logs have their own; None where that of the data is not known.
///
/// # Errors
/// Both logs lie on one device, and two volumes are named for it.
fn volumes(
    seen: &Observation,
    log_bin: Option<bool>,
    notes: &mut Vec<String>,
) -> Result<Option<String>, TwoSpecs> {
    let shared = seen.shared_logs()?;
    let Some(data) = seen.volume.as_ref() else { return Ok(None) };
    if let Some(SharedLogs { device: Some(device), spec: None }) = shared {
        notes.push(format!(
            "the logs lie on a device of their own ({device}) whose volume is not known: they are taken as on the data's. \
             --set point.volume=data=...,redo+binlog=... names it"
        ));
    }
    let binlog = seen.binlog_volume.as_ref();
    if let Some(spec) = binlog.filter(|_| log_bin == Some(false)) {
        let what = if shared.is_some() { "has the redo log alone" } else { "is left out" };
        notes.push(format!("the server writes no binary log: its volume {spec} {what}"));
    }
    let redo = seen.redo_volume.as_ref();
    let logs = match shared.and_then(|logs| logs.spec) {
        Some(spec) if log_bin == Some(false) => vec![format!("redo={spec}")],
        Some(spec) => vec![format!("redo+binlog={spec}")],
        None => [("redo", redo), ("binlog", binlog.filter(|_| log_bin != Some(false)))]
            .into_iter()
            .filter_map(|(role, spec)| Some(format!("{role}={}", spec?)))
            .collect(),
    };
    Ok(Some(if logs.is_empty() { data.clone() } else { format!("data={data},{}", logs.join(",")) }))
}

fn name(seen: &Observation) -> String {
    let host = seen.variables.as_ref().and_then(|all| all.get("hostname")).unwrap_or_default();
    let facts =
        seen.facts.as_ref().map(|facts| format!("{} {}", facts.flavour, facts.version)).unwrap_or_default();
    format!("{host} {facts}").trim().to_owned()
}

fn source(seen: &Observation) -> String {
    let origin = match &seen.origin {
        ebbtide_observe::Origin::Server { at } => at.clone(),
        ebbtide_observe::Origin::Capture { path } => path.clone(),
        ebbtide_observe::Origin::Trial { arm, .. } => arm.clone(),
    };
    match seen.span {
        Some(span) => format!("{origin}, observed for {:.0} s", span.seconds),
        None => origin,
    }
}

/// What the counters show.
#[derive(Default)]
struct Measured {
    workload: WorkloadTable,
    point: PointTable,
}

fn measured(
    seen: &Observation,
    variables: &Variables,
    notes: &mut Vec<String>,
) -> Result<Measured, DraftError> {
    let observed = WorkloadTable { kind: Some("observed".into()), ..WorkloadTable::default() };
    if seen.span.is_some_and(|span| span.restarted) {
        return Err(DraftError::Restarted);
    }
    let Some(rates) = seen.rates else {
        return Ok(Measured { workload: observed, ..Measured::default() });
    };
    let Some((tps, autocommit)) = rates.transactions().filter(|(tps, _)| *tps > 0.0) else {
        return Ok(Measured { workload: observed, ..Measured::default() });
    };
    if autocommit {
        notes.push(
            "few statements are between BEGIN and COMMIT: a transaction is a statement that writes, or a SELECT where none \
             does"
                .into(),
        );
    }
    notes.push(
        "kinds of transactions cannot be told apart by counters: all are alike; [[workload.types]] spreads latencies".into(),
    );
    cached(seen, &rates, notes);
    let each = |rate: Option<f64>| rate.map(|rate| rounded(rate / tps));
    let (reads, writes) = (each(rates.page_reads), each(rates.page_writes));
    let pool = variables.get("innodb_buffer_pool_size").and_then(|bytes| bytes.parse().ok());
    let pages = pool.zip(reads.zip(writes)).map(|(pool, (reads, writes))| PagesTable {
        pool: ebbtide_volume::format_size(pool),
        reads,
        writes,
    });
    let writing = rates.write_statements.is_none_or(|statements| statements > 0.0);
    // Each is a round trip, and so are BEGIN and COMMIT.
    let ends = if autocommit { 0.0 } else { 2.0 };
    let statements = rates.read_statements.zip(rates.write_statements).map(|(a, b)| (a + b) / tps + ends);
    let workload = WorkloadTable {
        // What the server writes by itself belongs to no transaction that only reads.
        redo_bytes: if writing { each(rates.redo_bytes) } else { Some(0.0) },
        binlog_bytes: each(rates.binlog_bytes),
        statements: statements.map(rounded).filter(|statements| *statements > 0.0),
        data_size: seen
            .tables
            .as_ref()
            .filter(|tables| !tables.bounded)
            .map(|tables| ebbtide_volume::format_size(tables.innodb_bytes())),
        pages: pages.into_iter().collect(),
        ..observed
    };
    let point = PointTable {
        clients: clients(seen, &rates),
        tps: Some(rounded(tps)),
        reads,
        writes,
        ..PointTable::default()
    };
    Ok(Measured { workload, point })
}

/// Connections that were busy: a whole number that the model takes.
fn clients(seen: &Observation, rates: &Rates) -> Option<u32> {
    let clients = seen.clients.or(rates.threads_running)?.clamp(1.0, 10_000.0);
    format!("{clients:.0}").parse().ok()
}

/// Says where the page cache has pages that the server reads.
fn cached(seen: &Observation, rates: &Rates, notes: &mut Vec<String>) {
    let device = seen.host.as_ref().and_then(|host| host.place(Files::Data)?.device.as_ref()?.io);
    if let (Some(io), Some(pages)) = (device, rates.page_reads)
        && pages > CACHED * io.reads + 1.0
    {
        notes.push(format!(
            "the server reads {pages:.0} pages a second and its device {:.0}: the page cache has the rest, which the model knows \
             as far as [[workload.pages]] has larger pools, and where all data fit in it",
            io.reads
        ));
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_observe::{Facts, Host, Origin, Span};

    use super::*;

    fn seen() -> Observation {
        let variables: Variables = [
            ("version", "8.0.36"),
            ("hostname", "db1"),
            ("innodb_buffer_pool_size", "1073741824"),
            ("log_bin", "ON"),
        ]
        .into_iter()
        .collect();
        let rates = Rates {
            commits: Some(200.0),
            write_statements: Some(800.0),
            read_statements: Some(2_000.0),
            page_reads: Some(1_000.0),
            page_writes: Some(500.0),
            redo_bytes: Some(600_000.0),
            binlog_bytes: Some(300_000.0),
            threads_running: Some(12.4),
            ..Rates::default()
        };
        Observation {
            facts: Some(Facts::of(&variables)),
            variables: Some(variables),
            span: Some(Span { began_unix_s: None, seconds: 600.0, restarted: false }),
            rates: Some(rates),
            volume: Some("gp3:size=100GiB".into()),
            host: Some(Host { processors: Some(4), busy_share: Some(0.315), ..Host::default() }),
            ..Observation::of(Origin::Capture { path: "/c".into() })
        }
    }

    #[test]
    fn counters_become_figures_of_a_transaction() {
        let draft = draft(&seen()).unwrap();
        let Profile { workload, points, machine, name, .. } = &draft.profile;
        assert_eq!((workload.redo_bytes, workload.binlog_bytes), (Some(3_000.0), Some(1_500.0)));
        assert_eq!(workload.pages, [PagesTable { pool: "1GiB".into(), reads: 5.0, writes: 2.5 }]);
        assert_eq!(
            (workload.statements, machine.vcpus, name.as_str()),
            (Some(16.0), Some(4), "db1 MySQL 8.0.36")
        );
        assert_eq!(
            (points[0].clients, points[0].tps, points[0].cpu_pct),
            (Some(12), Some(200.0), Some(31.5))
        );
        assert_eq!(points[0].volume.as_deref(), Some("gp3:size=100GiB"));
    }

    #[test]
    fn pages_that_the_page_cache_has_are_said() {
        let mut with = seen();
        let io = ebbtide_observe::DeviceIo { reads: 100.0, ..ebbtide_observe::DeviceIo::default() };
        let device = ebbtide_observe::Device { io: Some(io), ..ebbtide_observe::Device::default() };
        let place = ebbtide_observe::ServerDirectory {
            files: Files::Data,
            directory: String::new(),
            mount_point: String::new(),
            file_system: "xfs".into(),
            options: Vec::new(),
            size_bytes: None,
            free_bytes: None,
            device: Some(device),
        };
        with.host.as_mut().unwrap().places.push(place);
        let notes = draft(&with).unwrap().notes;
        assert!(
            notes.iter().any(|one| one.contains("reads 1000 pages a second and its device 100")),
            "{notes:?}"
        );
    }

    /// A server whose logs are on these devices, and not on that of the data (`a`).
    fn apart(redo: &str, binlog: &str, specs: [Option<&str>; 2]) -> Observation {
        let mut with = seen();
        let of = [(Files::Data, "a"), (Files::Redo, redo), (Files::Binlog, binlog)];
        let place = |(files, name): (Files, &str)| ebbtide_observe::ServerDirectory {
            files,
            directory: String::new(),
            mount_point: String::new(),
            file_system: "xfs".into(),
            options: Vec::new(),
            size_bytes: None,
            free_bytes: None,
            device: Some(ebbtide_observe::Device { name: name.into(), ..Default::default() }),
        };
        with.host.as_mut().unwrap().places = of.map(place).into();
        [with.redo_volume, with.binlog_volume] = specs.map(|spec| spec.map(str::to_owned));
        with
    }

    #[test]
    fn logs_on_one_device_have_one_volume() {
        let volume = |seen: &Observation| draft(seen).unwrap().profile.points[0].volume.clone().unwrap();
        let spec = "io2:size=20GiB,iops=3000";
        for specs in [[Some(spec); 2], [Some(spec), None], [None, Some(spec)]] {
            let shared = volume(&apart("b", "b", specs));
            assert_eq!(shared, format!("data=gp3:size=100GiB,redo+binlog={spec}"));
            assert!(crate::volumes::parse(&shared).is_ok());
        }
        let named = Observation { host: None, logs_share_volume: true, ..apart("b", "b", [Some(spec); 2]) };
        assert_eq!(volume(&named), format!("data=gp3:size=100GiB,redo+binlog={spec}"));
        let two = volume(&apart("b", "c", [Some(spec); 2]));
        assert_eq!(two, format!("data=gp3:size=100GiB,redo={spec},binlog={spec}"));
        let error = draft(&apart("b", "b", [Some(spec), Some("nvme")])).unwrap_err().to_string();
        assert!(error.contains("one device (b)") && error.contains("binlog=nvme"), "{error}");
        let unnamed = draft(&apart("b", "b", [None; 2])).unwrap();
        assert!(unnamed.notes.iter().any(|note| note.contains("redo+binlog")), "{:?}", unnamed.notes);
    }

    #[test]
    fn the_volume_of_a_binary_log_that_is_not_written_is_left_out_and_said() {
        let mut off = apart("b", "b", [Some("nvme"), Some("nvme")]);
        let variables = off.variables.take().unwrap();
        let off_word = |(name, value)| (name, if name == "log_bin" { "OFF" } else { value });
        off.variables = Some(variables.iter().map(off_word).collect());
        let draft = draft(&off).unwrap();
        assert_eq!(draft.profile.points[0].volume.as_deref(), Some("data=gp3:size=100GiB,redo=nvme"));
        let note = "the server writes no binary log: its volume nvme has the redo log alone";
        assert!(draft.notes.iter().any(|one| one == note), "{:?}", draft.notes);
        off = Observation { redo_volume: None, host: None, ..off };
        let draft = super::draft(&off).unwrap();
        assert_eq!(draft.profile.points[0].volume.as_deref(), Some("gp3:size=100GiB"));
        assert!(draft.notes.iter().any(|one| one.ends_with("volume nvme is left out")), "{:?}", draft.notes);
    }

    #[test]
    fn a_server_that_was_started_again_is_refused_and_one_that_only_reads_writes_no_redo() {
        let mut again = seen();
        again.span.as_mut().unwrap().restarted = true;
        assert!(draft(&again).unwrap_err().to_string().contains("started again"));
        let mut reading = seen();
        let rates = Rates { write_statements: Some(0.0), commits: Some(0.0), ..seen().rates.unwrap() };
        reading.rates = Some(rates);
        let draft = draft(&reading).unwrap();
        assert_eq!(
            (draft.profile.workload.redo_bytes, draft.profile.points[0].tps),
            (Some(0.0), Some(2_000.0))
        );
    }
}
