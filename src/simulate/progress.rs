//! One status line on a terminal for runs that take more than two seconds.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ebbtide_forecast::simulation::span;
use ebbtide_volume::Nanos;

/// Nothing is shown before that.
const PATIENCE: Duration = Duration::from_secs(2);
const PERIOD: Duration = Duration::from_millis(200);

/// Shows how far several runs are in virtual time.
#[derive(Debug)]
pub(super) struct Progress {
    /// Where every run is to end; none: not known.
    ends: Option<Nanos>,
    state: Option<Mutex<ProgressLine>>,
}

#[derive(Debug)]
struct ProgressLine {
    began: Instant,
    shown: Option<Instant>,
    reached: Vec<Nanos>,
}

impl Progress {
    /// For that many runs; silent where standard error is no terminal.
    pub(super) fn new(runs: usize, ends: Option<Nanos>) -> Self {
        let state = ProgressLine { began: Instant::now(), shown: None, reached: vec![Nanos::ZERO; runs] };
        Self { ends, state: std::io::stderr().is_terminal().then(|| Mutex::new(state)) }
    }

    /// A run has reached a point in virtual time.
    pub(super) fn reached(&self, run: usize, now: Nanos) {
        let Some(state) = &self.state else { return };
        let mut state = state.lock().expect("no holder of the progress panics");
        state.reached[run] = now;
        let elapsed = state.began.elapsed();
        if elapsed < PATIENCE || state.shown.is_some_and(|shown| shown.elapsed() < PERIOD) {
            return;
        }
        state.shown = Some(Instant::now());
        let line = status(&state.reached, self.ends, elapsed);
        // A terminal that is gone is no reason to stop.
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let shown = self.state.as_ref().and_then(|state| state.lock().ok().and_then(|state| state.shown));
        if shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// The slowest run decides; the time left is given only where the end is known.
fn status(reached: &[Nanos], ends: Option<Nanos>, elapsed: Duration) -> String {
    let slowest = reached.iter().min().copied().unwrap_or(Nanos::ZERO);
    let at = span(slowest);
    let Some(ends) = ends.filter(|&ends| ends > Nanos::ZERO && slowest > Nanos::ZERO) else {
        return format!("simulating: {at} of virtual time");
    };
    let share = slowest.as_secs_f64() / ends.as_secs_f64();
    let left = elapsed.as_secs_f64() * (1.0 / share - 1.0);
    format!("simulating: {at} of {} ({:.0}%), about {left:.0} s left", span(ends), share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_gives_a_time_left_only_where_the_end_is_known() {
        let reached = [Nanos::from_secs(3_600), Nanos::from_secs(1_800)];
        let elapsed = Duration::from_secs(4);
        assert_eq!(
            status(&reached, Some(Nanos::from_secs(7_200)), elapsed),
            "simulating: 30 min of 2 h (25%), about 12 s left"
        );
        assert_eq!(status(&reached, None, elapsed), "simulating: 30 min of virtual time");
    }
}
