//! A service over volumes of the model: the test moves the time, and no kernel serves them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ebbtide_catalog::{Catalog, Spec};
use ebbtide_cloud::monitoring::{
    Attached, EventSink, Gauge, Inventory, Monitoring, Options, Recorded, Running,
};
use ebbtide_cloud::wire::conforms;
use ebbtide_cloud::{Access, ApiError, Authorizer, Call, Caller, Service as _};
use ebbtide_control::{
    AttachVolume, BeginSnapshot, Calibration, ChangedBlock, ControlError, ControlPlane, CrashImageView,
    CreateSnapshot, CreateVolume, DetachView, DetachVolume, Detached, FaultView, InitializationView,
    InstanceBalances, ModifyVolume, Names, OwnerRequest, Progress, RecordVolume, RecordingView, RequestsView,
    SetFaults, SnapshotView, TakeCrashImage, UnixTime, VolumeCounters, VolumeDetail, VolumeIdentity,
    VolumeView, WrappedKey,
};
use ebbtide_volume::{Array, Instance, Io, Nanos, Op};
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Map, Value, json};

pub(crate) const ACCOUNT: &str = "123456789012";
pub(crate) const REGION: &str = "us-east-1";
pub(crate) const INSTANCE: &str = "i-00000000000000001";
/// When tests begin, in seconds since 1970: 2026-09-21T14:15:00Z, which begins a quarter of an hour.
pub(crate) const START: u64 = 1_790_000_100;

/// Volumes of the model, which are all attached.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    all: Mutex<BTreeMap<String, Volume>>,
    /// Whose limits hold for all of them too.
    pub(crate) instance: Mutex<Option<Instance>>,
    now: AtomicU64,
    pub(crate) is_stopping: AtomicBool,
    /// Whether the instance runs. Volumes are attached to it in any case.
    pub(crate) is_running: AtomicBool,
    /// Volumes that commands have attached: no instance has them.
    pub(crate) of_commands: Mutex<Vec<Recorded>>,
    /// What is published besides in each minute.
    pub(crate) gauges: Mutex<Vec<Gauge>>,
}

#[derive(Debug)]
struct Volume {
    kind: String,
    array: Array,
    since: Nanos,
    rng: Xoshiro256PlusPlus,
}

macro_rules! refuse {
    ($($name:ident($($argument:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $(_: $argument),*) -> Result<$answer, ControlError> {
            Err(ControlError::Stopping)
        })*
    };
}

impl ControlPlane for Volumes {
    fn counters(&self) -> Result<Vec<VolumeCounters>, ControlError> {
        if self.is_stopping.load(Ordering::Relaxed) {
            return Err(ControlError::Stopping);
        }
        let now = Nanos(self.now.load(Ordering::Relaxed));
        let of_commands = self.of_commands.lock().unwrap().clone();
        let mut all = self.all.lock().unwrap();
        let instance = self.instance.lock().unwrap();
        let counters = all.iter_mut().map(|(name, volume)| VolumeCounters {
            name: name.clone(),
            id: of_commands
                .iter()
                .find(|recorded| recorded.name == *name)
                .map(|recorded| recorded.volume.clone()),
            since: volume.since,
            stats: volume.array.stats(now),
            instance: instance.as_ref().map(|instance| InstanceBalances {
                io: instance.io_balance(now),
                bytes: instance.byte_balance(now),
            }),
        });
        Ok(counters.collect())
    }

    fn requests(&self) -> RequestsView {
        RequestsView { since: UnixTime(0), operations: Vec::new() }
    }

    fn changed_volumes(&self, _: bool) -> Vec<String> {
        Vec::new()
    }

    fn identity(&self, _: &str) -> Option<VolumeIdentity> {
        None
    }

    refuse! {
        ready() -> ();
        create_volume(&CreateVolume) -> VolumeDetail;
        volumes(Option<&str>) -> Vec<VolumeView>;
        volume(&str, Option<&str>) -> VolumeDetail;
        initializations(&[&str]) -> Vec<Option<InitializationView>>;
        attach_volume(&AttachVolume, Progress<'_>) -> VolumeDetail;
        detach_volume(&DetachVolume, Progress<'_>) -> DetachView;
        record_volume(&RecordVolume, Box<dyn Write + Send>) -> RecordingView;
        end_recording(&str) -> RecordingView;
        modify_volume(&ModifyVolume, Progress<'_>) -> VolumeDetail;
        set_owner(&str, &OwnerRequest) -> ();
        delete_volume(&str) -> ();
        set_faults(&SetFaults) -> FaultView;
        take_crash_image(&TakeCrashImage) -> CrashImageView;
        create_snapshot(&CreateSnapshot) -> SnapshotView;
        create_snapshots(&[CreateSnapshot]) -> Vec<SnapshotView>;
        copy_snapshot(&str, &str) -> SnapshotView;
        encrypt_snapshot(&str, &str, &WrappedKey) -> SnapshotView;
        snapshot(&str) -> SnapshotView;
        names() -> Names;
        snapshots() -> Vec<SnapshotView>;
        delete_snapshot(&str) -> ();
        begin_snapshot(&BeginSnapshot) -> ();
        write_block(&str, u64, &[u8]) -> ();
        written_blocks(&str) -> Vec<u64>;
        read_written_block(&str, u64) -> Vec<u8>;
        complete_snapshot(&str) -> SnapshotView;
        abandon_snapshot(&str) -> ();
        snapshot_blocks(&str, u64, usize) -> Vec<u64>;
        changed_blocks(&str, &str, u64, usize) -> Vec<ChangedBlock>;
        read_block(&str, u64) -> Vec<u8>;
        calibrate(bool, Progress<'_>) -> Calibration;
        stop(bool, Progress<'_>) -> Vec<Detached>;
    }
}

impl Inventory for Volumes {
    fn tick(&self, _: u64) {}

    fn attached(&self, _: u64) -> Vec<Attached> {
        let attached = |(name, volume): (&String, &Volume)| Attached {
            volume: name.clone(),
            owner: ACCOUNT.to_owned(),
            region: REGION.to_owned(),
            instance: INSTANCE.to_owned(),
            kind: volume.kind.clone(),
        };
        let of_commands = self.of_commands.lock().unwrap().clone();
        let is_of_instance =
            |(name, _): &(&String, &Volume)| !of_commands.iter().any(|recorded| recorded.name == **name);
        self.all.lock().unwrap().iter().filter(is_of_instance).map(attached).collect()
    }

    fn recorded(&self, volume: &str, _: u64) -> Option<Recorded> {
        self.of_commands.lock().unwrap().iter().find(|recorded| recorded.volume == volume).cloned()
    }

    fn all_recorded(&self, (owner, region): (&str, &str), _: u64) -> Vec<Recorded> {
        let all = self.of_commands.lock().unwrap();
        let is_own = |recorded: &&Recorded| recorded.owner == owner && recorded.region == region;
        all.iter().filter(is_own).cloned().collect()
    }

    fn running(&self, _: u64) -> Vec<Running> {
        let instance =
            Running { owner: ACCOUNT.to_owned(), region: REGION.to_owned(), instance: INSTANCE.to_owned() };
        self.is_running.load(Ordering::Relaxed).then_some(instance).into_iter().collect()
    }

    fn gauges(&self, _: std::ops::Range<u64>) -> Vec<Gauge> {
        self.gauges.lock().unwrap().clone()
    }
}

/// Keeps events.
#[derive(Debug, Default)]
pub(crate) struct Events(pub(crate) Mutex<Vec<Value>>);

impl EventSink for Events {
    fn publish(&self, event: &Value) {
        self.0.lock().unwrap().push(event.clone());
    }
}

/// Denies the actions that it was told.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    pub(crate) asked: Mutex<Vec<Access>>,
    pub(crate) denies: bool,
}

impl Authorizer for Rights {
    fn authorize(&self, _: &Caller, access: &Access) -> Result<(), ApiError> {
        self.asked.lock().unwrap().push(access.clone());
        if self.denies {
            return Err(ApiError { status: 403, ..ApiError::client("AccessDenied", "denied") });
        }
        Ok(())
    }
}

/// A service, and its time.
pub(crate) struct Rig {
    pub(crate) service: Arc<Monitoring>,
    pub(crate) volumes: Arc<Volumes>,
    pub(crate) events: Arc<Events>,
    pub(crate) rights: Rights,
    instant: bool,
    pub(crate) dir: Arc<tempfile::TempDir>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::open(Arc::new(tempfile::tempdir().unwrap()), false, START)
    }

    /// The present minute is shown.
    pub(crate) fn instant() -> Self {
        Self::open(Arc::new(tempfile::tempdir().unwrap()), true, START)
    }

    fn open(dir: Arc<tempfile::TempDir>, instant: bool, now_s: u64) -> Self {
        let volumes = Arc::new(Volumes::default());
        volumes.now.store(Nanos::from_secs(now_s).0, Ordering::Relaxed);
        let events = Arc::new(Events::default());
        let sink: Arc<dyn EventSink> = Arc::<Events>::clone(&events);
        let options = Options { instant, events: Some(sink), ..Options::default() };
        let service = Arc::new(open(dir.path(), &volumes, options));
        Self { service, volumes, events, rights: Rights::default(), instant, dir }
    }

    /// The home after a kill: volumes are attached anew, with counters of zero, and nothing was closed.
    pub(crate) fn restarted(self) -> Self {
        let now_s = self.now().0 / Nanos::SECOND.0;
        let (dir, instant) = (Arc::clone(&self.dir), self.instant);
        drop(self);
        Self::open(dir, instant, now_s)
    }

    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.volumes.now.load(Ordering::Relaxed))
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now().0 / 1_000_000
    }

    /// Attaches a volume now.
    pub(crate) fn attach(&self, name: &str, spec: &str) {
        let spec: Spec = spec.parse().unwrap();
        let kind = spec.to_string().split(':').next().unwrap().to_owned();
        let now = self.now();
        let array = Catalog::builtin().resolve(&spec).unwrap().array(now);
        let rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let volume = Volume { kind, array, since: now, rng };
        self.volumes.all.lock().unwrap().insert(name.to_owned(), volume);
    }

    pub(crate) fn detach(&self, name: &str) {
        self.volumes.all.lock().unwrap().remove(name).unwrap();
    }

    /// The same volume with credits of a share.
    pub(crate) fn set_credits(&self, name: &str, share: f64) {
        let now = self.now();
        self.volumes.all.lock().unwrap().get_mut(name).unwrap().array.set_credit_share(share, now);
    }

    /// Submits I/O of one size at an even rate for some seconds, and ticks each second.
    pub(crate) fn drive(&self, name: &str, seconds: u64, (op, kib, per_second): (Op, u32, u64)) {
        for _ in 0..seconds {
            let begin = self.now();
            {
                let mut all = self.volumes.all.lock().unwrap();
                let mut instance = self.volumes.instance.lock().unwrap();
                let volume = all.get_mut(name).unwrap();
                for number in 0..per_second {
                    let at = begin + Nanos(number * Nanos::SECOND.0 / per_second);
                    // Far apart, so that no two are merged.
                    let offset = (number * 7_919 % 1_000) << 22;
                    let io = Io { op, offset, len: kib << 10 };
                    volume.array.submit(io, at, &mut volume.rng, instance.as_mut());
                }
            }
            self.pass(1);
        }
    }

    /// Keeps a number of I/Os in flight for some seconds, and ticks each second.
    pub(crate) fn saturate(&self, name: &str, seconds: u64, (op, kib, depth): (Op, u32, usize)) {
        let mut free = vec![self.now(); depth];
        for second in 0..seconds {
            let end = self.now() + Nanos::SECOND;
            {
                let mut all = self.volumes.all.lock().unwrap();
                let volume = all.get_mut(name).unwrap();
                let mut number = second;
                loop {
                    let (slot, at) = free.iter().copied().enumerate().min_by_key(|(_, at)| *at).unwrap();
                    if at >= end {
                        break;
                    }
                    number = number
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let offset = ((number >> 33) % 10_000) << 22;
                    let io = Io { op, offset, len: kib << 10 };
                    free[slot] = volume.array.submit(io, at, &mut volume.rng, None).completes;
                }
            }
            self.pass(1);
        }
    }

    /// Lets seconds pass, with a tick at the end of each.
    pub(crate) fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.volumes.now.fetch_add(Nanos::SECOND.0, Ordering::Relaxed);
            self.service.tick(self.now_ms()).unwrap();
        }
    }

    pub(crate) fn attempt(&self, action: &str, input: &Value) -> Result<Map<String, Value>, ApiError> {
        self.attempt_as(ACCOUNT, REGION, action, input)
    }

    pub(crate) fn attempt_as(
        &self,
        account: &str,
        region: &str,
        action: &str,
        input: &Value,
    ) -> Result<Map<String, Value>, ApiError> {
        let caller = Caller {
            account: account.to_owned(),
            arn: format!("arn:aws:iam::{account}:user/test"),
            user_id: "AIDATEST".to_owned(),
            access_key: None,
        };
        let call = Call {
            action,
            input: input.as_object().unwrap(),
            payload: &[],
            caller: &caller,
            region,
            request_id: "test",
            now_ms: self.now_ms(),
            authorizer: &self.rights,
        };
        let answer = self.service.call(&call)?;
        conforms("monitoring", action, &answer)
            .unwrap_or_else(|mismatch| panic!("{action} {input}: {mismatch}: {:?}", answer.output));
        Ok(answer.output)
    }

    #[track_caller]
    pub(crate) fn call(&self, action: &str, input: Value) -> Value {
        match self.attempt(action, &input) {
            Ok(output) => Value::Object(output),
            Err(error) => panic!("{action} {input}: {error}"),
        }
    }

    /// How many minutes are stored one by one, and how many packed.
    pub(crate) fn stored(&self) -> (u64, u64) {
        let db = rusqlite::Connection::open(self.dir.path().join("history.db")).unwrap();
        let count = |sql: &str| db.query_row(sql, (), |row| row.get(0)).unwrap();
        (count("SELECT count(*) FROM minutes"), count("SELECT coalesce(sum(count), 0) FROM minute_chunks"))
    }

    pub(crate) fn packed(&self) -> u64 {
        self.stored().1
    }

    /// A statistic of a metric of a volume by the minutes since the start of the test; none where there is no value.
    #[track_caller]
    pub(crate) fn minutes<const N: usize>(
        &self,
        volume: &str,
        metric: &str,
        statistic: &str,
    ) -> [Option<f64>; N] {
        let values = self.points(volume, metric, statistic, 60);
        let minute = |number: usize| START + 60 * u64::try_from(number).unwrap();
        std::array::from_fn(|number| values.get(&minute(number)).copied())
    }

    /// A statistic of a metric of a volume by the second at which the period begins.
    #[track_caller]
    pub(crate) fn points(
        &self,
        volume: &str,
        metric: &str,
        statistic: &str,
        period: u64,
    ) -> BTreeMap<u64, f64> {
        let answer = self.call(
            "GetMetricStatistics",
            json!({
                "Namespace": "AWS/EBS",
                "MetricName": metric,
                "Dimensions": dimensions(volume, metric),
                "StartTime": START,
                "EndTime": START + 40_000,
                "Period": period,
                "Statistics": [statistic],
            }),
        );
        let points = answer["Datapoints"].as_array().unwrap().iter();
        points
            .map(|point| (point["Timestamp"].as_u64().unwrap(), point[statistic].as_f64().unwrap()))
            .collect()
    }
}

fn open(dir: &Path, volumes: &Arc<Volumes>, options: Options) -> Monitoring {
    let (control, inventory) = (Arc::<Volumes>::clone(volumes), Arc::<Volumes>::clone(volumes));
    let service = Monitoring::open(dir, control, inventory, options).unwrap();
    service.tick(volumes.now.load(Ordering::Relaxed) / 1_000_000).unwrap();
    service
}

/// The dimensions with which AWS publishes a metric.
pub(crate) fn dimensions(volume: &str, metric: &str) -> Value {
    let of_volume = json!({"Name": "VolumeId", "Value": volume});
    if metric.contains("Avg") || metric.ends_with("Check") {
        json!([of_volume, {"Name": "InstanceId", "Value": INSTANCE}])
    } else {
        json!([of_volume])
    }
}

#[track_caller]
pub(crate) fn assert_near(found: Option<f64>, expected: f64) {
    let found = found.unwrap_or_else(|| panic!("no value, not {expected}"));
    assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{found} is not {expected}");
}
