//! The serialized types of the workspace, and which one a name means in a file.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Fields, Generics, Item, ItemImpl, ItemStruct, ItemUse, Type, UseTree, Variant,
    punctuated::Punctuated,
};

use super::attrs::{is_serialized, is_test};
use crate::repo::Repo;

/// What a type is made of.
pub(super) enum Body {
    Struct(Fields),
    Enum(Vec<Variant>),
    Alias(Box<Type>),
}

/// A type that is written as JSON.
pub(super) struct Found {
    pub(super) name: String,
    /// File that it is in, from the root.
    pub(super) file: String,
    pub(super) attributes: Vec<Attribute>,
    pub(super) body: Body,
    generic: bool,
}

/// All serialized types, by name.
#[derive(Default)]
pub(super) struct Types {
    by_name: BTreeMap<String, Vec<Found>>,
    /// By file: the name in use, and the path that it represents.
    imports: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Types {
    /// Reads the sources of all crates, without their tests.
    pub(super) fn read(repo: &Repo) -> Result<Self> {
        let mut types = Self::default();
        for (path, text) in repo.texts(".rs") {
            let source = path.starts_with("src/") || path.starts_with("crates/") && path.contains("/src/");
            if source && !path.ends_with("/tests.rs") && !path.contains("/tests/") {
                let file = syn::parse_file(text).with_context(|| format!("{path} does not parse"))?;
                types.take(path, file.items);
            }
        }
        Ok(types)
    }

    fn take(&mut self, file: &str, items: Vec<Item>) {
        for item in items {
            match item {
                Item::Struct(item) if is_serialized(&item.attrs) => {
                    self.add(
                        file,
                        &item.ident.to_string(),
                        item.attrs,
                        &item.generics,
                        Body::Struct(item.fields),
                    );
                }
                Item::Enum(item) if is_serialized(&item.attrs) => {
                    let variants: Punctuated<_, _> = item.variants;
                    let body = Body::Enum(variants.into_iter().collect());
                    self.add(file, &item.ident.to_string(), item.attrs, &item.generics, body);
                }
                Item::Type(item) => {
                    self.add(file, &item.ident.to_string(), item.attrs, &item.generics, Body::Alias(item.ty));
                }
                Item::Impl(item) => self.take_written_by_hand(file, &item),
                Item::Mod(item) if !is_test(&item.attrs) => {
                    self.take(file, item.content.map(|(_, items)| items).unwrap_or_default());
                }
                // A macro that is given a structure makes that structure.
                Item::Macro(item) => {
                    if let Ok(structure) = syn::parse2::<ItemStruct>(item.mac.tokens) {
                        self.take(file, vec![Item::Struct(structure)]);
                    }
                }
                Item::Use(ItemUse { tree, .. }) => {
                    collect(&tree, &mut Vec::new(), self.imports.entry(file.to_owned()).or_default());
                }
                _ => {}
            }
        }
    }

    /// A type whose `Serialize` is written by hand: it is what the one call of its serializer writes.
    fn take_written_by_hand(&mut self, file: &str, item: &ItemImpl) {
        let name_of = |path: &syn::Path| path.segments.last().map(|last| last.ident.to_string());
        let serialized = item.trait_.as_ref().and_then(|(path, _)| name_of(path));
        let Type::Path(of) = &*item.self_ty else { return };
        let (Some("Serialize"), Some(name)) = (serialized.as_deref(), name_of(&of.path)) else { return };
        let mut written = Written(None);
        written.visit_item_impl(item);
        if let Some(ty) = written.0.and_then(|name| syn::parse_str(name).ok()) {
            self.add(file, &name, Vec::new(), &item.generics, Body::Alias(Box::new(ty)));
        }
    }

    fn add(&mut self, file: &str, name: &str, attributes: Vec<Attribute>, generics: &Generics, body: Body) {
        let generic = generics.type_params().next().is_some();
        let found = Found { name: name.to_owned(), file: file.to_owned(), attributes, body, generic };
        self.by_name.entry(name.to_owned()).or_default().push(found);
    }

    /// The type that a path means in a file; `None` where no serialized type has its name.
    ///
    /// # Errors
    /// Several types have the name, and neither the path nor the imports of the file show which.
    pub(super) fn resolve(&self, file: &str, path: &[String]) -> Result<Option<&Found>> {
        let empty = BTreeMap::new();
        let imports = self.imports.get(file).unwrap_or(&empty);
        let (first, rest) = path.split_first().context("a type has a name")?;
        let whole = match imports.get(first) {
            Some(import) => [&import[..], rest].concat(),
            None => path.to_vec(),
        };
        let name = whole.last().context("a type has a name")?;
        let Some(all) = self.by_name.get(name) else { return Ok(None) };
        let whole = self.re_exported(file, &whole, all).unwrap_or(whole.clone());
        let ranked = |found: &Found| rank(found, file, &whole);
        let best = all.iter().map(ranked).max().unwrap_or_default();
        let mut likely = all.iter().filter(|found| ranked(found) == best);
        match (likely.next(), likely.next()) {
            (Some(found), None) if found.generic => {
                bail!("{name} in {file} is generic: its shape is not known")
            }
            (Some(found), None) => Ok(Some(found)),
            (Some(one), Some(other)) => {
                bail!("{name} in {file} may be that of {} or that of {}", one.file, other.file)
            }
            _ => Ok(None),
        }
    }
}

impl Types {
    /// The path that a crate re-exports a type by, where the path leads to a crate that has none of this name itself.
    fn re_exported(&self, file: &str, path: &[String], all: &[Found]) -> Option<Vec<String>> {
        let wanted = wanted_crate(file, path);
        if all.iter().any(|found| krate(&found.file) == wanted) {
            return None;
        }
        let modules: Vec<&str> = path[..path.len() - 1].iter().map(String::as_str).collect();
        let modules = from_the_root(file, &modules);
        let of_module =
            self.imports.iter().filter(|(path, _)| krate(path) == wanted && modules_of(path) == modules);
        let mut named = of_module.filter_map(|(_, imports)| imports.get(path.last()?));
        named.find(|import| import.first().is_some_and(|first| first.starts_with("ebbtide_"))).cloned()
    }
}

/// The folder of the crate that a path in a file leads to.
fn wanted_crate(file: &str, path: &[String]) -> String {
    let first = path[..path.len() - 1].first();
    let foreign = first.and_then(|first| first.strip_prefix("ebbtide_"));
    foreign.map_or_else(|| krate(file).to_owned(), |name| format!("crates/{name}"))
}

/// The type that a serializer was given: that of the first call which is one of a simple type.
struct Written(Option<&'static str>);

impl Visit<'_> for Written {
    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        self.0 = self.0.or(match call.method.to_string().as_str() {
            "serialize_f64" => Some("f64"),
            "serialize_u64" => Some("u64"),
            "serialize_str" | "collect_str" => Some("String"),
            _ => None,
        });
        visit::visit_expr_method_call(self, call);
    }
}

/// How well a type fits a path in a file: its crate, then the modules of the path, then the file itself.
fn rank(found: &Found, file: &str, path: &[String]) -> usize {
    let modules: Vec<&str> = path[..path.len() - 1].iter().map(String::as_str).collect();
    let in_crate = usize::from(krate(&found.file) == wanted_crate(file, path));
    let parts: Vec<&str> = modules_of(&found.file);
    let named = modules.iter().filter(|module| parts.contains(module)).count();
    // A path from the root of a crate names the first modules of the file.
    let begins = usize::from(!modules.is_empty() && parts.starts_with(&from_the_root(file, &modules)));
    let here = usize::from(modules.is_empty() && found.file == file);
    in_crate * 1000 + here * 500 + begins * 100 + named * 2 + usize::from(shares_folder(&found.file, file))
}

/// A path's modules from the root of the crate that they are in.
fn from_the_root<'a>(file: &'a str, modules: &[&'a str]) -> Vec<&'a str> {
    let mut whole = modules_of(file);
    for (at, module) in modules.iter().enumerate() {
        match *module {
            "super" => drop(whole.pop()),
            "self" => {}
            "crate" => whole.clear(),
            name if at == 0 && name.starts_with("ebbtide_") => whole.clear(),
            name => whole.push(name),
        }
    }
    whole
}

/// The modules of a file, from the root of its crate.
fn modules_of(file: &str) -> Vec<&str> {
    let inside = file.strip_prefix("src/").or_else(|| file.split_once("/src/").map(|(_, inside)| inside));
    inside.unwrap_or(file).trim_end_matches(".rs").split('/').filter(|part| *part != "mod").collect()
}

fn shares_folder(one: &str, other: &str) -> bool {
    one.rsplit_once('/').map(|(folder, _)| folder) == other.rsplit_once('/').map(|(folder, _)| folder)
}

/// The folder of a file's crate; empty for the program itself.
fn krate(file: &str) -> &str {
    file.split_once("/src/").map_or("", |(folder, _)| folder)
}

fn collect(tree: &UseTree, before: &mut Vec<String>, found: &mut BTreeMap<String, Vec<String>>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            collect(&path.tree, before, found);
            before.pop();
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            if name == "self" {
                found.extend(before.last().map(|last| (last.clone(), before.clone())));
            } else {
                found.insert(name.clone(), [&before[..], &[name]].concat());
            }
        }
        UseTree::Rename(rename) => {
            let whole = [&before[..], &[rename.ident.to_string()]].concat();
            found.insert(rename.rename.to_string(), whole);
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, before, found)),
        UseTree::Glob(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_a_crate_re_exports_is_that_of_the_crate_which_has_it() {
        let mut types = Types::default();
        for (path, text) in [
            ("crates/low/src/summary/model.rs", "#[derive(Serialize)] pub struct Summary { a: u8 }"),
            ("crates/top/src/summary/model.rs", "#[derive(Serialize)] pub struct Summary { b: u8 }"),
            ("crates/lab/src/page.rs", "use ebbtide_report::Summary;"),
            ("crates/lab/src/summary/mod.rs", "pub use ebbtide_low::summary::Summary;"),
            ("crates/report/src/lib.rs", "#[derive(Serialize)] pub struct Summary { c: u8 }"),
            ("crates/lab/src/results.rs", "use crate::summary::Summary;"),
            ("src/answers.rs", "use ebbtide_lab::summary::Summary;"),
        ] {
            types.take(path, syn::parse_file(text).unwrap().items);
        }
        for file in ["src/answers.rs", "crates/lab/src/results.rs"] {
            let found = types.resolve(file, &["Summary".to_owned()]).unwrap().unwrap();
            assert_eq!(found.file, "crates/low/src/summary/model.rs", "{file}");
        }
    }

    #[test]
    fn a_structure_inside_a_macro_is_found_with_its_fields() {
        let mut types = Types::default();
        let text = "macro_rules! metrics { ($($all:tt)*) => {} } \
                    metrics! { #[derive(Serialize)] pub struct Rates { #[metric(Pages, Rate(&[\"x\"]))] pub a: u8 } }";
        types.take("crates/low/src/rates.rs", syn::parse_file(text).unwrap().items);
        let found = types.resolve("crates/low/src/rates.rs", &["Rates".to_owned()]).unwrap().unwrap();
        let Body::Struct(fields) = &found.body else { panic!("it is a structure") };
        assert_eq!(fields.len(), 1);
    }
}
