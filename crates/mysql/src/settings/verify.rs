//! What a running server made of its settings.

use std::collections::BTreeMap;

use ebbtide_load::Session;
use ebbtide_observe::switch;

use super::render::{RenderedSetting, render};
use super::table::table;
use super::value::bytes;
use super::{RAW, Settings};
use crate::Binary;
use crate::error::SettingError;

/// Reads back what the running server really has, in one statement. Answers with notes about values that
/// the server adjusted, such as a buffer pool rounded up to whole chunks.
///
/// # Errors
/// A setting that the server accepted and ignored, or a broken connection.
pub fn verify(
    settings: &Settings,
    binary: &Binary,
    session: &mut Session,
) -> Result<Vec<String>, SettingError> {
    let rendered = render(settings, binary)?;
    let raw = settings.iter().filter_map(|(name, _)| Some(variable_of(name.strip_prefix(RAW)?)));
    let names: Vec<String> = rendered
        .iter()
        .flat_map(|rendered| rendered.variables.iter().map(|(own, _)| own.clone()))
        .chain(raw)
        .collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let running = read(session, &names).map_err(SettingError::Session)?;
    judge(&rendered, &running, binary)
}

fn read(
    session: &mut Session,
    names: &[String],
) -> Result<BTreeMap<String, String>, ebbtide_load::LoadError> {
    let list = names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(",");
    let rows = session.rows(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({list})"))?;
    let pairs = rows.into_iter().filter_map(|row| match <[_; 2]>::try_from(row) {
        Ok([Some(name), value]) => Some((name.to_ascii_lowercase(), value.unwrap_or_default())),
        _ => None,
    });
    Ok(pairs.collect())
}

fn judge(
    rendered: &[RenderedSetting],
    running: &BTreeMap<String, String>,
    binary: &Binary,
) -> Result<Vec<String>, SettingError> {
    let mut notes = Vec::new();
    for rendered in rendered {
        match rendered.name.strip_prefix(RAW) {
            Some(own) => notes.extend(judge_raw(rendered, &variable_of(own), running, binary)?),
            None => notes.extend(judge_one(rendered, running)?),
        }
    }
    Ok(notes)
}

fn judge_one(
    rendered: &RenderedSetting,
    running: &BTreeMap<String, String>,
) -> Result<Option<String>, SettingError> {
    let found = |own: &String| running.get(own).map_or("no such variable", String::as_str);
    let differs = |(own, asked): &&(String, String)| !same(asked, found(own));
    let Some((own, asked)) = rendered.variables.iter().find(differs) else { return Ok(None) };
    let has = show(&rendered.name, found(own));
    match rendered.rounded {
        Some(rounded) if running.contains_key(own) => Ok(Some(format!(
            "{}: {} was asked for, the server has {has}: {rounded}",
            rendered.name,
            show(&rendered.name, asked)
        ))),
        _ => Err(SettingError::Ignored {
            name: rendered.name.clone(),
            option: rendered.options.join(" "),
            running: format!("{own}={}", found(own)),
        }),
    }
}

/// Options of which no server makes a variable: what they switch is in tables of `performance_schema`.
const NEVER_VARIABLES: [&str; 2] = ["performance_schema_instrument", "performance_schema_consumer_"];

/// A server's own option is compared where it can be read back. InnoDB's all can: one that is not there
/// was accepted for the sake of old option files, and does nothing.
fn judge_raw(
    rendered: &RenderedSetting,
    variable: &str,
    running: &BTreeMap<String, String>,
    binary: &Binary,
) -> Result<Option<String>, SettingError> {
    let option = rendered.options.join(" ");
    let Some(has) = running.get(variable) else {
        if variable.starts_with("innodb_") {
            let running = format!("no such variable in {}", binary.name());
            return Err(SettingError::Ignored { name: rendered.name.clone(), option, running });
        }
        let never = NEVER_VARIABLES.iter().any(|prefix| variable.starts_with(prefix));
        let note = || format!("{}: not a variable, so that it could not be read back", rendered.name);
        return Ok((!never).then(note));
    };
    match option.split_once('=') {
        Some((_, asked)) if !same(asked, has) => {
            Ok(Some(format!("{}: {asked} was asked for, the server has {has}", rendered.name)))
        }
        _ => Ok(None),
    }
}

/// The variable behind an option: `loose_` only allows it to be missing.
pub(crate) fn variable_of(option: &str) -> String {
    let plain = option.to_ascii_lowercase().replace('-', "_");
    plain.strip_prefix("loose_").map(str::to_owned).unwrap_or(plain)
}

/// Servers answer `ON` for what was given as `1`, `90.000000` for `90`, `16777216` for `16M`.
fn same(asked: &str, has: &str) -> bool {
    if asked.eq_ignore_ascii_case(has) {
        return true;
    }
    if let (Ok(asked), Ok(has)) = (asked.parse::<f64>(), has.parse::<f64>()) {
        return asked == has;
    }
    if let (Some(asked), Some(has)) = (switch(asked), switch(has)) {
        return asked == has;
    }
    matches!((bytes(asked), bytes(has)), (Some(asked), Some(has)) if asked == has)
}

fn show(name: &str, text: &str) -> String {
    let shape = table().find(name).map(super::table::Row::shape);
    shape.and_then(|shape| Some(shape.show(&shape.read(text)?))).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flavour, Version};

    #[test]
    fn an_option_that_is_no_variable_is_noted_unless_no_server_ever_made_it_one() {
        let version = Version { major: 10, minor: 11, patch: 19 };
        let (path, text) = ("/usr/sbin/mariadbd".into(), String::new());
        let binary = Binary { path, flavour: Flavour::MariaDb, version, text };
        let mut settings = Settings::new();
        settings.set("raw.performance_schema_instrument", "%dblwr_mutex=ON").unwrap();
        settings.set("raw.some_option", "1").unwrap();
        let rendered = render(&settings, &binary).unwrap();
        assert_eq!(
            judge(&rendered, &BTreeMap::new(), &binary).unwrap(),
            ["raw.some_option: not a variable, so that it could not be read back"]
        );
    }
}
