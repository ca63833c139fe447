//! The load of a volume of an arm of a run of the lab.

use std::path::Path;

use ebbtide_lab::experiment::Role;
use ebbtide_lab::record::{LabRun, VolumeSecond};
use ebbtide_observe::{Limited, LoadInterval, VolumeLoad};
use ebbtide_volume::MIB;

use super::error::SizingError;

/// The load of a volume of an arm of a run: the seconds of its trials, times what the machine is a share of.
pub(super) fn of_run(
    dir: &Path,
    arm: Option<&str>,
    role: Option<&str>,
) -> Result<(VolumeLoad, String, Vec<String>), SizingError> {
    let results = ebbtide_lab::results::read_json(dir);
    let run: LabRun =
        results.map_err(|error| SizingError::Run { dir: dir.to_owned(), error: error.into() })?.run;
    let mut arms: Vec<&str> = run.trials.iter().map(|trial| trial.arm.as_str()).collect();
    arms.sort_unstable();
    arms.dedup();
    let arm = match (arm, &arms[..]) {
        (Some(arm), _) if arms.contains(&arm) => arm,
        (None, [arm]) => arm,
        (given, _) => {
            let dir = dir.to_owned();
            let arms = arms.iter().map(ToString::to_string).collect();
            return Err(match given {
                Some(arm) => SizingError::UnknownArm { arm: arm.to_owned(), dir, arms },
                None => SizingError::SeveralArms { dir, arms },
            });
        }
    };
    let planned = run.experiment.arms.iter().find(|planned| planned.name == arm);
    let shares = f64::from(planned.map_or(1, |planned| planned.instance.divided_by).max(1));
    let roles: Vec<Role> = planned.map_or(Vec::new(), |planned| planned.volumes.keys().copied().collect());
    let role = of_role(&roles, role, arm)?;
    let mut intervals = Vec::new();
    let mut start_s = 0.0;
    for trial in run.trials.iter().filter(|trial| trial.arm == arm) {
        for second in &trial.seconds {
            if let Some(volume) = second.volumes.get(&role) {
                intervals.push(of_second(start_s, volume, shares));
                start_s += 1.0;
            }
        }
    }
    if intervals.is_empty() {
        return Err(SizingError::NotMeasured { arm: arm.to_owned(), dir: dir.to_owned() });
    }
    let mut notes = vec!["the seconds of all trials follow each other".to_owned()];
    if shares > 1.0 {
        notes.push(format!(
            "the run had one share of {shares} of the machine and its volumes: its operations and bytes are multiplied by {shares}"
        ));
    }
    let others = roles.iter().filter(|one| **one != role).map(|one| format!("--device {}", one.key()));
    let others = others.collect::<Vec<_>>();
    if !others.is_empty() {
        notes.push(format!(
            "this is the volume of the {} alone; each volume is judged by itself: {}",
            role.holds(),
            others.join(", ")
        ));
    }
    Ok((VolumeLoad { intervals }, format!("the {} volume of arm {arm} of a run", role.key()), notes))
}

/// The volume whose load is taken: that of the data where none is named.
fn of_role(roles: &[Role], named: Option<&str>, arm: &str) -> Result<Role, SizingError> {
    let Some(named) = named else { return Ok(Role::Data) };
    roles.iter().copied().find(|role| role.key() == named).ok_or_else(|| SizingError::UnknownRole {
        role: named.to_owned(),
        arm: arm.to_owned(),
        roles: roles.iter().map(|role| role.key()).collect(),
    })
}

fn of_second(start_s: f64, volume: &VolumeSecond, shares: f64) -> LoadInterval {
    let mib = MIB as f64 * shares;
    let time = |number: f64, us: f64| (number > 0.0).then_some(us / 1e6);
    let waited = |share: f64| share > 0.1;
    LoadInterval {
        start_s,
        seconds: 1.0,
        reads: volume.read_iops * shares,
        writes: volume.write_iops * shares,
        read_bytes: volume.read_mib * mib,
        written_bytes: volume.write_mib * mib,
        queue: Some(volume.queue * shares),
        read_s: time(volume.read_iops, volume.read_us),
        write_s: time(volume.write_iops, volume.write_us),
        credits: volume.credits,
        limited: Some(Limited {
            volume_iops: waited(volume.limits.volume_iops),
            volume_throughput: waited(volume.limits.volume_throughput),
            instance_iops: waited(volume.limits.instance_iops),
            instance_throughput: waited(volume.limits.instance_throughput),
        }),
    }
}
