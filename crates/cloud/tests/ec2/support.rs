//! A service on a control plane in a temporary home, and callers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use ebbtide_cloud::ebs::Ebs;
use ebbtide_cloud::ec2::{AttachAs, Ec2, Options};
use ebbtide_cloud::kms::Kms;
use ebbtide_cloud::wire::conforms;
use ebbtide_cloud::{Access, Answer, ApiError, Authorizer, Call, Caller, Service};
use ebbtide_control::{ControlPlane, LiveControl};
use ebbtide_device::host::{Home, Host, HostOptions, clear_leftovers, release_dying};
use ebbtide_device::store::VolumeStore;
use serde_json::{Map, Value, json};

pub(crate) const REGION: &str = "us-east-1";
pub(crate) const ACCOUNT: &str = "123456789012";
pub(crate) const OTHER: &str = "210987654321";
/// The image whose instances have no root volume.
pub(crate) const WITHOUT_ROOT: &str = "ami-ffffffff";
/// When tests begin, in milliseconds since 1970: in September 2026.
pub(crate) const START_MS: u64 = 1_790_000_000_000;

/// Notes what it is asked, and denies the actions that it was told.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) asked: Mutex<Vec<Access>>,
    pub(crate) denied: Mutex<Vec<String>>,
}

impl Authorizer for Recorder {
    fn authorize(&self, _: &Caller, access: &Access) -> Result<(), ApiError> {
        self.asked.lock().unwrap().push(access.clone());
        if self.denied.lock().unwrap().iter().any(|action| *action == access.action) {
            let error = ApiError::client(
                "UnauthorizedOperation",
                "You are not authorized to perform this operation.",
            );
            return Err(ApiError { status: 403, ..error });
        }
        Ok(())
    }
}

/// A control plane of a home, and its service.
pub(crate) struct Rig {
    pub(crate) ec2: Arc<Ec2>,
    pub(crate) ebs: Arc<Ebs>,
    pub(crate) kms: Arc<Kms>,
    pub(crate) control: Arc<LiveControl>,
    pub(crate) now_ms: AtomicU64,
    pub(crate) rights: Recorder,
    pub(crate) options: Options,
    pub(crate) dir: Arc<tempfile::TempDir>,
}

impl Rig {
    /// Every state is reached at once; attachments are sockets.
    pub(crate) fn new() -> Self {
        Self::with(|options| options.instant())
    }

    /// States take as long as on AWS, by the time of the test.
    pub(crate) fn slow() -> Self {
        Self::with(|options| options)
    }

    pub(crate) fn with(change: impl FnOnce(Options) -> Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { seed: Some(7), ..sockets(dir.path()) };
        Self::open(Arc::new(dir), change(options), START_MS)
    }

    fn open(dir: Arc<tempfile::TempDir>, options: Options, now_ms: u64) -> Self {
        let control = Arc::new(control(dir.path()));
        let kms = Arc::new(Kms::open(&home(dir.path())).unwrap());
        control.set_key_unwrapper(kms.clone());
        let plane: Arc<dyn ControlPlane> = control.clone();
        let ec2 = Ec2::open(&home(dir.path()), plane, options.clone()).unwrap();
        let ec2 = Arc::new(ec2.with_kms(kms.clone()));
        let ebs = Arc::new(Ebs::open(&home(dir.path()), Arc::clone(&ec2)).unwrap());
        let now_ms = AtomicU64::new(now_ms);
        Self { ec2, ebs, kms, control, now_ms, rights: Recorder::default(), options, dir }
    }

    /// The same home, opened again.
    pub(crate) fn reopened(self) -> Self {
        self.reopened_after(|_| ())
    }

    /// The same home, opened again after something was done to it meanwhile.
    pub(crate) fn reopened_after(self, change: impl FnOnce(&Path)) -> Self {
        let (dir, mut options, now_ms) = (Arc::clone(&self.dir), self.options.clone(), self.now());
        // Ids go on from another seed, as they would from a drawn one.
        options.seed = options.seed.map(|seed| seed.wrapping_add(0x9E37));
        drop(self);
        change(&home(dir.path()));
        Self::open(dir, options, now_ms)
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn try_as(
        &self,
        account: &str,
        region: &str,
        action: &str,
        input: &Value,
    ) -> Result<Map<String, Value>, ApiError> {
        call(&self.ec2, &self.rights, self.now(), (account, region), action, input)
    }

    pub(crate) fn attempt_kms(&self, action: &str, input: &Value) -> Result<Map<String, Value>, ApiError> {
        let caller = (ACCOUNT, REGION);
        let answered = answer(&*self.kms, &self.rights, self.now(), caller, action, (input, &[]));
        answered.map(|answer| answer.output)
    }

    #[track_caller]
    pub(crate) fn kms(&self, action: &str, input: Value) -> Value {
        match self.attempt_kms(action, &input) {
            Ok(output) => Value::Object(output),
            Err(error) => panic!("{action} {input}: {error}"),
        }
    }

    /// The ARN of a new key.
    #[track_caller]
    pub(crate) fn key(&self) -> String {
        text(&self.kms("CreateKey", json!({}))["KeyMetadata"]["Arn"])
    }

    pub(crate) fn attempt(&self, action: &str, input: &Value) -> Result<Map<String, Value>, ApiError> {
        self.try_as(ACCOUNT, REGION, action, input)
    }

    #[track_caller]
    pub(crate) fn call(&self, action: &str, input: Value) -> Value {
        match self.attempt(action, &input) {
            Ok(output) => Value::Object(output),
            Err(error) => panic!("{action} {input}: {error}"),
        }
    }

    #[track_caller]
    pub(crate) fn refused(&self, action: &str, input: Value) -> ApiError {
        match self.attempt(action, &input) {
            Ok(output) => panic!("{action} {input} answered {output:?}"),
            Err(error) => error,
        }
    }

    #[track_caller]
    pub(crate) fn code(&self, action: &str, input: Value) -> String {
        self.refused(action, input).code.into_owned()
    }

    // ---- Short forms --------------------------------------------------------------------------------------------------

    #[track_caller]
    pub(crate) fn volume(&self) -> String {
        self.volume_of(json!({"Size": 1, "VolumeType": "gp3"}))
    }

    /// A volume by the members that matter; its zone is the first.
    #[track_caller]
    pub(crate) fn volume_of(&self, mut input: Value) -> String {
        if input.get("AvailabilityZone").is_none() {
            input["AvailabilityZone"] = json!("us-east-1a");
        }
        text(&self.call("CreateVolume", input)["VolumeId"])
    }

    #[track_caller]
    pub(crate) fn instance(&self) -> String {
        let input =
            json!({"MinCount": 1, "MaxCount": 1, "InstanceType": "m5.large", "ImageId": WITHOUT_ROOT});
        let ran = self.call("RunInstances", input);
        text(&ran["Instances"][0]["InstanceId"])
    }

    #[track_caller]
    pub(crate) fn attach(&self, volume: &str, instance: &str, device: &str) -> Value {
        self.call("AttachVolume", json!({"VolumeId": volume, "InstanceId": instance, "Device": device}))
    }

    #[track_caller]
    pub(crate) fn snapshot(&self, volume: &str) -> String {
        text(&self.call("CreateSnapshot", json!({"VolumeId": volume}))["SnapshotId"])
    }

    #[track_caller]
    pub(crate) fn show(&self, volume: &str) -> Value {
        self.call("DescribeVolumes", json!({"VolumeIds": [volume]}))["Volumes"][0].clone()
    }

    #[track_caller]
    pub(crate) fn show_snapshot(&self, snapshot: &str) -> Value {
        self.call("DescribeSnapshots", json!({"SnapshotIds": [snapshot]}))["Snapshots"][0].clone()
    }

    #[track_caller]
    pub(crate) fn state(&self, volume: &str) -> String {
        text(&self.show(volume)["State"])
    }

    /// Names of the control plane's volumes and snapshots.
    pub(crate) fn names(&self) -> (Vec<String>, Vec<String>) {
        let names = self.control.names().unwrap();
        (names.volumes, names.snapshots)
    }

    /// Names of the control plane's snapshots that are put together from blocks.
    pub(crate) fn names_pending(&self) -> Vec<String> {
        self.control.names().unwrap().pending
    }

    /// The volumes that `ebbtide volume list` shows.
    pub(crate) fn control_volumes(&self) -> Vec<String> {
        self.control.volumes(None).unwrap().into_iter().map(|volume| volume.name).collect()
    }

    /// The same home, opened again after something was done to its store.
    pub(crate) fn between(self, work: impl FnOnce(&VolumeStore)) -> Self {
        self.reopened_after(|home| {
            let home = Home::open(home).unwrap();
            let host = Host::open(home.lock().unwrap(), HostOptions::default()).unwrap();
            work(host.store());
        })
    }

    pub(crate) fn socket(&self, volume: &str) -> PathBuf {
        self.dir.path().join(format!("{volume}.sock"))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.control.end();
    }
}

/// Attachments as sockets in a directory.
pub(crate) fn sockets(dir: &Path) -> Options {
    Options { attach_as: AttachAs::NbdSocket(dir.to_owned()), ..Options::default() }
}

pub(crate) fn home(dir: &Path) -> PathBuf {
    dir.join("home")
}

/// The control plane of the home in a directory.
pub(crate) fn control(dir: &Path) -> LiveControl {
    let home = Home::open(&home(dir)).unwrap();
    calibrate(&home.calibration_file());
    let lock = home.lock().unwrap();
    clear_leftovers(&lock).unwrap();
    LiveControl::new(Host::open(lock, HostOptions::default()).unwrap())
}

/// Kills a process that serves the home in a directory. It ends only once nothing of it waits for a volume of its own.
pub(crate) fn kill(mut child: Child, dir: &Path) {
    child.kill().unwrap();
    let home = Home::open(&home(dir)).unwrap();
    while child.try_wait().unwrap().is_none() {
        release_dying(&home).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Gives a home the figures of this machine, which are measured once for all tests.
fn calibrate(file: &Path) {
    static MEASURED: OnceLock<Vec<u8>> = OnceLock::new();
    if file.exists() {
        return;
    }
    let measured = MEASURED.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let host = Host::open(home.lock().unwrap(), HostOptions::default()).unwrap();
        LiveControl::new(host).calibrate(true, &|_| ()).unwrap();
        std::fs::read(home.calibration_file()).unwrap()
    });
    std::fs::write(file, measured).unwrap();
}

pub(crate) fn call(
    ec2: &Ec2,
    rights: &dyn Authorizer,
    now_ms: u64,
    (account, region): (&str, &str),
    action: &str,
    input: &Value,
) -> Result<Map<String, Value>, ApiError> {
    answer(ec2, rights, now_ms, (account, region), action, (input, &[])).map(|answer| answer.output)
}

/// What a service answers to a call with a payload. The answer is compared with AWS's model.
pub(crate) fn answer(
    service: &dyn Service,
    rights: &dyn Authorizer,
    now_ms: u64,
    (account, region): (&str, &str),
    action: &str,
    (input, payload): (&Value, &[u8]),
) -> Result<Answer, ApiError> {
    let caller = Caller {
        account: account.to_owned(),
        arn: format!("arn:aws:iam::{account}:user/test"),
        user_id: "AIDATEST".to_owned(),
        access_key: None,
    };
    let answer = service.call(&Call {
        action,
        input: input.as_object().unwrap(),
        payload,
        caller: &caller,
        region,
        request_id: "test",
        now_ms,
        authorizer: rights,
    })?;
    conforms(service.name(), action, &answer)
        .unwrap_or_else(|mismatch| panic!("{action} {input}: {mismatch}: {:?}", answer.output));
    Ok(answer)
}

/// A text with words in the places of their names in braces.
pub(crate) fn fill(words: &BTreeMap<&str, String>, text: &str) -> String {
    words.iter().fold(text.to_owned(), |text, (name, word)| text.replace(&format!("{{{name}}}"), word))
}

/// A value with words in the places of their names in braces.
pub(crate) fn fill_all(words: &BTreeMap<&str, String>, value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(fill(words, text)),
        Value::Array(all) => all.iter().map(|value| fill_all(words, value)).collect(),
        Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), fill_all(words, value))).collect(),
        other => other.clone(),
    }
}

#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The values of a member of each row.
#[track_caller]
pub(crate) fn column(rows: &Value, member: &str) -> Vec<String> {
    rows.as_array()
        .unwrap_or_else(|| panic!("{rows} is no list"))
        .iter()
        .map(|row| text(&row[member]))
        .collect()
}

/// A drawn number below a bound; SplitMix64.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap();
        usize::try_from(self.next() % bound).unwrap()
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        if all.is_empty() { None } else { Some(&all[self.below(all.len())]) }
    }
}

/// The seed of a test: `EBBTIDE_SEED`, or one of its own. It is printed.
pub(crate) fn seed(own: u64) -> u64 {
    let seed = std::env::var("EBBTIDE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(own);
    println!("seed {seed}: repeat with EBBTIDE_SEED={seed}");
    seed
}

/// A table of bad calls in `data`, which are made in a state of the world.
#[derive(serde::Deserialize)]
pub(crate) struct ErrorTable {
    pub(crate) row: Vec<ErrorRow>,
}

/// A bad call, and how it is refused.
#[derive(serde::Deserialize)]
pub(crate) struct ErrorRow {
    pub(crate) operation: String,
    pub(crate) state: String,
    pub(crate) parameters: Value,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) status: u16,
}
