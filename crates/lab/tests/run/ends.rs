//! Runs that do not come to their end by themselves, and what they leave.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ebbtide_lab::record::Outcome;
use ebbtide_lab::results::ResultsDatabase;
use ebbtide_lab::run::{self, Event, Phase, RunError};
use ebbtide_load::Cancel;

use crate::support::{Bench, TWO_ARMS, left_of, mounts, needs, servers_of};

#[test]
fn a_run_that_is_cancelled_ends_soon_keeps_what_it_has_and_goes_on_later() {
    needs!();
    let bench = Bench::new();
    let cancel = Cancel::default();
    let measured_s = Mutex::new(0);
    // The first trial is let through, the second one is cancelled in its measurement.
    let mut on_event = |event: Event| {
        if let Event::Tick { trial, tick } = event
            && trial.number == 2
            && tick.phase == Phase::Measuring
        {
            *measured_s.lock().unwrap() += 1;
            cancel.cancel();
        }
    };
    let ended = bench.run(TWO_ARMS, false, &cancel, &mut on_event).unwrap_err();
    assert!(matches!(ended, RunError::Cancelled { done: 1, of: 2 }), "{ended}");
    let measured_s = *measured_s.lock().unwrap();
    assert!(measured_s <= 3, "{measured_s} s of 10 s were measured");
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
    let kept = ResultsDatabase::open(&bench.out()).unwrap().run().unwrap();
    assert_eq!(kept.trials.len(), 1);

    let started = Mutex::new(Vec::new());
    let mut on_event = |event: Event| match event {
        Event::TrialStarted(trial) => started.lock().unwrap().push(trial.number),
        Event::Preparing { what, .. } => assert!(!what.contains("making the data"), "{what}"),
        Event::Planned { already, of, .. } => assert_eq!((already, of), (1, 2)),
        _ => {}
    };
    let run = bench.run(TWO_ARMS, true, &Cancel::default(), &mut on_event).unwrap();
    assert_eq!(*started.lock().unwrap(), [2], "the first one is not run again");
    assert_eq!(run.trials.len(), 2);
    assert_eq!(run.trials[0].started_ns, kept.trials[0].started_ns);
}

#[test]
fn a_cancelled_preparation_leaves_nothing_and_begins_anew() {
    needs!();
    let bench = Bench::apart();
    let text = TWO_ARMS.replace("rows = 10_000", "rows = 300_000");
    for phase in ["data directory", "rows"] {
        let cancel = Cancel::default();
        let mut on_event = |event: Event| match event {
            Event::Preparing { what, .. } if what.contains(phase) => cancel.cancel(),
            Event::TrialStarted(trial) => panic!("{trial:?}"),
            _ => {}
        };
        let ended = bench.run(&text, phase == "rows", &cancel, &mut on_event).unwrap_err();
        assert!(matches!(ended, RunError::Cancelled { done: 0, of: 2 }), "{phase}: {ended:?}");
        assert_eq!(left_of(&bench.home()), Vec::<String>::new(), "{phase}");
        assert_eq!(run::list_prepared(&bench.home()).unwrap(), [], "{phase}");
    }
}

#[test]
fn a_run_ends_soon_at_whatever_step_it_is_cancelled() {
    needs!();
    let bench = Bench::apart();
    // A volume that carries little: what its server has asked for would take it long.
    let text = TWO_ARMS
        .replace("data = \"gp3:size=2GiB\"", "data = \"gp2:size=16GiB,credits=0%\"")
        .replace("memory = \"512MiB\"", "memory = \"512MiB\"\ndivided_by = 8")
        .replace("connections = 4", "connections = 64")
        .replace("lead_in = \"1s\"", "lead_in = \"0s\"")
        .replace("settle = \"1s\"", "settle = \"3s\"");
    let steps = [
        "trying",
        "pacing on an idle machine",
        "mounting",
        "making a data directory",
        "starting",
        "rows",
        "writing them back",
        "purging",
        "unmounting",
        "Cloning",
        "Starting",
        "Reading",
        "Settling",
        "Measuring",
        "Clearing",
    ];
    // So that the host is measured.
    let _ = std::fs::remove_file(bench.home().join("lab/calibration.json"));
    let mut late = Vec::new();
    for step in steps {
        let cancel = Cancel::default();
        let asked = Mutex::new(None);
        let mut on_event = |event: Event| {
            let now = match event {
                Event::Preparing { what, .. } => what,
                Event::Phase { phase, .. } => format!("{phase:?}"),
                _ => return,
            };
            if now.contains(step) {
                asked.lock().unwrap().get_or_insert_with(Instant::now);
                cancel.cancel();
            }
        };
        let ended = bench.run(&text, bench.out().exists(), &cancel, &mut on_event).unwrap_err();
        let took = asked.into_inner().unwrap().expect(step).elapsed();
        assert!(matches!(ended, RunError::Cancelled { of: 2, .. }), "{step}: {ended:?}");
        assert_eq!(left_of(&bench.home()), Vec::<String>::new(), "{step}");
        println!("{step}: {took:?}");
        // In order, it takes minutes.
        if took > Duration::from_secs(20) {
            late.push((step, took));
        }
    }
    assert_eq!(late, []);
}

#[test]
fn a_server_that_dies_fails_its_trial_with_its_log_and_the_rest_is_measured() {
    needs!();
    let bench = Bench::new();
    let home = bench.home();
    let victim = Mutex::new(None);
    let mut on_event = |event: Event| {
        if let Event::Tick { trial, tick } = event
            && tick.phase == Phase::Measuring
            && victim.lock().unwrap().is_none()
        {
            for pid in servers_of(&home) {
                assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
            }
            *victim.lock().unwrap() = Some(trial.arm);
        }
    };
    let run = bench.run(TWO_ARMS, false, &Cancel::default(), &mut on_event).unwrap();
    let victim = victim.into_inner().unwrap().unwrap();
    assert_eq!(run.trials.len(), 2);
    for trial in &run.trials {
        match &trial.outcome {
            Outcome::Failed { why, log } if trial.arm == victim => {
                assert!(why.contains("the server died"), "{why}");
                assert!(!log.is_empty(), "{log:?}");
            }
            Outcome::Failed { why, log } => panic!("{}: {why} {log:?}", trial.arm),
            _ => assert_ne!(trial.arm, victim),
        }
    }
    assert_eq!(left_of(&home), Vec::<String>::new());
    // Failed ones are tried again.
    let again = Arc::new(Mutex::new(Vec::new()));
    let mut on_event = |event: Event| {
        if let Event::TrialStarted(trial) = event {
            again.lock().unwrap().push(trial.arm);
        }
    };
    let run = bench.run(TWO_ARMS, true, &Cancel::default(), &mut on_event).unwrap();
    assert!(again.lock().unwrap().contains(&victim));
    assert_eq!(run.trials.len(), 2);
    assert!(run.trials.iter().all(|trial| !matches!(trial.outcome, Outcome::Failed { .. })));
}

/// A process that runs an experiment until it is killed: a test again, as the victim.
mod victim {
    use std::process::{Child, Command, Stdio};

    use ebbtide_lab::run::{self, Event};
    use ebbtide_load::Cancel;

    use crate::support::{Bench, TWO_ARMS, options, parse, plan};

    const VICTIM: &str = "EBBTIDE_TEST_RUN_VICTIM";

    /// Whether this process is one; then it has run by now.
    pub(crate) fn is_one() -> bool {
        let Some(paths) = std::env::var_os(VICTIM) else { return false };
        let paths: Vec<_> = std::env::split_paths(&paths).collect();
        let mut on_event = |event: Event| match event {
            Event::Tick { tick, .. } => println!("{:?}", tick.phase),
            Event::Phase { phase, .. } => println!("{phase:?}"),
            Event::Preparing { what, .. } => println!("{what}"),
            _ => {}
        };
        let plan = plan(parse(TWO_ARMS)).unwrap();
        run::run(plan, options(&paths[0], &paths[1], false), &Cancel::default(), &mut on_event).unwrap();
        true
    }

    pub(crate) fn spawn(bench: &Bench, test: &str) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(VICTIM, std::env::join_paths([bench.home(), bench.out()]).unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

fn is_running(pid: &str) -> bool {
    // A process that has ended and waits for its parent has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| !command.is_empty())
}

#[test]
fn a_run_that_is_killed_at_any_step_is_cleared() {
    needs!();
    if victim::is_one() {
        return;
    }
    let bench = Bench::apart();
    let steps = [
        "mounting",
        "making a data directory",
        "starting",
        "rows",
        "purging",
        "unmounting",
        "Cloning",
        "Starting",
        "Reading",
        "Clearing",
    ];
    for step in steps {
        let mut victim = victim::spawn(&bench, "ends::a_run_that_is_killed_at_any_step_is_cleared");
        let lines = std::io::BufRead::lines(std::io::BufReader::new(victim.stdout.take().unwrap()));
        lines.map(Result::unwrap).find(|line| line.contains(step)).unwrap();
        let servers = servers_of(&bench.home());
        victim.kill().unwrap();
        let began = Instant::now();
        let kept = run::list_prepared(&bench.home()).unwrap();
        // Not before: where it waits for a volume of its own, it ends no sooner than it is cleared.
        victim.wait().unwrap();
        assert!(!servers.iter().any(|pid| is_running(pid)), "{step}: {servers:?}");
        println!("{step}: cleared in {:?}, {} snapshots", began.elapsed(), kept.len());
        assert_eq!(left_of(&bench.home()), Vec::<String>::new(), "{step}");
        assert!(kept.iter().all(|kept| kept.damage.is_none()), "{step}: {kept:?}");
        let _ = std::fs::remove_dir_all(bench.out());
    }
}

#[test]
fn what_a_killed_run_leaves_is_cleared_by_the_next_one() {
    needs!();
    if victim::is_one() {
        return;
    }
    let bench = Bench::new();
    let mut victim = victim::spawn(&bench, "ends::what_a_killed_run_leaves_is_cleared_by_the_next_one");
    let lines = std::io::BufRead::lines(std::io::BufReader::new(victim.stdout.take().unwrap()));
    lines.map(Result::unwrap).find(|line| line.contains("Measuring")).unwrap();
    let servers = servers_of(&bench.home());
    assert_eq!(servers.len(), 1);
    victim.kill().unwrap();
    let left = left_of(&bench.home());
    assert!(left.len() > 1, "the kill came in the middle of a trial: {left:?}");
    let cleared = Mutex::new(Vec::new());
    let mut on_event = |event: Event| {
        if let Event::Cleared { what } = event {
            cleared.lock().unwrap().push(what);
        }
    };
    let run = bench.run(TWO_ARMS, true, &Cancel::default(), &mut on_event).unwrap();
    victim.wait().unwrap();
    assert!(!servers.iter().any(|pid| is_running(pid)), "{servers:?}");
    let cleared = cleared.into_inner().unwrap();
    for kind in ["mount", "loop device", "FUSE", "volume trial-"] {
        assert!(cleared.iter().any(|what| what.contains(kind)), "no {kind} in {cleared:?}");
    }
    assert_eq!(run.trials.len(), 2);
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

/// A home on a file system of its own, in memory.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(bench: &Bench, mib: u32) -> Self {
        let dir = bench.home();
        let size = format!("size={mib}m");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(&dir).status();
        assert!(mount.unwrap().success());
        std::fs::create_dir(dir.join("lab")).unwrap();
        Self(dir)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_cannot_take_the_data_is_refused_before_anything_runs() {
    needs!();
    let bench = Bench::apart();
    let _disk = SmallDisk::mount(&bench, 200);
    let refused = bench.run(TWO_ARMS, false, &Cancel::default(), &mut |_| ()).unwrap_err();
    let RunError::NoSpace { needed, free, .. } = &refused else { panic!("{refused}") };
    assert!(needed > free && *free <= 200 << 20, "{refused}");
    assert!(!bench.out().exists(), "nothing has begun");
}

#[test]
fn a_host_disk_that_runs_full_is_named_and_the_rest_goes_on() {
    needs!();
    let bench = Bench::apart();
    let disk = SmallDisk::mount(&bench, 1_000);
    let filler = disk.0.join("filler");
    let mut on_event = |event: Event| match event {
        // From the first second on, so that the server is sure to write to the full disk before the trial ends.
        Event::Tick { trial, .. } if trial.number == 1 => {
            // Until there is no room left; that it ends with an error is the point.
            let zeroes = std::fs::File::open("/dev/zero").unwrap();
            let _ = std::io::copy(
                &mut std::io::Read::take(zeroes, 2 << 30),
                &mut std::fs::File::options().append(true).create(true).open(&filler).unwrap(),
            );
        }
        Event::TrialEnded { .. } => drop(std::fs::remove_file(&filler)),
        _ => {}
    };
    let run = bench.run(TWO_ARMS, false, &Cancel::default(), &mut on_event).unwrap();
    let Outcome::Failed { why, .. } = &run.trials[0].outcome else { panic!("{:?}", run.trials[0].outcome) };
    assert!(why.starts_with("the host failed") && why.contains("full"), "{why}");
    assert!(!matches!(run.trials[1].outcome, Outcome::Failed { .. }), "{:?}", run.trials[1].outcome);
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

#[test]
fn a_volume_that_someone_still_uses_when_its_trial_is_over_is_waited_for() {
    needs!();
    let bench = Bench::new();
    let home = bench.home();
    let holder = Mutex::new(None);
    let mut on_event = |event: Event| {
        if let Event::Tick { trial, tick } = event
            && trial.number == 1
            && tick.phase == Phase::Measuring
            && holder.lock().unwrap().is_none()
        {
            let mount = mounts(&home).into_iter().find(|dir| dir.starts_with("/run/ebbtide-")).unwrap();
            let hold = format!("exec 3<{mount}/data/ibdata1; exec sleep 10");
            *holder.lock().unwrap() = Some(Command::new("sh").args(["-c", &hold]).spawn().unwrap());
        }
    };
    let run = bench.run(TWO_ARMS, false, &Cancel::default(), &mut on_event).unwrap();
    assert!(holder.into_inner().unwrap().unwrap().wait().unwrap().success());
    assert!(
        run.trials.iter().all(|trial| !matches!(trial.outcome, Outcome::Failed { .. })),
        "{:?}",
        run.trials
    );
    assert!(run.trials[0].took_s > 10.0, "the holder was waited for");
    assert_eq!(left_of(&home), Vec::<String>::new());
}
