//! Answers of the query protocols as XML.

use std::borrow::Cow;

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
    text: String,
    times: TimeForm,
}

impl Document {
    pub(super) fn new(times: TimeForm) -> Self {
        Self { text: DECLARATION.to_owned(), times }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.text.into_bytes()
    }

    fn put(&mut self, parts: &[&str]) {
        parts.iter().for_each(|part| self.text.push_str(part));
    }

    // Names of elements and namespaces are those of the models: nothing of them needs to be escaped.

    pub(super) fn open(&mut self, name: &str) {
        self.put(&["<", name, ">"]);
    }

    pub(super) fn open_in(&mut self, name: &str, namespace: &str) {
        self.put(&["<", name, " xmlns=\"", namespace, "\">"]);
    }

    pub(super) fn close(&mut self, name: &str) {
        self.put(&["</", name, ">"]);
    }

    pub(super) fn leaf(&mut self, name: &str, text: &str) {
        match text {
            "" => self.put(&["<", name, "/>"]),
            text => self.put(&["<", name, ">", &escape(text), "</", name, ">"]),
        }
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
    // Most texts are of ASCII, of which bytes are looked at faster than characters.
    let is_plain_byte = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'&' | b'<' | b'>');
    if text.as_bytes().iter().all(is_plain_byte) || text.chars().all(is_plain) {
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
