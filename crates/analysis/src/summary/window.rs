//! What the series of a trial shows: where its warm-up ends, which conditions it went through, and whether
//! it was steady in each.

use std::ops::Range;

use super::model::{Cause, Part, TrialWindow, WindowChange};
use super::regime::{Around, Regime};
use crate::record::{BackupRecord, BatchSpan, DesignArm, Second, TrialRecord, VolumeSecond};
use crate::stats::level::SHORTEST;
use crate::stats::{level_changes, series, trend, warm_up};

/// Credits are gone at this share of the bucket: what is left is what flows in from second to second.
const GONE: f64 = 0.0002;

/// They are back at this share.
const BACK: f64 = 0.001;

/// From this share of a second on a limit holds a volume.
const HELD: f64 = 0.8;

/// From this correlation on flushing explains the course of a trial.
const EXPLAINS: f64 = 0.5;

/// A ceiling that moved by less than this share is the same ceiling.
const CEILING: f64 = 0.10;

/// A trial, looked at: its window, and which of its seconds count.
#[derive(Debug, Clone)]
pub(super) struct Looked<'a> {
    pub(super) trial: &'a TrialRecord<'a>,
    pub(super) window: TrialWindow,
    /// Places of the seconds of each of the window's parts.
    pub(super) picks: Vec<Vec<usize>>,
    /// Whether the level goes up and down, as flushing makes it, without a change for good.
    pub(super) waves: bool,
    /// Whether a part drifts so that it does not settle within its first half.
    pub(super) unsettled: bool,
    /// Whether a part drifts.
    pub(super) drifts: bool,
}

/// A part under way: its regime and its seconds.
struct Stretch {
    regime: Regime,
    seconds: Range<usize>,
}

pub(super) fn look<'a>(trial: &'a TrialRecord<'a>, arm: &DesignArm) -> Looked<'a> {
    let seconds = trial.seconds;
    let course = Course::of(seconds, arm.offered);
    let stretches = stretches(seconds, arm.batch, trial.backup.as_ref());
    let mut looked = Looked {
        trial,
        window: TrialWindow {
            repeat: trial.repeat,
            from_s: 0.0,
            to_s: seconds.last().map_or(0.0, |second| second.t_s),
            steady: true,
            drift: 0.0,
            changes: known_changes(seconds, &stretches),
            parts: Vec::new(),
        },
        picks: Vec::new(),
        waves: false,
        unsettled: false,
        drifts: false,
    };
    let mut phase = 0;
    for (index, stretch) in stretches.iter().enumerate() {
        let last = index + 1 == stretches.len();
        phase = looked.add_stretch(stretch, index == 0, last, &course, phase);
    }
    looked.window.from_s = looked.window.parts.first().map_or(0.0, |part| part.from_s);
    looked.window.changes.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    looked
}

/// What must be steady, and what may move it.
struct Course {
    /// The rate in a closed loop, the response time where the rate is given.
    figure: Vec<f64>,
    /// Pages written a second; none where the server does not report.
    flushing: Option<Vec<f64>>,
    /// -1 where flushing takes from the figure, 1 where it adds to it.
    sign: f64,
}

impl Course {
    fn of(seconds: &[Second], offered: Option<f64>) -> Self {
        let closed = offered.is_none();
        let figure = |second: &Second| if closed { second.load.tps } else { second.load.p95_us };
        Self {
            figure: seconds.iter().map(figure).collect(),
            flushing: seconds.iter().map(|second| second.server.as_ref()?.page_writes).collect(),
            sign: if closed { -1.0 } else { 1.0 },
        }
    }

    fn over(&self, seconds: Range<usize>) -> &[f64] {
        &self.figure[seconds]
    }

    /// The course without the waves that flushing makes: what the server spends on flushing it does not
    /// have for transactions, so that one rises where the other falls. Anything else that moves the rate
    /// moves flushing the same way.
    fn calm(&self, seconds: Range<usize>) -> Vec<f64> {
        let figure = self.over(seconds.clone());
        match &self.flushing {
            Some(flushing)
                if self.sign * series::correlation(figure, &flushing[seconds.clone()]) > EXPLAINS =>
            {
                series::without(figure, &flushing[seconds])
            }
            _ => figure.to_vec(),
        }
    }
}

impl Looked<'_> {
    /// Cuts a stretch's transients, splits it where its level changes, and judges the pieces. Answers with
    /// the phase that the next stretch begins in.
    fn add_stretch(
        &mut self,
        stretch: &Stretch,
        first: bool,
        last: bool,
        course: &Course,
        phase: u32,
    ) -> u32 {
        // The second in which conditions changed belongs to neither side.
        let from = stretch.seconds.start + usize::from(!first);
        let to = stretch.seconds.end - usize::from(!last);
        if to <= from {
            return phase;
        }
        let all = course.calm(from..to);
        let mut cut = warm_up(&all);
        // A cut as large as it may be can be a drift that has no end: then all is kept, and judged.
        if 3 * (cut + 5) > to - from && trend(&all).drifts {
            (cut, self.unsettled) = (0, true);
        }
        let begin = from + cut;
        let mut phase = phase;
        let mut start = begin;
        for place in self.lasting(begin, &course.calm(begin..to), course.over(begin..to)) {
            let cause = ceiling_change(self.trial.seconds, start..place, place..to);
            self.window.changes.push(WindowChange { t_s: self.begin_of(place), cause });
            // A change that nothing explains may be a wave as long as the window: it is reported, and splits nothing.
            if cause == Cause::Unknown {
                self.window.steady = false;
            } else {
                self.add_part(Regime { phase, ..stretch.regime }, start..place, course);
                phase += 1;
                start = place;
            }
        }
        self.add_part(Regime { phase, ..stretch.regime }, start..to, course);
        phase
    }

    /// Changes of level for good. Levels that come back, and what flushing explains, are waves.
    fn lasting(&mut self, begin: usize, calm: &[f64], course: &[f64]) -> Vec<usize> {
        let places = level_changes(calm);
        let explained = places.is_empty() && (!level_changes(course).is_empty() || trend(course).drifts);
        let bounds: Vec<usize> = [0].into_iter().chain(places.iter().copied()).chain([calm.len()]).collect();
        let levels: Vec<f64> = bounds.windows(2).map(|part| series::mean(&calm[part[0]..part[1]])).collect();
        let steps: Vec<f64> = levels.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let back = steps.windows(2).any(|pair| pair[0] * pair[1] < 0.0);
        if explained && !trend(calm).drifts || back {
            self.waves = true;
            return Vec::new();
        }
        places.into_iter().map(|place| begin + place).collect()
    }

    fn add_part(&mut self, regime: Regime, seconds: Range<usize>, course: &Course) {
        let line = trend(&course.calm(seconds.clone()));
        if line.drift.abs() > self.window.drift.abs() {
            self.window.drift = line.drift;
        }
        self.drifts |= line.drifts && !self.waves;
        self.window.steady &= !self.drifts;
        let tps: Vec<f64> =
            self.trial.seconds[seconds.clone()].iter().map(|second| second.load.tps).collect();
        self.window.parts.push(Part {
            regime,
            from_s: self.begin_of(seconds.start),
            to_s: self.trial.seconds[seconds.end - 1].t_s,
            tps: series::mean(&tps),
        });
        self.picks.push(seconds.collect());
    }

    /// When a second began.
    fn begin_of(&self, place: usize) -> f64 {
        begin_of(self.trial.seconds, place)
    }

    /// Forgets the changes without a known cause: the trials of the arm do not agree on them, so that their
    /// parts cannot be held against each other.
    pub(super) fn forget_phases(&mut self) {
        for part in &mut self.window.parts {
            part.regime.phase = 0;
        }
    }

    /// How many phases each known condition has, in order: what trials of an arm must agree on.
    pub(super) fn shape(&self) -> Vec<Regime> {
        self.window.parts.iter().map(|part| part.regime).collect()
    }
}

fn begin_of(seconds: &[Second], place: usize) -> f64 {
    if place == 0 { 0.0 } else { seconds[place - 1].t_s }
}

/// The stretches of a trial in which all known conditions are the same.
fn stretches(seconds: &[Second], batch: Option<BatchSpan>, backup: Option<&BackupRecord>) -> Vec<Stretch> {
    let mut gone = None;
    let mut stretches: Vec<Stretch> = Vec::new();
    for (place, second) in seconds.iter().enumerate() {
        gone = credits_gone(second, gone);
        let joined = batch.is_some_and(|batch| {
            let since = begin_of(seconds, place);
            since >= f64::from(batch.start_s) && batch.end_s.is_none_or(|end| since < f64::from(end))
        });
        let around = backup.map(|backup| around(backup, begin_of(seconds, place), second.t_s));
        let regime = Regime { backup: around, batch: joined, credits_gone: gone, phase: 0 };
        match stretches.last_mut() {
            Some(last) if last.regime == regime => last.seconds.end = place + 1,
            _ => stretches.push(Stretch { regime, seconds: place..place + 1 }),
        }
    }
    join_short(stretches)
}

/// Where a second is, seen from a backup. One in which it began or ended is of the backup.
fn around(backup: &BackupRecord, begin_s: f64, end_s: f64) -> Around {
    if end_s <= backup.began_s {
        Around::Before
    } else if begin_s >= backup.ended_s {
        Around::After
    } else {
        Around::During
    }
}

/// A condition that lasts a few seconds is a crossing, and goes to what was before it.
fn join_short(stretches: Vec<Stretch>) -> Vec<Stretch> {
    let mut joined: Vec<Stretch> = Vec::new();
    for stretch in stretches {
        match joined.last_mut() {
            Some(last) if last.regime == stretch.regime || stretch.seconds.len() < SHORTEST => {
                last.seconds.end = stretch.seconds.end;
            }
            Some(last) if last.seconds.len() < SHORTEST => {
                *last = Stretch { seconds: last.seconds.start..stretch.seconds.end, ..stretch };
            }
            _ => joined.push(stretch),
        }
    }
    joined
}

/// Whether a volume has used up its credits; none where no volume has any.
fn credits_gone(second: &Second, before: Option<bool>) -> Option<bool> {
    let least = second.volumes.values().filter_map(|volume| volume.credits).min_by(f64::total_cmp)?;
    Some(if before == Some(true) { least < BACK } else { least <= GONE })
}

fn known_changes(seconds: &[Second], stretches: &[Stretch]) -> Vec<WindowChange> {
    let change = |pair: &[Stretch]| {
        let (before, after) = (pair[0].regime, pair[1].regime);
        let t_s = begin_of(seconds, pair[1].seconds.start);
        let batch = (before.batch != after.batch).then_some(if after.batch {
            Cause::BatchJoined
        } else {
            Cause::BatchLeft
        });
        let ended = if after.credits_gone == Some(true) { Cause::CreditsEnded } else { Cause::CreditsBack };
        let credits = (before.credits_gone != after.credits_gone).then_some(ended);
        let backup = (before.backup != after.backup).then_some(match after.backup {
            Some(Around::After) => Cause::BackupEnded,
            _ => Cause::BackupBegan,
        });
        batch
            .into_iter()
            .chain(backup)
            .chain(credits)
            .map(move |cause| WindowChange { t_s, cause })
            .collect::<Vec<_>>()
    };
    stretches.windows(2).flat_map(change).collect()
}

/// Whether a volume was held by a limit before and after a change, and the ceiling moved.
fn ceiling_change(seconds: &[Second], before: Range<usize>, after: Range<usize>) -> Cause {
    let mean = |places: Range<usize>, role, figure: fn(&VolumeSecond) -> f64| {
        let figures: Vec<f64> =
            seconds[places].iter().filter_map(|second| second.volumes.get(role)).map(figure).collect();
        series::mean(&figures)
    };
    let moved = seconds[after.start].volumes.keys().any(|role| {
        let held = |places| mean(places, role, |volume| volume.limited) >= HELD;
        let moved = |figure| {
            let (a, b) = (mean(before.clone(), role, figure), mean(after.clone(), role, figure));
            if (a - b).abs() > CEILING * a.max(b) { (b - a).signum() } else { 0.0 }
        };
        // Operations and bytes together: one for the other is another mix of I/O under the same limits.
        let ways = [moved(|volume| volume.consumed_iops), moved(|volume| volume.read_mib + volume.write_mib)];
        held(before.clone()) && held(after.clone()) && ways[0] * ways[1] > 0.0
    });
    if moved { Cause::CeilingChanged } else { Cause::Unknown }
}
