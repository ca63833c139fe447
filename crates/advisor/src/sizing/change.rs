//! The orders that make volumes what they are to be: for the AWS CLI, and for Terraform.

use ebbtide_catalog::{Catalog, Raid0, Resolved, Spec, VolumeSpec};
use ebbtide_text::seed::fnv1a;
use ebbtide_volume::{GIB, KIB};

use crate::facts::modifications;

/// How to come from today's volumes to others.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChangePlan {
    /// Lines for a shell, with the AWS CLI. Names in capitals are to be replaced.
    pub cli: Vec<String>,
    /// Lines of Terraform.
    pub terraform: Vec<String>,
    /// What has to be known before.
    pub notes: Vec<String>,
}

/// A spec without what nobody chooses: torn-write prevention and the chunk.
#[must_use]
pub fn short(spec: &Spec) -> Spec {
    let volume = VolumeSpec { twp: None, credits: None, as_of: None, ..spec.volume.clone() };
    Spec { volume, raid0: spec.raid0.map(|raid0| Raid0 { chunk_bytes: None, ..raid0 }) }
}

/// How to get `target`. `name` is what the volume is called, empty where that is not known; `today` are the volumes of today,
/// `instance` the instance type that is to be, where it changes.
#[must_use]
pub fn plan(
    name: &str,
    today: Option<&Resolved>,
    target: &Resolved,
    instance: Option<&str>,
    catalog: &Catalog,
) -> ChangePlan {
    let mut plan = ChangePlan { cli: Vec::new(), terraform: Vec::new(), notes: Vec::new() };
    match today.map(|today| route(today, target)) {
        Some(Route::Nothing) => {
            plan.notes.push("the volumes of today are the answer: nothing to change".into())
        }
        Some(Route::InPlace) => in_place(&mut plan, target, catalog),
        Some(Route::Copy(why)) => {
            plan.notes.push(format!("{why}: make new volumes and copy the data, by a replica or a backup"));
            fresh(&mut plan, target);
        }
        None => fresh(&mut plan, target),
    }
    terraform(&mut plan, name, target);
    if let Some(instance) = instance {
        plan.cli.extend([
            "aws ec2 stop-instances --instance-ids INSTANCE_ID".to_owned(),
            format!(
                "aws ec2 modify-instance-attribute --instance-id INSTANCE_ID --instance-type Value={instance}"
            ),
            "aws ec2 start-instances --instance-ids INSTANCE_ID".to_owned(),
        ]);
        plan.terraform.push(format!("# aws_instance: instance_type = \"{instance}\""));
        plan.notes.push("a change of the instance type stops the server".into());
    }
    plan
}

enum Route {
    Nothing,
    InPlace,
    Copy(&'static str),
}

fn route(today: &Resolved, target: &Resolved) -> Route {
    let (from, to) = (&today.spec, &target.spec);
    if short(from) == short(to) {
        return Route::Nothing;
    }
    if from.members() != to.members() {
        return Route::Copy("the number of striped volumes cannot be changed");
    }
    if to.volume.size_bytes < from.volume.size_bytes {
        return Route::Copy("a volume cannot be made smaller");
    }
    Route::InPlace
}

/// The options of a volume for the AWS CLI.
fn options(volume: &VolumeSpec) -> String {
    let gib = volume.size_bytes.unwrap_or(0) / GIB;
    let mut words = format!("--volume-type {} --size {gib}", volume.kind);
    if let Some(iops) = volume.iops {
        words += &format!(" --iops {iops}");
    }
    if let Some(mib_s) = volume.throughput_mib_s {
        words += &format!(" --throughput {mib_s}");
    }
    words
}

fn volume_ids(target: &Resolved) -> Vec<String> {
    match target.spec.members() {
        1 => vec!["VOLUME_ID".into()],
        members => (1..=members).map(|n| format!("VOLUME_ID_{n}")).collect(),
    }
}

fn in_place(plan: &mut ChangePlan, target: &Resolved, catalog: &Catalog) {
    for id in volume_ids(target) {
        plan.cli.push(format!("aws ec2 modify-volume --volume-id {id} {}", options(&target.spec.volume)));
    }
    plan.cli.push(format!(
        "aws ec2 describe-volumes-modifications --volume-ids {}",
        volume_ids(target).join(" ")
    ));
    plan.notes.push(
        format!(
            "the volume stays in use. Until the modification is completed (up to {} hours for 1 TiB) it is at least as fast as the \
             slower of the two; {}, and a size cannot be taken back",
            catalog.modification_rate().optimizing_h_per_tib,
            modifications(catalog)
        ),
    );
}

fn fresh(plan: &mut ChangePlan, target: &Resolved) {
    for _ in volume_ids(target) {
        plan.cli.push(format!(
            "aws ec2 create-volume --availability-zone ZONE {} --encrypted",
            options(&target.spec.volume)
        ));
    }
    if let Some(raid0) = target.spec.raid0 {
        let chunk = target.chunk_bytes / KIB;
        let devices: Vec<String> = (1..=raid0.members).map(|n| format!("/dev/nvme{n}n1")).collect();
        plan.cli.push(format!(
            "mdadm --create /dev/md0 --level=0 --chunk={chunk}K --raid-devices={} {}",
            raid0.members,
            devices.join(" ")
        ));
        plan.notes.push("look up the devices' names with lsblk before mdadm runs: it overwrites them".into());
    }
}

/// A volume's name as that of a resource of Terraform: letters, digits, `_` and `-`, with a letter or `_` first
/// (<https://developer.hashicorp.com/terraform/language/resources/syntax>). `data` where the volume has none.
fn resource_name(volume: &str) -> String {
    if volume.is_empty() {
        return "data".to_owned();
    }
    let allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let mut name: String = volume.chars().map(|char| if allowed(char) { char } else { '_' }).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name.insert(0, '_');
    }
    // Names that differ only in what was replaced stay different: two resources of a module cannot share a name.
    if name != volume {
        name = format!("{name}_{:08x}", fnv1a(volume.bytes()) >> 32);
    }
    name
}

fn terraform(plan: &mut ChangePlan, name: &str, target: &Resolved) {
    let volume = &target.spec.volume;
    plan.terraform.push(format!("resource \"aws_ebs_volume\" \"{}\" {{", resource_name(name)));
    let members = target.spec.members();
    if members > 1 {
        plan.terraform.push(format!("  count             = {members}"));
    }
    plan.terraform.push("  availability_zone = \"ZONE\"".into());
    plan.terraform.push(format!("  type              = \"{}\"", volume.kind));
    plan.terraform.push(format!("  size              = {}", volume.size_bytes.unwrap_or(0) / GIB));
    if let Some(iops) = volume.iops {
        plan.terraform.push(format!("  iops              = {iops}"));
    }
    if let Some(mib_s) = volume.throughput_mib_s {
        plan.terraform.push(format!("  throughput        = {mib_s}"));
        if mib_s > 1_000 {
            plan.notes.push("releases of the Terraform provider from before gp3's 2,000 MiB/s (2025-09-26) refuse a throughput above 1000".into());
        }
    }
    plan.terraform.push("  encrypted         = true".into());
    plan.terraform.push("}".into());
}
