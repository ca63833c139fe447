//! What a page is made of, apart from its plots.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeSeq};

use crate::number;
use crate::plot::{Plots, Scale};

/// A part of the page with a heading.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Section {
    /// Its heading; empty for none.
    pub heading: String,
    /// A sentence on how to read it; empty for none.
    pub lead: String,
    /// What it holds.
    pub blocks: Vec<Block>,
    /// Whether text shows it only to readers who ask for details. Pages and Markdown show all sections.
    #[serde(skip)]
    pub details: bool,
    /// The word that asks for it alone; empty: its heading in small letters, with hyphens.
    #[serde(skip)]
    pub name: &'static str,
}

impl Section {
    /// A section without a sentence on how to read it.
    pub fn new(heading: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { heading: heading.into(), blocks, ..Self::default() }
    }

    /// The same section as one that text shows only to readers who ask for details.
    #[must_use]
    pub fn details(mut self) -> Self {
        self.details = true;
        self
    }

    /// The same section under a word that asks for it alone.
    #[must_use]
    pub const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// The word that asks for it alone; empty for the answer itself, which has no heading.
    #[must_use]
    pub fn word(&self) -> Cow<'_, str> {
        if self.name.is_empty() {
            self.heading.to_lowercase().replace(' ', "-").into()
        } else {
            self.name.into()
        }
    }

    /// The same section with a sentence on how to read it.
    #[must_use]
    pub fn lead(mut self, lead: impl Into<String>) -> Self {
        self.lead = lead.into();
        self
    }
}

/// A thing on the page.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum Block {
    /// What came out, large.
    Verdicts(Vec<Verdict>),
    /// What the reader should know first, one sentence each.
    Findings(Vec<String>),
    /// A heading inside of a section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Labels and values, in two columns.
    Facts(Vec<Fact>),
    /// A table.
    Table(Table),
    /// Values with their intervals, one under the other.
    Estimates(Estimates),
    /// Charts over one common axis.
    Plots(Plots),
    /// Versions of something in its parts, such as a page in its atomic units.
    Bands(Bands),
    /// A text to copy, such as a command.
    Listing(Listing),
    /// Remarks.
    Notes(Vec<Note>),
    /// What only some readers want to see.
    Fold(Fold),
    /// Another page next to this one.
    Link(Link),
}

/// Another page next to this one.
#[derive(Debug, Clone, Serialize)]
pub struct Link {
    /// Its text, such as `The report of the lab`.
    pub text: String,
    /// Its file, from the directory of this one: `gain/report.html`. Anything with a scheme is not followed.
    pub file: String,
}

/// What came out, in a figure and in words.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// The figure, short enough for large type, such as `12.6x`.
    pub figure: String,
    /// Under which conditions; empty: there is none to name.
    pub context: String,
    /// The sentence that belongs to it.
    pub headline: String,
    /// What the sentence rests on: the interval, what limits, what could have been seen.
    pub details: Vec<String>,
    /// How it is to be taken.
    pub tone: Tone,
}

impl Verdict {
    /// Figure, conditions and headline in one sentence: `2.1x: gp2, writes: tuned is faster`.
    pub(crate) fn sentence(&self) -> String {
        let parts = [&self.figure, &self.context, &self.headline].map(String::as_str);
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
    }
}

/// How something is to be taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// As an improvement.
    Good,
    /// As a worsening.
    Bad,
    /// With care.
    Caution,
}

/// A label and its value.
#[derive(Debug, Clone, Serialize)]
pub struct Fact {
    /// What it is.
    pub label: String,
    /// The value with its unit.
    pub value: String,
}

impl Fact {
    /// A label and its value.
    pub fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { label: label.into(), value: value.into() }
    }
}

/// A table of ready texts.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Table {
    /// What it shows; empty: the text around it has it.
    pub caption: String,
    /// The headings, with units.
    pub columns: Vec<String>,
    /// The rows, as wide as the headings.
    pub rows: Vec<Vec<Cell>>,
    /// Whether the reader may sort it by a column.
    pub sortable: bool,
    /// Whether cells hold texts to be read, which wrap and are aligned to the left.
    pub prose: bool,
    /// Whether these texts are words, and not something to be typed like settings.
    pub words: bool,
    /// Numbers of the columns that a narrow terminal does without, the least important one first; after them the last columns
    /// go. The first column always stays.
    #[serde(skip)]
    pub spare: Vec<usize>,
    /// Rows that text shows to readers who do not ask for details, which then counts the others; None for all.
    #[serde(skip)]
    pub first_rows: Option<usize>,
}

impl Table {
    /// The table without the column of a heading; as it is where it has none.
    #[must_use]
    pub fn without(mut self, heading: &str) -> Self {
        if let Some(column) = self.columns.iter().position(|other| other == heading) {
            self.columns.remove(column);
            self.rows.iter_mut().for_each(|row| drop(row.remove(column)));
            self.spare.retain(|spare| *spare != column);
            self.spare.iter_mut().filter(|spare| **spare > column).for_each(|spare| *spare -= 1);
        }
        self
    }
}

/// A cell of a table.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Cell {
    /// Its summary.
    pub text: String,
    /// A second, smaller line; empty for none.
    pub detail: String,
    /// What the table is sorted by; without it, the text.
    #[serde(serialize_with = "number::rounded_option")]
    pub value: Option<f64>,
    /// The number of the group whose colour it carries.
    pub group: Option<usize>,
    /// A small line without an axis, drawn instead of the text.
    #[serde(serialize_with = "number::rounded_options", skip_serializing_if = "Vec::is_empty")]
    pub spark: Vec<Option<f64>>,
    /// A share of 0 to 1, drawn as a bar under the text.
    #[serde(serialize_with = "number::rounded_option", skip_serializing_if = "Option::is_none")]
    pub bar: Option<f64>,
    /// How it is to be taken.
    pub tone: Tone,
}

impl Cell {
    /// A cell with a number to sort by and a second line.
    pub fn value(text: impl Into<String>, value: f64, detail: impl Into<String>) -> Self {
        Self { text: text.into(), detail: detail.into(), value: Some(value), ..Self::default() }
    }

    /// The summary, with the second line in brackets where there is one.
    pub(crate) fn with_detail(&self) -> Cow<'_, str> {
        if self.detail.is_empty() {
            self.text.as_str().into()
        } else {
            format!("{} ({})", self.text, self.detail).into()
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Values with their intervals on one axis: a dot for every single measurement, a bar for the
/// interval, a mark for the value.
#[derive(Debug, Clone, Serialize)]
pub struct Estimates {
    /// What they show.
    pub title: String,
    /// The unit and, where needed, the kind of axis, for people.
    pub unit: String,
    /// How values are spread.
    pub scale: Scale,
    /// What is put behind a number on the axis, such as `x`.
    pub suffix: String,
    /// A value to hold the others against, such as 1 for ratios, and what it is.
    pub reference: Option<(f64, String)>,
    /// Values too near to the reference to be distinguished from it.
    pub band: Option<(f64, f64)>,
    /// What the band is; empty without one.
    pub band_label: String,
    /// What a dot is, such as `one trial`; empty where there are none.
    pub points_label: String,
    /// What a mark with its bar is, such as `mean, 95% interval`.
    pub mid_label: String,
    /// What is above the labels of the rows.
    pub rows_label: String,
    /// What is above the texts at the end.
    pub texts_label: String,
    /// The rows.
    pub rows: Vec<Estimate>,
}

/// One value with its interval.
#[derive(Debug, Clone, Serialize)]
pub struct Estimate {
    /// What it belongs to.
    pub label: String,
    /// A second, smaller line under it; empty for none.
    pub detail: String,
    /// The number of the group whose colour it has.
    pub group: Option<usize>,
    /// The value; None: there is nothing to show, and the text has the reason.
    #[serde(serialize_with = "number::rounded_option")]
    pub mid: Option<f64>,
    /// Both ends of the interval.
    #[serde(serialize_with = "pair")]
    pub interval: Option<(f64, f64)>,
    /// The single measurements.
    #[serde(serialize_with = "number::rounded_values")]
    pub points: Vec<f64>,
    /// The value in words, at the end of the row.
    pub text: String,
    /// A second, smaller line under it; empty for none.
    pub text_detail: String,
}

impl Estimates {
    /// The labels with the values in words, for where nothing is drawn.
    pub(crate) fn table(&self) -> Table {
        let cell =
            |text: &String, detail: &String| Cell { detail: detail.clone(), ..Cell::from(text.as_str()) };
        let row = |row: &Estimate| vec![cell(&row.label, &row.detail), cell(&row.text, &row.text_detail)];
        Table {
            caption: format!("{} ({})", self.title, self.unit),
            columns: vec![self.rows_label.clone(), self.texts_label.clone()],
            rows: self.rows.iter().map(row).collect(),
            prose: true,
            words: true,
            ..Table::default()
        }
    }
}

fn pair<S: Serializer>(pair: &Option<(f64, f64)>, to: S) -> Result<S::Ok, S::Error> {
    let Some((low, high)) = pair.filter(|(low, high)| low.is_finite() && high.is_finite()) else {
        return to.serialize_none();
    };
    let mut list = to.serialize_seq(Some(2))?;
    list.serialize_element(&number::Rounded(low))?;
    list.serialize_element(&number::Rounded(high))?;
    list.end()
}

/// Versions of something in its parts, one under the other, drawn as bands.
#[derive(Debug, Clone, Serialize)]
pub struct Bands {
    /// What they are versions of.
    pub title: String,
    /// What a filled part is, such as `new`.
    pub filled_label: String,
    /// What an empty part is, such as `old`.
    pub empty_label: String,
    /// The versions.
    pub rows: Vec<Band>,
}

impl Bands {
    /// The versions with their parts by name, for where nothing is drawn.
    pub(crate) fn table(&self) -> Table {
        let row = |row: &Band| {
            let name = |filled: &bool| if *filled { &*self.filled_label } else { &*self.empty_label };
            let parts = row.parts.iter().map(name).collect::<Vec<_>>().join(", ");
            let texts = [row.label.as_str(), row.start.as_str(), parts.as_str(), row.end.as_str()];
            texts.map(|text| Cell { tone: row.tone, ..Cell::from(text) }).to_vec()
        };
        Table {
            caption: self.title.clone(),
            columns: ["", "Begins", "Parts", "Ends"].map(str::to_owned).to_vec(),
            rows: self.rows.iter().map(row).collect(),
            prose: true,
            words: true,
            ..Table::default()
        }
    }
}

/// One version of something in its parts.
#[derive(Debug, Clone, Serialize)]
pub struct Band {
    /// Which version it is.
    pub label: String,
    /// The text at its beginning.
    pub start: String,
    /// The text at its end.
    pub end: String,
    /// Its parts in their order: whether each is filled.
    pub parts: Vec<bool>,
    /// How it is to be taken.
    pub tone: Tone,
}

/// A text to copy.
#[derive(Debug, Clone, Serialize)]
pub struct Listing {
    /// What it is; empty: the heading has it.
    pub label: String,
    /// The text, line by line as it is.
    pub text: String,
}

/// A remark.
#[derive(Debug, Clone, Serialize)]
pub struct Note {
    /// What is to be known.
    pub text: String,
    /// How it is to be taken.
    pub tone: Tone,
}

impl Note {
    /// A remark to be taken as it is.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }

    /// A remark to be taken with care.
    pub fn caution(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Caution }
    }
}

/// What only some readers want to see: closed until they open it.
#[derive(Debug, Clone, Serialize)]
pub struct Fold {
    /// What is inside.
    pub summary: String,
    /// The content.
    pub blocks: Vec<Block>,
}
