//! The JSON of `iostat -o JSON` and of `sadf -j`.

use serde_json::Value;

use super::figures::{Figure, of_iostat, of_sar};
use super::iostat::share;
use super::{Recording, Report, Run, Text, Time, clock};
use crate::record_error::{RecordDamage, Unusable};

/// Reads iostat's JSON; None in another text, that of sadf too.
pub(super) fn iostat(text: &str) -> Option<Text> {
    let read = Document::read(text)?;
    let Ok(document) = read else { return read.err().map(Text::Damaged) };
    if document.is_of_sadf() {
        return None;
    }
    let has = |name: &str| document.reports().any(|report| report.get(name).is_some());
    let is_extended = |disk: &Value| disk.get("r/s").is_some() || disk.get("await").is_some();
    if !has("disk") && !has("avg-cpu") {
        return document
            .reports()
            .next()
            .is_none()
            .then_some(Text::Recording(Recording { tool: "iostat", ..Recording::default() }));
    }
    let disks = || document.reports().flat_map(|report| elements(report, "disk"));
    if !has("disk") || disks().next().is_some_and(|disk| !is_extended(disk)) {
        return Some(Text::Unusable(Unusable::NotExtended));
    }
    Some(document.recording("iostat", "disk_device", |place, report| {
        let percent = |name: &str| report.get("avg-cpu")?.get(name)?.as_f64();
        Report {
            end: report.get("timestamp").and_then(Value::as_str).map(Time::of),
            is_since_start: place == 0,
            busy_share: percent("user")
                .zip(percent("nice"))
                .zip(percent("system"))
                .and_then(|((user, nice), system)| share(user, nice, system)),
            ..Report::default()
        }
    }))
}

/// Reads sadf's JSON; None in another text.
pub(super) fn sadf(text: &str) -> Option<Text> {
    let read = Document::read(text)?;
    let Ok(document) = read else { return read.err().map(Text::Damaged) };
    if !document.is_of_sadf() {
        return None;
    }
    if !document.reports().any(|report| report.get("disk").is_some()) {
        return Some(Text::Unusable(Unusable::NoDisks));
    }
    Some(document.recording("sar", "disk-device", |_, report| {
        let time = report.get("timestamp");
        let word = |name: &str| time?.get(name)?.as_str();
        let text = format!("{} {}", word("date").unwrap_or_default(), word("time").unwrap_or_default());
        Report {
            end: Some(Time::of(&text)),
            seconds: time.and_then(|time| time.get("interval")?.as_f64()).filter(|seconds| *seconds > 0.0),
            ..Report::default()
        }
    }))
}

/// The elements of a list in an object; none where there is no list.
fn elements<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    object.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The documents of a text, one for each run.
struct Document {
    hosts: Vec<Value>,
    /// Whether the last one ends in the middle.
    is_cut: bool,
}

impl Document {
    /// Reads the documents; None in a text of another kind.
    fn read(text: &str) -> Option<Result<Self, RecordDamage>> {
        let text = text.trim_start();
        let head: String = text.chars().take(100).filter(|letter| !letter.is_whitespace()).collect();
        if !head.starts_with("{\"sysstat\":") {
            return None;
        }
        let is_comma_for_point = serde_json::Deserializer::from_str(text)
            .into_iter::<serde::de::IgnoredAny>()
            .any(|value| value.is_err_and(|error| error.is_syntax()));
        let pointed = if is_comma_for_point { with_points(text) } else { text.to_owned() };
        let text = pointed.as_str();
        let mut document = Self { hosts: Vec::new(), is_cut: false };
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        loop {
            let begun = values.byte_offset();
            let value = match values.next() {
                None => break,
                Some(Ok(value)) => value,
                Some(Err(error)) if error.is_eof() => {
                    document.is_cut = true;
                    match closed(&text[begun..]) {
                        Some(value) => value,
                        None => return Some(Err(RecordDamage::Json(error.to_string()))),
                    }
                }
                Some(Err(error)) => return Some(Err(RecordDamage::Json(error.to_string()))),
            };
            document
                .hosts
                .extend(value.get("sysstat").into_iter().flat_map(|own| elements(own, "hosts")).cloned());
            if document.is_cut {
                break;
            }
        }
        Some(Ok(document))
    }

    fn reports(&self) -> impl Iterator<Item = &Value> {
        self.hosts.iter().flat_map(|host| elements(host, "statistics"))
    }

    /// Whether sadf wrote it: times are objects, and the host has the date of the file.
    fn is_of_sadf(&self) -> bool {
        self.hosts.iter().any(|host| host.get("file-date").is_some())
            || self.reports().any(|report| report.get("timestamp").is_some_and(Value::is_object))
    }

    fn recording(&self, tool: &'static str, name: &str, report: impl Fn(usize, &Value) -> Report) -> Text {
        let mut recording = Recording { tool, is_cut: self.is_cut, ..Recording::default() };
        for host in &self.hosts {
            let mut run = Run {
                machine: host.get("nodename").and_then(Value::as_str).map(str::to_owned),
                processors: host.get("number-of-cpus").and_then(Value::as_u64),
                date: host.get("date").and_then(Value::as_str).and_then(clock::date),
                reports: Vec::new(),
            };
            for (place, value) in elements(host, "statistics").enumerate() {
                if value.get("disk").is_none() {
                    continue;
                }
                let mut own = report(place, value);
                for disk in elements(value, "disk") {
                    let figure = |column: &str| {
                        let value =
                            disk.get(column)?.as_f64().filter(|value| value.is_finite() && *value >= 0.0);
                        value.map(Figure::of_number)
                    };
                    let row = if tool == "iostat" { of_iostat(figure) } else { of_sar(figure) };
                    match (disk.get(name).and_then(Value::as_str), row) {
                        (Some(name), Some(row)) => {
                            own.devices.insert(name.to_owned(), row);
                        }
                        _ if recording.unread.is_none() => {
                            let shown = super::shown(&disk.to_string());
                            let why = format!(
                                "report {}: expected a device and its figures, found {shown}",
                                place + 1
                            );
                            recording.unread = Some(RecordDamage::Json(why));
                        }
                        _ => {}
                    }
                }
                run.reports.push(own);
            }
            recording.runs.push(run);
        }
        Text::Recording(recording)
    }
}

/// The text with a point in numbers such as `12,50`, as sadf before 11.2.8 and iostat 11.5.1 write them in some languages. Outside of
/// strings a comma has a digit on both sides in such a number alone: no list of sysstat is of numbers.
fn with_points(text: &str) -> String {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    let mut in_string = false;
    let point = |(place, letter): (usize, char)| {
        in_string ^= letter == '"';
        let between = is_digit(bytes.get(place.wrapping_sub(1))) && is_digit(bytes.get(place + 1));
        if letter == ',' && !in_string && between { '.' } else { letter }
    };
    text.char_indices().map(point).collect()
}

/// Depth of the list of reports: document, sysstat, hosts, host, statistics.
const REPORTS: usize = 5;

/// A document that ends in the middle, with what follows its last whole report closed; None where it has none.
fn closed(text: &str) -> Option<Value> {
    let (mut open, mut last, mut in_string, mut escaped) = (Vec::new(), None, false, false);
    for (place, byte) in text.bytes().enumerate() {
        if in_string {
            (in_string, escaped) = (escaped || byte != b'"', !escaped && byte == b'\\');
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' => open.push('}'),
            b'[' => open.push(']'),
            b'}' | b']' => {
                open.pop();
                if byte == b'}' && open.len() == REPORTS {
                    last = Some(place + 1);
                }
            }
            _ => {}
        }
    }
    let closing = "]}]}}";
    serde_json::from_str(&format!("{}{closing}", &text[..last?])).ok()
}
