//! What a serialized type declares in attributes: documentation and serde's words.

use anyhow::{Result, bail};
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Token, meta::ParseNestedMeta, punctuated::Punctuated};

/// Attributes of serde that change what is written. Others that only change what is read are left out.
#[derive(Debug, Default, Clone)]
pub(super) struct Serde {
    pub(super) rename: Option<String>,
    pub(super) rename_all: Option<String>,
    /// Field that names the variant.
    pub(super) tag: Option<String>,
    pub(super) untagged: bool,
    pub(super) transparent: bool,
    /// Type that is written instead.
    pub(super) into: Option<String>,
    pub(super) skip: bool,
    /// Left out where it is empty.
    pub(super) optional: bool,
    pub(super) flatten: bool,
    /// Words that no shape is known for.
    pub(super) unknown: Vec<String>,
}

impl Serde {
    pub(super) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        for meta in metas(attributes)? {
            if meta.path().is_ident("serde") {
                meta.require_list()?.parse_nested_meta(|word| found.take(&word))?;
            }
        }
        if let Some(word) = found.unknown.first() {
            bail!("serde({word}) has no known shape: teach xtask/src/schemas, or write the field without it");
        }
        Ok(found)
    }

    fn take(&mut self, word: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let name = word.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let value = if word.input.peek(Token![=]) { Some(text(&word.value()?.parse()?)) } else { None };
        match name.as_str() {
            "rename" => self.rename = value,
            "rename_all" => self.rename_all = value,
            "tag" => self.tag = value,
            "untagged" => self.untagged = true,
            "transparent" => self.transparent = true,
            "into" => self.into = value,
            "skip" | "skip_serializing" => self.skip = true,
            "skip_serializing_if" => self.optional = true,
            "flatten" => self.flatten = true,
            "default" | "deny_unknown_fields" | "try_from" | "from" | "deserialize_with" | "alias" => {}
            _ => self.unknown.push(name),
        }
        Ok(())
    }

    /// The name that a field or a variant is written with; `all` is the `rename_all` of its type.
    pub(super) fn name(&self, ident: &str, all: Option<&str>) -> Result<String> {
        if let Some(name) = &self.rename {
            return Ok(name.clone());
        }
        let ident = ident.strip_prefix("r#").unwrap_or(ident);
        let words = words(ident);
        let capital = |word: &String| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        };
        Ok(match all {
            None => ident.to_owned(),
            Some("lowercase") => words.concat(),
            Some("snake_case") => words.join("_"),
            Some("kebab-case") => words.join("-"),
            Some("PascalCase") => words.iter().map(capital).collect(),
            Some(other) => bail!("rename_all = \"{other}\" is not known here"),
        })
    }
}

/// The lower-case words of a name, whether in snake case or in Pascal case.
fn words(ident: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for (at, letter) in ident.char_indices() {
        if at == 0 || letter == '_' || letter.is_uppercase() {
            words.push(String::new());
        }
        if letter != '_' {
            words.last_mut().expect("the first letter began a word").extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Attributes, with those inside `cfg_attr` laid open.
fn metas(attributes: &[Attribute]) -> Result<Vec<Meta>> {
    let mut metas = Vec::new();
    for attribute in attributes {
        if attribute.path().is_ident("cfg_attr") {
            let inner = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
            metas.extend(inner.into_iter().skip(1));
        } else {
            metas.push(attribute.meta.clone());
        }
    }
    Ok(metas)
}

/// Whether a type derives `Serialize`.
pub(super) fn is_serialized(attributes: &[Attribute]) -> bool {
    let derives =
        metas(attributes).unwrap_or_default().into_iter().filter(|meta| meta.path().is_ident("derive"));
    derives
        .filter_map(|meta| meta.require_list().ok().map(|list| list.tokens.to_string()))
        .any(|tokens| tokens.split(|c: char| !c.is_alphanumeric()).any(|word| word == "Serialize"))
}

/// Whether an item is there in tests alone.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// The documentation as one line of text; empty without any.
pub(super) fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let lines = lines.filter_map(|attribute| attribute.meta.require_name_value().ok());
    let lines: Vec<String> = lines.map(|line| text(&line.value).trim().to_owned()).collect();
    lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ").replace("[`", "`").replace("`]", "`")
}

fn text(value: &Expr) -> String {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => text.value(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_serdes_rules() {
        let name = |ident: &str, all| Serde::default().name(ident, all).unwrap();
        assert_eq!(name("NotKnown", Some("kebab-case")), "not-known");
        assert_eq!(name("read_iops", Some("PascalCase")), "ReadIops");
        assert_eq!(name("InUse", Some("lowercase")), "inuse");
        assert_eq!(name("p99_9_us", Some("snake_case")), "p99_9_us");
        assert_eq!(name("r#type", None), "type");
    }

    #[test]
    fn a_word_of_serde_without_a_known_shape_is_refused() {
        let attribute: Attribute = syn::parse_quote!(#[serde(serialize_with = "x")]);
        assert!(Serde::of(&[attribute]).unwrap_err().to_string().contains("serde(serialize_with)"));
    }
}
