//! Whether a trial that came to its end is to be believed.

use ebbtide_device::engine::PacingReport;
use ebbtide_load::Generator;
use ebbtide_text::{figure, latency, percent, whole};

use super::volume::IopsLimit;
use crate::experiment::Role;
use crate::record::{Outcome, Second, VolumeSecond};

/// Median lateness of the volume's answers, as a share of the volume's mean latency, from which on the
/// host, rather than the model, made the latency.
const PACING_SHARE: f64 = 0.25;
/// The same, from which on it is noted.
const PACING_NOTED: f64 = 0.05;
/// Median lateness that an experiment accepts whose devices may be faster than the host: twice what a host with busy
/// processors has at most (SPECIFICATION.md).
const PACING_ACCEPTED_US: f64 = 100.0;
/// Share of the machine's time that the hypervisor took away, from which on nothing that was
/// measured is the server's own.
const STEAL_SHARE: f64 = 0.10;
/// The same, from which on it is noted.
const STEAL_NOTED: f64 = 0.02;
/// Share of the machine's time that was spent working, from which on it is noted: the processors were
/// the limit.
const BUSY_NOTED: f64 = 0.95;
/// Share of the machine that others kept busy, from which on it is noted. The kernel's threads, which
/// carry the volumes' I/O, are among them.
const FOREIGN_NOTED: f64 = 0.25;
/// Of the IOPS that a volume allows and that enough I/O waited for, the share below which it is noted that
/// something else held it back.
const CARRIED: f64 = 0.9;
/// Share of a processor that sampling may take.
const SAMPLING_NOTED: f64 = 0.01;

/// A volume at the end of a trial.
#[derive(Debug, Clone, Copy)]
pub struct VolumeEnd {
    /// What it holds.
    pub role: Role,
    /// How late its answers were.
    pub pacing: PacingReport,
    /// Requests that the host's disk failed.
    pub host_errors: u64,
    /// What it may do; none where it is not limited.
    pub limit: Option<IopsLimit>,
    /// Reads and writes that were under way at its device as the kernel counts it, mean over the
    /// measurement: those that have not come to the model yet, or come back from it, are among them.
    pub device_queue: Option<f64>,
}

/// What a trial's figures come from.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// How well the load's generator kept up.
    pub generator: &'a Generator,
    /// What the load left inconsistent in its tables; none where nothing is, or nothing was checked.
    pub inconsistency: Option<String>,
    /// Why the backup that was made meanwhile is not usable; none where it is, or none was made.
    pub unusable: Option<String>,
    /// The measured seconds.
    pub seconds: &'a [Second],
    /// The volumes at their end.
    pub volumes: &'a [VolumeEnd],
    /// Whether the experiment accepts devices that are faster than the host, so that lateness is noted.
    pub over_limit: bool,
    /// Processors of the machine.
    pub cpus: u32,
    /// Of these, kept busy by neither the server nor this process.
    pub foreign_cpus: f64,
}

/// Whether a trial counts, and what has to be known of it.
#[derive(Debug)]
pub struct TrialVerdict {
    /// Whether to believe it.
    pub outcome: Outcome,
    /// What should be known about it.
    pub notes: Vec<String>,
}

/// Judges a trial that has been measured.
pub fn judge(evidence: &Evidence<'_>) -> TrialVerdict {
    let reasons = evidence.inconsistency.iter().chain(&evidence.generator.disqualified);
    let mut reasons: Vec<String> = reasons.cloned().collect();
    reasons.extend(evidence.unusable.iter().map(|why| format!("its backup cannot be used: {why}")));
    let mut notes = Vec::new();
    for volume in evidence.volumes {
        if volume.host_errors > 0 {
            reasons.push(format!(
                "{} requests of the {} volume failed at the host: its disk is full or broken",
                volume.host_errors,
                volume.role.key()
            ));
        }
        judge_pacing(volume, evidence, &mut reasons, &mut notes);
        notes.extend(held_back(volume, evidence.seconds));
    }
    judge_host(evidence, &mut reasons, &mut notes);
    let outcome = match reasons.is_empty() {
        true => Outcome::Measured,
        false => Outcome::Disqualified { why: reasons.join("; ") },
    };
    TrialVerdict { outcome, notes }
}

fn judge_pacing(
    volume: &VolumeEnd,
    evidence: &Evidence<'_>,
    reasons: &mut Vec<String>,
    notes: &mut Vec<String>,
) {
    let Some(latency_us) = mean_latency_us(volume.role, evidence.seconds) else { return };
    let late_us = volume.pacing.p50_ns as f64 / 1e3;
    let share = late_us / latency_us;
    let text = || {
        format!(
            "the {} volume answered {} later than its model at the median, {} of its mean latency",
            volume.role.key(),
            latency(late_us),
            percent(share)
        )
    };
    if share > PACING_SHARE && evidence.over_limit && late_us <= PACING_ACCEPTED_US {
        notes.push(format!("{}: it was slower here than the device that it stands for", text()));
    } else if share > PACING_SHARE {
        reasons.push(format!("{}: the host could not keep up", text()));
    } else if share > PACING_NOTED {
        notes.push(text());
    }
}

/// Whether the host, and not the model, kept a volume below its IOPS: so much I/O was under way at its
/// device that the model alone would have carried all that the volume allows.
fn held_back(volume: &VolumeEnd, seconds: &[Second]) -> Option<String> {
    let (limit, queue) = (volume.limit?, volume.device_queue?);
    let latency_s = mean_latency_us(volume.role, seconds)? / 1e6;
    let all: Vec<_> = seconds.iter().filter_map(|second| second.volumes.get(&volume.role)).collect();
    let mean = |of: &dyn Fn(&VolumeSecond) -> f64| {
        all.iter().map(|second| of(second)).sum::<f64>() / all.len().max(1) as f64
    };
    let (allowed, counted) = (mean(&|second| limit.at(second.credits)), mean(&|second| second.consumed_iops));
    let submitted = mean(&|second| second.read_iops + second.write_iops);
    // Little's law. The limits count large I/O several times, and neighbours once.
    let alone = queue / latency_s * (counted / submitted);
    (alone >= allowed && counted < CARRIED * allowed).then(|| {
        format!(
            "the {} volume carried {} of the {} IOPS that it allows, although {} I/Os were under way on average: \
             this machine held it back, not the volume",
            volume.role.key(),
            whole(counted),
            whole(allowed),
            figure(queue)
        )
    })
}

/// Mean latency of a volume's reads and writes, us; none without any.
fn mean_latency_us(role: Role, seconds: &[Second]) -> Option<f64> {
    let volumes = seconds.iter().filter_map(|second| second.volumes.get(&role));
    let (ops, us) = volumes.fold((0.0, 0.0), |(ops, us), volume| {
        let sum = volume.read_iops * volume.read_us + volume.write_iops * volume.write_us;
        (ops + volume.read_iops + volume.write_iops, us + sum)
    });
    (ops > 0.0 && us > 0.0).then(|| us / ops)
}

fn judge_host(evidence: &Evidence<'_>, reasons: &mut Vec<String>, notes: &mut Vec<String>) {
    let seconds = evidence.seconds;
    let mean = |of: fn(&Second) -> f64| seconds.iter().map(of).sum::<f64>() / seconds.len().max(1) as f64;
    let cpus = f64::from(evidence.cpus.max(1));
    let steal = mean(|second| second.host.steal_cpus) / cpus;
    let stolen = format!("the hypervisor took {} of this machine's time away", percent(steal));
    if steal > STEAL_SHARE {
        reasons.push(stolen);
    } else if steal > STEAL_NOTED {
        notes.push(stolen);
    }
    let sampling = mean(|second| second.host.sampler_cpus);
    if sampling > SAMPLING_NOTED {
        notes.push(format!("sampling took {} of a processor", percent(sampling)));
    }
    let busy = mean(|second| second.host.busy_cpus) / cpus;
    if evidence.foreign_cpus > FOREIGN_NOTED * cpus {
        notes.push(format!(
            "other programs and the kernel's own threads kept {} of {cpus} processors busy: close what else \
             runs on this machine",
            figure(evidence.foreign_cpus)
        ));
    } else if busy > BUSY_NOTED {
        notes.push(format!("the machine's processors were {} busy", percent(busy)));
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_catalog::Catalog;
    use ebbtide_load::Latency;
    use ebbtide_volume::RateLimit;

    use super::*;
    use crate::record::HostSecond;

    fn seconds(latency_us: f64, steal_cpus: f64) -> Vec<Second> {
        let volume = VolumeSecond { read_iops: 100.0, read_us: latency_us, ..VolumeSecond::default() };
        let host = HostSecond { steal_cpus, ..HostSecond::default() };
        vec![Second { volumes: [(Role::Data, volume)].into(), host, ..Second::default() }; 3]
    }

    fn end(p50_us: u64, host_errors: u64) -> VolumeEnd {
        let pacing = PacingReport { p50_ns: p50_us * 1_000, count: 1, ..PacingReport::default() };
        VolumeEnd { role: Role::Data, pacing, host_errors, limit: None, device_queue: None }
    }

    fn limit(iops: RateLimit) -> Option<IopsLimit> {
        let mut real = Catalog::builtin().resolve(&"gp3:size=1GiB".parse().unwrap()).unwrap();
        real.members[0].iops = Some(iops);
        IopsLimit::of(&real, None)
    }

    #[test]
    fn a_volume_that_gets_less_than_its_iops_although_it_queues_is_noted() {
        let looked = |iops: f64, credits: Option<f64>, limit: Option<IopsLimit>, queue: f64| {
            let volume = VolumeSecond {
                read_iops: iops / 2.0,
                write_iops: iops / 2.0,
                consumed_iops: iops,
                read_us: 2_000.0,
                write_us: 2_000.0,
                credits,
                ..VolumeSecond::default()
            };
            let seconds = [Second { volumes: [(Role::Data, volume)].into(), ..Second::default() }];
            let end = VolumeEnd { limit, device_queue: Some(queue), ..end(0, 0) };
            judged(&generator(), &seconds, end).notes
        };
        let flat = limit(RateLimit::flat(3_000));
        // Eight I/Os of 2 ms are 4,000 a second by the model alone.
        let notes = looked(2_600.0, None, flat, 8.0);
        assert!(notes.len() == 1 && notes[0].contains("2,600 of the 3,000 IOPS"), "{notes:?}");
        assert_eq!(looked(2_800.0, None, flat, 8.0), [""; 0], "within 10%");
        assert_eq!(looked(2_600.0, None, flat, 5.5), [""; 0], "the model itself took that long");
        assert_eq!(looked(2_600.0, None, None, 8.0), [""; 0], "it has no limit");
        let burst = limit(RateLimit { rate: 300, ceiling: 3_000, allowance: 0, credits: 5_400_000 });
        assert_eq!(looked(2_600.0, Some(0.5), burst, 8.0).len(), 1);
        assert_eq!(looked(300.0, Some(0.0), burst, 8.0), [""; 0], "its credits are gone");
    }

    fn generator() -> Generator {
        Generator { loops: 1, lag: Latency::default(), disqualified: None }
    }

    fn judged(generator: &Generator, seconds: &[Second], end: VolumeEnd) -> TrialVerdict {
        judge(&evidence(generator, seconds, &[end]))
    }

    fn evidence<'a>(
        generator: &'a Generator,
        seconds: &'a [Second],
        volumes: &'a [VolumeEnd],
    ) -> Evidence<'a> {
        let over_limit = false;
        let (inconsistency, unusable) = (None, None);
        Evidence {
            generator,
            inconsistency,
            unusable,
            seconds,
            volumes,
            over_limit,
            cpus: 2,
            foreign_cpus: 0.0,
        }
    }

    fn why(looked: &TrialVerdict) -> &str {
        match &looked.outcome {
            Outcome::Disqualified { why } => why,
            _ => "",
        }
    }

    #[test]
    fn a_quiet_trial_is_measured_and_has_no_notes() {
        let looked = judged(&generator(), &seconds(1_000.0, 0.0), end(40, 0));
        assert_eq!((looked.outcome, looked.notes), (Outcome::Measured, vec![]));
    }

    #[test]
    fn a_host_that_made_the_latency_itself_disqualifies() {
        let looked = judged(&generator(), &seconds(1_000.0, 0.0), end(100, 0));
        assert!(looked.outcome == Outcome::Measured && looked.notes[0].contains("10%"), "{looked:?}");
        let looked = judged(&generator(), &seconds(1_000.0, 0.0), end(300, 0));
        assert!(why(&looked).contains("30% of its mean latency"), "{looked:?}");
    }

    #[test]
    fn where_devices_may_be_faster_than_the_host_a_little_lateness_is_noted_and_much_disqualifies() {
        let (generator, seconds) = (generator(), seconds(40.0, 0.0));
        let judged = |late_us| {
            let volumes = [end(late_us, 0)];
            judge(&Evidence { over_limit: true, ..evidence(&generator, &seconds, &volumes) })
        };
        let looked = judged(60);
        assert_eq!(looked.outcome, Outcome::Measured);
        assert!(looked.notes[0].contains("slower here than the device"), "{looked:?}");
        assert!(why(&judged(101)).contains("could not keep up"));
    }

    #[test]
    fn a_machine_that_others_use_is_noted() {
        let (generator, mut busy) = (generator(), seconds(1_000.0, 0.0));
        busy.iter_mut().for_each(|second| second.host.busy_cpus = 2.0);
        let evidence = Evidence {
            over_limit: false,
            generator: &generator,
            inconsistency: None,
            unusable: None,
            seconds: &busy,
            volumes: &[],
            cpus: 2,
            foreign_cpus: 1.3,
        };
        let looked = judge(&evidence);
        assert!(looked.outcome == Outcome::Measured && looked.notes.len() == 1, "{looked:?}");
        assert!(looked.notes[0].contains("1.30 of 2 processors"), "{looked:?}");
        let looked = judge(&Evidence { foreign_cpus: 0.2, ..evidence });
        assert!(looked.notes[0].contains("100% busy"), "the server itself: {looked:?}");
    }

    #[test]
    fn host_errors_stolen_time_an_inconsistency_and_a_late_generator_disqualify() {
        let looked = judged(&generator(), &seconds(1_000.0, 0.0), end(0, 3));
        assert!(why(&looked).contains("3 requests of the data volume failed"), "{looked:?}");
        let looked = judged(&generator(), &seconds(1_000.0, 0.5), end(0, 0));
        assert!(why(&looked).contains("25% of this machine's time"), "{looked:?}");
        let evidence = Evidence {
            over_limit: false,
            generator: &generator(),
            inconsistency: Some("consistency condition 3 of TPC-C does not hold".into()),
            unusable: Some("a table lacks rows".into()),
            seconds: &seconds(1_000.0, 0.0),
            volumes: &[],
            cpus: 2,
            foreign_cpus: 0.0,
        };
        let looked = judge(&evidence);
        assert_eq!(
            why(&looked),
            "consistency condition 3 of TPC-C does not hold; its backup cannot be used: a table lacks rows"
        );
        let mut late = generator();
        late.disqualified = Some("the generator was late".into());
        let looked = judged(&late, &seconds(1_000.0, 0.0), end(0, 0));
        assert!(why(&looked).contains("the generator was late"), "{looked:?}");
    }
}
