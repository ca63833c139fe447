//! The file of an experiment: its sections, axes, comparisons and quick form, before they are combined.

use ebbtide_text::{closest, did_you_mean};

use super::ExperimentError;
use super::read::setting_text;
use super::section::{
    OF_ALL, OF_ARMS, REPLICA, SERVER, SHARED, SOURCE, canonical_key, setting_name, unknown_key,
};
use super::tree::{Node, TomlTable, Value, WrittenAt};

/// The keys of a file.
const KEYS: [&str; 22] = [
    "title",
    "question",
    "source",
    "scale",
    "region",
    "equal_arms",
    "over_limit",
    "compare",
    "data",
    "instance",
    "volumes",
    "settings",
    "topology",
    "load",
    "trial",
    "warmup",
    "batch",
    "backup",
    "crash",
    "arms",
    "axes",
    "claim",
];
const QUICK: &str = "quick";

/// The axis that `[arms]` makes.
pub(super) const ARM_AXIS: &str = "arm";

/// A file, taken apart.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) title: String,
    pub(super) question: String,
    pub(super) source: String,
    pub(super) scale: String,
    /// Whose prices the report shows; empty: the file does not name it.
    pub(super) region: String,
    /// Whether arms may be equal, so that what differs between them is noise.
    pub(super) equal_arms: bool,
    /// Whether it runs on a host that is slower than a volume.
    pub(super) over_limit: bool,
    /// What holds unless an option or the command line changes it.
    pub(super) base: TomlTable,
    /// The axes, in the order of the file.
    pub(super) axes: Vec<Axis>,
    /// What is held against what.
    pub(super) compare: Vec<Compare>,
    /// The short form.
    pub(super) quick: Quick,
    /// What documents claim about it, as the file has it.
    pub(super) claims: Vec<Node>,
}

/// Something in which arms differ.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) options: Vec<AxisOption>,
}

/// One choice of an axis.
#[derive(Debug, Clone)]
pub(super) struct AxisOption {
    pub(super) name: String,
    pub(super) patch: TomlTable,
    /// What the short form changes of the patch.
    pub(super) quick: TomlTable,
    /// Whether it may be left out on a server that lacks one of its settings.
    pub(super) optional: bool,
    pub(super) place: WrittenAt,
}

/// An axis whose options are held against one of them.
#[derive(Debug, Clone)]
pub(super) struct Compare {
    pub(super) axis: usize,
    pub(super) baseline: String,
}

/// The short form: a patch over the base, and the arms that it keeps.
#[derive(Debug, Clone, Default)]
pub(super) struct Quick {
    /// Whether the file has one.
    pub(super) is_there: bool,
    pub(super) patch: TomlTable,
    pub(super) arms: Vec<(String, WrittenAt)>,
}

impl File {
    /// Reads a file; `name` represents it in errors.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, ExperimentError> {
        let mut root = TomlTable::parse(name, text)?;
        for (key, node) in root.iter() {
            if !KEYS.contains(&key) && key != QUICK {
                let mut keys = KEYS.to_vec();
                keys.push(QUICK);
                return Err(unknown_key(&node.place, key, "the experiment", &keys));
            }
        }
        let axes = take_axes(&mut root)?;
        let compare = take_compare(&mut root, &axes)?;
        let file = Self {
            title: take_text(&mut root, "title")?,
            question: take_text(&mut root, "question")?,
            source: take_text(&mut root, "source")?,
            scale: take_text(&mut root, "scale")?,
            region: take_text(&mut root, "region")?,
            equal_arms: take_switch(&mut root, "equal_arms")?,
            over_limit: take_switch(&mut root, "over_limit")?,
            quick: take_quick(&mut root)?,
            claims: take_claims(&mut root)?,
            base: normal(root)?,
            axes,
            compare,
        };
        Ok(file)
    }

    /// Whether it describes the short form, of all arms or of some.
    pub(super) fn has_quick(&self) -> bool {
        let mut options = self.axes.iter().flat_map(|axis| &axis.options);
        self.quick.is_there || options.any(|option| option.quick.iter().next().is_some())
    }

    /// Whether the base or an option has a section.
    pub(super) fn has(&self, section: &str) -> bool {
        let mut options = self.axes.iter().flat_map(|axis| &axis.options);
        self.base.get(section).is_some() || options.any(|option| option.patch.get(section).is_some())
    }

    /// Every axis that has an option of this name.
    pub(super) fn options(&self, option: &str) -> Vec<(usize, usize)> {
        let axes = self.axes.iter().enumerate();
        axes.filter_map(|(at, axis)| Some((at, axis.options.iter().position(|o| o.name == option)?)))
            .collect()
    }

    /// The names of all options.
    pub(super) fn option_names(&self) -> Vec<&str> {
        self.axes.iter().flat_map(|axis| &axis.options).map(|option| option.name.as_str()).collect()
    }
}

fn take_text(root: &mut TomlTable, key: &str) -> Result<String, ExperimentError> {
    match root.take(key) {
        None => Ok(String::new()),
        // A text over several lines of the file is one paragraph.
        Some(Node { value: Value::Text(text), .. }) => {
            Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        Some(node) => Err(node.place.wrong(format!("{key} = {}: it must be a text in quotes", node.value))),
    }
}

fn take_switch(root: &mut TomlTable, key: &str) -> Result<bool, ExperimentError> {
    match root.take(key) {
        None => Ok(false),
        Some(Node { value: Value::Switch(on), .. }) => Ok(on),
        Some(node) => Err(node.place.wrong(format!("{key} = {}: it must be true or false", node.value))),
    }
}

/// `[arms]` and `[axes]` as one list, in the order of the file.
fn take_axes(root: &mut TomlTable) -> Result<Vec<Axis>, ExperimentError> {
    let mut axes = Vec::new();
    let order: Vec<String> = root.iter().map(|(key, _)| key.to_owned()).collect();
    for key in order.iter().filter(|key| ["arms", "axes"].contains(&key.as_str())) {
        let Some(node) = root.take(key) else { continue };
        let table = node.table(key)?;
        if key == "arms" {
            axes.push(axis(ARM_AXIS, &node.place, table)?);
            continue;
        }
        for (name, node) in table.iter() {
            check_name("axis", name, &node.place)?;
            axes.push(axis(name, &node.place, node.table(&format!("axes.{name}"))?)?);
        }
    }
    let twice = axes.iter().enumerate().find(|(at, axis)| axes[..*at].iter().any(|a| a.name == axis.name));
    match twice {
        Some((_, axis)) => Err(axis.options[0]
            .place
            .wrong(format!("[arms] is the axis '{ARM_AXIS}': give the axis '{}' another name", axis.name))),
        None => Ok(axes),
    }
}

fn axis(name: &str, place: &WrittenAt, table: &TomlTable) -> Result<Axis, ExperimentError> {
    let options = table
        .iter()
        .map(|(option, node)| {
            check_name("option", option, &node.place)?;
            let mut patch = node.table(option)?.clone();
            let optional = take_switch(&mut patch, "optional")?;
            let of = format!("option '{option}' of axis '{name}'");
            let quick = match patch.take(QUICK) {
                None => TomlTable::default(),
                Some(node) => arm_patch(node.table(QUICK)?.clone(), &format!("[quick] of {of}"))?,
            };
            Ok(AxisOption {
                name: option.to_owned(),
                patch: arm_patch(patch, &of)?,
                quick,
                optional,
                place: node.place.clone(),
            })
        })
        .collect::<Result<Vec<_>, ExperimentError>>()?;
    if options.is_empty() {
        return Err(place.wrong(format!("axis '{name}' has no options")));
    }
    Ok(Axis { name: name.to_owned(), options })
}

/// What an arm may change, under the names that its keys have.
fn arm_patch(patch: TomlTable, of: &str) -> Result<TomlTable, ExperimentError> {
    let patch = normal(allowed(patch, &OF_ARMS, of)?)?;
    refuse_shared(&patch, of)?;
    Ok(patch)
}

/// A name that `--arms` and `--set` can take apart, and that is no section.
fn check_name(what: &str, name: &str, place: &WrittenAt) -> Result<(), ExperimentError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '.');
    if name.is_empty() || name.len() > 40 || !name.chars().all(allowed) {
        return Err(place.wrong(format!(
            "the {what} '{name}' needs another name: 1 to 40 letters, digits, '-', '_', '+' and '.'"
        )));
    }
    if what == "option" && (OF_ARMS.contains(&name) || OF_ALL.contains(&name)) {
        return Err(place.wrong(format!("the {what} '{name}' needs another name: that is a section's")));
    }
    Ok(())
}

fn take_compare(root: &mut TomlTable, axes: &[Axis]) -> Result<Vec<Compare>, ExperimentError> {
    let items = match root.take("compare") {
        None => {
            let first = axes.first().map(|axis| Compare { axis: 0, baseline: axis.options[0].name.clone() });
            return Ok(first.into_iter().collect());
        }
        Some(Node { value: Value::List(items), .. }) => items,
        Some(node) => vec![node],
    };
    items.iter().map(|node| comparison(node, axes)).collect()
}

fn comparison(node: &Node, axes: &[Axis]) -> Result<Compare, ExperimentError> {
    const COMPARE_KEYS: [&str; 2] = ["axis", "baseline"];
    let table = node.table("compare")?;
    let mut texts = [None, None];
    for (key, node) in table.iter() {
        let at = COMPARE_KEYS.iter().position(|known| *known == key);
        let at = at.ok_or_else(|| unknown_key(&node.place, key, "compare", &COMPARE_KEYS))?;
        let Value::Text(text) = &node.value else {
            return Err(node
                .place
                .wrong(format!("compare.{key} = {}: it must be a text in quotes", node.value)));
        };
        texts[at] = Some((text.as_str(), &node.place));
    }
    let [Some((axis, place)), baseline] = texts else {
        return Err(node
            .place
            .wrong("compare needs the axis, like { axis = \"volume\", baseline = \"gp2\" }"));
    };
    let names = || axes.iter().map(|axis| axis.name.as_str());
    let Some(at) = axes.iter().position(|known| known.name == axis) else {
        return Err(place.wrong(no_such("axis", axis, names())));
    };
    let options = || axes[at].options.iter().map(|option| option.name.as_str());
    match baseline {
        Some((name, place)) if !options().any(|option| option == name) => {
            Err(place.wrong(no_such(&format!("option of axis '{axis}'"), name, options())))
        }
        Some((name, _)) => Ok(Compare { axis: at, baseline: name.to_owned() }),
        None => Ok(Compare { axis: at, baseline: axes[at].options[0].name.clone() }),
    }
}

/// `there is no axis 'volum' (did you mean 'volume'?); there are volume and mix`.
pub(super) fn no_such<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let nearest = closest(name, known.clone());
    let all: Vec<&str> = known.into_iter().collect();
    let all =
        if all.is_empty() { "there is none".to_owned() } else { format!("there is {}", all.join(", ")) };
    format!("there is no {what} '{name}'{}; {all}", did_you_mean(nearest))
}

fn take_quick(root: &mut TomlTable) -> Result<Quick, ExperimentError> {
    let Some(node) = root.take(QUICK) else { return Ok(Quick::default()) };
    let mut patch = node.table(QUICK)?.clone();
    let arms = match patch.take("arms") {
        None => Vec::new(),
        Some(Node { value: Value::List(items), .. }) => items
            .into_iter()
            .map(|item| match item.value {
                Value::Text(name) => Ok((name, item.place)),
                other => Err(item.place.wrong(format!("{other} is not the name of an arm"))),
            })
            .collect::<Result<_, _>>()?,
        Some(node) => return Err(node.place.wrong("arms is a list of names, like [\"gp2\", \"tuned\"]")),
    };
    let sections: Vec<&str> = OF_ARMS.into_iter().chain(OF_ALL).collect();
    Ok(Quick { is_there: true, patch: normal(allowed(patch, &sections, "[quick]")?)?, arms })
}

/// The tables of `[[claim]]`.
fn take_claims(root: &mut TomlTable) -> Result<Vec<Node>, ExperimentError> {
    match root.take("claim") {
        None => Ok(Vec::new()),
        Some(Node { value: Value::List(items), .. }) => Ok(items),
        Some(node) => Err(node.place.wrong("claims are a list of tables: write [[claim]]")),
    }
}

/// Refuses sections that have no meaning at this place.
fn allowed(patch: TomlTable, sections: &[&str], of: &str) -> Result<TomlTable, ExperimentError> {
    for (key, node) in patch.iter() {
        if OF_ALL.contains(&key) && !sections.contains(&key) {
            return Err(node.place.wrong(format!(
                "all arms share [{key}]: it is not allowed in {of}; an arm may have {}",
                sections.join(", ")
            )));
        }
        if !sections.contains(&key) {
            return Err(unknown_key(&node.place, key, of, sections));
        }
    }
    Ok(patch)
}

/// Refuses keys that hold for all arms or none, such as the number of rounds.
fn refuse_shared(patch: &TomlTable, of: &str) -> Result<(), ExperimentError> {
    for (section, key) in SHARED {
        let Some(table) = patch.get(section) else { continue };
        if let Some(node) = table.table(section)?.get(key) {
            let message =
                format!("all arms share {section}.{key}: it is not allowed in {of}, only in [{section}]");
            return Err(node.place.wrong(message));
        }
    }
    Ok(())
}

/// Gives every key of every section its one name, so that a patch meets what it is to replace.
pub(super) fn normal(mut sections: TomlTable) -> Result<TomlTable, ExperimentError> {
    let names: Vec<String> = sections.iter().map(|(key, _)| key.to_owned()).collect();
    for section in names {
        let Some(mut node) = sections.take(&section) else { continue };
        let table = node.table_mut(&section)?;
        if section == "settings" {
            flatten_raw(table)?;
            table.rename(canonical_setting)?;
        } else if section == "topology" {
            for role in [SOURCE, REPLICA] {
                let Some(mut own) = table.take(role) else { continue };
                let sections = own.table_mut(role)?;
                let server = sections.take(SERVER);
                *sections = normal(std::mem::take(sections))?;
                server.into_iter().for_each(|server| sections.insert(SERVER, server));
                table.insert(role, own);
            }
        } else {
            table.rename(|key, _| Ok(canonical_key(&section, key)))?;
        }
        sections.insert(&section, node);
    }
    Ok(sections)
}

/// TOML reads `raw.name = 1` as a table `raw`; the settings have one name with a dot.
fn flatten_raw(settings: &mut TomlTable) -> Result<(), ExperimentError> {
    let Some(raw) = settings.take("raw") else { return Ok(()) };
    for (key, node) in raw.table("settings.raw")?.iter() {
        settings.insert(&format!("raw.{key}"), node.clone());
    }
    Ok(())
}

fn canonical_setting(key: &str, node: &Node) -> Result<String, ExperimentError> {
    let text = setting_text(&node.value).unwrap_or_default();
    setting_name(key, &text).map_err(|error| node.place.wrong(error.to_string()))
}
