//! Settings in one server's words.

use super::table::{Form, Here, OLDEST_MARIADB, OLDEST_MYSQL, table, unknown};
use super::value::{Value, on_off};
use super::{RAW, Settings};
use crate::error::SettingError;
use crate::{Binary, Flavour};

/// One setting in a server's words.
#[derive(Debug)]
pub(crate) struct RenderedSetting {
    /// The canonical name.
    pub(crate) name: String,
    /// Lines of the option file.
    pub(crate) options: Vec<String>,
    /// Variables, and what they are to be when the server runs.
    pub(crate) variables: Vec<(String, String)>,
    /// What the server makes of a value that does not suit it.
    pub(crate) rounded: Option<&'static str>,
}

/// All settings, by name.
pub(crate) fn render(settings: &Settings, binary: &Binary) -> Result<Vec<RenderedSetting>, SettingError> {
    if settings.is_empty() {
        return Ok(Vec::new());
    }
    check_server(binary)?;
    let rendered = settings.iter().map(|(name, text)| match name.strip_prefix(RAW) {
        Some(own) => Ok(raw(name, own, text)),
        None => render_one(name, text, binary),
    });
    let rendered = rendered.collect::<Result<_, _>>()?;
    check_order(settings, binary, "io_capacity", "io_capacity_max")?;
    check_order(settings, binary, "max_dirty_pages_pct_lwm", "max_dirty_pages_pct")?;
    check_flush_method(settings, binary)?;
    Ok(rendered)
}

/// Whether the table knows this server.
pub(crate) fn check_server(binary: &Binary) -> Result<(), SettingError> {
    let oldest = if binary.flavour == Flavour::MariaDb { OLDEST_MARIADB } else { OLDEST_MYSQL };
    let version = &binary.version;
    if (version.major, version.minor) < (oldest.major, oldest.minor) {
        let oldest = format!("{}.{}", oldest.major, oldest.minor);
        return Err(SettingError::Server { server: binary.name(), oldest });
    }
    Ok(())
}

/// A setting that this server has, and its value.
pub(crate) fn understand(
    name: &str,
    text: &str,
    binary: &Binary,
) -> Result<(Here<'static>, Value), SettingError> {
    let wrong = |expected| SettingError::Value { name: name.to_owned(), value: text.to_owned(), expected };
    let row = table().find(name).ok_or_else(|| unknown(name))?;
    let value = row.shape().read(text).ok_or_else(|| wrong(row.expected()))?;
    let here = row.here(binary).map_err(|absent| SettingError::NotHere {
        name: row.name.clone(),
        own_name: absent.own,
        server: binary.name(),
        why: absent.why,
    })?;
    if !here.takes(&value) {
        return Err(wrong(format!("{} takes {}", binary.name(), here.expected())));
    }
    Ok((here, value))
}

/// One setting by itself.
pub(crate) fn render_one(name: &str, text: &str, binary: &Binary) -> Result<RenderedSetting, SettingError> {
    let (here, value) = understand(name, text, binary)?;
    let own = here.own();
    let mut variables = match (here.span.form, &value) {
        (Some(Form::TwoFiles), Value::Number(size)) => {
            vec![(own.to_owned(), (size / 2).to_string()), ("innodb_log_files_in_group".into(), "2".into())]
        }
        (Some(Form::Buffering), Value::Word(method)) => buffering(method),
        _ => vec![(own.to_owned(), value.to_string())],
    };
    let options = match (here.span.form, &value) {
        (Some(Form::LogBin), Value::Switch(true)) => vec!["log_bin=binlog".to_owned()],
        (Some(Form::LogBin), _) => vec!["skip_log_bin".to_owned()],
        _ => variables.iter().map(|(own, value)| format!("{own}={value}")).collect(),
    };
    let options = match &here.span.plugin {
        Some(library) => of_plugin(library, options, &value),
        None => options,
    };
    if options.is_empty() {
        variables.clear();
    }
    if let (Some(variable), Some(first)) = (&here.span.variable, variables.first_mut()) {
        first.0.clone_from(variable);
    }
    Ok(RenderedSetting {
        name: here.row.name.clone(),
        options,
        variables,
        rounded: here.span.rounded.as_deref(),
    })
}

/// The option lines for a setting of a plugin: its switch loads it, and off is the same as not loaded. Its other
/// settings do not, as a server that is to load a plugin twice reports an error: without the switch they are ignored,
/// which is seen when they are read back.
fn of_plugin(library: &str, options: Vec<String>, value: &Value) -> Vec<String> {
    match value {
        Value::Switch(true) => std::iter::once(format!("plugin-load-add={library}")).chain(options).collect(),
        Value::Switch(false) => Vec::new(),
        _ => options.into_iter().map(|option| format!("loose_{option}")).collect(),
    }
}

/// The switches of a flush method, as MariaDB 11.8.6 sets them for the deprecated option.
fn buffering(method: &str) -> Vec<(String, String)> {
    let (buffered, through) = match method {
        "fsync" => (true, false),
        "O_DSYNC" => (false, true),
        _ => (false, false),
    };
    [
        ("innodb_data_file_buffering", buffered),
        ("innodb_data_file_write_through", through),
        ("innodb_log_file_write_through", through),
    ]
    .map(|(own, on)| (own.to_owned(), on_off(on).to_owned()))
    .into()
}

fn raw(name: &str, own: &str, text: &str) -> RenderedSetting {
    let option = if text.is_empty() { own.to_owned() } else { format!("{own}={text}") };
    RenderedSetting { name: name.to_owned(), options: vec![option], variables: Vec::new(), rounded: None }
}

/// Servers lower the one to the other, and render so in their log only.
fn check_order(settings: &Settings, binary: &Binary, low: &str, high: &str) -> Result<(), SettingError> {
    if settings.get(low).is_none() && settings.get(high).is_none() {
        return Ok(());
    }
    let value = |name: &str| match settings.get(name) {
        Some(text) => understand(name, text, binary).map(|(_, value)| Some(value)),
        None => Ok(table().find(name).and_then(|row| row.here(binary).ok()?.default())),
    };
    let above = match (value(low)?, value(high)?) {
        (Some(Value::Number(low)), Some(Value::Number(high))) => low > high,
        (Some(Value::Percent(low)), Some(Value::Percent(high))) => low > high,
        _ => false,
    };
    if !above {
        return Ok(());
    }
    let shown = |name: &str| settings.effective(name, binary).map_or_else(String::new, |found| found.value);
    let why = format!("{low} is {}, which is more than {high}, {}", shown(low), shown(high));
    Err(SettingError::Conflict { one: low.into(), other: high.into(), server: binary.name(), why })
}

/// Where a flush method is but a name for switches, it goes with none of them.
fn check_flush_method(settings: &Settings, binary: &Binary) -> Result<(), SettingError> {
    let Some(text) = settings.get("flush_method") else { return Ok(()) };
    let (here, _) = understand("flush_method", text, binary)?;
    let switches = ["data_file_buffering", "data_file_write_through", "log_file_write_through"];
    match switches.into_iter().find(|name| settings.get(name).is_some()) {
        Some(other) if here.span.form == Some(Form::Buffering) => Err(SettingError::Conflict {
            one: "flush_method".into(),
            other: other.into(),
            server: binary.name(),
            why: "there, a flush method is but a name for these switches".into(),
        }),
        _ => Ok(()),
    }
}
