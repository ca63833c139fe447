//! The JSON Schemas in docs/json, made of the types that the program serializes.
//!
//! `cargo xtask schemas` writes them; `cargo xtask tidy` fails where a file is not what the types define. What
//! is printed by which command is in `xtask/schemas.toml`. The shapes come from the sources alone
//! ([`types`], [`attrs`], [`shape`]), so that the program needs no library for it; that they are right is
//! shown by the tests of the program, which hold every JSON output against them.

mod attrs;
mod json;
mod shape;
mod types;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;
use serde::Deserialize;

use self::json::Json;
use self::shape::Shapes;
use self::types::Types;
use crate::repo::Repo;

const PLAN: &str = "xtask/schemas.toml";
const FOLDER: &str = "docs/json/";

/// One schema file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    title: String,
    outputs: Vec<Output>,
}

/// What some commands print.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    /// The commands, each with the options that make it print this; or the name of a file.
    of: Vec<String>,
    /// The Rust type, as the file `in` would write it.
    r#type: String,
    r#in: String,
}

/// Writes all schemas.
pub(crate) fn run() -> Result<ExitCode> {
    let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata failed")?;
    let root = metadata.workspace_root.as_std_path();
    for (path, text) in generate(&Repo::read(root)?)? {
        fs::write(root.join(&path), text).with_context(|| format!("cannot write {path}"))?;
        println!("{path}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Paths of the files that differ from what the types define, or have no plan.
pub(crate) fn stale(repo: &Repo) -> Result<Vec<String>> {
    let fresh = generate(repo)?;
    let mut stale: BTreeSet<String> = repo
        .texts(".schema.json")
        .map(|(path, _)| path.to_owned())
        .filter(|path| path.starts_with(FOLDER) && !fresh.contains_key(path))
        .collect();
    stale
        .extend(fresh.into_iter().filter(|(path, text)| repo.text(path) != Some(text)).map(|(path, _)| path));
    Ok(stale.into_iter().collect())
}

/// The text of every schema file, by path.
fn generate(repo: &Repo) -> Result<BTreeMap<String, String>> {
    let Some(plan) = repo.text(PLAN) else { return Ok(BTreeMap::new()) };
    let plans: BTreeMap<String, Plan> = toml::from_str(plan).context(PLAN)?;
    let types = Types::read(repo)?;
    let text = |(name, plan): (String, Plan)| {
        let schema = schema(&types, &plan).with_context(|| format!("the schema {name}"))?;
        Ok((format!("{FOLDER}{name}.schema.json"), serde_json::to_string_pretty(&schema)? + "\n"))
    };
    plans.into_iter().map(text).collect()
}

fn schema(types: &Types, plan: &Plan) -> Result<Json> {
    let mut shapes = Shapes::new(types);
    let mut outputs = Vec::new();
    for output in &plan.outputs {
        let ty = syn::parse_str(&output.r#type).with_context(|| output.r#type.clone())?;
        let mut shape = shapes.of(&output.r#in, &ty)?;
        shape.push("x-output-of", Json::texts(output.of.iter().map(String::as_str)));
        outputs.push(shape);
    }
    if !shapes.undescribed.is_empty() {
        bail!(
            "these fields have no text that says what they are, and in which unit: {}",
            shapes.undescribed.join(", ")
        );
    }
    let outputs = Json::List(outputs);
    let definitions = shapes.definitions.into_iter().filter_map(|(key, (_, shape))| Some((key, shape?)));
    let definitions = referenced(&outputs, definitions.collect());
    Ok(Json::object([
        ("$schema", "https://json-schema.org/draft/2020-12/schema".into()),
        ("title", plan.title.as_str().into()),
        ("anyOf", outputs),
        ("$defs", Json::Object(definitions)),
    ]))
}

/// The definitions that the outputs refer to, directly or through others: a flattened type is in none.
fn referenced(outputs: &Json, mut definitions: Vec<(String, Json)>) -> Vec<(String, Json)> {
    let (mut seen, mut next) = (BTreeSet::new(), outputs.references());
    while let Some(key) = next.pop() {
        if let Some((_, shape)) = definitions.iter().find(|(name, _)| *name == key)
            && seen.insert(key)
        {
            next.extend(shape.references());
        }
    }
    definitions.retain(|(key, _)| seen.contains(key));
    definitions
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN_OF_ONE: &str = r#"
        [thing]
        title = "Things"
        outputs = [{ of = ["thing show"], type = "Vec<Thing>", in = "src/thing.rs" }]
    "#;

    fn fresh(source: &str) -> Result<serde_json::Value> {
        let repo = Repo::from([(PLAN, PLAN_OF_ONE), ("src/thing.rs", source)]);
        let files = generate(&repo)?;
        Ok(serde_json::from_str(&files["docs/json/thing.schema.json"])?)
    }

    fn definitions(fields: &str) -> serde_json::Value {
        let source =
            format!("//! D\n/// A thing.\n#[derive(Serialize)]\nstruct Thing {{ {fields} }}\n{MORE}");
        fresh(&source).unwrap()["$defs"].clone()
    }

    fn thing(fields: &str) -> serde_json::Value {
        definitions(fields)["Thing"].clone()
    }

    const MORE: &str = r##"
        /// Its kind.
        #[derive(Serialize)]
        #[serde(rename_all = "kebab-case")]
        enum Kind {
            /// Small.
            VerySmall,
            /// Large.
            Large {
                /// Size, bytes.
                bytes: u64,
            },
        }
        /// Figures.
        #[derive(Serialize)]
        struct Figures {
            /// Rate, a second.
            rate: f64,
        }
        /// How it ended.
        #[derive(Serialize)]
        #[serde(tag = "is", rename_all = "snake_case")]
        enum End {
            /// Well.
            Well,
            /// Not.
            NotSo(Figures),
        }
    "##;

    #[test]
    fn fields_have_their_types_and_texts_and_no_other_field_is_allowed() {
        let thing = thing(
            "/// Its\n/// name.\nname: String,\n/// Size, bytes.\nsize: Option<u64>,\n\
             /// Left out.\n#[serde(skip_serializing_if = \"Option::is_none\")] more: Option<Vec<f64>>,",
        );
        let wanted = serde_json::json!({
            "type": "object",
            "description": "A thing.",
            "properties": {
                "name": { "type": "string", "description": "Its name." },
                "size": { "type": ["integer", "null"], "minimum": 0, "description": "Size, bytes." },
                "more": { "type": ["array", "null"], "items": { "type": "number" }, "description": "Left out." },
            },
            "required": ["name", "size"],
            "additionalProperties": false,
        });
        assert_eq!(thing, wanted);
    }

    #[test]
    fn other_types_are_definitions_and_a_flattened_one_only_gives_its_fields() {
        let definitions =
            definitions("/// Kind.\nkind: Option<Kind>, #[serde(flatten)] all: Figures, /// End.\nend: End,");
        assert!(definitions.get("Kind").is_some() && definitions.get("Figures").is_none(), "{definitions}");
        let thing = &definitions["Thing"];
        assert_eq!(thing["required"], serde_json::json!(["kind", "rate", "end"]));
        assert_eq!(thing["properties"]["kind"]["anyOf"][0]["$ref"], "#/$defs/Kind");
        assert_eq!(thing["properties"]["rate"]["type"], "number");
    }

    #[test]
    fn each_form_of_an_enum_has_its_shape() {
        let source = format!(
            "//! D\n/// T.\n#[derive(Serialize)]\nstruct Thing {{ /// K.\nk: Kind, /// E.\ne: End }}\n{MORE}"
        );
        let defs = fresh(&source).unwrap()["$defs"].clone();
        assert_eq!(
            defs["Kind"]["oneOf"][0],
            serde_json::json!({ "const": "very-small", "description": "Small." })
        );
        assert_eq!(defs["Kind"]["oneOf"][1]["properties"]["large"]["required"][0], "bytes");
        assert_eq!(defs["End"]["oneOf"][1]["required"], serde_json::json!(["is", "rate"]));
        assert_eq!(defs["End"]["oneOf"][1]["properties"]["is"]["const"], "not_so");
    }

    #[test]
    fn a_type_that_writes_itself_is_what_it_calls_its_serializer_for() {
        let by_hand =
            "impl Serialize for Money { fn serialize<S>(&self, to: S) -> X { to.serialize_f64(self.0) } }";
        let thing =
            "//! D\n/// T.\n#[derive(Serialize)]\nstruct Thing { /// Cost, USD.\ncost: Option<Money> }";
        let cost = fresh(&format!("{thing}\nstruct Money(u64);\n{by_hand}")).unwrap();
        let wanted = serde_json::json!({ "type": ["number", "null"], "description": "Cost, USD." });
        assert_eq!(cost["$defs"]["Thing"]["properties"]["cost"], wanted);
    }

    #[test]
    fn a_newtype_gives_its_field_the_first_sentence_of_its_text() {
        let newtype = "/// A time in ns. Never less than 0.\n#[derive(Serialize)]\n#[serde(transparent)]\nstruct Ns(u64);";
        let thing = "//! D\n/// T.\n#[derive(Serialize)]\nstruct Thing { /// The end.\nend: Ns }";
        let end =
            fresh(&format!("{thing}\n{newtype}")).unwrap()["$defs"]["Thing"]["properties"]["end"].clone();
        assert_eq!(end["description"], "The end. A time in ns.");
    }

    #[test]
    fn a_field_without_a_text_and_a_type_that_is_not_serialized_are_refused() {
        let refused = |source: &str| format!("{:#}", fresh(source).unwrap_err());
        let bare = "//! D\n/// T.\n#[derive(Serialize)]\nstruct Thing { name: String }";
        assert!(refused(bare).contains("src/thing.rs: Thing.name"), "{}", refused(bare));
        let foreign = "//! D\n/// T.\n#[derive(Serialize)]\nstruct Thing { /// N.\nname: Foreign }";
        assert!(refused(foreign).contains("no serialized type is called Foreign"), "{}", refused(foreign));
    }

    #[test]
    fn a_file_that_is_not_what_the_types_define_is_stale() {
        let source = "//! D\n/// T.\n#[derive(Serialize)]\nstruct Thing { /// N.\nname: String }";
        let fresh = generate(&Repo::from([(PLAN, PLAN_OF_ONE), ("src/thing.rs", source)])).unwrap();
        let (path, text) = fresh.first_key_value().unwrap();
        let with =
            |source: &str| stale(&Repo::from([(PLAN, PLAN_OF_ONE), ("src/thing.rs", source), (path, text)]));
        assert_eq!(with(source).unwrap(), Vec::<String>::new());
        assert_eq!(with(&source.replace("name", "title")).unwrap(), vec![path.clone()]);
    }
}
