//! Answers of the query protocols as XML.

use std::borrow::Cow;

use quick_xml::Writer;
use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use serde_json::{Map, Value};

use super::Route;
use super::scalar::{self, TimeForm};
use crate::model::{Kind, Model, Operation, Shape};

/// The type of a body.
pub(super) const TYPE: &str = "text/xml;charset=UTF-8";
/// What every document begins with.
const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// An answer of EC2: the members are directly below the root.
pub(super) fn ec2(route: &Route, shape: Option<&Shape>, output: &Map<String, Value>, id: &str) -> Vec<u8> {
    let mut document = Document::new(TimeForm::Milliseconds);
    let root = format!("{}Response", route.action);
    document.open_in(&root, &format!("{}/", route.model.metadata.xml_namespace));
    document.leaf("requestId", id);
    match shape {
        Some(shape) => document.members(route.model, shape, output),
        None => document.leaf("return", "true"),
    }
    document.close(&root);
    document.finish()
}

/// An answer of the other query services: the members are in a result.
pub(super) fn query(
    route: &Route,
    operation: &Operation,
    shape: Option<&Shape>,
    output: &Map<String, Value>,
    id: &str,
) -> Vec<u8> {
    let mut document = Document::new(TimeForm::Shortest);
    let root = format!("{}Response", route.action);
    document.open_in(&root, &route.model.metadata.xml_namespace);
    if let Some(shape) = shape {
        let result = operation.result_wrapper.clone().unwrap_or_else(|| format!("{}Result", route.action));
        document.open(&result);
        document.members(route.model, shape, output);
        document.close(&result);
    }
    document.open("ResponseMetadata");
    document.leaf("RequestId", id);
    document.close("ResponseMetadata");
    document.close(&root);
    document.finish()
}

/// A document that is being written.
pub(super) struct Document {
    writer: Writer<Vec<u8>>,
    times: TimeForm,
}

impl Document {
    pub(super) fn new(times: TimeForm) -> Self {
        Self { writer: Writer::new(DECLARATION.as_bytes().to_vec()), times }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.writer.into_inner()
    }

    fn event(&mut self, event: Event<'_>) {
        self.writer.write_event(event).expect("memory takes all that is written");
    }

    pub(super) fn open(&mut self, name: &str) {
        self.event(Event::Start(BytesStart::new(name)));
    }

    pub(super) fn open_in(&mut self, name: &str, namespace: &str) {
        self.event(Event::Start(BytesStart::new(name).with_attributes([("xmlns", namespace)])));
    }

    pub(super) fn close(&mut self, name: &str) {
        self.event(Event::End(BytesEnd::new(name)));
    }

    pub(super) fn leaf(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            self.event(Event::Empty(BytesStart::new(name)));
            return;
        }
        self.open(name);
        self.event(Event::Text(BytesText::from_escaped(escape(text))));
        self.close(name);
    }

    fn members(&mut self, model: &Model, shape: &Shape, output: &Map<String, Value>) {
        for (name, value) in output {
            let Some(reference) = shape.members.get(name) else { continue };
            let inner = model.target(reference);
            let is_flat = inner.flattened || reference.flattened;
            self.value(model, inner, value, reference.wire_name(name), is_flat);
        }
    }

    fn value(&mut self, model: &Model, shape: &Shape, value: &Value, name: &str, is_flat: bool) {
        match (shape.kind, value) {
            (Kind::Structure, Value::Object(output)) => {
                self.open(name);
                self.members(model, shape, output);
                self.close(name);
            }
            (Kind::List, Value::Array(items)) => self.list(model, shape, items, name, is_flat),
            (Kind::Map, Value::Object(entries)) => self.map(model, shape, entries, name),
            (kind, _) => {
                let text = scalar::write(kind, value, self.times);
                self.leaf(name, &text);
            }
        }
    }

    fn list(&mut self, model: &Model, shape: &Shape, items: &[Value], name: &str, is_flat: bool) {
        let of_items = model.target(shape.item());
        if is_flat {
            items.iter().for_each(|value| self.value(model, of_items, value, name, false));
        } else if items.is_empty() {
            self.leaf(name, "");
        } else {
            self.open(name);
            let level = shape.item().location_name.as_deref().unwrap_or("member");
            items.iter().for_each(|value| self.value(model, of_items, value, level, false));
            self.close(name);
        }
    }

    fn map(&mut self, model: &Model, shape: &Shape, entries: &Map<String, Value>, name: &str) {
        let (of_keys, of_values) = shape.entry();
        self.open(name);
        for (key, value) in entries {
            self.open("entry");
            self.leaf(of_keys.location_name.as_deref().unwrap_or("key"), key);
            let inner = of_values.location_name.as_deref().unwrap_or("value");
            self.value(model, model.target(of_values), value, inner, false);
            self.close("entry");
        }
        self.close(name);
    }
}

/// Text for XML 1.0. Characters that it cannot have, even escaped, become U+FFFD; a carriage return is escaped, since
/// parsers make a line feed of it.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !matches!(c, '&' | '<' | '>' | '\r') && is_allowed(c);
    if text.chars().all(is_plain) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\r' => escaped.push_str("&#13;"),
            c if is_allowed(c) => escaped.push(c),
            _ => escaped.push(char::REPLACEMENT_CHARACTER),
        }
    }
    escaped.into()
}

const fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}
