//! What fio measured, second by second.
#![allow(dead_code, clippy::unwrap_used)] // each user needs a part, and fails by a panic

/// One second of a job on one volume.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Second {
    pub(crate) ios: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// What a target reports of a job, second by second.
#[derive(Debug)]
pub(crate) struct Series(pub(crate) Vec<Second>);

impl Series {
    pub(crate) fn mean(&self, from: usize, to: usize, of: fn(&Second) -> f64) -> f64 {
        assert!(self.0.len() >= to, "the job ended after {} s", self.0.len());
        self.0[from..to].iter().map(of).sum::<f64>() / (to - from) as f64
    }

    pub(crate) fn iops(&self, from: usize, to: usize) -> f64 {
        self.mean(from, to, |second| second.ios)
    }
}

/// Reads fio's latency log: time (ms), latency (ns), direction, block size (bytes), ...
pub(crate) fn by_second(log: &str) -> Series {
    let mut seconds: Vec<Vec<f64>> = Vec::new();
    for line in log.lines() {
        let mut fields = line.split(',').map(|field| field.trim().parse::<u64>().unwrap());
        let second = usize::try_from(fields.next().unwrap() / 1_000).unwrap();
        if seconds.len() <= second {
            seconds.resize(second + 1, Vec::new());
        }
        seconds[second].push(fields.next().unwrap() as f64 / 1e3);
    }
    let second = |mut latencies: Vec<f64>| {
        latencies.sort_by(f64::total_cmp);
        let percentile =
            |percent: usize| latencies.get(latencies.len() * percent / 100).copied().unwrap_or(0.0);
        Second { ios: latencies.len() as f64, p50_us: percentile(50), p99_us: percentile(99) }
    };
    Series(seconds.into_iter().map(second).collect())
}
