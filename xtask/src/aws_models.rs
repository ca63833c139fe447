//! `cargo xtask aws-models DIR`: reduces the service models of an unpacked botocore to the operations of EBS, as
//! `crates/cloud` embeds them.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Which services and operations are kept, as data.
const SELECTION: &str = include_str!("../aws-models.toml");
const TARGET: &str = "crates/cloud/data/models";

/// What the program says about it.
pub(crate) const USAGE: &str = "cargo xtask aws-models DIR_WITH_BOTOCORE";

/// The operations of one service that are kept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Selection {
    /// Its folder in botocore's data, and the version of its interface.
    from: String,
    /// Its name in a signature's scope, which the file is called by.
    name: String,
    /// The operations; all of them where there are none.
    #[serde(default)]
    operations: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Selections {
    service: Vec<Selection>,
}

/// What is kept of the whole service, of an operation, of a shape, of a reference to a shape.
const METADATA: [&str; 7] = [
    "apiVersion",
    "awsQueryCompatible",
    "jsonVersion",
    "protocols",
    "serviceId",
    "targetPrefix",
    "xmlNamespace",
];
const SHAPE: [&str; 9] =
    ["enum", "error", "exception", "flattened", "max", "min", "payload", "required", "type"];
const REFERENCE: [&str; 6] = ["flattened", "location", "locationName", "queryName", "shape", "streaming"];

/// Writes the models of an unpacked botocore.
pub(crate) fn run(botocore: &str) -> Result<ExitCode> {
    let root = Path::new(botocore);
    let version = version(root)?;
    let selections: Selections = toml::from_str(SELECTION).context("xtask/aws-models.toml")?;
    fs::create_dir_all(TARGET)?;
    for selection in &selections.service {
        let path = root.join("botocore/data").join(&selection.from).join("service-2.json.gz");
        let model = read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let reduced = reduce(&model, selection, &format!("botocore {version}"))?;
        let target = Path::new(TARGET).join(format!("{}.json.gz", selection.name));
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(reduced.to_string().as_bytes())?;
        fs::write(&target, packed.finish()?)?;
        let count = |what: &str| reduced[what].as_object().map_or(0, Map::len);
        println!("{}: {} operations, {} shapes", target.display(), count("operations"), count("shapes"));
    }
    Ok(ExitCode::SUCCESS)
}

/// botocore's own version.
fn version(root: &Path) -> Result<String> {
    let path = root.join("botocore/__init__.py");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("__version__ = '"));
    Ok(line.context("botocore has no __version__")?.trim_end_matches('\'').to_owned())
}

fn read(path: &Path) -> Result<Value> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(path)?).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// The selected operations, and the shapes that they reach, without documentation.
fn reduce(model: &Value, selection: &Selection, source: &str) -> Result<Value> {
    let all = model["operations"].as_object().context("a model has operations")?;
    let names: Vec<&String> = if selection.operations.is_empty() {
        all.keys().collect()
    } else {
        selection.operations.iter().collect()
    };
    let (mut operations, mut wanted) = (Map::new(), BTreeSet::new());
    for name in names {
        let Some(operation) = all.get(name) else { bail!("{} has no operation {name}", selection.from) };
        let mut kept = only(operation, &["http"]);
        for end in ["input", "output"] {
            if let Some(shape) = operation[end]["shape"].as_str() {
                wanted.insert(shape.to_owned());
                kept.insert(end.to_owned(), json!(shape));
            }
        }
        if let Some(wrapper) = operation["output"].get("resultWrapper") {
            kept.insert("resultWrapper".to_owned(), wrapper.clone());
        }
        for error in operation["errors"].as_array().into_iter().flatten() {
            wanted.extend(error["shape"].as_str().map(str::to_owned));
        }
        operations.insert(name.clone(), Value::Object(kept));
    }
    // Errors that the model adds for a protocol belong to no operation.
    let shapes = model["shapes"].as_object().context("a model has shapes")?;
    wanted
        .extend(shapes.iter().filter(|(_, shape)| shape["synthetic"] == true).map(|(name, _)| name.clone()));
    Ok(json!({
        "source": source,
        "name": selection.name,
        "metadata": only(&model["metadata"], &METADATA),
        "operations": operations,
        "shapes": closure(shapes, wanted)?,
    }))
}

/// The shapes and all that they refer to.
fn closure(shapes: &Map<String, Value>, wanted: BTreeSet<String>) -> Result<Map<String, Value>> {
    let mut kept = Map::new();
    let mut open: Vec<String> = wanted.into_iter().collect();
    while let Some(name) = open.pop() {
        if kept.contains_key(&name) {
            continue;
        }
        let shape = shapes.get(&name).with_context(|| format!("there is no shape {name}"))?;
        let mut slim = only(shape, &SHAPE);
        let mut follow = |reference: &Value| {
            open.extend(reference["shape"].as_str().map(str::to_owned));
            Value::Object(only(reference, &REFERENCE))
        };
        for end in ["member", "key", "value"] {
            if let Some(reference) = shape.get(end) {
                slim.insert(end.to_owned(), follow(reference));
            }
        }
        if let Some(members) = shape["members"].as_object() {
            let members: Map<_, _> =
                members.iter().map(|(name, reference)| (name.clone(), follow(reference))).collect();
            slim.insert("members".to_owned(), Value::Object(members));
        }
        kept.insert(name, Value::Object(slim));
    }
    Ok(kept)
}

fn only(value: &Value, keys: &[&str]) -> Map<String, Value> {
    keys.iter().filter_map(|key| Some(((*key).to_owned(), value.get(*key)?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Value {
        json!({
            "metadata": { "apiVersion": "1", "uid": "left-out" },
            "operations": {
                "Get": { "input": { "shape": "In" }, "output": { "shape": "Out", "resultWrapper": "GetResult" },
                         "http": { "method": "GET" }, "documentation": "long" },
                "Put": { "input": { "shape": "Other" } },
            },
            "shapes": {
                "In": { "type": "structure", "documentation": "long", "members": { "Ids": { "shape": "List", "documentation": "long" } } },
                "Out": { "type": "structure", "members": {} },
                "List": { "type": "list", "member": { "shape": "Text", "locationName": "item" } },
                "Text": { "type": "string", "pattern": ".*" },
                "Other": { "type": "structure", "members": {} },
                "Added": { "type": "structure", "synthetic": true, "exception": true },
            },
        })
    }

    #[test]
    fn only_what_the_selected_operations_reach_is_kept() {
        let selection =
            Selection { from: "x/1".to_owned(), name: "x".to_owned(), operations: vec!["Get".to_owned()] };
        let reduced = reduce(&model(), &selection, "botocore 0").unwrap();
        let names: Vec<_> = reduced["shapes"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["Added", "In", "List", "Out", "Text"]);
        assert_eq!(
            reduced["operations"],
            json!({ "Get": { "http": { "method": "GET" }, "input": "In", "output": "Out", "resultWrapper": "GetResult" } })
        );
        assert!(!reduced.to_string().contains("long"), "{reduced}");
        assert_eq!(reduced["metadata"], json!({ "apiVersion": "1" }));
    }

    #[test]
    fn an_operation_that_the_model_lacks_is_refused() {
        let selection =
            Selection { from: "x/1".to_owned(), name: "x".to_owned(), operations: vec!["Gett".to_owned()] };
        assert!(reduce(&model(), &selection, "").unwrap_err().to_string().contains("Gett"));
    }
}
