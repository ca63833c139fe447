//! `--set PATH=VALUE`: which arms a path means, and which key of theirs.

use ebbtide_mysql::{SettingError, Settings};
use ebbtide_text::{closest, did_you_mean};

use super::ExperimentError;
use super::file::{File, no_such, normal};
use super::section::{OF_ALL, OF_ARMS, SECTIONS, SHARED, canonical_key, keys_of, setting_name};
use super::tree::{Node, TomlTable, Value, WrittenAt};

/// A change that the command line makes.
#[derive(Debug, Clone)]
pub(super) struct ArmChange {
    pub(super) whom: Whom,
    pub(super) patch: TomlTable,
}

/// Whom a change concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whom {
    /// All arms.
    All,
    /// Arms with this option of this axis.
    With(usize, usize),
    /// The arm of this whole name.
    Arm(String),
}

/// Reads one `--set`; `arms` are the whole names of the arms.
pub(super) fn change(
    file: &File,
    arms: &[String],
    path: &str,
    value: &str,
) -> Result<ArmChange, ExperimentError> {
    let place = WrittenAt::option(format!("--set {path}={value}"));
    let (whom, rest) = whom(file, arms, path, &place)?;
    let (section, key) = match rest.split_once('.') {
        Some((section, key)) if is_section(section) => (section, canonical_key(section, key)),
        _ if whom == Whom::All => return Err(place.wrong(no_such_path(file, arms, path))),
        _ => {
            let (section, key) = bare(rest, value, &place)?;
            (section, key)
        }
    };
    let shared = OF_ALL.contains(&section) || SHARED.contains(&(section, key.as_str()));
    if whom != Whom::All && shared {
        let what = if OF_ALL.contains(&section) { section.to_owned() } else { format!("{section}.{key}") };
        return Err(place
            .wrong(format!("all arms share {what}: write --set {section}.{key}={value} for all of them")));
    }
    let node = Node::of_option(value, place.clone());
    let patch = match key.splitn(3, '.').collect::<Vec<_>>().as_slice() {
        // The servers of a role have sections of their own.
        [role, own, key] if section == "topology" => {
            Node { value: Value::Table(node.nested(own, key)), place }.nested(section, role)
        }
        [role, key] if section == "topology" => {
            let mut own = TomlTable::default();
            own.insert(key, node);
            Node { value: Value::Table(own), place }.nested(section, role)
        }
        _ => node.nested(section, &key),
    };
    Ok(ArmChange { whom, patch: normal(patch)? })
}

/// `--volume SPEC`: the data volume of all arms.
pub(super) fn volume(file: &File, spec: &str) -> Result<ArmChange, ExperimentError> {
    let place = WrittenAt::option(format!("--volume {spec}"));
    let patches_it = |patch: &TomlTable| {
        patch.get("volumes").and_then(|node| node.table("volumes").ok()?.get("data")).is_some()
    };
    if let Some(axis) = file.axes.iter().find(|axis| axis.options.iter().any(|o| patches_it(&o.patch))) {
        let options: Vec<&str> = axis.options.iter().map(|option| option.name.as_str()).collect();
        let first = options[0];
        return Err(place.wrong(format!(
            "the axis '{}' of this experiment gives its arms their data volumes ({}), and one volume for all \
             would make them equal: choose with --arms {first}, or change one with \
             --set {first}.volumes.data=SPEC",
            axis.name,
            options.join(", "),
        )));
    }
    let node = Node { value: Value::Text(spec.to_owned()), place };
    Ok(ArmChange { whom: Whom::All, patch: node.nested("volumes", "data") })
}

/// An option of the command line that represents a key of `[trial]`.
pub(super) fn trial(key: &str, option: &str, value: &str) -> ArmChange {
    let node = Node::of_option(value, WrittenAt::option(format!("{option} {value}")));
    ArmChange { whom: Whom::All, patch: node.nested("trial", key) }
}

/// A key of a section, for all arms.
pub(super) fn of_all(section: &str, key: &str, node: Node) -> ArmChange {
    ArmChange { whom: Whom::All, patch: node.nested(section, key) }
}

/// A key of a section, for the arm of this whole name.
pub(super) fn of_arm(arm: &str, section: &str, key: &str, node: Node) -> ArmChange {
    ArmChange { whom: Whom::Arm(arm.to_owned()), patch: node.nested(section, key) }
}

fn is_section(name: &str) -> bool {
    OF_ARMS.contains(&name) || OF_ALL.contains(&name)
}

/// Whom a path begins with, and what follows. Names may have dots: the longest that fits is meant.
fn whom<'a>(
    file: &File,
    arms: &[String],
    path: &'a str,
    place: &WrittenAt,
) -> Result<(Whom, &'a str), ExperimentError> {
    let mut found: Vec<(&str, Whom, String)> = Vec::new();
    for (axis, of) in file.axes.iter().enumerate() {
        for (option, choice) in of.options.iter().enumerate() {
            let full = format!("{}.{}", of.name, choice.name);
            for name in [&choice.name, &full] {
                found.extend(after(path, name).map(|rest| (rest, Whom::With(axis, option), full.clone())));
            }
        }
    }
    // With one axis, an arm and its option are the same.
    for arm in arms.iter().filter(|_| file.axes.len() != 1) {
        found.extend(after(path, arm).map(|rest| (rest, Whom::Arm(arm.clone()), arm.clone())));
    }
    let shortest = found.iter().map(|(rest, ..)| rest.len()).min();
    found.retain(|(rest, ..)| Some(rest.len()) == shortest);
    match found.as_slice() {
        [] if path.split_once('.').is_some_and(|(first, _)| is_section(first)) => Ok((Whom::All, path)),
        [] => Err(place.wrong(no_such_path(file, arms, path))),
        [(rest, whom, _)] => Ok((whom.clone(), *rest)),
        several => {
            let ways: Vec<String> = several.iter().map(|(rest, _, full)| format!("{full}.{rest}")).collect();
            Err(place.wrong(format!("several axes have such an option: write {}", ways.join(" or "))))
        }
    }
}

/// What follows a name and a dot.
fn after<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    path.strip_prefix(name)?.strip_prefix('.')
}

/// The section of a key that is alone behind an arm's name: a setting's or the load's, else
/// that of another section.
fn bare(key: &str, value: &str, place: &WrittenAt) -> Result<(&'static str, String), ExperimentError> {
    let mut found: Vec<(&'static str, String)> = Vec::new();
    match setting_name(key, value) {
        Ok(name) => found.push(("settings", name)),
        Err(SettingError::Unknown { .. }) => {}
        Err(error) => return Err(place.wrong(error.to_string())),
    }
    for section in ["load", "volumes", "instance", "batch", "backup", "trial", "warmup"] {
        let name = canonical_key(section, key);
        if keys_of(section).is_some_and(|keys| keys.contains(&name.as_str())) {
            found.push((section, name));
        }
        if !found.is_empty() && section == "load" {
            break;
        }
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let nearest = match Settings::new().set(key, value) {
                Err(SettingError::Unknown { nearest, .. }) => nearest,
                _ => None,
            };
            let own = SECTIONS.iter().filter(|(section, _)| OF_ARMS.contains(section));
            let known: Vec<&str> =
                own.flat_map(|(_, keys)| keys.iter().copied()).chain(nearest.as_deref()).collect();
            let nearest = closest(key, known);
            Err(place.wrong(format!("there is no setting and no key '{key}'{}", did_you_mean(nearest))))
        }
        several => {
            let ways: Vec<String> = several.iter().map(|(section, key)| format!("{section}.{key}")).collect();
            Err(place.wrong(format!("'{key}' is ambiguous: write {}", ways.join(" or "))))
        }
    }
}

fn no_such_path(file: &File, arms: &[String], path: &str) -> String {
    let first = path.split('.').next().unwrap_or(path);
    if setting_name(path, "").is_ok() {
        let arm = file.option_names().first().map(|option| format!(", or {option}.{path} for one arm"));
        return format!("write settings.{path} for all arms{}", arm.unwrap_or_default());
    }
    let mut known: Vec<&str> = OF_ARMS.into_iter().chain(OF_ALL).chain(file.option_names()).collect();
    known.extend(arms.iter().map(String::as_str).filter(|arm| arm.contains(" / ")).take(3));
    let mut seen = Vec::new();
    known.retain(|name| {
        !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    no_such("section or arm", first, known)
}
