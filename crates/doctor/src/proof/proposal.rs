//! The experiment that proves findings: a pure function of what was seen of a server and of the lab's server.

use std::collections::BTreeMap;

use ebbtide_advisor::{Finding, VolumeChange};
use ebbtide_catalog::Catalog;
use ebbtide_mysql::Binary;
use ebbtide_observe::{Observation, TwoSpecs, VolumeFiles};
use ebbtide_text::{bytes, rough};
use serde::Serialize;

use super::credits::full_credits;
use super::file::{ArmChange, ExperimentFile, LEAD_IN_SPEED, Scale};
use super::rows::{self, Logs, Rows};
use super::settings::{NotTaken, Target};
use super::shape::{Shape, UnknownWorkload};

/// Findings that are proved at a time: each is an arm, and the run takes longer by it.
const MOST: usize = 4;

/// An experiment, and what it leaves out.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// Its file.
    pub text: String,
    /// Codes of the findings that it proves, each the name of an arm.
    pub codes: Vec<&'static str>,
    /// The lab's machine is one of so many parts of the server's.
    pub divided_by: u32,
    /// Findings that it does not prove.
    pub not_proved: Vec<NotProved>,
    /// Why the gain of a finding is at most what is measured, in sentences.
    pub bounds: Vec<String>,
    /// Settings that the lab's server does not take, with the reason.
    pub left_out: Vec<String>,
    /// The workload.
    pub(crate) shape: Shape,
    /// The rows of the lab's tables, and the statements on them.
    pub(crate) rows: Rows,
}

/// A finding that is not proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotProved {
    /// Its code.
    pub code: &'static str,
    /// Why, as a sentence without a full stop.
    pub why: String,
}

/// Why no experiment stands for a server, as a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoProposal {
    /// The observation does not show the workload.
    #[error(transparent)]
    Workload(#[from] UnknownWorkload),
    /// No one named the volume of the data.
    #[error("the volume of the data is not known: name it with --volume data=SPEC")]
    NoVolume,
    /// Two volumes are named for one device of both logs.
    #[error(transparent)]
    Logs(#[from] TwoSpecs),
}

/// Why a fix cannot be an arm of an experiment, as a sentence without a full stop.
#[derive(Debug, thiserror::Error)]
enum NotExpressed {
    #[error("its fix is no setting of the server and no volume")]
    NoSetting,
    #[error("at 1/{divided_by} of the machine the setting is the same before and after")]
    SameSetting { divided_by: u32 },
    #[error("the {0} has no volume of its own in the lab")]
    NoOwnVolume(&'static str),
    #[error("the volume of the {0} is that of now")]
    VolumeOfNow(&'static str),
    #[error(transparent)]
    Setting(#[from] NotTaken),
}

/// Makes the experiment of those findings that have a fix which the lab can express, in their order.
///
/// # Errors
/// What is missing of the observation.
pub fn propose(
    seen: &Observation,
    findings: &[&Finding],
    catalog: &Catalog,
    binary: &Binary,
    scale: Scale,
) -> Result<Proposal, NoProposal> {
    let shape = Shape::of(seen)?;
    if seen.volume.is_none() {
        return Err(NoProposal::NoVolume);
    }
    let pool = variable(seen, "innodb_buffer_pool_size").unwrap_or(0.0);
    let divided_by = scale.divisor(&shape, pool);
    let target = Target { seen, binary, divided_by };
    let before = target.observed();
    let rows = rows::fit(&shape, &Logs::of(&before.settings, binary.flavour.maker(), seen));
    let now = volumes_of(seen, &before.settings)?;
    let mut arms = Vec::new();
    let mut not_proved = Vec::new();
    for finding in findings {
        match after(&target, &before.settings, &now, finding) {
            Ok(_) if arms.len() == MOST => not_proved.push(NotProved {
                code: finding.code,
                why: format!("{MOST} findings are proved at a time: name it with --prove {}", finding.code),
            }),
            Ok(set) => arms.push((finding.code, set)),
            Err(why) => not_proved.push(NotProved { code: finding.code, why: why.to_string() }),
        }
    }
    let bounds = arms.iter().flat_map(|(code, change)| {
        let of_redo = bound(seen, code, &change.settings, divided_by, scale);
        let replaced = now.iter().filter(|(files, _)| change.volumes.contains_key(files.role()));
        let of_credits = replaced.filter_map(|(files, spec)| full_credits(catalog, code, files.role(), spec));
        of_redo.into_iter().chain(of_credits)
    });
    let bounds: Vec<String> = bounds.collect();
    let before_settings = &before.settings;
    let file = ExperimentFile {
        seen,
        shape: &shape,
        rows,
        divided_by,
        scale,
        before: before_settings,
        volumes: now,
        arms: &arms,
    };
    Ok(Proposal {
        text: file.text(),
        codes: arms.iter().map(|(code, _)| *code).collect(),
        divided_by,
        not_proved,
        bounds,
        left_out: before.left_out.into_iter().map(|(setting, why)| format!("{setting}: {why}")).collect(),
        shape,
        rows,
    })
}

fn variable(seen: &Observation, name: &str) -> Option<f64> {
    seen.variables.as_ref()?.get(name)?.parse().ok()
}

/// The settings and volumes by which the arm of a finding differs.
fn after(
    target: &Target<'_>,
    before: &BTreeMap<String, String>,
    now: &[(VolumeFiles, &str)],
    finding: &Finding,
) -> Result<ArmChange, NotExpressed> {
    let changes = finding.fix.as_ref().map(|fix| &fix.set[..]).unwrap_or_default();
    let volumes = finding.fix.as_ref().map(|fix| &fix.volumes[..]).unwrap_or_default();
    if changes.is_empty() && volumes.is_empty() {
        return Err(NotExpressed::NoSetting);
    }
    let volumes = other_volumes(now, volumes)?;
    if changes.is_empty() {
        return Ok(ArmChange { volumes, ..ArmChange::default() });
    }
    let set = target.changed(changes)?;
    if set.iter().all(|(name, value)| before.get(name) == Some(value)) {
        return Err(NotExpressed::SameSetting { divided_by: target.divided_by });
    }
    Ok(ArmChange { settings: set, volumes })
}

/// The volumes of a fix by role.
fn other_volumes(
    now: &[(VolumeFiles, &str)],
    changes: &[VolumeChange],
) -> Result<BTreeMap<&'static str, String>, NotExpressed> {
    let mut volumes = BTreeMap::new();
    for change in changes {
        match now.iter().find(|(files, _)| files.role() == change.role) {
            None => return Err(NotExpressed::NoOwnVolume(change.role)),
            Some((_, spec)) if *spec == change.spec => {
                return Err(NotExpressed::VolumeOfNow(change.role));
            }
            Some(_) => volumes.insert(change.role, change.spec.clone()),
        };
    }
    Ok(volumes)
}

/// The server's volumes, as far as the lab has them: without a binary log none for it.
///
/// # Errors
/// Two volumes are named for one device of both logs.
fn volumes_of<'a>(
    seen: &'a Observation,
    before: &BTreeMap<String, String>,
) -> Result<Vec<(VolumeFiles, &'a str)>, TwoSpecs> {
    let writes_binlog = before.get("log_bin").is_some_and(|on| on == "on");
    let shared = match seen.shared_logs() {
        Err(error) if writes_binlog => return Err(error),
        shared => shared.ok().flatten().and_then(|logs| logs.spec),
    };
    let [redo, binlog] = [&seen.redo_volume, &seen.binlog_volume].map(Option::as_deref);
    let [redo, binlog, both] = match (writes_binlog, shared) {
        (true, Some(_)) => [None, None, shared],
        (true, None) => [redo, binlog, None],
        (false, _) => [redo.or(shared), None, None],
    };
    let all = [seen.volume.as_deref(), redo, binlog, both];
    Ok(VolumeFiles::ALL.into_iter().zip(all).filter_map(|(files, spec)| Some((files, spec?))).collect())
}

/// Where a redo log is not filled within a trial: the page writes that it puts off are then not seen at all.
fn bound(
    seen: &Observation,
    code: &str,
    set: &BTreeMap<String, String>,
    divided_by: u32,
    scale: Scale,
) -> Option<String> {
    let bytes: f64 = set.get("redo_capacity")?.parse().ok()?;
    let rate = seen.rates.and_then(|rates| rates.redo_bytes).filter(|rate| *rate > 0.0)?;
    let lasts = bytes / (rate / f64::from(divided_by));
    let trial = f64::from(scale.lead_in_s * LEAD_IN_SPEED + scale.settle_s + scale.measure_s);
    (lasts > trial).then(|| {
        format!(
            "{code}: the gain is at most this. The redo log of the fix lasts {}, and a trial shows {} of it: page writes that \
             come later are not in it.",
            rough(lasts),
            rough(trial)
        )
    })
}

impl Proposal {
    /// What the load is, in a sentence.
    #[must_use]
    pub fn workload(&self) -> String {
        let shape = &self.shape;
        format!(
            "{:.1} SELECT of {:.0} rows, {:.2} UPDATE, {:.2} INSERT and {:.2} DELETE a {}, {:.0} clients, {} of data in use, rows of \
             {:.0} bytes",
            shape.reads,
            shape.rows_per_read,
            shape.updates,
            shape.inserts,
            shape.deletes,
            if shape.autocommit { "statement that commits" } else { "transaction" },
            shape.clients,
            bytes(shape.working_set),
            self.rows.row_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_lab::experiment::{self, Experiment, Overrides, Role};
    use ebbtide_lab::run::{self as lab, Plan};
    use ebbtide_mysql::{Flavour, Version};
    use ebbtide_observe::{FileSystem, Files, Rates, ServerDirectory, StatusVariables, Variables};

    use super::*;
    use crate::fixture::busy_mariadb as seen;
    use ebbtide_advisor::judge;

    fn binary() -> Binary {
        Binary {
            path: "/usr/sbin/mariadbd".into(),
            flavour: Flavour::MariaDb,
            version: Version::new(10, 11, 14),
            text: "Ver 10.11.14-MariaDB".into(),
        }
    }

    fn of(seen: &Observation) -> (Proposal, Vec<Finding>) {
        let findings = judge(seen, &Catalog::builtin());
        let found: Vec<&Finding> =
            findings.iter().filter(|one| one.verdict == ebbtide_advisor::Assessment::Found).collect();
        (propose(seen, &found, &Catalog::builtin(), &binary(), Scale::FULL).unwrap(), findings)
    }

    fn planned(proposal: &Proposal) -> (Experiment, Plan) {
        let overrides = Overrides { seed: Some(7), ..Overrides::default() };
        let experiment = experiment::parse("t", "t", &proposal.text, &overrides)
            .unwrap_or_else(|error| panic!("{error}\n{}", proposal.text));
        let plan = lab::plan(experiment.clone(), &Catalog::builtin(), &binary())
            .unwrap_or_else(|error| panic!("{error}\n{}", proposal.text));
        (experiment, plan)
    }

    #[test]
    fn findings_become_arms_that_are_held_against_the_settings_of_now() {
        let (proposal, _) = of(&seen(&[]));
        assert_eq!(proposal.codes, ["D03", "R01"], "the surer first: {:?}", proposal.not_proved);
        assert_eq!(proposal.divided_by, 8, "4 GiB of buffer pool in 512 MiB");
        let (experiment, _) = planned(&proposal);
        let names: Vec<&str> = experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["before", "D03", "R01"]);
        assert!(experiment.comparisons.iter().all(|one| one.baseline == 0));
        assert!(
            proposal.bounds[0].starts_with("R01: ") && proposal.bounds.len() == 1,
            "{:?}",
            proposal.bounds
        );
        let [before, binlog, redo] = &experiment.arms[..] else { panic!() };
        let setting = |arm: &experiment::Arm, name: &str| arm.settings.get(name).unwrap().to_owned();
        assert_eq!(
            (setting(before, "redo_capacity"), setting(before, "sync_binlog")),
            ("8388608".into(), "0".into())
        );
        assert_eq!(setting(redo, "redo_capacity"), "570425344", "4.6 GB in eight parts");
        assert_eq!((setting(redo, "sync_binlog"), setting(binlog, "sync_binlog")), ("0".into(), "1".into()));
        assert_eq!((before.load.connections, before.instance.divided_by), (4, 8));
        assert_eq!(before.volumes[&Role::Data], "gp3:size=500GiB,iops=6000");
        let mix = &before.load.mix;
        assert_eq!((mix.point_selects, mix.simple_ranges, mix.delete_inserts), (10, 0, 1));
        assert_eq!((mix.index_updates, mix.non_index_updates, mix.skip_trx), (1, 1, false));
    }

    #[test]
    fn a_fix_that_is_no_setting_of_the_lab_is_said_with_the_reason() {
        let mut seen = seen(&[("expire_logs_days", "0"), ("binlog_expire_logs_seconds", "0")]);
        seen.volume = Some("gp2:size=500GiB".into());
        let (proposal, _) = of(&seen);
        let why =
            |code: &str| proposal.not_proved.iter().find(|one| one.code == code).map(|one| one.why.clone());
        assert!(why("L03").unwrap().contains("binlog_expire_logs_seconds"), "{proposal:?}");
        let volume = arm_of(&proposal, "E01").volumes[&Role::Data].clone();
        assert_eq!(volume, "gp3:size=500GiB,iops=3000,throughput=250", "{}", proposal.text);
        let full = |proposal: &Proposal| proposal.bounds.iter().any(|one| one.contains("full burst"));
        assert!(full(&proposal), "{:?}", proposal.bounds);
        seen.volume = Some("gp2:size=500GiB,credits=0%".into());
        assert!(!full(&of(&seen).0));
    }

    fn arm_of(proposal: &Proposal, code: &str) -> experiment::Arm {
        let (experiment, _) = planned(proposal);
        experiment
            .arms
            .into_iter()
            .find(|arm| arm.name == code)
            .unwrap_or_else(|| panic!("{}", proposal.text))
    }

    #[test]
    fn a_volume_of_a_log_is_replaced_alone_and_settings_stay_as_they_are() {
        let mut seen = seen(&[]);
        seen.redo_volume = Some("gp2:size=100GiB".into());
        let (proposal, findings) = of(&seen);
        let fix = findings.iter().find(|one| one.code == "E01").and_then(|one| one.fix.clone()).unwrap();
        assert_eq!(fix.volumes[0].role, "redo");
        let (experiment, _) = planned(&proposal);
        let arm = arm_of(&proposal, "E01");
        assert_eq!(arm.volumes[&Role::Redo], fix.volumes[0].spec);
        assert_eq!(arm.volumes[&Role::Data], "gp3:size=500GiB,iops=6000");
        assert_eq!(arm.settings, experiment.arms[0].settings);
    }

    #[test]
    fn a_volume_that_the_lab_has_not_or_that_is_the_same_is_no_arm() {
        let change = |role, spec: &str| VolumeChange { role, spec: spec.to_owned() };
        let seen = seen(&[]);
        let now = volumes_of(&seen, &BTreeMap::new()).unwrap();
        let of = |one: VolumeChange| other_volumes(&now, &[one]);
        assert!(
            of(change("redo", "gp3:size=5GiB")).unwrap_err().to_string().contains("no volume of its own")
        );
        assert!(
            of(change("data", "gp3:size=500GiB,iops=6000")).unwrap_err().to_string().contains("that of now")
        );
        assert_eq!(of(change("data", "gp3:size=500GiB")).unwrap()["data"], "gp3:size=500GiB");
    }

    #[test]
    fn at_most_four_findings_are_proved_at_a_time_and_the_rest_is_named() {
        let bad = [
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_adaptive_flushing", "OFF"),
            ("innodb_max_dirty_pages_pct", "20"),
            ("innodb_flush_method", "fsync"),
            ("binlog_checksum", "NONE"),
        ];
        let (proposal, _) = of(&seen(&bad));
        assert_eq!(proposal.codes.len(), MOST, "{:?}", proposal.codes);
        assert!(
            proposal.not_proved.iter().any(|one| one.why.contains("--prove ")),
            "{:?}",
            proposal.not_proved
        );
        planned(&proposal);
    }

    #[test]
    fn volumes_and_the_file_system_are_those_of_the_server() {
        let mut seen = seen(&[]);
        seen.redo_volume = Some("io2:size=100GiB,iops=3000".into());
        seen.binlog_volume = Some("gp3:size=100GiB".into());
        let mut host = ebbtide_observe::Host { memory_bytes: Some(16 << 30), ..Default::default() };
        host.places.push(ServerDirectory {
            files: Files::Data,
            directory: "/d".into(),
            mount_point: "/d".into(),
            file_system: "ext4".into(),
            options: Vec::new(),
            size_bytes: None,
            free_bytes: None,
            device: None,
        });
        seen.host = Some(host);
        let (_, plan) = planned(&of(&seen).0);
        let arm = &plan.arms()[0].arm;
        assert_eq!(arm.instance.fs, "ext4");
        assert_eq!(arm.instance.memory_bytes, 2 << 30, "an eighth of 16 GiB");
        assert_eq!(arm.volumes.len(), 3);
        let file_system = |name: &str, aligned_bytes| Some(FileSystem { name: name.into(), aligned_bytes });
        seen.file_system = file_system("ext4 with clusters of 16 KiB", 16 << 10);
        assert_eq!(planned(&of(&seen).0).1.arms()[0].arm.instance.fs, "ext4-bigalloc");
        seen.file_system = file_system("ext4 with clusters of 16 KiB", 0);
        assert_eq!(planned(&of(&seen).0).1.arms()[0].arm.instance.fs, "ext4", "its clusters are not aligned");
    }

    #[test]
    fn statements_that_commit_by_themselves_are_repeated_in_whole_numbers() {
        let mut seen = seen(&[]);
        let growth = [("com_update", 40.0), ("com_insert", 30.0), ("com_delete", 30.0)];
        let growth = growth.map(|(name, value)| (name.to_owned(), value));
        seen.status = Some(StatusVariables { last: Variables::default(), growth_per_s: growth.into() });
        seen.rates = seen.rates.map(|rates| Rates {
            commits: Some(0.0),
            write_statements: Some(100.0),
            read_statements: Some(250.0),
            ..rates
        });
        let (experiment, _) = planned(&of(&seen).0);
        let mix = &experiment.arms[0].load.mix;
        // Ten statements that commit: 4 updates, 3 pairs of delete and insert, 25 reads.
        assert_eq!((mix.point_selects, mix.index_updates + mix.non_index_updates), (25, 4));
        assert_eq!((mix.delete_inserts, mix.skip_trx), (3, true));
    }

    /// A server whose logs lie on one device, with a volume that each of them is named.
    fn logs_together(log_bin: &str, [redo, binlog]: [Option<&str>; 2]) -> Observation {
        let place = |(files, name): (Files, &str)| ServerDirectory {
            files,
            directory: "/d".into(),
            mount_point: "/d".into(),
            file_system: "xfs".into(),
            options: Vec::new(),
            size_bytes: None,
            free_bytes: None,
            device: Some(ebbtide_observe::Device { name: name.into(), ..Default::default() }),
        };
        let places = [(Files::Data, "a"), (Files::Redo, "b"), (Files::Binlog, "b")].map(place).into();
        Observation {
            host: Some(ebbtide_observe::Host { places, ..Default::default() }),
            redo_volume: redo.map(str::to_owned),
            binlog_volume: binlog.map(str::to_owned),
            ..seen(&[("log_bin", log_bin)])
        }
    }

    #[test]
    fn logs_that_share_a_volume_do_so_in_the_lab() {
        let gp3 = Some("gp3:size=100GiB");
        let before = |seen: &Observation| planned(&of(seen).0).0.arms[0].volumes.clone();
        for specs in [[gp3, gp3], [gp3, None], [None, gp3]] {
            let volumes = before(&logs_together("ON", specs));
            assert_eq!(volumes.keys().copied().collect::<Vec<_>>(), [Role::Data, Role::Logs], "{specs:?}");
            assert_eq!(Some(&*volumes[&Role::Logs]), gp3);
            // Without a binary log the redo log has it alone.
            let volumes = before(&logs_together("OFF", specs));
            assert_eq!(volumes.keys().copied().collect::<Vec<_>>(), [Role::Data, Role::Redo], "{specs:?}");
        }
        // Named for both, on devices that nobody saw; its replacement is one volume, too.
        let gp2 = Some("gp2:size=100GiB".to_owned());
        let mut named = seen(&[]);
        (named.redo_volume, named.binlog_volume, named.logs_share_volume) = (gp2.clone(), gp2, true);
        let (proposal, findings) = of(&named);
        assert!(proposal.text.contains("\n\"redo+binlog\" = \"gp2:size=100GiB\""), "{}", proposal.text);
        let fix = findings.iter().find(|one| one.code == "E01").and_then(|one| one.fix.clone()).unwrap();
        assert_eq!((fix.volumes.len(), fix.volumes[0].role), (1, "redo+binlog"));
        let arm = arm_of(&proposal, "E01");
        assert_eq!((arm.volumes.len(), &arm.volumes[&Role::Logs]), (2, &fix.volumes[0].spec));
        let credits = |one: &String| one.contains("--volume 'redo+binlog=gp2:size=100GiB,credits=0%'");
        assert!(proposal.bounds.iter().any(credits), "{:?}", proposal.bounds);
    }

    #[test]
    fn two_volumes_for_one_device_of_both_logs_are_refused() {
        let two = |log_bin| logs_together(log_bin, [Some("nvme"), Some("gp3:size=100GiB")]);
        let propose = |seen| propose(&seen, &[], &Catalog::builtin(), &binary(), Scale::FULL);
        assert!(propose(two("ON")).unwrap_err().to_string().contains("two volumes are named"));
        assert!(propose(two("OFF")).is_ok(), "there is nothing to share it with");
    }

    #[test]
    fn what_is_missing_is_a_sentence() {
        let nothing = Observation { volume: None, ..seen(&[]) };
        let why =
            propose(&nothing, &[], &Catalog::builtin(), &binary(), Scale::FULL).unwrap_err().to_string();
        assert!(why.contains("--volume"), "{why}");
        let hostile = Observation { instance: Some("m5.large\"\n[arms.x]".into()), ..seen(&[]) };
        let text = of(&hostile).0.text;
        assert!(!text.contains("\n[arms.x]"), "{text}");
    }
}
