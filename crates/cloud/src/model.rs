//! AWS's own models of its services: operations, and the shapes of what goes in and comes out.
//!
//! They are botocore's, reduced by `cargo xtask aws-models` (`data/models/README.md` says from which version).

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;

use serde::Deserialize;

/// Packed models, by the names of the services in a signature's scope.
const PACKED: [&[u8]; 6] = [
    include_bytes!("../data/models/ec2.json.gz"),
    include_bytes!("../data/models/ebs.json.gz"),
    include_bytes!("../data/models/monitoring.json.gz"),
    include_bytes!("../data/models/kms.json.gz"),
    include_bytes!("../data/models/rbin.json.gz"),
    include_bytes!("../data/models/sts.json.gz"),
];

static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| PACKED.iter().map(|packed| unpack(packed)).collect());

fn unpack(packed: &[u8]) -> Model {
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("an embedded model is a gzip file");
    serde_json::from_str(&text).expect("an embedded model has the fields of a model")
}

/// The model of a service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Where it is from, such as `botocore 1.44.5`.
    pub source: String,
    /// The service's name in a signature's scope.
    pub name: String,
    pub(crate) metadata: Metadata,
    operations: BTreeMap<String, Operation>,
    shapes: Shapes,
}

/// The shapes in the order of their names. References have the places of their shapes: an answer with thousands of members
/// looks for one at each.
#[derive(Debug, Deserialize)]
#[serde(from = "BTreeMap<String, Shape>")]
struct Shapes(Vec<(String, Shape)>);

impl From<BTreeMap<String, Shape>> for Shapes {
    fn from(named: BTreeMap<String, Shape>) -> Self {
        let names: Vec<String> = named.keys().cloned().collect();
        let mut shapes: Vec<(String, Shape)> = named.into_iter().collect();
        for (_, shape) in &mut shapes {
            let ends = [&mut shape.member, &mut shape.key, &mut shape.value].into_iter().flatten();
            for reference in shape.members.values_mut().chain(ends) {
                reference.place = names.binary_search(&reference.shape).unwrap_or(usize::MAX);
            }
        }
        Self(shapes)
    }
}

impl Shapes {
    fn get(&self, name: &str) -> Option<&Shape> {
        let place = self.0.binary_search_by(|(own, _)| own.as_str().cmp(name)).ok()?;
        self.0.get(place).map(|(_, shape)| shape)
    }

    fn iter(&self) -> impl Iterator<Item = (&String, &Shape)> {
        self.0.iter().map(|(name, shape)| (name, shape))
    }
}

/// What holds for all operations of a service.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Metadata {
    pub(crate) api_version: String,
    /// Present where answers in JSON and CBOR also name the error codes of the query protocol.
    aws_query_compatible: Option<serde_json::Value>,
    #[serde(default)]
    pub(crate) json_version: String,
    pub(crate) protocols: Vec<String>,
    pub(crate) service_id: String,
    #[serde(default)]
    pub(crate) target_prefix: String,
    #[serde(default)]
    pub(crate) xml_namespace: String,
}

impl Metadata {
    /// Whether answers in JSON and CBOR also name the error codes of the query protocol.
    pub(crate) const fn is_query_compatible(&self) -> bool {
        self.aws_query_compatible.is_some()
    }
}

/// An operation of a service.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Operation {
    pub(crate) http: Http,
    input: Option<String>,
    output: Option<String>,
    pub(crate) result_wrapper: Option<String>,
}

/// How an operation is requested.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Http {
    pub(crate) method: String,
    /// With parameters in braces: `/snapshots/{snapshotId}/blocks`.
    pub(crate) request_uri: String,
    #[serde(default = "ok")]
    pub(crate) response_code: u16,
}

const fn ok() -> u16 {
    200
}

/// The kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Blob,
    Boolean,
    Double,
    Float,
    Integer,
    List,
    Long,
    Map,
    String,
    Structure,
    Timestamp,
}

/// A value's shape.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shape {
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    /// Of a structure.
    #[serde(default)]
    pub(crate) members: BTreeMap<String, Reference>,
    /// Of a structure: the members that must be there.
    #[serde(default)]
    pub(crate) required: Vec<String>,
    /// Of a list.
    member: Option<Reference>,
    /// Of a map.
    key: Option<Reference>,
    /// Of a map.
    value: Option<Reference>,
    #[serde(default)]
    pub(crate) flattened: bool,
    /// The member that is the body.
    pub(crate) payload: Option<String>,
    /// Lower bound of a number, or of a length.
    pub(crate) min: Option<f64>,
    /// Upper bound of a number, or of a length.
    pub(crate) max: Option<f64>,
    /// The values of a text, where there are only some.
    #[serde(default, rename = "enum")]
    pub(crate) variants: Vec<String>,
    error: Option<ErrorTrait>,
    #[serde(default)]
    exception: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ErrorTrait {
    code: Option<String>,
}

impl Shape {
    /// What the items of a list are.
    pub(crate) fn item(&self) -> &Reference {
        self.member.as_ref().expect("a list has a member")
    }

    /// What the keys and the values of a map are.
    pub(crate) fn entry(&self) -> (&Reference, &Reference) {
        self.key.as_ref().zip(self.value.as_ref()).expect("a map has keys and values")
    }
}

/// A place where a shape is used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Reference {
    pub(crate) shape: String,
    /// The place of the shape among those of its model.
    #[serde(skip)]
    place: usize,
    pub(crate) location_name: Option<String>,
    pub(crate) query_name: Option<String>,
    /// Where a member travels that is not in the body.
    pub(crate) location: Option<Location>,
    #[serde(default)]
    pub(crate) flattened: bool,
    #[serde(default)]
    #[expect(dead_code, reason = "bodies are bounded, and read whole")]
    streaming: bool,
}

impl Reference {
    /// Its name in a message.
    pub(crate) fn wire_name<'a>(&'a self, member: &'a str) -> &'a str {
        self.location_name.as_deref().unwrap_or(member)
    }
}

/// A part of a message that is not its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Location {
    Header,
    QueryString,
    #[serde(rename = "statusCode")]
    StatusCode,
    Uri,
}

impl Model {
    /// All services that have a model.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &MODELS
    }

    /// The model of the service with this name in a signature's scope.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|model| model.name == name)
    }

    /// The names of the operations, in alphabetical order.
    pub fn actions(&self) -> impl Iterator<Item = &str> {
        self.operations.keys().map(String::as_str)
    }

    pub(crate) fn operation(&self, action: &str) -> Option<&Operation> {
        self.operations.get(action)
    }

    pub(crate) fn operations(&self) -> impl Iterator<Item = (&str, &Operation)> {
        self.operations.iter().map(|(name, operation)| (name.as_str(), operation))
    }

    /// The shape of what goes in; none where nothing does.
    pub(crate) fn input(&self, operation: &Operation) -> Option<&Shape> {
        operation.input.as_deref().map(|name| self.shape(name))
    }

    /// The shape of what comes out; none where nothing does.
    pub(crate) fn output(&self, operation: &Operation) -> Option<&Shape> {
        operation.output.as_deref().map(|name| self.shape(name))
    }

    /// The shape with a name.
    pub(crate) fn shape(&self, name: &str) -> &Shape {
        self.shapes.get(name).unwrap_or_else(|| panic!("the model of {} lacks {name}", self.name))
    }

    pub(crate) fn target(&self, reference: &Reference) -> &Shape {
        match self.shapes.0.get(reference.place) {
            Some((_, shape)) => shape,
            None => self.shape(&reference.shape),
        }
    }

    /// The error with a code of the query protocol, or with a name: its name, its code of the query protocol, its shape.
    pub(crate) fn error(&self, code: &str) -> Option<(&str, &str, &Shape)> {
        self.shapes
            .iter()
            .filter(|(_, shape)| shape.exception)
            .map(|(name, shape)| {
                let code = shape.error.as_ref().and_then(|error| error.code.as_deref()).unwrap_or(name);
                (name.as_str(), code, shape)
            })
            .filter(|(name, query_code, _)| *name == code || *query_code == code)
            // The name itself wins over another error's code.
            .max_by_key(|(name, _, _)| *name == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_of_every_model_leads_to_a_shape() {
        for model in Model::all() {
            for (_, shape) in model.shapes.iter() {
                for member in shape.members.values() {
                    assert!(
                        std::ptr::eq(model.target(member), model.shape(&member.shape)),
                        "{}",
                        member.shape
                    );
                }
                match shape.kind {
                    Kind::List => _ = model.target(shape.item()),
                    Kind::Map => _ = model.target(shape.entry().1),
                    _ => {}
                }
                for required in &shape.required {
                    assert!(shape.members.contains_key(required), "{}: {required}", model.name);
                }
            }
            for (action, operation) in model.operations() {
                let ends = [model.input(operation), model.output(operation)];
                assert!(ends.iter().flatten().all(|shape| shape.kind == Kind::Structure), "{action}");
            }
        }
    }

    #[test]
    fn the_version_in_the_readme_is_that_of_the_models() {
        let readme = include_str!("../data/models/README.md");
        for model in Model::all() {
            assert!(readme.contains(&model.source), "{} is of {}", model.name, model.source);
        }
    }

    #[test]
    fn errors_are_found_by_their_name_and_by_their_code() {
        let model = Model::of("monitoring").unwrap();
        let found = |code| model.error(code).map(|(name, code, _)| (name, code));
        assert_eq!(
            found("InvalidParameterValue"),
            Some(("InvalidParameterValueException", "InvalidParameterValue"))
        );
        assert_eq!(found("ResourceNotFound"), Some(("ResourceNotFound", "ResourceNotFound")));
        assert_eq!(found("NoSuchThing"), None);
    }
}
