//! The experiment that proves findings, as a file of the lab.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ebbtide_observe::{Files, Observation, VolumeFiles};

use super::mix::whole;
use super::rows::Rows;
use super::shape::{Shape, page_bytes};

/// The arm that has the settings of now.
pub const BEFORE: &str = "before";
/// Times the limits of the volumes while the redo log and the buffer pool come to their working state.
pub(crate) const LEAD_IN_SPEED: u32 = 8;
const TABLES: u32 = 4;
const MIB: u64 = 1 << 20;
/// Memory of a server besides its buffer pool, bytes.
const BESIDES: u64 = 384 * MIB;
/// Most memory of the lab's server, bytes: more of a page cache than a machine may have beside its other work.
const MOST_MEMORY: u64 = 3 << 30;

/// How much of the machine the lab has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Bytes of data at most.
    data: f64,
    /// Bytes of the buffer pool at most.
    pool: f64,
    pub(crate) repeats: u32,
    pub(crate) measure_s: u32,
    pub(crate) lead_in_s: u32,
    pub(crate) settle_s: u32,
}

impl Scale {
    /// Some minutes for each finding.
    pub const FULL: Self = Self {
        data: (1_u64 << 30) as f64,
        pool: (1_u64 << 29) as f64,
        repeats: 5,
        measure_s: 30,
        lead_in_s: 15,
        settle_s: 5,
    };
    /// The shortest that has an interval which says something.
    pub const QUICK: Self = Self {
        data: (1_u64 << 27) as f64,
        pool: (1_u64 << 26) as f64,
        repeats: 3,
        measure_s: 10,
        lead_in_s: 3,
        settle_s: 1,
    };

    /// By how much the machine is divided, so that its data in use and its buffer pool fit.
    pub(crate) fn divisor(&self, shape: &Shape, pool: f64) -> u32 {
        let parts = (shape.working_set / self.data).max(pool / self.pool).ceil();
        whole(parts.clamp(1.0, 1_000.0))
    }
}

/// By what the arm of a finding differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ArmChange {
    /// Settings of the lab.
    pub(crate) settings: BTreeMap<String, String>,
    /// Specs by role.
    pub(crate) volumes: BTreeMap<&'static str, String>,
}

impl ArmChange {
    /// Its sections of the file.
    fn text(&self, code: &str) -> String {
        let mut text = String::new();
        if !self.settings.is_empty() {
            let _ = write!(text, "\n[arms.{code}.settings]\n{}", settings(&self.settings));
        }
        if !self.volumes.is_empty() {
            let _ = writeln!(text, "\n[arms.{code}.volumes]");
            for (role, spec) in &self.volumes {
                let _ = writeln!(text, "{} = {}", key(role), quoted(spec));
            }
        }
        text
    }
}

/// What goes into the file.
pub(crate) struct ExperimentFile<'a> {
    pub(crate) seen: &'a Observation,
    pub(crate) shape: &'a Shape,
    /// The statements, and the rows that they are on.
    pub(crate) rows: Rows,
    pub(crate) divided_by: u32,
    pub(crate) scale: Scale,
    /// The settings of now.
    pub(crate) before: &'a BTreeMap<String, String>,
    /// Specs of the volumes of now.
    pub(crate) volumes: Vec<(VolumeFiles, &'a str)>,
    /// By what the arms of the findings differ.
    pub(crate) arms: &'a [(&'static str, ArmChange)],
}

/// A text in quotes: what a capture holds is anybody's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A role as a key of TOML, which needs quotes for a `+`.
fn key(role: &str) -> String {
    if role.contains('+') { quoted(role) } else { role.to_owned() }
}

impl ExperimentFile<'_> {
    /// Its text.
    pub(crate) fn text(&self) -> String {
        let codes: Vec<&str> = self.arms.iter().map(|(code, _)| *code).collect();
        let mut text = format!(
            "title = \"Fixes of ebbtide doctor\"\n\
             question = \"What do the fixes of {} gain under this load?\"\n",
            codes.join(", ")
        );
        if self.divided_by > 1 {
            let _ = writeln!(text, "scale = \"1/{} of the machine\"", self.divided_by);
        }
        let scale = self.scale;
        let part = self.shape.working_set / f64::from(self.divided_by);
        let lengths = self.rows.lengths;
        let row_bytes = lengths.disk_bytes(whole(page_bytes(self.seen)));
        let rows = (part / row_bytes / f64::from(TABLES)).max(1_000.0);
        let _ = writeln!(
            text,
            "\n[data]\ntables = {TABLES}\nrows = {rows:.0}\nc_length = {}\npad_length = {}\naged = true",
            lengths.c, lengths.pad
        );
        text += &self.machine();
        text += "\n[settings]\n";
        text += &settings(self.before);
        text += &self.load();
        let _ = write!(
            text,
            "\n[trial]\nrepeats = {}\nmeasure = \"{}s\"\n\n[warmup]\nlead_in = \"{}s\"\nlead_in_speed = {LEAD_IN_SPEED}\nsettle = \"{}s\"\n\n\
             [arms.{BEFORE}]\n",
            scale.repeats, scale.measure_s, scale.lead_in_s, scale.settle_s
        );
        for (code, set) in self.arms {
            text += &set.text(code);
        }
        text
    }

    /// `[instance]` and `[volumes]`.
    fn machine(&self) -> String {
        let host = self.seen.host.as_ref();
        let by = u64::from(self.divided_by);
        let pool =
            self.before.get("buffer_pool_size").and_then(|bytes| bytes.parse().ok()).unwrap_or(128 * MIB);
        let least = pool + pool / 8 + BESIDES;
        let memory = host.and_then(|host| host.usable_memory_bytes()).map_or(0, |bytes| bytes / by);
        let mib = memory.min(MOST_MEMORY).max(least).div_ceil(MIB);
        let known = self.seen.file_system.as_ref();
        let known = known.map(|fs| if fs.aligned_bytes > 0 { "ext4-bigalloc" } else { fs.name.as_str() });
        let place = host.and_then(|host| host.place(Files::Data));
        let seen = place.map(|place| place.file_system.as_str());
        let rotates = place.and_then(|place| place.device.as_ref()?.rotational) == Some(true);
        let of_lab = |fs: &&str| ["xfs", "ext4", "ext4-bigalloc"].contains(fs);
        let fs = known.filter(of_lab).or(seen.filter(of_lab)).unwrap_or("xfs");
        let mut text = format!(
            "\n[instance]\nmemory = \"{mib}MiB\"\nfs = \"{fs}\"\ndivided_by = {by}\nrotational = {rotates}\n"
        );
        if let Some(kind) = &self.seen.instance {
            let _ = writeln!(text, "type = {}", quoted(kind));
        }
        text += "\n[volumes]\n";
        for (files, spec) in &self.volumes {
            let _ = writeln!(text, "{} = {}", key(files.role()), quoted(spec));
        }
        text
    }

    /// `[load]`.
    fn load(&self) -> String {
        let shape = self.shape;
        let mix = self.rows.mix;
        let clients = (shape.clients / f64::from(self.divided_by)).round().clamp(1.0, 512.0);
        format!(
            "\n[load]\nworkload = \"read_write\"\ndistribution = \"uniform\"\nconnections = {clients:.0}\n\
             point_selects = {}\nsimple_ranges = {}\nsum_ranges = 0\norder_ranges = 0\ndistinct_ranges = 0\nrange_size = {}\n\
             range_selects = {}\nindex_updates = {}\nnon_index_updates = {}\ndelete_inserts = {}\nskip_trx = {}\n",
            mix.points,
            mix.ranges,
            mix.range_rows,
            mix.ranges > 0,
            mix.index_updates,
            mix.plain_updates,
            mix.delete_inserts,
            shape.autocommit
        )
    }
}

fn settings(all: &BTreeMap<String, String>) -> String {
    all.iter().map(|(name, value)| format!("{name} = {}\n", quoted(value))).collect()
}
