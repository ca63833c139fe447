//! What keys do, and what the heads of the tables mean.

use super::answer::Answer;
use super::drawing::Drawing;
use super::panel::Panel;
use super::table::grid;
use super::theme::Level;

/// The cells of a key or a head, and a blank.
const LABEL: usize = 13;

const KEYS: [(&str, &str); 14] = [
    ("1 o", "overview"),
    ("2 s", "server"),
    ("3 v", "storage, volumes"),
    ("4 r", "replication"),
    ("5 h", "history"),
    ("6 a", "alarms, not seen"),
    ("arrows Tab", "select (also j k)"),
    ("Enter", "open, graphs"),
    ("+ -", "shorter, longer"),
    ("left right .", "back, forth, now"),
    ("n p", "next graphs"),
    ("Ctrl-L", "draw anew"),
    ("Ctrl-Z", "suspend"),
    ("q Ctrl-C", "quit"),
];

/// What the heads of the tables mean.
const HEADS: [(&str, &str); 8] = [
    ("RUN", "running threads"),
    ("HITS DIRTY", "of buffer pool"),
    ("REDO", "redo log used"),
    ("LOG", "in log syncs"),
    ("IOPS BYTES", "limits in use"),
    ("HELD", "held by a limit"),
    ("END IN", "end of credits"),
    ("-", "not known"),
];

/// What this screen is.
pub(super) fn answer(_drawing: &Drawing<'_>) -> Answer {
    Answer::new(Level::Plain, "help: any key goes back, q quits")
}

/// The keys, then the heads.
pub(super) fn body(drawing: &Drawing<'_>, panel: &mut Panel<'_>) {
    let cells = panel.columns();
    let dim = drawing.theme.style(Level::Dim);
    for pairs in [&KEYS[..], &HEADS[..]] {
        let pairs: Vec<(&str, String)> =
            pairs.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        panel.lines(grid(&pairs, cells, LABEL, dim));
    }
}
