//! The newest reading of each subject, for a scrape: between two ticks a source that is read less often, or is slow, has no new one, and
//! its series are not to come and go.

use std::collections::BTreeMap;

use ebbtide_volume::Nanos;

use crate::reading::{
    Answer, FileSystemReading, InstanceReading, Moment, ReadingSet, ServerReading, VolumeReading,
};

/// Readings by the names of their subjects, with the time at which each came.
type Kept<T> = BTreeMap<String, (Nanos, T)>;

/// The newest readings.
#[derive(Debug, Default)]
pub(super) struct LatestReadings {
    volumes: Kept<VolumeReading>,
    instances: Kept<InstanceReading>,
    servers: Kept<ServerReading>,
    file_systems: Kept<FileSystemReading>,
}

impl LatestReadings {
    /// Takes new readings, and forgets those that came before `fresh_from`.
    pub(super) fn take(&mut self, readings: &ReadingSet, fresh_from: Nanos) {
        let now = readings.moment.elapsed;
        keep(&mut self.volumes, &readings.volumes, |volume| &volume.name, now, fresh_from);
        keep(&mut self.instances, &readings.instances, |instance| &instance.name, now, fresh_from);
        keep(&mut self.file_systems, &readings.file_systems, |system| &system.mount_point, now, fresh_from);
        let asked = readings.servers.iter().filter(|server| server.answer != Answer::NotAsked);
        keep(&mut self.servers, asked, |server| &server.name, now, fresh_from);
    }

    /// The newest readings as a set of a moment.
    pub(super) fn readings(&self, moment: Moment) -> ReadingSet {
        ReadingSet {
            moment,
            volumes: newest(&self.volumes),
            instances: newest(&self.instances),
            servers: newest(&self.servers),
            file_systems: newest(&self.file_systems),
            checks: Vec::new(),
        }
    }
}

fn keep<'a, T: Clone + 'a>(
    kept: &mut Kept<T>,
    new: impl IntoIterator<Item = &'a T>,
    name: impl Fn(&T) -> &String,
    now: Nanos,
    fresh_from: Nanos,
) {
    for reading in new {
        kept.insert(name(reading).clone(), (now, reading.clone()));
    }
    kept.retain(|_, (came, _)| *came >= fresh_from);
}

fn newest<T: Clone>(kept: &Kept<T>) -> Vec<T> {
    kept.values().map(|(_, reading)| reading.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(second: u64, answer: Option<Answer>, free_bytes: &[u64]) -> ReadingSet {
        let server = |answer| ServerReading { name: "shop".to_owned(), answer };
        let system = |free_bytes: &u64| FileSystemReading {
            mount_point: "/data".to_owned(),
            size_bytes: 10,
            free_bytes: *free_bytes,
            read_only: false,
        };
        ReadingSet {
            moment: Moment { elapsed: Nanos::from_secs(second), ..Moment::default() },
            servers: answer.map(server).into_iter().collect(),
            file_systems: free_bytes.iter().map(system).collect(),
            ..ReadingSet::default()
        }
    }

    #[test]
    fn the_last_reading_of_a_subject_is_kept_until_it_is_too_old_and_one_that_is_not_asked_has_none() {
        let mut latest = LatestReadings::default();
        let down = Answer::Down("no".to_owned());
        let mut after = |second: u64, answer: Option<Answer>, free_bytes: &[u64]| {
            let readings = set(second, answer, free_bytes);
            latest.take(&readings, Nanos::from_secs(second.saturating_sub(15)));
            latest.readings(readings.moment)
        };
        after(100, Some(down.clone()), &[7]);
        let kept = after(101, Some(Answer::NotAsked), &[]);
        assert_eq!((&kept.servers[0].answer, kept.file_systems[0].free_bytes), (&down, 7));
        assert_eq!(kept.moment.elapsed, Nanos::from_secs(101));
        assert_eq!(after(102, None, &[6]).file_systems[0].free_bytes, 6);
        let kept = after(116, None, &[]);
        assert_eq!((kept.servers.len(), kept.file_systems.len()), (0, 1), "the server's is 16 s old");
    }
}
