//! From a Rust type to the JSON Schema of what serde writes of it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use syn::{
    Expr, ExprLit, Field, Fields, FieldsNamed, GenericArgument, Lit, PathArguments, Type, TypePath, Variant,
};

use super::attrs::{Serde, documentation};
use super::json::Json;
use super::types::{Body, Found, Types};

/// The definitions of one schema file, made as they are asked for.
pub(super) struct Shapes<'a> {
    types: &'a Types,
    /// By key: the file that the type is in, and its schema; none while it is being made.
    pub(super) definitions: BTreeMap<String, (String, Option<Json>)>,
    /// Fields without a description, as `file: Type.field`.
    pub(super) undescribed: Vec<String>,
}

/// Properties of an object, and which of them are always there.
#[derive(Default)]
struct Properties {
    all: Vec<(String, Json)>,
    required: Vec<String>,
}

impl Properties {
    fn add(&mut self, name: String, shape: Json, required: bool) {
        if required {
            self.required.push(name.clone());
        }
        self.all.push((name, shape));
    }

    fn object(self) -> Json {
        Json::object([
            ("type", "object".into()),
            ("properties", Json::Object(self.all)),
            ("required", Json::texts(self.required.iter().map(String::as_str))),
            ("additionalProperties", Json::Bool(false)),
        ])
    }
}

impl<'a> Shapes<'a> {
    pub(super) fn new(types: &'a Types) -> Self {
        Self { types, definitions: BTreeMap::new(), undescribed: Vec::new() }
    }

    /// The shape of a type as it is written in a file.
    pub(super) fn of(&mut self, file: &str, ty: &Type) -> Result<Json> {
        match ty {
            Type::Reference(reference) => self.of(file, &reference.elem),
            Type::Slice(slice) => self.list(file, &slice.elem, None),
            Type::Array(array) => {
                let Expr::Lit(ExprLit { lit: Lit::Int(length), .. }) = &array.len else {
                    // A named constant: the length is not the reader's concern.
                    return self.list(file, &array.elem, None);
                };
                self.list(file, &array.elem, Some(length.base10_parse()?))
            }
            Type::Tuple(tuple) => {
                let items: Vec<Json> =
                    tuple.elems.iter().map(|item| self.of(file, item)).collect::<Result<_>>()?;
                let count = Json::Number(items.len() as u64);
                Ok(Json::object([
                    ("type", "array".into()),
                    ("prefixItems", Json::List(items)),
                    ("items", Json::Bool(false)),
                    ("minItems", count),
                ]))
            }
            Type::Path(path) => self.of_path(file, path),
            _ => bail!("{file}: a type of a kind that has no known shape"),
        }
    }

    fn list(&mut self, file: &str, item: &Type, length: Option<u64>) -> Result<Json> {
        let mut list = Json::object([("type", "array".into()), ("items", self.of(file, item)?)]);
        if let Some(length) = length {
            list.push("minItems", Json::Number(length));
            list.push("maxItems", Json::Number(length));
        }
        Ok(list)
    }

    fn of_path(&mut self, file: &str, ty: &TypePath) -> Result<Json> {
        let path: Vec<String> = ty.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let last = ty.path.segments.last().context("a path has a name")?;
        let arguments: Vec<&Type> = match &last.arguments {
            PathArguments::AngleBracketed(all) => {
                let types = all.args.iter().filter_map(|one| match one {
                    GenericArgument::Type(ty) => Some(ty),
                    _ => None,
                });
                types.collect()
            }
            _ => Vec::new(),
        };
        let name = last.ident.to_string();
        match (name.as_str(), &arguments[..]) {
            ("Option", [inner]) => Ok(nullable(self.of(file, inner)?)),
            ("Vec" | "BTreeSet" | "VecDeque", [inner]) => self.list(file, inner, None),
            ("Box" | "Arc" | "Cow", [inner]) => self.of(file, inner),
            ("Range", [bound]) => {
                let mut ends = Properties::default();
                for (end, text) in [("start", "The first one."), ("end", "The first one after it.")] {
                    let mut shape = self.of(file, bound)?;
                    describe(&mut shape, text);
                    ends.add(end.to_owned(), shape, true);
                }
                Ok(ends.object())
            }
            ("BTreeMap" | "HashMap", [key, value]) => {
                let mut map = Json::object([("type", "object".into())]);
                if let names @ Json::Object(_) = self.of(file, key)?
                    && names.get("$ref").is_some()
                {
                    map.push("propertyNames", names);
                }
                map.push("additionalProperties", self.of(file, value)?);
                Ok(map)
            }
            _ => match primitive(&name) {
                Some(shape) => Ok(shape),
                None => self.named(file, &path),
            },
        }
    }

    /// A reference to a type of the workspace, whose definition is made where there is none yet.
    fn named(&mut self, file: &str, path: &[String]) -> Result<Json> {
        let types = self.types;
        let found = types
            .resolve(file, path)?
            .with_context(|| format!("{file}: no serialized type is called {}", path.join("::")))?;
        if let Body::Alias(ty) = &found.body {
            return self.of(&found.file, ty);
        }
        let serde = Serde::of(&found.attributes).with_context(|| place(found))?;
        if let Some(into) = &serde.into {
            return self.of(&found.file, &syn::parse_str(into)?);
        }
        if let Body::Struct(Fields::Unnamed(fields)) = &found.body
            && let [field] = &fields.unnamed.iter().collect::<Vec<_>>()[..]
        {
            let mut shape = self.of(&found.file, &field.ty)?;
            let text = documentation(&found.attributes);
            describe(&mut shape, text.split_inclusive(". ").next().unwrap_or_default().trim_end());
            return Ok(shape);
        }
        let key = self.key(found);
        if !self.definitions.contains_key(&key) {
            self.definitions.insert(key.clone(), (found.file.clone(), None));
            let mut shape = self.definition(found, &serde).with_context(|| place(found))?;
            describe(&mut shape, &documentation(&found.attributes));
            self.definitions.insert(key.clone(), (found.file.clone(), Some(shape)));
        }
        Ok(Json::object([("$ref", Json::Text(format!("#/$defs/{key}")))]))
    }

    /// The name of a definition: the type's own, with its module before it where that name is taken.
    fn key(&self, found: &Found) -> String {
        let taken = |key: &str| self.definitions.get(key).is_some_and(|(file, _)| *file != found.file);
        if !taken(&found.name) {
            return found.name.clone();
        }
        let modules = found.file.trim_end_matches(".rs").replace("/src", "").replace("crates/", "");
        format!("{}.{}", modules.replace('/', "."), found.name)
    }

    fn definition(&mut self, found: &Found, serde: &Serde) -> Result<Json> {
        let all = serde.rename_all.as_deref();
        match &found.body {
            Body::Struct(Fields::Named(fields)) => Ok(self.properties(found, fields, all)?.object()),
            Body::Enum(variants) => self.choice(found, serde, variants),
            _ => bail!("a struct of this kind has no known shape"),
        }
    }

    fn properties(&mut self, found: &Found, fields: &FieldsNamed, all: Option<&str>) -> Result<Properties> {
        let mut properties = Properties::default();
        for field in &fields.named {
            let serde = Serde::of(&field.attrs)?;
            if serde.skip {
                continue;
            }
            let ident = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
            let (name, mut shape) = (serde.name(&ident, all)?, self.of(&found.file, &field.ty)?);
            if serde.flatten {
                self.flatten(&shape, &mut properties).with_context(|| format!("field {ident}"))?;
                continue;
            }
            self.describe_field(found, &name, field, &mut shape);
            properties.add(name, shape, !serde.optional);
        }
        Ok(properties)
    }

    /// A field's own text; without one, that of its type is with the definition.
    fn describe_field(&mut self, found: &Found, name: &str, field: &Field, shape: &mut Json) {
        let text = documentation(&field.attrs);
        if text.is_empty() {
            self.undescribed.push(format!("{}: {}.{name}", found.file, found.name));
        }
        describe(shape, &text);
        // The description of a newtype has the unit already: the field's own text is before it.
        if let Json::Object(parts) = shape
            && let Some((_, Json::Text(description))) =
                parts.iter_mut().find(|(name, _)| name == "description")
            && !description.starts_with(&text)
        {
            *description = format!("{text} {description}");
        }
    }

    fn flatten(&self, shape: &Json, properties: &mut Properties) -> Result<()> {
        let object = self.target(shape).context("only a struct can be flattened here")?;
        let (Some(Json::Object(fields)), Some(Json::List(required))) =
            (object.get("properties"), object.get("required"))
        else {
            bail!("only a struct can be flattened here");
        };
        for (name, shape) in fields {
            properties.add(name.clone(), shape.clone(), required.contains(&Json::Text(name.clone())));
        }
        Ok(())
    }

    fn target(&self, shape: &Json) -> Option<&Json> {
        let Json::Text(reference) = shape.get("$ref")? else { return None };
        self.definitions.get(reference.strip_prefix("#/$defs/")?)?.1.as_ref()
    }

    fn choice(&mut self, found: &Found, serde: &Serde, variants: &[Variant]) -> Result<Json> {
        let mut choices = Vec::new();
        for variant in variants {
            let own = Serde::of(&variant.attrs)?;
            if own.skip {
                continue;
            }
            let name = own.name(&variant.ident.to_string(), serde.rename_all.as_deref())?;
            let mut shape = match (&serde.tag, serde.untagged || own.untagged) {
                (Some(tag), _) => self.tagged(found, tag, &name, variant, &own)?,
                (None, true) => self.content(found, variant, &own)?,
                (None, false) => match variant.fields {
                    Fields::Unit => Json::object([("const", name.as_str().into())]),
                    _ => {
                        let mut outer = Properties::default();
                        outer.add(name, self.content(found, variant, &own)?, true);
                        outer.object()
                    }
                },
            };
            describe(&mut shape, &documentation(&variant.attrs));
            choices.push(shape);
        }
        Ok(Json::object([(if serde.untagged { "anyOf" } else { "oneOf" }, Json::List(choices))]))
    }

    /// A variant that is in an object with a field that names it.
    fn tagged(
        &mut self,
        found: &Found,
        tag: &str,
        name: &str,
        variant: &Variant,
        own: &Serde,
    ) -> Result<Json> {
        let mut properties = Properties::default();
        let text = format!("Which one it is: `{name}`.");
        let word = Json::object([("const", name.into()), ("description", Json::Text(text))]);
        properties.add(tag.to_owned(), word, true);
        match &variant.fields {
            Fields::Unit => {}
            Fields::Named(fields) => {
                let more = self.properties(found, fields, own.rename_all.as_deref())?;
                properties.required.extend(more.required);
                properties.all.extend(more.all);
            }
            Fields::Unnamed(_) => {
                let shape = self.content(found, variant, own)?;
                self.flatten(&shape, &mut properties)?;
            }
        }
        Ok(properties.object())
    }

    fn content(&mut self, found: &Found, variant: &Variant, own: &Serde) -> Result<Json> {
        match &variant.fields {
            Fields::Named(fields) => Ok(self.properties(found, fields, own.rename_all.as_deref())?.object()),
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                self.of(&found.file, &fields.unnamed[0].ty)
            }
            _ => bail!("variant {} has no known shape", variant.ident),
        }
    }
}

fn place(found: &Found) -> String {
    format!("{}: {}", found.file, found.name)
}

fn describe(shape: &mut Json, text: &str) {
    if !text.is_empty() && shape.get("description").is_none() {
        shape.push("description", text.into());
    }
}

fn nullable(shape: Json) -> Json {
    let null = Json::object([("type", "null".into())]);
    match shape {
        Json::Object(mut fields) if matches!(fields.first(), Some((name, Json::Text(_))) if name == "type") =>
        {
            if let Json::Text(one) = &fields[0].1 {
                fields[0].1 = Json::texts([one.as_str(), "null"]);
            }
            Json::Object(fields)
        }
        other => Json::object([("anyOf", Json::List(vec![other, null]))]),
    }
}

/// Types of the language and its library.
fn primitive(name: &str) -> Option<Json> {
    let simple = |name: &str| Json::object([("type", name.into())]);
    let whole = |least| Json::object([("type", "integer".into()), ("minimum", Json::Number(least))]);
    Some(match name {
        "String" | "str" | "PathBuf" | "Path" | "char" => simple("string"),
        "bool" => simple("boolean"),
        "u8" | "u16" | "u32" | "u64" | "usize" => whole(0),
        "NonZeroU8" | "NonZeroU16" | "NonZeroU32" | "NonZeroU64" | "NonZeroUsize" => whole(1),
        "i8" | "i16" | "i32" | "i64" | "isize" => simple("integer"),
        "f32" | "f64" => simple("number"),
        "Duration" => {
            let mut parts = Properties::default();
            for (part, text) in [("secs", "Whole seconds."), ("nanos", "Nanoseconds beside them.")] {
                let mut shape = whole(0);
                describe(&mut shape, text);
                parts.add(part.to_owned(), shape, true);
            }
            parts.object()
        }
        _ => return None,
    })
}
