//! All alarms: what is kept between readings, and what changes with each.

use std::collections::BTreeMap;

use ebbtide_volume::Nanos;

use crate::alarm::credit::CreditForecast;
use crate::alarm::event::{Alarm, Event, EventCause, Judgement, Subject};
use crate::alarm::rule::{AlarmState, Rule, RuleId, SubjectKind, Verdict};
use crate::alarm::server::{ServerHistory, judge_replica};
use crate::alarm::silence::{Silence, silenced_until};
use crate::alarm::space::{SpaceForecast, SpaceHistory};
use crate::alarm::table::rule;
use crate::alarm::timer::Timer;
use crate::alarm::volume::{InstanceHistory, VolumeHistory};
use crate::reading::{
    Answer, CheckReading, CheckVerdict, FileSystemReading, LatencyFloor, Moment, ReadingSet, VolumeReading,
};

/// What was not seen for so long is forgotten, with its alarms.
const FORGOTTEN_AFTER: Nanos = Nanos::from_secs(86_400);
/// Subjects that are kept at most, of each kind: names come from others, and their number must not grow without a bound.
const MOST_SUBJECTS: usize = 4_096;

/// The alarms of everything that is watched. It has no clock: the same readings give the same events.
#[derive(Debug, Default)]
pub struct Alarms {
    volumes: Kept<VolumeHistory>,
    instances: Kept<InstanceHistory>,
    servers: Kept<ServerHistory>,
    file_systems: Kept<SpaceHistory>,
    checks: Kept<CheckHistory>,
    entries: BTreeMap<(Subject, RuleId), Entry>,
    silences: Vec<Silence>,
    last: Option<Nanos>,
    late_readings: u64,
}

/// What is kept of each subject of a kind, by its name, and when it was last seen.
#[derive(Debug)]
struct Kept<T>(BTreeMap<String, (Nanos, T)>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Kept<T> {
    /// What is kept of a name; None of a new one where there are too many.
    fn entry(&mut self, name: &str, now: Nanos, new: impl FnOnce() -> T) -> Option<&mut T> {
        if self.0.len() >= MOST_SUBJECTS && !self.0.contains_key(name) {
            return None;
        }
        let (seen, kept) = self.0.entry(name.to_owned()).or_insert_with(|| (now, new()));
        *seen = now;
        Some(kept)
    }

    fn get(&self, name: &str) -> Option<&T> {
        self.0.get(name).map(|(_, kept)| kept)
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.0.get_mut(name).map(|(_, kept)| kept)
    }

    fn forget(&mut self, now: Nanos) {
        self.0.retain(|_, (seen, _)| now.since(*seen) < FORGOTTEN_AFTER);
    }
}

/// What is kept of a check of the doctor.
#[derive(Debug, Clone, Default)]
struct CheckHistory {
    /// Whether it was fine at any time: only then has it become true.
    was_fine: bool,
    fix: Option<String>,
}

#[derive(Debug)]
struct Entry {
    timer: Timer,
    since_unix_s: i64,
    judgement: Judgement,
    /// Whether the latest event of the state was silenced, so that it is to be said when the silence ends.
    is_owed: bool,
}

impl Alarms {
    /// No alarms yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what was read, and returns what has changed, in the order of subjects and rules. A reading that is not later than the one
    /// before it is counted and changes nothing.
    pub fn observe(&mut self, reading: &ReadingSet) -> Vec<Event> {
        let moment = reading.moment;
        let now = moment.elapsed;
        if self.last.is_some_and(|last| now <= last) {
            self.late_readings += 1;
            return Vec::new();
        }
        self.last = Some(now);
        self.silences.retain(|silence| now < silence.until);
        let judged = self.judge(reading);
        let events = self.step(moment, judged);
        self.forget(now);
        events
    }

    /// Silences alarms until a time. An alarm that has begun meanwhile and is still there is announced at the end.
    pub fn silence(&mut self, silence: Silence) {
        self.silences.push(silence);
    }

    /// The silences that last.
    #[must_use]
    pub fn silences(&self) -> &[Silence] {
        &self.silences
    }

    /// Readings that were not later than the one before them.
    #[must_use]
    pub const fn late_readings(&self) -> u64 {
        self.late_readings
    }

    /// All alarms as they are, by subject and rule.
    pub fn all(&self) -> impl Iterator<Item = Alarm> {
        let now = self.last.unwrap_or_default();
        self.entries.iter().map(move |((subject, id), entry)| {
            let row = rule(*id);
            Alarm {
                rule: row.name,
                subject: subject.clone(),
                state: entry.timer.state(),
                severity: row.severity,
                since_unix_s: entry.since_unix_s,
                value: entry.judgement.value,
                reason: entry.judgement.reason.clone(),
                in_s: entry.judgement.in_s,
                silenced: silenced_until(&self.silences, row.name, subject, now).is_some(),
            }
        })
    }

    /// Alarms whose rule was true at the last look that knew something, whether or not it has been true for long enough.
    pub fn true_now(&self) -> impl Iterator<Item = Alarm> {
        let is_true = self.entries.values().map(|entry| entry.judgement.verdict == Verdict::Raise);
        self.all().zip(is_true).filter(|(_, is_true)| *is_true).map(|(alarm, _)| alarm)
    }

    /// What is forecast of a volume's credits; None where it has none.
    pub fn credit_forecast(&mut self, volume: &str) -> Option<CreditForecast> {
        let now = self.last?;
        self.volumes.get_mut(volume)?.credit_forecast(now)
    }

    /// What is forecast of an instance's credits, of operations and of bytes.
    pub fn instance_forecasts(&mut self, instance: &str) -> [Option<CreditForecast>; 2] {
        let now = self.last.unwrap_or_default();
        self.instances.get_mut(instance).map_or([None, None], |history| history.forecasts(now))
    }

    /// The floor of a volume's latency; None: not known yet.
    #[must_use]
    pub fn floor(&self, reading: &VolumeReading) -> Option<LatencyFloor> {
        let now = self.last?;
        self.volumes.get(&reading.name)?.floor(reading, now)
    }

    /// What is forecast of a file system; None: too little was seen.
    #[must_use]
    pub fn space_forecast(&self, reading: &FileSystemReading) -> Option<SpaceForecast> {
        let now = self.last?;
        self.file_systems.get(&reading.mount_point)?.forecast(now, reading)
    }

    fn judge(&mut self, reading: &ReadingSet) -> BTreeMap<(Subject, RuleId), Judgement> {
        let moment = reading.moment;
        let now = moment.elapsed;
        let mut judged = BTreeMap::new();
        let mut add = |kind: SubjectKind, name: &str, rows: Vec<(RuleId, Judgement)>| {
            let subject = Subject::new(kind, name);
            judged.extend(rows.into_iter().map(|(id, judgement)| ((subject.clone(), id), judgement)));
        };
        for volume in &reading.volumes {
            if let Some(history) = self.volumes.entry(&volume.name, now, VolumeHistory::new) {
                add(SubjectKind::Volume, &volume.name, history.judge(moment, volume));
            }
        }
        for instance in &reading.instances {
            let history = self.instances.entry(&instance.name, now, InstanceHistory::new);
            let judgement = history.and_then(|history| history.judge(moment, instance));
            let rows = judgement.map(|judgement| (RuleId::InstanceCreditsEnd, judgement));
            add(SubjectKind::Instance, &instance.name, rows.into_iter().collect());
        }
        for server in &reading.servers {
            let Some(history) = self.servers.entry(&server.name, now, ServerHistory::new) else { continue };
            add(SubjectKind::Server, &server.name, history.judge(moment, server));
            let Answer::Counters(counters) = &server.answer else { continue };
            for replica in counters.replicas.iter().take(MOST_SUBJECTS) {
                let name = joined(&server.name, &replica.channel);
                add(SubjectKind::Replica, &name, judge_replica(&name, replica).into());
            }
        }
        for file_system in
            reading.file_systems.iter().filter(|system| system.size_bytes > 0 && !system.read_only)
        {
            if let Some(history) = self.file_systems.entry(&file_system.mount_point, now, SpaceHistory::new) {
                add(
                    SubjectKind::FileSystem,
                    &file_system.mount_point,
                    history.judge(moment, file_system).into(),
                );
            }
        }
        for check in &reading.checks {
            let name = joined(&check.server, &check.code);
            if let Some(history) = self.checks.entry(&name, now, CheckHistory::default) {
                add(SubjectKind::Check, &name, vec![(RuleId::DoctorCheck, history.judge(check))]);
            }
        }
        judged
    }

    fn step(&mut self, moment: Moment, mut judged: BTreeMap<(Subject, RuleId), Judgement>) -> Vec<Event> {
        for key in judged.keys() {
            self.entries.entry(key.clone()).or_insert_with(|| Entry::new(moment));
        }
        let mut events = Vec::new();
        for (key, entry) in &mut self.entries {
            let (subject, id) = key;
            let row = rule(*id);
            let until = silenced_until(&self.silences, row.name, subject, moment.elapsed);
            let changed = entry.take(row, judged.remove(key), moment);
            let cause = match changed {
                Some(_) => EventCause::Change,
                None if entry.is_owed && until.is_none() => EventCause::SilenceEnded,
                None => continue,
            };
            let to = entry.timer.state();
            entry.is_owed = until.is_some() && to == AlarmState::Alarm;
            let known = self.checks.fix_of(row, subject);
            events.push(Event {
                rule: row.name,
                subject: subject.clone(),
                cause,
                from: changed.unwrap_or(to),
                to,
                severity: row.severity,
                unix_s: moment.unix_s,
                value: entry.judgement.value,
                reason: entry.judgement.reason.clone(),
                in_s: entry.judgement.in_s,
                check: row.check,
                fix: known.unwrap_or_else(|| row.advice.to_owned()),
                silenced: until.is_some(),
            });
        }
        events
    }

    fn forget(&mut self, now: Nanos) {
        self.volumes.forget(now);
        self.instances.forget(now);
        self.servers.forget(now);
        self.file_systems.forget(now);
        // The doctor looks rarely, and what was fine once stays known for as long.
        self.checks.forget(now);
        self.entries.retain(|_, entry| entry.timer.unknown_for() < FORGOTTEN_AFTER);
    }
}

/// `server/part`, or the server alone.
fn joined(server: &str, part: &str) -> String {
    if part.is_empty() { server.to_owned() } else { format!("{server}/{part}") }
}

impl Kept<CheckHistory> {
    /// The fix that the doctor has found for a rule's trouble: for the server that the alarm is about, or where one server alone has it.
    fn fix_of(&self, row: &Rule, subject: &Subject) -> Option<String> {
        let fix_named = |name: &str| self.0.get(name).and_then(|(_, check)| check.fix.clone());
        if row.id == RuleId::DoctorCheck {
            return fix_named(&subject.name);
        }
        let code = row.check?;
        if matches!(subject.kind, SubjectKind::Server | SubjectKind::Replica) {
            let server = subject.name.split('/').next().unwrap_or(&subject.name);
            return fix_named(&joined(server, code));
        }
        let ending = format!("/{code}");
        let mut fixes = self.0.iter().filter(|(name, _)| name.ends_with(&ending));
        let fix = fixes.by_ref().find_map(|(_, (_, check))| check.fix.clone())?;
        let is_alone = fixes.all(|(_, (_, check))| check.fix.is_none());
        is_alone.then_some(fix)
    }
}

impl CheckHistory {
    fn judge(&mut self, reading: &CheckReading) -> Judgement {
        let code = &reading.code;
        let server = &reading.server;
        let said = |verdict, value, reason: String| Judgement { verdict, value, reason, in_s: None };
        match &reading.verdict {
            CheckVerdict::Found { why, fix } => {
                self.fix = Some(fix.clone()).filter(|fix| !fix.is_empty());
                if self.was_fine {
                    return said(
                        Verdict::Raise,
                        Some(1.0),
                        format!("{code} of {server} has become true: {why}"),
                    );
                }
                said(
                    Verdict::Clear,
                    Some(0.0),
                    format!("{code} of {server} was true at the first look: {why}"),
                )
            }
            CheckVerdict::Fine => {
                (self.was_fine, self.fix) = (true, None);
                said(Verdict::Clear, Some(0.0), format!("{code} of {server} finds nothing"))
            }
            CheckVerdict::Unknown => {
                said(Verdict::Unknown, None, format!("{code} of {server} could not be answered"))
            }
        }
    }
}

impl Entry {
    const fn new(moment: Moment) -> Self {
        let judgement =
            Judgement { verdict: Verdict::Unknown, value: None, reason: String::new(), in_s: None };
        Self { timer: Timer::new(), since_unix_s: moment.unix_s, judgement, is_owed: false }
    }

    /// Takes what was said, or that nothing was, and returns the state before where it has changed.
    fn take(&mut self, row: &Rule, judgement: Option<Judgement>, moment: Moment) -> Option<AlarmState> {
        // A check is answered as often as the doctor looks: between two looks its answer holds.
        let stays = row.id == RuleId::DoctorCheck && judgement.is_none();
        let verdict = match &judgement {
            Some(judgement) => judgement.verdict,
            None if stays => self.judgement.verdict,
            None => Verdict::Unknown,
        };
        let value = judgement.as_ref().and_then(|judgement| judgement.value);
        let changed = self.timer.step(row, (verdict, value), moment.elapsed);
        match judgement {
            Some(judgement) if judgement.verdict != Verdict::Unknown => self.judgement = judgement,
            // The last figures stay, with the state that says that they are old.
            Some(judgement) if self.judgement.reason.is_empty() => self.judgement = judgement,
            _ => {}
        }
        if changed.is_some() {
            self.since_unix_s = moment.unix_s;
        }
        if self.timer.state() == AlarmState::InsufficientData && changed.is_some() {
            self.judgement.reason = format!("no data for a minute; before: {}", self.judgement.reason);
            (self.judgement.value, self.judgement.in_s) = (None, None);
        }
        changed
    }
}
