//! The EC2 service with 10,000 volumes and 50,000 snapshots: how long it takes to start, to answer a page and to filter
//! by a tag, to describe volumes from the request to its XML, and its memory. Run with `cargo bench -p ebbtide-cloud`, or `./dev bench ec2`.
//!
//! The volumes behind the records are names only: the service asks the control plane for nothing but these here. With the
//! argument `store` (`./dev bench ec2-store`) they are volumes and snapshots of a real block store, made by calls of EC2,
//! and the start is that of block store, control plane and service: 1,000 volumes and 5,000 snapshots, or another number of
//! volumes as an argument. A tiny run (`BENCH_TINY=1`, or under `cargo test`) has
//! a hundredth and judges nothing.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ebbtide_cloud::ec2::{Ec2, Options};
use ebbtide_cloud::front::{Clock, Pipeline, Regions, Settings};
use ebbtide_cloud::iam::Sealer;
use ebbtide_cloud::sessions::Sessions;
use ebbtide_cloud::users::{KeyRing, UserStore};
use ebbtide_cloud::{Access, ApiError, Authorizer, Call, Caller, Service};
use ebbtide_control::{
    AttachVolume, BeginSnapshot, Calibration, ChangedBlock, ControlError, ControlPlane, CrashImageView,
    CreateSnapshot, CreateVolume, DetachView, DetachVolume, Detached, FaultView, InitializationView,
    LiveControl, ModifyVolume, Names, OwnerRequest, Progress, RecordVolume, RecordingView, RequestsView,
    SetFaults, SnapshotView, TakeCrashImage, UnixTime, VolumeCounters, VolumeDetail, VolumeIdentity,
    VolumeView, WrappedKey,
};
use ebbtide_device::host::{Home, Host, HostOptions};
use rusqlite::Connection;
use serde_json::{Value, json};

const NOW_MS: u64 = 1_790_000_000_000;
const ACCOUNT: &str = "123456789012";

/// What the figures may be.
const START_S: f64 = 2.0;
const PAGE_P99_MS: f64 = 20.0;
const TAG_P99_MS: f64 = 50.0;
const MEMORY_MIB: f64 = 200.0;
/// Processor time for each volume of an answer, and for two pages of 1,000 volumes that have tags.
const VOLUME_US: f64 = 12.0;
const DESCRIBED_MS: f64 = 30.0;

#[derive(Debug)]
struct AllowAll;

impl Authorizer for AllowAll {
    fn authorize(&self, _: &Caller, _: &Access) -> Result<(), ApiError> {
        Ok(())
    }
}

/// A control plane that knows names.
#[derive(Debug, Default)]
struct NamesOnly(Names);

macro_rules! refuse {
    ($($name:ident($($argument:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $(_: $argument),*) -> Result<$answer, ControlError> {
            Err(ControlError::Stopping)
        })*
    };
}

impl ControlPlane for NamesOnly {
    fn names(&self) -> Result<Names, ControlError> {
        Ok(self.0.clone())
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
        counters() -> Vec<VolumeCounters>;
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

fn call(ec2: &Ec2, action: &str, input: &Value) -> Value {
    let caller =
        Caller { account: ACCOUNT.to_owned(), arn: String::new(), user_id: String::new(), access_key: None };
    let call = Call {
        action,
        input: input.as_object().unwrap(),
        payload: &[],
        caller: &caller,
        region: "us-east-1",
        request_id: "",
        now_ms: NOW_MS,
        authorizer: &AllowAll,
    };
    Value::Object(ec2.call(&call).unwrap_or_else(|error| panic!("{action}: {error}")).output)
}

/// Records of a home, in the form in which the service writes them.
fn fill(home: &Path, volumes: u32, snapshots: u32) -> Names {
    drop(Ec2::open(home, Arc::new(NamesOnly::default()), Options::default()).unwrap());
    let mut db = Connection::open(home.join("aws.db")).unwrap();
    let transaction = db.transaction().unwrap();
    let mut names = Names::default();
    let tags = |number: u32| {
        json!({
            "Name": format!("data-{number}"), "team": format!("team-{}", number % 40), "env": "production",
            "kubernetes.io/created-for/pvc/name": format!("claim-{number}"),
        })
    };
    for number in 0..volumes {
        let id = format!("vol-0{:016x}", u64::from(number) + 1);
        let record = json!({
            "id": id, "owner": ACCOUNT, "region": "us-east-1", "zone": "us-east-1a",
            "shape": {"kind": "gp3", "size_gib": 5, "iops": 3000, "throughput": 125},
            "created_ms": NOW_MS - 1_000_000, "available_ms": NOW_MS - 900_000, "stage": "ready", "tags": tags(number),
        });
        transaction.execute("INSERT INTO volumes VALUES (?1, ?2)", (&id, record.to_string())).unwrap();
        names.volumes.push(id);
    }
    for number in 0..snapshots {
        let id = format!("snap-0{:016x}", u64::from(number) + 1);
        let record = json!({
            "id": id, "owner": ACCOUNT, "region": "us-east-1",
            "volume": format!("vol-0{:016x}", u64::from(number % volumes) + 1),
            "size_gib": 5, "data_bytes": 1 << 30, "description": format!("nightly {number}"),
            "started_ms": NOW_MS - 800_000, "completes_ms": NOW_MS - 700_000, "stage": "ready", "tags": tags(number),
        });
        transaction.execute("INSERT INTO snapshots VALUES (?1, ?2)", (&id, record.to_string())).unwrap();
        names.snapshots.push(id);
    }
    transaction.commit().unwrap();
    names
}

/// The resident memory of this process, MiB.
fn memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1_024.0
}

/// The 99th percentile of what calls take, ms.
fn p99_ms(rounds: u32, mut work: impl FnMut(u32)) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|round| {
            let begun = Instant::now();
            work(round);
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() * 99 / 100]
}

/// How many there are, and how often each call is made.
struct Sizes {
    volumes: u32,
    snapshots: u32,
    rounds: u32,
    page: usize,
}

#[derive(Debug)]
struct Fixed;

impl Clock for Fixed {
    fn now_ms(&self) -> u64 {
        NOW_MS
    }
}

/// The endpoint without its socket and signatures.
fn pipeline(home: &Path, ec2: Arc<Ec2>) -> Pipeline {
    let keys = KeyRing::new(UserStore::new(home), Sessions::open(home).unwrap());
    let settings = Settings {
        is_open: true,
        region: None,
        regions: Regions::default(),
        room: None,
        keys: Arc::new(keys),
        sealer: Arc::new(Sealer::new().unwrap()),
        clock: Arc::new(Fixed),
    };
    Pipeline::new(settings, vec![ec2 as Arc<dyn Service>])
}

/// Answers to DescribeVolumes from the request to its XML: the processor time of each volume, us, and of the whole, ms. Of
/// two pages, the mean of the rounds.
fn described(home: &Path, ec2: Arc<Ec2>, sizes: &Sizes) -> [Figure; 2] {
    let pipeline = pipeline(home, ec2);
    let scope = format!("Credential={ACCOUNT}/20260921/us-east-1/ec2/aws4_request");
    let signature = "0".repeat(64);
    let request = http::Request::post("/")
        .header("host", "127.0.0.1")
        .header("content-type", "application/x-www-form-urlencoded")
        .header("x-amz-date", "20260921T000000Z")
        .header(
            "authorization",
            format!("AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature={signature}"),
        );
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let ask = |token: &str| {
        let page = sizes.page;
        let body = format!("Action=DescribeVolumes&Version=2016-11-15&MaxResults={page}&NextToken={token}");
        pipeline.answer(&parts, body.as_bytes(), None).into_body()
    };
    let first = String::from_utf8(ask("")).unwrap();
    assert_eq!(first.matches("<tagSet>").count(), sizes.page, "{}", &first[..first.len().min(500)]);
    let token = first.split("<nextToken>").nth(1).and_then(|rest| rest.split('<').next()).unwrap();
    // The kernel counts by its ticks: only many answers together have a time.
    let (rounds, begun) = (sizes.rounds.div_ceil(10), ebbtide_testing::Time::now());
    for _ in 0..rounds {
        // The names of later volumes are longer by some digits.
        let (first, second) = (ask("").len(), ask(token).len());
        assert!(first.abs_diff(second) * 20 < first, "pages of {first} and {second} bytes are not alike");
    }
    let both_ms = begun.seconds() * 1e3 / f64::from(rounds);
    [
        ("processor of a described volume", both_ms * 1e3 / (2.0 * sizes.page as f64), "us", VOLUME_US),
        ("two pages described with tags", both_ms, "ms", DESCRIBED_MS),
    ]
}

/// A figure with its unit and the most that it may be.
type Figure = (&'static str, f64, &'static str, f64);

/// The times of calls, ms.
fn calls(ec2: &Ec2, sizes: &Sizes) -> [Figure; 4] {
    let Sizes { volumes, rounds, page, .. } = *sizes;
    let mut token = Value::Null;
    let pages = p99_ms(rounds, |_| {
        let answer = call(ec2, "DescribeVolumes", &json!({"MaxResults": page, "NextToken": token}));
        assert!(!answer["Volumes"].as_array().unwrap().is_empty());
        token = answer.get("NextToken").cloned().unwrap_or(Value::Null);
    });
    let snapshot_pages = p99_ms(rounds, |_| {
        let answer = call(ec2, "DescribeSnapshots", &json!({"MaxResults": page, "OwnerIds": ["self"]}));
        assert_eq!(answer["Snapshots"].as_array().unwrap().len(), page);
    });
    let by_tag = |action: &str, member: &str| {
        p99_ms(rounds, |round| {
            let name = format!("data-{}", round % volumes);
            let filter = json!({"Filters": [{"Name": "tag:Name", "Values": [name]}]});
            let answer = call(ec2, action, &filter);
            assert_eq!(answer[member].as_array().unwrap().len(), 1);
        })
    };
    [
        ("a page of volumes, p99", pages, "ms", PAGE_P99_MS),
        ("a page of snapshots, p99", snapshot_pages, "ms", PAGE_P99_MS),
        ("volumes by a tag, p99", by_tag("DescribeVolumes", "Volumes"), "ms", TAG_P99_MS),
        ("snapshots by a tag, p99", by_tag("DescribeSnapshots", "Snapshots"), "ms", TAG_P99_MS),
    ]
}

/// Prints figures; whether all are within their limits.
fn report(figures: &[Figure]) -> bool {
    for (what, figure, unit, limit) in figures {
        println!("{what:32} {figure:9.3} {unit}  (limit {limit} {unit})");
    }
    figures.iter().all(|(_, figure, _, limit)| figure <= limit)
}

/// A control plane on the block store of a home.
fn live(dir: &Path) -> Arc<LiveControl> {
    let home = Home::open(dir).unwrap();
    Arc::new(LiveControl::new(Host::open(home.lock().unwrap(), HostOptions::default()).unwrap()))
}

/// Makes volumes and snapshots by calls, each volume a snapshot in turn.
fn fill_store(dir: &Path, sizes: &Sizes) {
    let options = Options { seed: Some(7), ..Options::default() };
    let ec2 = Ec2::open(dir, live(dir), options.instant()).unwrap();
    let tags = |kind: &str, number: u32| {
        json!([{"ResourceType": kind, "Tags": [
            {"Key": "Name", "Value": format!("data-{number}")},
            {"Key": "team", "Value": format!("team-{}", number % 40)},
            {"Key": "env", "Value": "production"},
        ]}])
    };
    let volumes: Vec<Value> = (0..sizes.volumes)
        .map(|number| {
            let input = json!({"AvailabilityZone": "us-east-1a", "Size": 1, "VolumeType": "gp3",
                "TagSpecifications": tags("volume", number)});
            call(&ec2, "CreateVolume", &input)["VolumeId"].clone()
        })
        .collect();
    for (number, volume) in (0..sizes.snapshots).zip(volumes.iter().cycle()) {
        let input = json!({"VolumeId": volume, "TagSpecifications": tags("snapshot", number)});
        call(&ec2, "CreateSnapshot", &input);
    }
}

/// How many there are in a block store: a tenth, or as many volumes as the arguments say, and five snapshots of each.
fn of_store(sizes: Sizes, whole: bool) -> Sizes {
    let asked = std::env::args().find_map(|argument| argument.parse().ok());
    let volumes = asked.unwrap_or(if whole { 1_000 } else { 10 });
    Sizes {
        volumes,
        snapshots: 5 * volumes,
        page: sizes.page.min(usize::try_from(volumes).unwrap()),
        ..sizes
    }
}

/// The directory of the home that this process of the bench fills, or opens.
const FILL: &str = "EBBTIDE_BENCH_FILL";
const OPEN: &str = "EBBTIDE_BENCH_OPEN";

/// The bench on the block store. One process fills the home and another opens it, so that the memory is that of the start.
fn store(sizes: &Sizes, whole: bool) {
    if let Ok(dir) = std::env::var(FILL) {
        return fill_store(Path::new(&dir), sizes);
    }
    if let Ok(dir) = std::env::var(OPEN) {
        let dir = Path::new(&dir);
        let before = memory_mib();
        let begun = Instant::now();
        let control = live(dir);
        let of_store = begun.elapsed().as_secs_f64();
        let ec2 = Ec2::open(dir, control, Options::default()).unwrap();
        let start_s = begun.elapsed().as_secs_f64();
        println!("{} volumes, {} snapshots of the block store", sizes.volumes, sizes.snapshots);
        println!("the block store opens in {of_store:.3} s");
        let calls = calls(&ec2, sizes);
        let first = [
            ("start", start_s, "s", START_S),
            ("memory of store and service", memory_mib() - before, "MiB", MEMORY_MIB),
        ];
        let kept = report(&first) & report(&calls);
        assert!(kept || !whole, "a limit is exceeded");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for variable in [FILL, OPEN] {
        let mut itself = std::process::Command::new(std::env::current_exe().unwrap());
        itself.args(std::env::args_os().skip(1)).arg("store").env(variable, dir.path());
        let begun = Instant::now();
        assert!(itself.status().unwrap().success());
        if variable == FILL {
            println!("filled in {:.0} s", begun.elapsed().as_secs_f64());
        }
    }
}

fn main() {
    let whole = !ebbtide_testing::tiny();
    let sizes = if whole {
        Sizes { volumes: 10_000, snapshots: 50_000, rounds: 500, page: 1_000 }
    } else {
        Sizes { volumes: 100, snapshots: 500, rounds: 5, page: 10 }
    };
    if std::env::args().any(|argument| argument == "store") {
        return store(&of_store(sizes, whole), whole);
    }
    let dir = tempfile::tempdir().unwrap();
    let names = fill(dir.path(), sizes.volumes, sizes.snapshots);
    let before = memory_mib();
    let begun = Instant::now();
    let ec2 = Ec2::open(dir.path(), Arc::new(NamesOnly(names)), Options::default()).unwrap();
    let start_s = begun.elapsed().as_secs_f64();
    let calls = calls(&ec2, &sizes);
    let memory = memory_mib() - before;
    let described = described(dir.path(), Arc::new(ec2), &sizes);
    println!("{} volumes, {} snapshots", sizes.volumes, sizes.snapshots);
    let first =
        [("start", start_s, "s", START_S), ("memory that the service takes", memory, "MiB", MEMORY_MIB)];
    let kept = report(&first) & report(&calls) & report(&described);
    if !whole {
        // The other form, so that it starts.
        store(&sizes, whole);
    }
    assert!(kept || !whole, "a limit is exceeded");
}
