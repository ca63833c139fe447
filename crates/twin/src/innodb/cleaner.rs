//! How many pages the page cleaner writes from the flush list: the formulas of the servers.
//!
//! MySQL: `buf0flu.cc`, `page_recommendation` with its parts (5.7 to 9). MariaDB: `buf0flu.cc`,
//! `buf_flush_page_cleaner` and `page_cleaner_flush_pages_recommendation` (10.5 to 11).

use super::flavour::Settings;
use super::redo::RedoLimits;

/// What the page cleaner sees when it wakes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CleanerView {
    /// Dirty pages of the pool.
    pub dirty: f64,
    /// All pages of the pool.
    pub pool: f64,
    /// Redo since the oldest change that is not in the data files, bytes.
    pub age: f64,
    /// Pages of the flush list a second, on average.
    pub pages_per_s: f64,
    /// Pages that must be written each second for the redo that is written each second.
    pub pages_for_redo: f64,
}

/// What the page cleaner does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recommendation {
    /// Pages to write from the flush list.
    pub pages: u64,
    /// Whether it goes on without a pause until the oldest change is young enough.
    pub urgent: bool,
}

/// The pages to write in a second in which nothing was changed; None on servers that go by the dirty pages then too.
///
/// MySQL: `buf_flush_page_coordinator_thread` of `buf0flu.cc`, `innodb_idle_flush_pct` percent of `io_capacity`.
#[must_use]
pub fn recommend_idle(settings: &Settings) -> Option<Recommendation> {
    let pages = u64::from(settings.io_capacity) * u64::from(settings.idle_flush_pct) / 100;
    (!settings.flavour.is_mariadb()).then_some(Recommendation { pages, urgent: false })
}

/// The pages to write in a second.
#[must_use]
pub fn recommend(settings: &Settings, limits: &RedoLimits, view: &CleanerView) -> Recommendation {
    if settings.flavour.is_mariadb() {
        mariadb(settings, limits, view)
    } else {
        mysql(settings, limits, view)
    }
}

/// Up to where MariaDB's page cleaner is asked to write the oldest changes, positions in the redo log.
///
/// A change at which the checkpoint is older than the asynchronous age asks for all changes older than that age
/// (`log_close` of `mtr0mtr.cc`, `buf_flush_ahead` of `buf0flu.cc`). That it stops there was measured on 10.11.19: the age
/// falls back to the asynchronous one. Sources of 2023 have the newest change as the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FlushTargets {
    /// Since the checkpoint was older than the asynchronous age.
    soft: Option<u64>,
    /// Since it was older than transactions wait for: then without pauses.
    hard: Option<u64>,
}

impl FlushTargets {
    /// A change was written, while the checkpoint had an age. Whether it raises a target.
    pub(crate) fn raise(&mut self, settings: &Settings, limits: &RedoLimits, lsn: u64, age: f64) -> bool {
        if !settings.flavour.is_mariadb() || age <= limits.asynchronous {
            return false;
        }
        let target = if age > limits.full && settings.flush_sync { &mut self.hard } else { &mut self.soft };
        *target = Some(lsn.saturating_sub(whole(limits.asynchronous)));
        true
    }

    /// Whether the page cleaner begins at once, and goes on without a pause.
    pub(crate) const fn is_urgent(&self) -> bool {
        self.hard.is_some()
    }

    /// The oldest change that is not in the data files: targets up to it are reached.
    pub(crate) fn reach(&mut self, oldest: u64) {
        for target in [&mut self.soft, &mut self.hard] {
            *target = target.filter(|target| *target > oldest);
        }
    }

    /// The target of the next round, and whether it is urgent; None where there is none.
    pub(crate) fn next(&self) -> Option<(u64, bool)> {
        self.hard.map(|target| (target, true)).or_else(|| self.soft.map(|target| (target, false)))
    }
}

/// Whether a page cleaner sleeps until it is woken, once the redo log is young: MariaDB's without a low-water mark
/// (`buf_pool_t::page_cleaner_wakeup` of `buf0flu.cc`).
pub(crate) fn sleeps(settings: &Settings) -> bool {
    settings.flavour.is_mariadb() && settings.max_dirty_pages_pct_lwm == 0.0
}

/// Whether it may sleep now: dirty pages at their maximum wake it.
pub(crate) fn may_sleep(settings: &Settings, view: &CleanerView) -> bool {
    sleeps(settings) && mariadb_dirty_pct(view) < settings.max_dirty_pages_pct
}

/// Percent of `io_capacity` for the redo log's age: `(max/capacity) * x^1.5 / 7.5` with x the age in percent.
/// The division is one of integers, as in the source.
#[must_use]
pub fn percent_for_age(settings: &Settings, limits: &RedoLimits, view: &CleanerView, floor: f64) -> f64 {
    if view.age < settings.adaptive_flushing_lwm / 100.0 * floor
        || (!settings.adaptive_flushing && view.age < limits.asynchronous)
    {
        return 0.0;
    }
    let ratio = f64::from(settings.io_capacity_max / settings.io_capacity.max(1));
    let x = (100.0 * view.age / limits.asynchronous).floor();
    (ratio * x.powf(1.5) / 7.5).floor()
}

/// Percent of `io_capacity` for the share of dirty pages, on MySQL.
#[must_use]
pub fn percent_for_dirty(settings: &Settings, view: &CleanerView) -> f64 {
    let dirty = 100.0 * view.dirty / (1.0 + view.pool);
    if settings.max_dirty_pages_pct_lwm == 0.0 {
        if dirty >= settings.max_dirty_pages_pct { 100.0 } else { 0.0 }
    } else if dirty < settings.max_dirty_pages_pct_lwm {
        0.0
    } else {
        (dirty * 100.0 / (settings.max_dirty_pages_pct + 1.0)).floor()
    }
}

fn mysql(settings: &Settings, limits: &RedoLimits, view: &CleanerView) -> Recommendation {
    let (capacity, most) = (f64::from(settings.io_capacity), f64::from(settings.io_capacity_max));
    if settings.flush_sync && view.age > limits.synchronous {
        return Recommendation { pages: whole(view.pages_for_redo.max(capacity)), urgent: true };
    }
    let percent = percent_for_dirty(settings, view).max(percent_for_age(settings, limits, view, limits.full));
    let for_redo = view.pages_for_redo.min(2.0 * most);
    let pages = (capacity * percent / 100.0 + view.pages_per_s + for_redo) / 3.0;
    Recommendation { pages: whole(pages.min(most)), urgent: false }
}

/// Percent of the pool that is dirty, as MariaDB counts it.
fn mariadb_dirty_pct(view: &CleanerView) -> f64 {
    100.0 * view.dirty / view.pool.max(1.0)
}

fn mariadb(settings: &Settings, limits: &RedoLimits, view: &CleanerView) -> Recommendation {
    let (capacity, most) = (f64::from(settings.io_capacity), f64::from(settings.io_capacity_max));
    let dirty = mariadb_dirty_pct(view);
    let lwm = settings.max_dirty_pages_pct_lwm;
    let from = if lwm == 0.0 { settings.max_dirty_pages_pct } else { lwm };
    if dirty < from && view.age <= settings.adaptive_flushing_lwm / 100.0 * limits.full {
        return Recommendation { pages: 0, urgent: false };
    }
    if !settings.adaptive_flushing {
        return Recommendation { pages: whole(capacity), urgent: false };
    }
    let percent = percent_for_age(settings, limits, view, limits.full);
    let share = dirty / settings.max_dirty_pages_pct;
    let pages = if percent == 0.0 {
        if view.dirty <= capacity || share * capacity < view.dirty {
            capacity.min(view.dirty)
        } else {
            most.min(view.dirty)
        }
    } else {
        let ratio = if lwm == 0.0 { 1.0 } else { (percent / 100.0).max(share) };
        (capacity * ratio + view.pages_per_s + view.pages_for_redo.min(most)) / 3.0
    };
    Recommendation { pages: whole(pages.min(most)), urgent: false }
}

/// The whole part of a number of pages.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
pub(crate) fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::super::flavour::Flavour;
    use super::*;

    const POOL: f64 = 100_000.0;

    fn limits() -> RedoLimits {
        RedoLimits { asynchronous: 700e6, synchronous: 750e6, full: 800e6 }
    }

    fn view(dirty_pct: f64, age_pct: f64) -> CleanerView {
        let age = age_pct / 100.0 * 700e6;
        CleanerView {
            dirty: dirty_pct / 100.0 * POOL,
            pool: POOL,
            age,
            pages_per_s: 300.0,
            pages_for_redo: 600.0,
        }
    }

    fn pages(flavour: Flavour, dirty_pct: f64, age_pct: f64) -> u64 {
        recommend(&Settings::of(flavour, 1 << 31), &limits(), &view(dirty_pct, age_pct)).pages
    }

    #[test]
    fn mysql_80_weighs_dirty_pages_redo_and_its_own_pace_alike() {
        // Dirty 50%: 50*100/91 = 54; age 50%: 10 * 50^1.5 / 7.5 = 471. (200*4.71 + 300 + 600)/3.
        assert_eq!(pages(Flavour::MySql80, 49.999, 50.0), 614);
        // Below both low-water marks only the averages count.
        assert_eq!(pages(Flavour::MySql80, 5.0, 5.0), 300);
    }

    #[test]
    fn an_idle_mysql_writes_its_percentage_of_io_capacity() {
        let of = |flavour, idle_flush_pct| {
            recommend_idle(&Settings { idle_flush_pct, ..Settings::of(flavour, 1 << 31) })
                .map(|wanted| wanted.pages)
        };
        assert_eq!((of(Flavour::MySql80, 100), of(Flavour::MySql80, 25)), (Some(200), Some(50)));
        assert_eq!((of(Flavour::MySql84, 0), of(Flavour::MariaDb11, 100)), (Some(0), None));
    }

    #[test]
    fn mysql_84_has_two_as_its_ratio_of_capacities() {
        // 2 * 50^1.5 / 7.5 = 94 percent of 10,000, against 54 of the dirty pages.
        assert_eq!(pages(Flavour::MySql84, 49.999, 50.0), 3_433);
    }

    #[test]
    fn mysql_57_ignores_dirty_pages_below_their_maximum() {
        assert_eq!(pages(Flavour::MySql57, 74.0, 5.0), 300);
        assert_eq!(pages(Flavour::MySql57, 76.0, 5.0), 366);
    }

    #[test]
    fn mysql_is_not_held_by_its_maximum_when_the_redo_log_is_full() {
        let urgent = CleanerView { pages_for_redo: 9_000.0, ..view(50.0, 110.0) };
        let settings = Settings::of(Flavour::MySql80, 1 << 31);
        assert_eq!(recommend(&settings, &limits(), &urgent), Recommendation { pages: 9_000, urgent: true });
        let held = Settings { flush_sync: false, ..settings };
        assert_eq!(recommend(&held, &limits(), &urgent).pages, 2_000);
    }

    #[test]
    fn mariadb_lets_dirty_pages_be_until_their_maximum_or_the_redo_logs_mark() {
        assert_eq!(pages(Flavour::MariaDb105, 89.0, 5.0), 0);
        assert_eq!(pages(Flavour::MariaDb105, 91.0, 5.0), 200);
        // Its low-water mark is 0, so the ratio is 1: (200 + 300 + 600) / 3.
        assert_eq!(pages(Flavour::MariaDb11, 50.0, 50.0), 366);
    }

    #[test]
    fn beyond_the_asynchronous_age_mariadb_writes_until_no_older_change_is_left() {
        let settings = Settings::of(Flavour::MariaDb11, 1 << 31);
        let mut targets = FlushTargets::default();
        assert!(!targets.raise(&settings, &limits(), 800_000_000, 690e6));
        assert_eq!(targets.next(), None);
        assert!(targets.raise(&settings, &limits(), 900_000_000, 710e6));
        assert_eq!((targets.next(), targets.is_urgent()), (Some((200_000_000, false)), false));
        assert!(targets.raise(&settings, &limits(), 1_000_000_000, 810e6));
        assert_eq!((targets.next(), targets.is_urgent()), (Some((300_000_000, true)), true));
        targets.reach(299_999_999);
        assert_eq!(targets.next(), Some((300_000_000, true)), "the soft one is reached");
        targets.reach(300_000_000);
        assert_eq!(targets, FlushTargets::default());
        let held = Settings { flush_sync: false, ..settings };
        assert!(targets.raise(&held, &limits(), 1_000_000_000, 810e6));
        assert_eq!(targets.next(), Some((300_000_000, false)));
        let mysql = Settings::of(Flavour::MySql80, 1 << 31);
        assert!(!FlushTargets::default().raise(&mysql, &limits(), 1, 810e6));
    }

    #[test]
    fn mariadb_may_sleep_below_its_maximum_of_dirty_pages_unless_it_has_a_low_water_mark() {
        let settings = Settings::of(Flavour::MariaDb11, 1 << 31);
        assert!(may_sleep(&settings, &view(89.0, 50.0)) && !may_sleep(&settings, &view(91.0, 50.0)));
        let marked = Settings { max_dirty_pages_pct_lwm: 10.0, ..settings };
        assert!(!may_sleep(&marked, &view(50.0, 50.0)));
        assert!(!may_sleep(&Settings::of(Flavour::MySql80, 1 << 31), &view(5.0, 5.0)));
    }
}
