//! Holds JSON that the program really printed against the schemas in docs/json.
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

/// One output of the schemas.
struct Output {
    /// File name of its schema.
    file: String,
    /// The words of a command that prints it, each as one of the arguments.
    words: Vec<String>,
    /// A schema of this output alone.
    schema: Value,
}

fn outputs() -> &'static [Output] {
    static OUTPUTS: OnceLock<Vec<Output>> = OnceLock::new();
    OUTPUTS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|dir| dir.join("docs/json"));
        let folder = folder.into_iter().find(|folder| folder.exists()).unwrap();
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        files
            .filter(|path| path.to_str().unwrap().ends_with(".schema.json"))
            .flat_map(|path| read(&path))
            .collect()
    })
}

fn read(path: &Path) -> Vec<Output> {
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let outputs = schema["anyOf"].as_array().unwrap().iter().flat_map(|output| {
        let mut alone = output.clone();
        alone["$schema"] = schema["$schema"].clone();
        alone["$defs"] = schema["$defs"].clone();
        let of = output["x-output-of"].as_array().unwrap().iter();
        of.map(move |of| Output {
            file: format!("docs/json/{}", path.file_name().unwrap().to_str().unwrap()),
            words: match of.as_str().unwrap() {
                file if file.starts_with('<') => vec![file.to_owned()],
                command => command.split(' ').map(str::to_owned).collect(),
            },
            schema: alone.clone(),
        })
    });
    outputs.collect()
}

/// What a schema finds wrong in a value; nothing where it holds.
fn faults(output: &Output, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    Check { defs: &output.schema["$defs"], faults: &mut faults }.against(&output.schema, value, "");
    faults.truncate(5);
    faults
}

/// A validation with the keywords that our schemas have; any other is a failure of the test, so that none goes
/// unchecked.
struct Check<'a> {
    defs: &'a Value,
    faults: &'a mut Vec<String>,
}

impl Check<'_> {
    fn against(&mut self, schema: &Value, value: &Value, at: &str) {
        let Some(keywords) = schema.as_object() else {
            assert!(schema.is_boolean(), "{schema} is no schema");
            if schema == &Value::Bool(false) {
                self.faults.push(format!("{at}: nothing may be here"));
            }
            return;
        };
        for (keyword, wanted) in keywords {
            match keyword.as_str() {
                "description" | "title" | "$schema" | "$defs" | "x-output-of" => {}
                "$ref" => {
                    let name = wanted.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                    let definition = self.defs.get(name).unwrap_or_else(|| panic!("{name} is not defined"));
                    self.against(definition, value, at);
                }
                "type" => self.kind(wanted, value, at),
                "const" if wanted != value => self.faults.push(format!("{at}: {value} is not {wanted}")),
                "const" => {}
                "anyOf" | "oneOf" => self.choice(keyword, wanted.as_array().unwrap(), value, at),
                "minimum" => {
                    let below = value.as_f64().is_some_and(|number| number < wanted.as_f64().unwrap());
                    below.then(|| self.faults.push(format!("{at}: {value} is below {wanted}")));
                }
                "required" => {
                    for name in wanted.as_array().unwrap().iter().filter_map(Value::as_str) {
                        let missing = value.as_object().is_some_and(|fields| !fields.contains_key(name));
                        missing.then(|| self.faults.push(format!("{at}: the field '{name}' is missing")));
                    }
                }
                "properties" | "additionalProperties" => {}
                "propertyNames" => {
                    for name in value.as_object().into_iter().flatten().map(|(name, _)| name) {
                        self.against(wanted, &json!(name), &format!("{at}/{name}"));
                    }
                }
                "items" | "prefixItems" => {}
                "minItems" | "maxItems" => {
                    let count = value.as_array().map(|items| items.len() as u64);
                    let limit = wanted.as_u64().unwrap();
                    let kept =
                        |count: u64| if keyword == "minItems" { count >= limit } else { count <= limit };
                    if !count.is_none_or(kept) {
                        self.faults.push(format!("{at}: {keyword} is {limit}"));
                    }
                }
                other => panic!("the tests do not know the keyword '{other}' of JSON Schema"),
            }
        }
        self.fields(keywords, value, at);
        self.items(keywords, value, at);
    }

    fn kind(&mut self, wanted: &Value, value: &Value, at: &str) {
        let is = |kind: &Value| match kind.as_str().unwrap() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("'{other}' is no type of JSON Schema"),
        };
        let fits = wanted.as_array().map_or_else(|| is(wanted), |all| all.iter().any(is));
        if !fits {
            let shown: String = value.to_string().chars().take(60).collect();
            self.faults.push(format!("{at}: {shown} is not of the type {wanted}"));
        }
    }

    fn choice(&mut self, keyword: &str, choices: &[Value], value: &Value, at: &str) {
        let mut found = Vec::new();
        let fitting = choices.iter().filter(|choice| {
            let mut faults = Vec::new();
            Check { defs: self.defs, faults: &mut faults }.against(choice, value, at);
            let fits = faults.is_empty();
            found.push(faults);
            fits
        });
        match (fitting.count(), keyword) {
            (1, _) | (2.., "anyOf") => {}
            // The choice that fits best shows most about what is wrong.
            (0, _) => self.faults.extend(found.into_iter().min_by_key(Vec::len).unwrap_or_default()),
            (count, _) => self.faults.push(format!("{at}: fits {count} of the choices, not one")),
        }
    }

    fn fields(&mut self, keywords: &Map<String, Value>, value: &Value, at: &str) {
        let known = keywords.get("properties").and_then(Value::as_object);
        for (name, field) in value.as_object().into_iter().flatten() {
            let place = format!("{at}/{name}");
            if let Some(schema) = known.and_then(|known| known.get(name)) {
                self.against(schema, field, &place);
            } else if let Some(other) = keywords.get("additionalProperties") {
                if other == &Value::Bool(false) {
                    self.faults.push(format!("{at}: the field '{name}' is not documented"));
                } else {
                    self.against(other, field, &place);
                }
            }
        }
    }

    fn items(&mut self, keywords: &Map<String, Value>, value: &Value, at: &str) {
        let first = keywords.get("prefixItems").and_then(Value::as_array);
        for (number, item) in value.as_array().into_iter().flatten().enumerate() {
            let schema = first.and_then(|first| first.get(number)).or_else(|| keywords.get("items"));
            if let Some(schema) = schema {
                self.against(schema, item, &format!("{at}/{number}"));
            }
        }
    }
}

/// Whether every word of the output's command is among the arguments; an option may have its value in it.
fn is_of(output: &Output, arguments: &[&str]) -> bool {
    let has = |word: &String| {
        arguments
            .iter()
            .any(|one| *one == word || one.strip_prefix(word).is_some_and(|rest| rest.starts_with('=')))
    };
    output.words.iter().all(has)
}

/// What docs/json finds wrong in a value that a command printed, or a file holds; nothing where it is as documented.
///
/// # Errors
/// What is wrong, and what to do about it.
pub fn undocumented(arguments: &[&str], value: &Value) -> Result<(), String> {
    let failed = value.as_object().is_some_and(|object| object.len() == 1 && object.contains_key("error"));
    let arguments = if failed { &["<a command that fails>"][..] } else { arguments };
    let fitting = || outputs().iter().filter(|output| is_of(output, arguments));
    let Some(most) = fitting().map(|output| output.words.len()).max() else {
        return Err(format!("no output of docs/json is of {arguments:?}: add it to xtask/schemas.toml"));
    };
    let mut found = Vec::new();
    for output in fitting().filter(|output| output.words.len() == most) {
        let faults = faults(output, value);
        if faults.is_empty() {
            return Ok(());
        }
        found.push(format!("{}, `{}`:\n  {}", output.file, output.words.join(" "), faults.join("\n  ")));
    }
    Err(format!(
        "what {arguments:?} printed is not what its schema says. After a change of a serialized type, give each \
         field a text with its unit and run `cargo xtask schemas`; an output of another type is named in \
         xtask/schemas.toml.\n{}",
        found.join("\n")
    ))
}

/// Fails unless a value is as docs/json documents it.
#[track_caller]
pub fn assert_documented(arguments: &[&str], value: &Value) {
    if let Err(found) = undocumented(arguments, value) {
        panic!("{found}");
    }
}

/// Puts an unknown field into each object of a value in turn, and fails unless each is found. Answers with how
/// many objects there were.
pub fn assert_unknown_fields_are_found(arguments: &[&str], value: &Value) -> usize {
    let places = objects(value, "");
    for place in &places {
        let mut changed = value.clone();
        let object = changed.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
        object.insert("surprise".to_owned(), json!({ "of": ["nobody"] }));
        assert!(undocumented(arguments, &changed).is_err(), "an unknown field at '{place}' was not found");
    }
    places.len()
}

/// The places of all objects inside a value, as JSON pointers.
fn objects(value: &Value, place: &str) -> Vec<String> {
    let inside = |name: &str| format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) => {
            let below = fields.iter().flat_map(|(name, value)| objects(value, &inside(name)));
            std::iter::once(place.to_owned()).chain(below).collect()
        }
        // One item of a list represents the others.
        Value::Array(items) => items.first().map(|item| objects(item, &inside("0"))).unwrap_or_default(),
        _ => Vec::new(),
    }
}
