//! What the rules want to know about a Rust file, found in one walk of its syntax tree.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Attribute, Block, FieldPat, Ident, ImplItemFn, Item, ItemFn, ItemMacro, ItemMod, PatIdent, Path,
    Signature, TraitItemFn, UseTree,
    spanned::Spanned,
    visit::{self, Visit},
};

/// A function and how long it is, from its signature to its closing brace.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// A path that the code (tests apart) names, such as `std::fs::read`.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) path: String,
    pub(crate) line: usize,
    /// Whether a `use` names it.
    pub(crate) is_import: bool,
}

/// A variable, a parameter or a type that the code (tests apart) defines.
#[derive(Debug)]
pub(crate) struct Defined {
    pub(crate) name: String,
    pub(crate) line: usize,
}

/// The findings of the walk.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// Whether the file begins with a `//!` text.
    pub(crate) has_module_doc: bool,
    /// Whether `unsafe` is forbidden in the whole crate from here.
    pub(crate) forbids_unsafe: bool,
    /// All functions, those of tests too.
    pub(crate) functions: Vec<Function>,
    /// Names of the functions that are tests, also those inside a macro such as `proptest!`, and those
    /// that test code hands to a macro, which makes tests of them.
    pub(crate) tests: Vec<String>,
    /// Paths outside tests.
    pub(crate) named: Vec<Named>,
    /// Paths inside tests.
    pub(crate) named_in_tests: Vec<Named>,
    /// Variables and parameters outside tests; not those that a pattern names after a field.
    pub(crate) variables: Vec<Defined>,
    /// Types and traits outside tests.
    pub(crate) types: Vec<Defined>,
    /// Lines of modules that exist for tests only.
    pub(crate) test_lines: usize,
    inside_test: usize,
    test_functions: Vec<String>,
    macro_words: BTreeSet<String>,
}

impl Source {
    /// Walks a file; `only_tests`: all of it is test code.
    pub(crate) fn parse(text: &str, only_tests: bool) -> syn::Result<Self> {
        let file = syn::parse_file(text)?;
        let mut source = Self {
            has_module_doc: text.lines().any(|line| line.trim_start().starts_with("//!")),
            forbids_unsafe: text.contains("#![forbid(unsafe_code)]"),
            inside_test: usize::from(only_tests),
            ..Self::default()
        };
        source.visit_file(&file);
        source.test_functions.retain(|name| source.macro_words.contains(name));
        source.tests.append(&mut source.test_functions);
        if only_tests {
            source.test_lines = text.lines().count();
        }
        Ok(source)
    }

    fn function(&mut self, attributes: &[Attribute], signature: &Signature, block: Option<&Block>) {
        let line = signature.fn_token.span().start().line;
        if let Some(block) = block {
            let lines = block.brace_token.span.close().end().line + 1 - line;
            self.functions.push(Function { name: signature.ident.to_string(), line, lines });
        }
        if self.inside_test > 0 && !is_test(attributes) {
            self.test_functions.push(signature.ident.to_string());
        }
        if is_test(attributes) {
            self.tests.push(signature.ident.to_string());
        }
    }

    /// What the code defines under a name; None in tests.
    fn defined(&self, ident: &Ident) -> Option<Defined> {
        let defined = || Defined { name: ident.to_string(), line: ident.span().start().line };
        (self.inside_test == 0).then(defined)
    }

    fn name(&mut self, path: String, span: Span, is_import: bool) {
        let named = if self.inside_test == 0 { &mut self.named } else { &mut self.named_in_tests };
        named.push(Named { path, line: span.start().line, is_import });
    }

    fn used(&mut self, prefix: &str, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.used(&format!("{prefix}{}::", path.ident), &path.tree),
            UseTree::Name(name) => self.name(format!("{prefix}{}", name.ident), name.span(), true),
            UseTree::Rename(name) => self.name(format!("{prefix}{}", name.ident), name.span(), true),
            UseTree::Glob(glob) => self.name(format!("{prefix}*"), glob.span(), true),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.used(prefix, tree)),
        }
    }

    fn with_test_code(&mut self, attributes: &[Attribute], walk: impl FnOnce(&mut Self)) {
        let test = usize::from(is_test(attributes) || is_for_tests(attributes));
        self.inside_test += test;
        walk(self);
        self.inside_test -= test;
    }

    /// Functions that the tokens of a macro's call define or name.
    fn tests_in(&mut self, tokens: TokenStream) {
        let mut after_fn = false;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if after_fn => {
                    self.tests.push(ident.to_string());
                    after_fn = false;
                }
                TokenTree::Ident(ident) => {
                    after_fn = ident == "fn";
                    self.macro_words.insert(ident.to_string());
                }
                TokenTree::Group(group) => self.tests_in(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, ident) = match item {
            Item::Use(item) => {
                return self.with_test_code(&item.attrs, |source| source.used("", &item.tree));
            }
            Item::Enum(item) => (&item.attrs, &item.ident),
            Item::Struct(item) => (&item.attrs, &item.ident),
            Item::Trait(item) => (&item.attrs, &item.ident),
            Item::Type(item) => (&item.attrs, &item.ident),
            Item::Union(item) => (&item.attrs, &item.ident),
            _ => return visit::visit_item(self, item),
        };
        self.with_test_code(attributes, |source| {
            let defined = source.defined(ident);
            source.types.extend(defined);
            visit::visit_item(source, item);
        });
    }

    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        let defined = self.defined(&pattern.ident);
        self.variables.extend(defined);
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_field_pat(&mut self, pattern: &'ast FieldPat) {
        if pattern.colon_token.is_some() {
            visit::visit_field_pat(self, pattern);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let outermost = self.inside_test == 0;
        self.with_test_code(&item.attrs, |source| {
            if outermost && source.inside_test > 0 {
                let span = item.span();
                source.test_lines += span.end().line + 1 - span.start().line;
            }
            visit::visit_item_mod(source, item);
        });
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.attrs, &item.sig, Some(&item.block));
        self.with_test_code(&item.attrs, |source| visit::visit_item_fn(source, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.attrs, &item.sig, Some(&item.block));
        self.with_test_code(&item.attrs, |source| visit::visit_impl_item_fn(source, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.function(&item.attrs, &item.sig, item.default.as_ref());
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_macro(&mut self, item: &'ast ItemMacro) {
        if item.ident.is_none() && self.inside_test > 0 {
            self.tests_in(item.mac.tokens.clone());
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.name(names.join("::"), path.span(), false);
        visit::visit_path(self, path);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("test"))
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
//! Doc.
use std::{fs, thread::{self, sleep}};

fn long() {
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use std::net;
    #[test]
    fn it_holds() {}
    proptest! {
        #[test]
        fn it_always_holds(x in 0..3) { assert!(x < 3); }
    }
    fn it_holds_on_two_targets(target: Target) {}
    fn helper() {}
    on_two_targets! { it_holds_on_two_targets }
}
";

    #[test]
    fn the_walk_finds_functions_tests_and_paths() {
        let source = Source::parse(FILE, false).unwrap();
        assert!(source.has_module_doc);
        let functions: Vec<_> = source.functions.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
        assert_eq!(
            functions,
            [("long", 4, 3), ("it_holds", 12, 1), ("it_holds_on_two_targets", 17, 1), ("helper", 18, 1)]
        );
        assert_eq!(source.tests, ["it_holds", "it_always_holds", "it_holds_on_two_targets"]);
        let named: Vec<_> =
            source.named.iter().map(|n| n.path.as_str()).filter(|n| n.starts_with("std")).collect();
        assert_eq!(named, ["std::fs", "std::thread::self", "std::thread::sleep", "std::process::exit"]);
        assert!(source.named_in_tests.iter().any(|named| named.path == "std::net" && named.line == 10));
        assert_eq!(source.test_lines, 13);
    }
}
