//! What fio measured, second by second.
/// One second of a job on one volume.
#[derive(Debug, Clone, Copy, Default)]
pub struct Second {
    /// I/Os that ended in it.
    pub ios: f64,
    /// Median of their latency, us.
    pub p50_us: f64,
    /// 99th percentile of their latency, us.
    pub p99_us: f64,
}

/// What a target reports of a job, second by second.
#[derive(Debug)]
pub struct Series(pub Vec<Second>);

impl Series {
    /// The mean of a figure over the seconds from `from` to before `to`.
    #[must_use]
    pub fn mean(&self, from: usize, to: usize, of: fn(&Second) -> f64) -> f64 {
        assert!(self.0.len() >= to, "the job ended after {} s", self.0.len());
        self.0[from..to].iter().map(of).sum::<f64>() / (to - from) as f64
    }

    /// Mean I/Os a second over the seconds from `from` to before `to`.
    #[must_use]
    pub fn iops(&self, from: usize, to: usize) -> f64 {
        self.mean(from, to, |second| second.ios)
    }
}

/// Reads fio's latency log: time (ms), latency (ns), direction, block size (bytes), ...
#[must_use]
pub fn by_second(log: &str) -> Series {
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
