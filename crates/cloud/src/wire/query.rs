//! Parameters in the two query protocols: names with dots become structures and lists.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fault::{Fault, below, item, upper_first};
use super::{Protocol, scalar};
use crate::model::{Kind, Model, Reference, Shape};

/// How deep the names of parameters may go.
const MAX_DEPTH: usize = 16;
/// How many parameters a request may have: more than CreateTags with 1,000 resources and 50 tags.
const MAX_PARAMETERS: usize = 20_000;

/// Parameters of every request, which are no members of its input.
const COMMON: [&str; 12] = [
    "AWSAccessKeyId",
    "Action",
    "Expires",
    "SecurityToken",
    "Version",
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-Security-Token",
    "X-Amz-Signature",
    "X-Amz-SignedHeaders",
];

/// Reads the parameters of an operation. EC2 refuses those that it does not know; other services ignore them.
pub(super) fn decode(
    model: &Model,
    protocol: Protocol,
    shape: Option<&Shape>,
    pairs: &[(String, String)],
) -> Result<Map<String, Value>, Fault> {
    let root = tree(pairs)?;
    let mut reader = Reader { model, protocol, pairs, used: vec![false; pairs.len()] };
    let input = match shape {
        Some(shape) => reader.structure(&root, shape, "")?,
        None => Map::new(),
    };
    let is_unknown = |(name, used): &(&str, &bool)| !**used && !COMMON.contains(name);
    let mut all = pairs.iter().map(|(name, _)| name.as_str()).zip(&reader.used);
    match all.find(is_unknown) {
        Some((name, _)) if protocol == Protocol::Ec2Query => {
            Err(Fault::Unknown { parameter: name.to_owned() })
        }
        _ => Ok(input),
    }
}

/// The parameters by the parts of their names.
#[derive(Debug, Default)]
struct Node<'a> {
    /// The parameter with this very name, as its place in the request.
    leaf: Option<usize>,
    children: BTreeMap<&'a str, Self>,
}

fn tree(pairs: &[(String, String)]) -> Result<Node<'_>, Fault> {
    if pairs.len() > MAX_PARAMETERS {
        return Err(Fault::Query { why: format!("it has more than {MAX_PARAMETERS} parameters") });
    }
    let mut root = Node::default();
    for (place, (name, _)) in pairs.iter().enumerate() {
        let mut node = &mut root;
        for (depth, part) in name.split('.').enumerate() {
            if depth == MAX_DEPTH {
                return Err(Fault::Query { why: format!("the name {name} has more than {MAX_DEPTH} parts") });
            }
            node = node.children.entry(part).or_default();
        }
        if node.leaf.replace(place).is_some() {
            return Err(Fault::Query { why: format!("the parameter {name} is there twice") });
        }
    }
    Ok(root)
}

struct Reader<'a> {
    model: &'a Model,
    protocol: Protocol,
    pairs: &'a [(String, String)],
    used: Vec<bool>,
}

impl<'a> Reader<'a> {
    fn structure(
        &mut self,
        node: &Node<'_>,
        shape: &Shape,
        place: &str,
    ) -> Result<Map<String, Value>, Fault> {
        let mut members = Map::new();
        for (name, reference) in &shape.members {
            let Some(child) = node.children.get(&*self.name(name, reference)) else { continue };
            if let Some(value) = self.value(child, reference, &below(place, name))? {
                members.insert(name.clone(), value);
            }
        }
        Ok(members)
    }

    /// What a member is called in a request.
    fn name(&self, member: &str, reference: &Reference) -> String {
        if self.protocol == Protocol::Query {
            return reference.wire_name(member).to_owned();
        }
        let location = || reference.location_name.as_deref().map(upper_first);
        reference.query_name.clone().or_else(location).unwrap_or_else(|| member.to_owned())
    }

    fn value(&mut self, node: &Node<'_>, reference: &Reference, place: &str) -> Result<Option<Value>, Fault> {
        let shape = self.model.target(reference);
        match shape.kind {
            Kind::Structure if node.children.is_empty() => Ok(None),
            Kind::Structure => self.structure(node, shape, place).map(|members| Some(members.into())),
            Kind::List => self.list(node, reference, shape, place),
            Kind::Map => self.map(node, shape, place),
            kind => {
                let Some(text) = self.take(node) else { return Ok(None) };
                match scalar::parse(kind, text) {
                    Some(value) => Ok(Some(value)),
                    None => {
                        Err(Fault::Kind { member: place.to_owned(), value: text.to_owned(), wanted: kind })
                    }
                }
            }
        }
    }

    /// The value of a node's own parameter.
    fn take(&mut self, node: &Node<'_>) -> Option<&'a str> {
        let leaf = node.leaf?;
        self.used[leaf] = true;
        Some(&self.pairs[leaf].1)
    }

    fn list(
        &mut self,
        node: &Node<'_>,
        reference: &Reference,
        shape: &Shape,
        place: &str,
    ) -> Result<Option<Value>, Fault> {
        // `Name=` is how an empty list is written.
        if let (Some(leaf), true) = (node.leaf, node.children.is_empty())
            && self.pairs[leaf].1.is_empty()
        {
            self.used[leaf] = true;
            return Ok(Some(Value::Array(Vec::new())));
        }
        let is_flat = self.protocol == Protocol::Ec2Query || shape.flattened || reference.flattened;
        let level = shape.item().location_name.as_deref().unwrap_or("member");
        let Some(items) = (if is_flat { Some(node) } else { node.children.get(level) }) else {
            return Ok(None);
        };
        let mut values = Vec::new();
        for (number, child) in numbered(items) {
            values.extend(self.value(child, shape.item(), &item(place, number))?);
        }
        Ok((!values.is_empty()).then_some(Value::Array(values)))
    }

    fn map(&mut self, node: &Node<'_>, shape: &Shape, place: &str) -> Result<Option<Value>, Fault> {
        let (key, value) = shape.entry();
        let entries = if shape.flattened { Some(node) } else { node.children.get("entry") };
        let mut map = Map::new();
        for (number, entry) in entries.map(numbered).unwrap_or_default() {
            let place = item(place, number);
            let of = |reference: &Reference, default| {
                entry.children.get(reference.location_name.as_deref().unwrap_or(default))
            };
            let (Some(of_key), Some(of_value)) = (of(key, "key"), of(value, "value")) else { continue };
            let Some(name) = self.take(of_key) else { continue };
            if let Some(value) = self.value(of_value, value, &place)? {
                map.insert(name.to_owned(), value);
            }
        }
        Ok((!map.is_empty()).then_some(Value::Object(map)))
    }
}

/// The children that have numbers of items for names, in their order. Gaps are no fault.
fn numbered<'n, 'a>(node: &'n Node<'a>) -> Vec<(usize, &'n Node<'a>)> {
    let number = |name: &str| name.parse().ok().filter(|n: &usize| *n > 0 && n.to_string() == name);
    let mut items: Vec<_> =
        node.children.iter().filter_map(|(name, child)| Some((number(name)?, child))).collect();
    items.sort_by_key(|(number, _)| *number);
    items
}
