//! The AWS endpoint of the running program: users, addresses, and the real AWS CLI and boto3.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{Home, Need, Ran, can, kill_9, left_of};

/// A program of `./dev clients`, some of `./dev clients --all`; none, with the words that the test runner counts, where it
/// is not installed.
pub(crate) fn client(name: &str) -> Option<PathBuf> {
    // target/debug/deps/TEST
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let program = target.join("clients/bin").join(name);
    if !program.exists() {
        let all = if matches!(name, "coldsnap" | "rust-client") { " --all" } else { "" };
        println!("SKIPPED: {name}, which './dev clients{all}' installs, is missing");
        return None;
    }
    Some(program)
}

/// An access key and its secret.
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) secret: String,
}

pub(crate) fn create_user(home: &Home, words: &str) -> Key {
    let created = home.run_line(&format!("user create {words} --json")).ok().json();
    let text = |name: &str| created[name].as_str().unwrap().to_owned();
    Key { id: text("access_key_id"), secret: text("secret_access_key") }
}

/// Serves a home with these options; answers the endpoint's URL.
pub(crate) fn serve(home: &Home, options: &str) -> String {
    let serving = home.run_line(&format!("serve --detach --json {options}")).ok().json();
    serving["aws"].as_str().unwrap().to_owned()
}

pub(crate) fn run(program: &Path, words: &[&str], home: &Home, key: &Key, url: &str) -> Ran {
    let mut command = Command::new(program);
    environment(command.args(words), home, key, url);
    Ran::of(command.output().unwrap())
}

/// Gives a client the endpoint, the Region and the key, and nothing of this process but its path.
pub(crate) fn environment(command: &mut Command, home: &Home, key: &Key, url: &str) {
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.root())
        .env("AWS_ENDPOINT_URL", url)
        .env("AWS_ACCESS_KEY_ID", &key.id)
        .env("AWS_SECRET_ACCESS_KEY", &key.secret)
        .env("AWS_DEFAULT_REGION", "us-east-1")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_MAX_ATTEMPTS", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    if url.starts_with("https://") {
        // The SDK for Go ends where the file is missing.
        command.env("AWS_CA_BUNDLE", home.root().join("aws/cert.pem"));
    }
}

const IDENTITY: [&str; 4] = ["sts", "get-caller-identity", "--output", "json"];

/// What an HTTP client without a key gets.
pub(crate) fn get(url: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_aws_cli_and_boto3_learn_who_they_are() {
    let (Some(aws), Some(python)) = (client("aws"), client("python")) else { return };
    let home = Home::new();
    let url = serve(&home, "--aws 0");
    // The server runs already, and notices the new user.
    let anna = create_user(&home, "anna");
    let identity: Value =
        serde_json::from_str(&run(&aws, &IDENTITY, &home, &anna, &url).ok().stdout).unwrap();
    assert_eq!(identity["Arn"], "arn:aws:iam::000000000000:user/anna");
    assert_eq!(identity["Account"], "000000000000");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/identity.py");
    let by_boto3 = run(&python, &[script.to_str().unwrap()], &home, &anna, &url).ok();
    assert_eq!(by_boto3.line(), "arn:aws:iam::000000000000:user/anna");

    let wrong = Key { secret: "wrong".to_owned(), id: anna.id.clone() };
    let refused = run(&aws, &IDENTITY, &home, &wrong, &url);
    assert!(refused.code != 0 && refused.stderr.contains("SignatureDoesNotMatch"), "{}", refused.stderr);
    let unknown = Key { id: "AKIAUNKNOWN".to_owned(), secret: anna.secret.clone() };
    let refused = run(&aws, &IDENTITY, &home, &unknown, &url);
    assert!(refused.code != 0 && refused.stderr.contains("InvalidClientTokenId"), "{}", refused.stderr);
    let of_ec2 = run(&aws, &["ec2", "describe-key-pairs"], &home, &anna, &url);
    assert!(of_ec2.code != 0 && of_ec2.stderr.contains("InvalidAction"), "{}", of_ec2.stderr);

    home.run_line("user delete anna").ok();
    let refused = run(&aws, &IDENTITY, &home, &anna, &url);
    assert!(refused.code != 0 && refused.stderr.contains("InvalidClientTokenId"), "{}", refused.stderr);
}

#[test]
fn boto3_assumes_a_role_and_uses_it_for_ec2_also_after_a_kill() {
    let Some(python) = client("python") else { return };
    let home = Home::new();
    let started = home.run_line("serve --detach --json --aws 0 --instant").ok().json();
    let anna = create_user(&home, "anna");
    let folder = home.sibling("policies");
    std::fs::create_dir(&folder).unwrap();
    let policy = |name: &str, statement: &str| {
        let file = folder.join(name);
        let text = format!(r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow",{statement}}}]}}"#);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let user = r#""Principal":{"AWS":"arn:aws:iam::000000000000:user/anna"},"Action":"sts:AssumeRole""#;
    let trust = policy("trust.json", user);
    let may = policy("volumes.json", r#""Action":"ec2:*Volume*","Resource":"*""#);
    home.run(&["role", "create", "backup", "--trust", &trust, "--policy", &may]).ok();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/roles.py");
    let keys = folder.join("keys.json");
    let script = |what: &str, url: &Value| {
        let words = [script.to_str().unwrap(), what, keys.to_str().unwrap()];
        let ran = run(&python, &words, &home, &anna, url.as_str().unwrap()).ok();
        ran.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let session = "arn:aws:sts::000000000000:assumed-role/backup/nightly";
    let expected = [session, "available", "UnauthorizedOperation", "1 volume", "401 AuthFailure"];
    assert_eq!(script("assume", &started["aws"]), expected);
    kill_9(u32::try_from(started["pid"].as_u64().unwrap()).unwrap());
    let url = Value::from(serve(&home, "--aws 0 --instant"));
    assert_eq!(script("again", &url), [session, "1 volume", "arn:aws:iam::000000000000:user/anna"]);
    home.run_line("role delete backup").ok();
    assert_eq!(script("gone", &url), ["InvalidClientTokenId", "AuthFailure"]);
    let file = home.root().join("sts.db");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(file).unwrap());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn boto3_tags_sessions_of_a_role_which_work_with_the_volumes_of_their_project_also_after_a_kill() {
    let Some(python) = client("python") else { return };
    let home = Home::new();
    let started = home.run_line("serve --detach --json --aws 0 --instant").ok().json();
    let anna = create_user(&home, "anna");
    let folder = home.sibling("policies");
    std::fs::create_dir(&folder).unwrap();
    let trust = folder.join("trust.json");
    std::fs::write(&trust, TAGGED_TRUST).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let policy = root.join("crates/cloud/tests/policies/by-session-tags.json");
    let (trust, policy) = (trust.to_str().unwrap(), policy.to_str().unwrap());
    home.run(&["role", "create", "developer", "--trust", trust, "--policy", policy]).ok();
    let script = root.join("tests/clients/session_tags.py");
    let keys = folder.join("keys.json");
    let script = |what: &str, url: &Value| {
        let words = [script.to_str().unwrap(), what, keys.to_str().unwrap()];
        let ran = run(&python, &words, &home, &anna, url.as_str().unwrap()).ok();
        ran.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = [
        "anna 1",
        "arn:aws:sts::000000000000:assumed-role/developer/nightly",
        "UnauthorizedOperation UnauthorizedOperation",
        "UnauthorizedOperation ok",
        "UnauthorizedOperation",
        "AccessDenied",
        "InvalidParameterValue",
    ];
    assert_eq!(script("assume", &started["aws"]), expected);
    kill_9(u32::try_from(started["pid"].as_u64().unwrap()).unwrap());
    let url = Value::from(serve(&home, "--aws 0 --instant"));
    assert_eq!(script("again", &url), ["UnauthorizedOperation ok"]);
}

/// The trust policy of docs/aws.md's example, with a source identity.
const TAGGED_TRUST: &str = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
  "Principal": {"AWS": "arn:aws:iam::000000000000:user/anna"},
  "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
  "Condition": {"StringLike": {"aws:RequestTag/project": "*"}}}]}"#;

#[test]
fn a_file_of_events_that_cannot_be_written_is_refused_before_anything_starts() {
    let home = Home::new();
    let folder = home.sibling("events");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("file");
    std::fs::write(&file, "kept").unwrap();
    let link = folder.join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let missing = folder.join("nowhere/events.jsonl");
    for (path, why) in [
        (&missing, "No such file or directory"),
        (&folder, "Is a directory"),
        (&file.join("below"), "Not a directory"),
        (&link, "symbolic link"),
        (&pipe, "No such device"),
    ] {
        let path = path.to_str().unwrap();
        for form in ["", "--detach "] {
            let line = format!("serve {form}--aws 0 --aws-events {path}");
            home.run_line(&line).refused(3, &["events cannot be appended to", path, why, "--aws-events"]);
        }
    }
    home.run_line("serve --status").refused(3, &["is not running"]);
    // A file that can be written has what it had.
    serve(&home, &format!("--aws 0 --aws-events {}", file.display()));
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");
}

#[test]
fn boto3_puts_snapshots_together_from_blocks_and_reads_them_back() {
    let Some(python) = client("python") else { return };
    let home = Home::new();
    let url = serve(&home, "--aws 0 --instant");
    let anna = create_user(&home, "anna");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/ebs_direct.py");
    let ran = run(&python, &[script.to_str().unwrap()], &home, &anna, &url).ok();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let volume = lines.iter().find_map(|line| line.strip_prefix("volume ")).unwrap();
    assert_eq!(
        lines,
        [
            "put 109, read 109",
            "changed [(19, True, True), (20, False, True)]",
            &format!("volume {volume}"),
            "403 InvalidSignatureException -",
            "400 ValidationException INVALID_BLOCK",
            "400 ValidationException INVALID_SNAPSHOT_ID",
            "404 ResourceNotFoundException SNAPSHOT_NOT_FOUND",
            "400 ValidationException INVALID_BLOCK_TOKEN",
        ]
    );
    let listed = home.run_line("volume list --json").ok().json();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, [volume], "a snapshot that is being put together is no volume");
}

#[test]
fn boto3_encrypts_snapshots_and_volumes_with_keys_of_kms() {
    let Some(python) = client("python") else { return };
    let home = Home::new();
    let url = serve(&home, "--aws 0 --instant");
    let anna = create_user(&home, "anna");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/encryption.py");
    let ran = run(&python, &[script.to_str().unwrap()], &home, &anna, &url).ok();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "a row of a table",
            "ValidationException",
            "DisabledException",
            "InvalidParameterValue",
            "InvalidVolume.NotFound",
        ]
    );
    let listed = home.run_line("snapshot list --json").ok().json();
    let keys = listed.as_array().unwrap().iter().map(|row| row["key_id"].as_str().unwrap());
    assert_eq!(keys.filter(|key| key.starts_with("arn:aws:kms:")).count(), 2, "{listed}");
}

#[test]
fn boto3_sees_metrics_and_an_alarm_of_a_volume_also_after_a_kill() {
    let Some(python) = client("python") else { return };
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::calibrated();
    let anna = create_user(&home, "anna");
    let events = home.sibling("events.jsonl");
    let copied = home.sibling("events.copied");
    let (file, command) = (events.display(), format!("exec:cat>>{}", copied.display()));
    let options = format!("--aws 0 --instant --aws-events {file} --aws-events {command}");
    let started = home.run_line(&format!("serve --detach --json {options}")).ok().json();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/metrics.py");
    let script = |words: &[&str], url: &Value| {
        let words: Vec<&str> = [script.to_str().unwrap()].into_iter().chain(words.iter().copied()).collect();
        let answered = run(&python, &words, &home, &anna, url.as_str().unwrap()).ok();
        serde_json::from_str::<Value>(&answered.stdout).unwrap()
    };
    let made = script(&["attach"], &started["aws"]);
    assert_eq!(made["state"], "OK", "{made}");
    let volume = made["volume"].as_str().unwrap();
    let device = home.show(volume)["attachment"]["device"].clone();
    let mut file = std::fs::File::options().write(true).open(device.as_str().unwrap()).unwrap();
    file.write_all(&[7; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let seen = script(&["see", volume], &started["aws"]);
    assert_eq!(
        (&seen["bytes"], &seen["units"]),
        (&1_048_576.0.into(), &serde_json::json!(["Bytes"])),
        "{seen}"
    );
    assert_eq!(seen["sums"], serde_json::json!({"b": 1_048_576.0, "kib": 1_024.0}), "{seen}");
    assert_eq!((&seen["state"], &seen["refused"]), (&"ALARM".into(), &"ValidationError".into()), "{seen}");
    assert_eq!(seen["changes"][0], "Alarm updated from OK to ALARM", "{seen}");
    let names = seen["names"].as_array().unwrap();
    assert!(
        names.contains(&"VolumeIOPSExceededCheck".into()) && !names.contains(&"BurstBalance".into()),
        "{seen}"
    );
    let lines = std::fs::read_to_string(&events).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["detail"]["alarmName"], &last["detail"]["state"]["value"]),
        (&"writes".into(), &"ALARM".into())
    );
    // The command gets the same, a little later.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while std::fs::read_to_string(&copied).unwrap_or_default() != lines {
        assert!(std::time::Instant::now() < deadline, "{}", copied.display());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }

    // What was answered is there after a kill, once.
    kill_9(u32::try_from(started["pid"].as_u64().unwrap()).unwrap());
    let url = Value::from(serve(&home, &options));
    let again = script(&["see", volume], &url);
    assert_eq!((&again["bytes"], &again["changes"]), (&seen["bytes"], &seen["changes"]), "{again}");
}

#[test]
fn boto3_takes_a_volume_through_its_life() {
    if !can(&[Need::BlockDevices, Need::Tool("mkfs.xfs")]) {
        return;
    }
    let Some(python) = client("python") else { return };
    let home = Home::new();
    let url = serve(&home, "--aws 0 --instant");
    let anna = create_user(&home, "anna");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/volumes.py");
    let scratch = home.sibling("mnt");
    let words = [script.to_str().unwrap(), scratch.to_str().unwrap()];
    assert_eq!(run(&python, &words, &home, &anna, &url).ok().line(), "kept");
    // The twelve volumes of the pages are volumes of the home.
    let listed = home.run_line("volume list --json").ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 12, "{listed}");
    home.run_line("serve --stop").ok();
    assert_eq!(left_of(&home.root()), Vec::<String>::new());
}

#[test]
fn what_ec2_has_is_left_to_ec2_and_a_kill_leaves_no_link_to_a_device() {
    let Some(aws) = client("aws") else { return };
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::calibrated();
    let anna = create_user(&home, "anna");
    let started = home.run_line("serve --detach --json --aws 0 --instant").ok().json();
    let url = started["aws"].as_str().unwrap().to_owned();
    let call = |words: &str, query: &str| {
        let words = format!("ec2 {words} --query {query} --output text");
        let words: Vec<&str> = words.split(' ').collect();
        run(&aws, &words, &home, &anna, &url).ok().line().to_owned()
    };
    let instance =
        call("run-instances --instance-type m6i.large --image-id ami-00000000", "Instances[0].InstanceId");
    let volume = call("create-volume --volume-type gp3 --size 1 --availability-zone us-east-1a", "VolumeId");
    call(&format!("attach-volume --volume-id {volume} --instance-id {instance} --device /dev/sdf"), "State");
    let snapshot = call(&format!("create-snapshot --volume-id {volume}"), "SnapshotId");
    let link = Path::new("/dev/disk/by-id/")
        .join(format!("nvme-Amazon_Elastic_Block_Store_{}", volume.replace('-', "")));
    assert!(link.is_symlink(), "{}", link.display());

    let held = format!("volume '{volume}' is attached to instance '{instance}' of EC2");
    let refused = |words: &str, instead: &str| {
        let (name, why) = match words.starts_with("snapshot") {
            true => (&snapshot, "belongs to EC2"),
            false => (&volume, held.as_str()),
        };
        let words = words.replace("NAME", name);
        home.run_line(&words).refused(2, &[why, instead]);
    };
    refused("snapshot delete NAME", "aws ec2 delete-snapshot");
    for words in ["delete NAME", "detach NAME", "attach NAME", "modify NAME --owner 111122223333"] {
        refused(&format!("volume {words}"), "aws ec2 detach-volume --volume-id");
    }
    home.run_line(&format!("volume modify {volume} gp3:size=2GiB --over-limit")).ok();
    assert_eq!(call(&format!("describe-volumes --volume-ids {volume}"), "Volumes[0].Size"), "2");
    // Its faults, and volumes of one's own, are the command line's.
    home.run_line(&format!("volume fault {volume} latency=1ms")).ok();
    home.run_line("volume create own gp3:size=1GiB").ok();
    home.run_line("volume delete own").ok();

    kill_9(u32::try_from(started["pid"].as_u64().unwrap()).unwrap());
    home.run_line("volume list").refused(3, &["cleared: loop device"]);
    assert!(!link.is_symlink(), "{}", link.display());
    home.run_line("serve --detach").ok();
    refused("volume delete NAME", "while 'ebbtide serve --aws' runs");
    refused("snapshot delete NAME", "while 'ebbtide serve --aws' runs");
    home.run_line("serve --stop").ok();
    assert_eq!(left_of(&home.root()), Vec::<String>::new());
}

#[test]
fn the_aws_cli_speaks_tls_to_a_certificate_that_was_made_for_it() {
    let Some(aws) = client("aws") else { return };
    let home = Home::new();
    let anna = create_user(&home, "anna");
    let url = serve(&home, "--aws https://127.0.0.1:0");
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    run(&aws, &IDENTITY, &home, &anna, &url).ok();
    let plain = url.replace("https", "http");
    assert_ne!(run(&aws, &IDENTITY, &home, &anna, &plain).code, 0);
}

#[test]
fn where_authorization_is_off_any_key_will_do_and_both_say_so() {
    let home = Home::new();
    let started = home.run_line("serve --detach --aws 0 --open").ok();
    assert!(started.stderr.contains("authorization of the AWS endpoint is off"), "{}", started.stderr);
    assert!(home.log().contains("authorization of the AWS endpoint is off"), "{}", home.log());
    let url = started.stdout.lines().find_map(|line| line.strip_prefix("AWS endpoint: ")).unwrap();
    assert!(
        get(url, "/?Action=GetCallerIdentity&Version=2011-06-15")
            .contains("<Arn>arn:aws:iam::000000000000:root</Arn>")
    );
    let Some(aws) = client("aws") else { return };
    let any = Key { id: "123456789012".to_owned(), secret: "any".to_owned() };
    let identity = run(&aws, &IDENTITY, &home, &any, url).ok().stdout;
    assert!(identity.contains("\"Account\": \"123456789012\""), "{identity}");
}

#[test]
fn a_home_that_takes_as_much_as_it_may_stores_nothing_more_by_calls() {
    let home = Home::new();
    let create = "/?Action=CreateVolume&AvailabilityZone=us-east-1a&Size=1&VolumeType=gp3&Version=2016-11-15";
    let url = serve(&home, "--aws 0 --open --instant --most-bytes 1GiB");
    let made = get(&url, create);
    let volume = made
        .split("<volumeId>")
        .nth(1)
        .and_then(|rest| rest.split('<').next())
        .unwrap_or_else(|| panic!("{made}"));
    home.run_line("serve --stop").ok();
    let url = serve(&home, "--aws 0 --open --instant --most-bytes 4KiB");
    let refused = get(&url, create);
    assert!(
        refused.contains("<Code>ResourceLimitExceeded</Code>") && refused.contains("of 4096."),
        "{refused}"
    );
    let shown = get(&url, "/?Action=DescribeVolumes&Version=2016-11-15");
    assert!(shown.contains(&format!("<volumeId>{volume}</volumeId>")), "{shown}");
    let gone = get(&url, &format!("/?Action=DeleteVolume&VolumeId={volume}&Version=2016-11-15"));
    assert!(gone.starts_with("HTTP/1.1 200"), "{gone}");
}

#[test]
fn the_endpoint_answers_until_the_server_stops() {
    let home = Home::new();
    let url = serve(&home, "--aws 0 --region eu-west-1");
    let file = home.root().join("aws/endpoint");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), url);
    let health = get(&url, "/_ebbtide/health");
    assert!(health.starts_with("HTTP/1.1 200") && health.contains("GetCallerIdentity"), "{health}");
    let unsigned = get(&url, "/?Action=GetCallerIdentity&Version=2011-06-15");
    assert!(
        unsigned.starts_with("HTTP/1.1 403") && unsigned.contains("MissingAuthenticationToken"),
        "{unsigned}"
    );
    home.run_line("volume create db gp3:size=1GiB").ok();
    home.run_line("serve --stop").ok();
    assert!(!file.exists());
    assert!(TcpStream::connect(url.strip_prefix("http://").unwrap()).is_err());
    assert_eq!(home.run_line("serve --detach --json").ok().json()["aws"], Value::Null);
}

#[test]
fn addresses_that_cannot_be_or_are_not_safe_are_refused() {
    let home = Home::new();
    for (words, code, texts) in [
        ("--aws nowhere", 2, &["PORT", "nowhere"][..]),
        ("--aws 0.0.0.0:0 --open", 2, &["--open is for this machine alone"]),
        ("--aws http://0.0.0.0:0", 2, &["needs HTTPS", "https://"]),
        ("--open", 2, &["--aws"]),
        ("--tcp-exports", 2, &["--aws"]),
        ("--aws 0 --most-bytes 0", 2, &["--most-bytes", "no room"]),
        ("--aws 0 --most-bytes 5GB", 2, &["--most-bytes", "5GB", "5GiB"]),
        ("--aws 0 --region Mars", 2, &["Mars"]),
        ("--aws 0 --aws-cert a.pem", 2, &["--aws-key"]),
        ("--aws 0 --aws-cert a.pem --aws-key b.pem", 3, &["no certificate", "a.pem"]),
    ] {
        home.run_line(&format!("serve {words}")).refused(code, texts);
    }
    let other = Home::new();
    let url = serve(&other, "--aws 0");
    let port = url.rsplit(':').next().unwrap();
    home.run_line(&format!("serve --aws {port}")).refused(3, &["cannot listen", port, "another address"]);
    home.run_line(&format!("serve --detach --aws {port}"))
        .refused(3, &["the server ended at once", "cannot listen"]);
}

#[test]
fn roles_are_created_listed_and_deleted_without_a_server() {
    let home = Home::new();
    assert_eq!(home.run_line("role list").ok().line(), "no roles");
    home.run_line("role delete backup").refused(2, &["no role 'backup'", "role list"]);
    home.run_line("role create backup").refused(2, &["--trust"]);
    let trust = home.sibling("trust.json");
    let principal = r#""Principal":{"AWS":"000000000000"}"#;
    let write = |action: &str| {
        let statement = format!(r#"{{"Effect":"Allow",{principal},"Action":"{action}"}}"#);
        let text = format!(r#"{{"Version":"2012-10-17","Statement":{statement}}}"#);
        std::fs::write(&trust, text).unwrap();
    };
    let create = |more: &[&str]| {
        let words = ["role", "create", "backup", "--trust", trust.to_str().unwrap()];
        home.run(&[&words[..], more].concat())
    };
    write("ec2:*");
    create(&[])
        .refused(2, &["the trust policy is wrong at Statement[0].Action", "'ec2:*' is no action of STS"]);
    write("sts:AssumeRole");
    create(&["--max-session", "60"]).refused(2, &["3600..=43200"]);
    create(&["--policy", trust.to_str().unwrap()]).refused(2, &["the policy is wrong at Statement"]);
    let made = create(&["--max-session", "43200", "--json"]).ok().json();
    assert_eq!(
        (&made["arn"], &made["max_session_s"]),
        (&"arn:aws:iam::000000000000:role/backup".into(), &43_200.into())
    );
    create(&[]).refused(2, &["there is a role 'backup' already"]);
    assert_eq!(home.run_line("role list --json").ok().json(), Value::from(vec![made]));
    let listed = home.run_line("role list").ok().stdout;
    assert!(listed.contains("backup") && listed.contains("43200 s"), "{listed}");
    assert_eq!(home.run_line("role delete backup --json").ok().json()["deleted"], "backup");
}

#[test]
fn users_are_created_listed_and_deleted_without_a_server() {
    let home = Home::new();
    assert_eq!(home.run_line("user list").ok().line(), "no users");
    assert!(!home.root().exists(), "a list makes no home");
    home.run_line("user delete anna").refused(2, &["no user 'anna'"]);
    let text = home.run_line("user create anna").ok();
    assert!(text.stdout.starts_with("AWS_ACCESS_KEY_ID=AKIA"), "{}", text.stdout);
    assert!(text.stderr.contains("not shown again"), "{}", text.stderr);
    home.run_line("user create anna").refused(2, &["there is a user 'anna' already"]);
    home.run_line("user create an/na").refused(2, &["no name of a user"]);

    let policy = home.sibling("policy.json");
    std::fs::write(
        &policy,
        r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"x","Resource":"*"}]}"#,
    )
    .unwrap();
    let with_policy = ["user", "create", "bert", "--policy", policy.to_str().unwrap(), "--json"];
    home.run(&with_policy).refused(2, &["Statement[0].Action: 'x'"]);
    std::fs::write(
        &policy,
        r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"ec2:*","Resource":"*"}}"#,
    )
    .unwrap();
    let bert = home.run(&with_policy).ok().json();
    assert_eq!(
        (&bert["has_policy"], &bert["arn"]),
        (&true.into(), &"arn:aws:iam::000000000000:user/bert".into())
    );
    home.run(&["user", "create", "carl", "--policy", "/no/such/file"]).refused(2, &["/no/such/file"]);

    let listed = home.run_line("user list --json").ok();
    let users = listed.json();
    let names: Vec<_> = users.as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["anna", "bert"]);
    assert!(!listed.stdout.contains(bert["secret_access_key"].as_str().unwrap()));
    assert_eq!(home.run_line("user delete anna --json").ok().json()["deleted"], "anna");

    let file = home.root().join("aws/users.json");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    home.run_line("user list").refused(3, &["others than its owner", "chmod 600"]);
    home.run_line("serve --aws 0").refused(3, &["users", "others than its owner"]);
}
