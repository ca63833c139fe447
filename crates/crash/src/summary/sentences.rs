//! What happened, in the words of a database administrator.

use ebbtide_analysis::stats::Share;
use ebbtide_lab::experiment::{Canary, End, Moment};
use ebbtide_text::{percent, whole};

use crate::record::{Corruption, FileKind, VerdictKind};

/// `1 power cut`, `3,000 power cuts`.
pub(crate) fn ends(count: u64, end: End) -> String {
    let what = match (end, count) {
        (_, 1) => one_end(end),
        (End::PowerCut, _) => "power cuts",
        (End::Kill, _) => "kills of the server",
    };
    format!("{} {what}", whole(count as f64))
}

/// What ends in a cut.
pub(crate) const fn one_end(end: End) -> &'static str {
    match end {
        End::PowerCut => "power cut",
        End::Kill => "kill of the server",
    }
}

/// `61 of 100 power cuts`.
pub(crate) fn share_of(share: &Share, end: End) -> String {
    format!("{} of {}", whole(share.count as f64), ends(share.of, end))
}

/// What so many cases show about all others: `at most 0.1%`, `51% to 71%`; nothing of no cases.
#[must_use]
pub fn bound(share: &Share) -> String {
    let (Some(low), Some(high)) = (share.low, share.high) else { return String::new() };
    match share.count {
        0 => format!("at most {}", percent(high)),
        count if count == share.of => format!("at least {}", percent(low)),
        _ => format!("{} to {}", percent(low), percent(high)),
    }
}

/// A kind of verdict, for headings and tables.
#[must_use]
pub const fn kind(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Corrupt => "Corrupt",
        VerdictKind::Partial => "Phantom or partial",
        VerdictKind::LostCommits => "Lost commits",
        VerdictKind::BinlogDisagrees => "Binary log disagrees",
        VerdictKind::ReplicationBroken => "Replication broken",
        VerdictKind::Unverified => "Unverified",
    }
}

/// What a cut of that kind did, to follow `61 of 100 power cuts`.
pub(crate) const fn did(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Corrupt => "left damage that recovery did not mend",
        VerdictKind::Partial => "left transactions in part, or ones that were never committed",
        VerdictKind::LostCommits => "lost transactions that had been acknowledged",
        VerdictKind::BinlogDisagrees => "left tables and binary log with different transactions",
        VerdictKind::ReplicationBroken => "left a replica that does not go on where it was",
        VerdictKind::Unverified => "could not be verified",
    }
}

/// How corruption showed, to follow `61 of 100 power cuts`.
pub(crate) const fn showed(how: Corruption) -> &'static str {
    match how {
        Corruption::FileSystem => "left a damaged file system",
        Corruption::NoStart => "left a server that does not start",
        Corruption::Log => "left a server that starts and reports corruption",
        Corruption::Rows => "left rows or indexes that are damaged",
        Corruption::CheckTable => "left a table that fails CHECK TABLE",
        Corruption::Files => "left a table that the next start loses",
        Corruption::Pages => "left pages with wrong checksums",
    }
}

/// The same of one server, as a heading.
pub(crate) const fn shown(how: Corruption) -> &'static str {
    match how {
        Corruption::FileSystem => "The file system is damaged",
        Corruption::NoStart => "The server does not start",
        Corruption::Log => "The server starts and reports corruption",
        Corruption::Rows => "Rows or indexes are damaged",
        Corruption::CheckTable => "CHECK TABLE fails",
        Corruption::Files => "The next start loses a table that the server reads",
        Corruption::Pages => "Pages have wrong checksums after recovery",
    }
}

/// What a canary proves that the tester sees.
pub(crate) const fn proves(canary: Canary) -> &'static str {
    match canary {
        Canary::AnswersEarly => "the commits that a volume loses when it answers before they are durable",
        Canary::IgnoresFlushes => "what a volatile cache loses when it ignores flushes",
        Canary::TornPages => "pages that are torn while nothing guards them",
        Canary::StalePosition => "a replica that does not go on where it was",
    }
}

/// When the power was cut, to follow `cut`.
pub(crate) const fn moment(moment: Moment) -> &'static str {
    match moment {
        Moment::Random => "at any time",
        Moment::Checkpoint => "while a checkpoint was written",
        Moment::Doublewrite => "during a doublewrite batch",
        Moment::Page => "while a page was written to its place",
        Moment::Redo => "while redo was written",
        Moment::BinlogRotation => "while the binary log rotated",
        Moment::Ddl => "while a table was altered",
        Moment::Extension => "when a file had just been extended",
    }
}

/// What a write was a write of.
pub(crate) const fn file(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Checkpoint => "checkpoint header",
        FileKind::Redo => "redo log",
        FileKind::Doublewrite => "doublewrite buffer",
        FileKind::Page => "page",
        FileKind::Binlog => "binary log",
        FileKind::Other => "other file",
        FileKind::FileSystem => "file system's own",
    }
}

/// A time of some seconds, from milliseconds on.
pub(crate) fn seconds(seconds: f64) -> String {
    if seconds <= 0.0 { "0\u{a0}s".to_owned() } else { ebbtide_lab::page::text::latency(seconds * 1e6) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_written_as_the_field_writes_them() {
        assert_eq!(share_of(&Share::new(0, 3000), End::PowerCut), "0 of 3,000 power cuts");
        assert_eq!(bound(&Share::new(0, 3000)), "at most 0.1%");
        assert_eq!(bound(&Share::new(61, 100)), "51% to 71%");
        assert_eq!(bound(&Share::new(100, 100)), "at least 97%");
        assert_eq!(bound(&Share::new(1, 3000)), "<0.01% to 0.2%");
        assert_eq!(bound(&Share::new(0, 0)), "");
        assert_eq!(ends(1, End::Kill), "1 kill of the server");
    }
}
