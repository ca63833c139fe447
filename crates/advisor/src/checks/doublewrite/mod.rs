//! Pages that are written twice, and whether a server is a candidate for running without the doublewrite buffer, on storage that does
//! not tear pages (torn-write prevention; RDS calls it Optimized Writes).
//!
//! InnoDB writes a page twice: into the doublewrite buffer, and where it belongs. In bytes that is twice as
//! much; in I/Os it is far less, because the pages of a batch are adjacent there, and a volume counts up
//! to 256 KiB in a row as one. What can be gained thus depends on what the server lacks: `judge` counts both
//! with the buffer and without it, and gives the quotient: how many times the same work fits. It is a ceiling of the
//! gain as long as a transaction takes the pages that it takes now, and no promise.
//!
//! [`examine`] judges an observation. The checks D04 and W01 ask it, and so does `ebbtide crash --candidate`. `figures` is what goes
//! in, `demand` the arithmetic, `judge` the judgement, `conditions` what has to be true, `advice` what to do.

mod advice;
mod check;
mod conditions;
mod demand;
mod error;
mod figures;
mod judge;
mod sources;
mod verdict;

#[cfg(test)]
mod tests;

use super::durability::share;
use super::sources::{MYSQL_INNODB, says};
use super::{EVERY, figure, mariadb, mysql};
use crate::check::Check;
use crate::finding::{FINE, Found, Judged, Severity};
use crate::fix::Fix;
use crate::view::{Dynamic, View, does_not_apply, is_on};

pub use self::advice::Action;
pub use self::check::{Examined, examine};
pub use self::conditions::Standing;
pub(super) use self::demand::Demand;
pub use self::error::NotJudged;
pub use self::figures::{Doublewrite, PageWriteSettings, Storage, Workload};
pub use self::judge::{Candidate, Gain, judge};
pub use self::verdict::Verdict;

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "D04",
        title: "A torn page can be repaired",
        condition: "innodb_doublewrite is OFF or DETECT_ONLY, and a safety condition is known not to hold",
        reason: "a power cut can leave a page half old and half new, which only its second copy repairs",
        servers: EVERY,
        severity: Severity::Critical,
        gain: "a power cut damages no table",
        risk: "pages are written twice: page writes take up to twice the bytes",
        cost: "write throughput of the volume",
        sources: &sources::SOURCES,
        judge: check::off,
    },
    Check {
        code: "W01",
        title: "Pages are written twice where that is needed alone",
        condition: "the doublewrite buffer is on, page writes hold the server back by 10% or more, and the storage may write pages whole",
        reason: "less cannot be told from the spread of repeats; see docs/crash.md for each condition",
        servers: EVERY,
        severity: Severity::Low,
        gain: "up to half of the page writes' bytes",
        risk: "where a condition does not hold, a power cut damages tables for ever",
        cost: "none on EC2's Nitro instances; on RDS an instance class with Optimized Writes",
        sources: &sources::SOURCES,
        judge: check::on,
    },
    Check {
        code: "W02",
        title: "What the doublewrite files take of the write time",
        condition: "over 25% of the time in data and doublewrite files is that of the doublewrite files, and both are 5% of a thread or more",
        reason: "batches are large writes, which take a fifth and less where they are filled",
        servers: &[mysql((8, 0, 20))],
        severity: Severity::Low,
        gain: "shorter page writes",
        risk: "none: see W01 and W03 first",
        cost: "none",
        sources: &[says(MYSQL_INNODB, "innodb_doublewrite_pages sets the pages of a batch for each thread")],
        judge: share_of_time,
    },
    Check {
        code: "W03",
        title: "Batches of the doublewrite buffer are large",
        condition: "innodb_doublewrite_pages under 16",
        reason: "each batch ends with a sync; published tests found up to 10% more throughput with 128, the default from 8.4 on",
        servers: &[mysql((8, 0, 20))],
        severity: Severity::Low,
        gain: "fewer syncs of the doublewrite files",
        risk: "none that is known",
        cost: "a few MiB of memory and space",
        sources: &[says(
            MYSQL_INNODB,
            "the default is 128 from 8.4 on; before, as many as innodb_write_io_threads",
        )],
        judge: batches,
    },
    Check {
        code: "W04",
        title: "RDS Optimized Writes are in effect",
        condition: "an RDS instance of a release that has Optimized Writes runs with innodb_doublewrite ON",
        reason: "the parameter rds.optimized_writes of AUTO takes effect only on instance classes and file systems that write pages whole",
        servers: &[mysql((8, 0, 30)), mariadb((10, 6, 10))],
        severity: Severity::Low,
        gain: "up to twice the page writes for the same IOPS",
        risk: "the file system of an older instance is only replaced by a new instance (blue/green deployment)",
        cost: "a new instance",
        sources: &[says(
            "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-optimized-writes.html",
            "instance classes and releases with Optimized Writes; databases made before need a new file system",
        )],
        judge: rds,
    },
];

fn share_of_time(v: &View<'_>) -> Judged {
    let (copies, data) = (v.metric("doublewrite_wait")?, v.metric("data_wait")?);
    let all = copies + data;
    // A twentieth of a thread is nothing that anybody waits for.
    if all < 0.05 || copies <= 0.25 * all {
        return FINE;
    }
    Found::because(format!(
        "{} threads are in the doublewrite files' I/O, {} of the time in data files.",
        figure(copies),
        share(copies, all)
    ))
    .fix(v.fix("Write larger batches.", &[("innodb_doublewrite_pages", "128", Dynamic::NEVER)])?)
    .answer()
}

fn batches(v: &View<'_>) -> Judged {
    let pages = v.number("innodb_doublewrite_pages")?;
    let doublewrite = v.text("innodb_doublewrite")?;
    // Neither copies pages.
    let without = ["off", "0", "detect_only"].iter().any(|word| doublewrite.eq_ignore_ascii_case(word));
    if pages >= 16.0 || without {
        return FINE;
    }
    Found::because(format!("A batch has {pages} pages, and ends with a sync."))
        .fix(v.fix("Write larger batches.", &[("innodb_doublewrite_pages", "128", Dynamic::NEVER)])?)
        .answer()
}

fn rds(v: &View<'_>) -> Judged {
    v.text("datadir")?;
    if !v.is_rds() {
        return does_not_apply("the server is no RDS instance");
    }
    if !is_on(v.text("innodb_doublewrite")?) {
        return FINE;
    }
    Found::because("The instance writes each page twice.")
        .fix(Fix::by_hand("See that rds.optimized_writes is AUTO and the instance class has it; then move to a new instance with a blue/green deployment."))
        .answer()
}
