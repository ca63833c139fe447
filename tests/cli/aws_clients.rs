//! Clients of AWS as people use them, on volumes of the running program: the AWS CLI by docs/aws.md, the SDKs for
//! Go and Rust, Terraform with its AWS provider, coldsnap, and many clients at once while the server is killed.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::aws::{Key, client, create_user, environment, run, serve};
use crate::harness::{EBBTIDE, Home, Need, Ran, can};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The commands of the blocks of a page that have no language, and of `console` blocks those after `$`, up to a section.
fn commands(page: &str, until: &str) -> String {
    let text = std::fs::read_to_string(repository(page)).unwrap();
    let text = text.split(until).next().unwrap();
    let mut script = String::new();
    for block in text.split("```").skip(1).step_by(2) {
        let (kind, lines) = block.split_once('\n').unwrap();
        match kind {
            "" => script.push_str(lines),
            "console" => {
                let commands = lines.lines().filter_map(|line| line.strip_prefix("$ "));
                commands.for_each(|command| script.extend([command, "\n"]));
            }
            _ => {}
        }
    }
    script
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn the_aws_cli_does_what_the_tutorial_says_and_more() {
    if !can(&[Need::BlockDevices, Need::Tool("mkfs.xfs"), Need::Tool("fio"), Need::Tool("openssl")]) {
        return;
    }
    let Some(aws) = client("aws") else { return };
    let home = Home::calibrated();
    // The tutorial's own port may be in use, and waiters of the CLI look every 15 seconds.
    let port = free_port().to_string();
    let page = commands("docs/aws.md", "\n## boto3");
    for words in ["--aws 4599", "127.0.0.1:4599", "--runtime=10", "wait volume-in-use", "modify-volume"] {
        assert!(page.contains(words), "the tutorial lacks '{words}':\n{page}");
    }
    let page = page
        .replace("--aws 4599", &format!("--aws {port} --instant"))
        .replace("4599", &port)
        .replace("--runtime=10", "--runtime=1");
    let scratch = home.sibling("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let script = format!(
        "set -euo pipefail\n{page}\necho ---\n'{}' '{}' '{}'\n",
        repository("tests/clients/cli.sh").display(),
        aws.display(),
        scratch.display()
    );
    let bins = [Path::new(EBBTIDE).parent().unwrap(), aws.parent().unwrap()];
    let path = bins.iter().map(|bin| bin.display().to_string()).collect::<Vec<_>>().join(":");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).env_clear().env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("PATH", format!("{path}:{}", std::env::var("PATH").unwrap()));
    command.env("HOME", home.root()).env("EBBTIDE_HOME", home.root()).current_dir(&scratch);
    let ran = Ran::of(command.output().unwrap()).ok();
    let (tutorial, more) = ran.stdout.split_once("---\n").unwrap_or_else(|| panic!("{}", ran.stdout));
    let words: Vec<&str> = tutorial.split_whitespace().collect();
    assert!(words.contains(&"read:") && words.contains(&"100%"), "{tutorial}");
    // modifying lasts no time here.
    assert!(["modifying", "optimizing", "completed"].iter().any(|state| words.contains(state)), "{tutorial}");
    let lines: Vec<&str> = more.lines().collect();
    let mib: f64 = lines[2].parse().unwrap_or_else(|error| panic!("{error}: {more}"));
    assert!(mib > 0.1, "mkfs wrote {mib} MiB");
    assert_eq!((lines[0], lines[1], lines.len()), ("pending", "the block is the same", 4), "{more}");
}

#[test]
fn boto3_looks_up_what_tools_need_before_they_start_an_instance() {
    let Some(python) = client("python") else { return };
    let home = Home::new();
    let url = serve(&home, "--aws 0 --instant");
    let anna = create_user(&home, "anna");
    let script = repository("tests/clients/lookups.py");
    let ran = run(&python, &[script.to_str().unwrap()], &home, &anna, &url).ok();
    let parts: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(parts, ["options", "types", "look-ups", "root volume", "type", "sharing"]);
    assert_eq!(home.run_line("volume list").ok().line(), "no volumes");
}

#[test]
fn the_sdk_for_go_drives_volumes_blocks_and_metrics() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let Some(program) = client("go-client") else { return };
    let home = Home::calibrated();
    let url = serve(&home, "--aws 0 --instant");
    let anna = create_user(&home, "anna");
    let go = |what: &str| run(&program, &[what], &home, &anna, &url).ok().line().to_owned();
    assert_eq!(go("terraform"), "20 4000 available");
    assert_eq!(go("csi"), "created, attached, resized, cloned, removed");
    assert_eq!(go("direct"), "2 blocks, 1 changed");
    assert_eq!(go("metrics"), "Complete");
    assert_eq!(home.run_line("volume list").ok().line(), "no volumes");
}

#[test]
fn the_sdk_for_rust_drives_a_volume_and_its_snapshot() {
    let Some(program) = client("rust-client") else { return };
    let home = Home::new();
    let url = serve(&home, "--aws 0 --instant");
    let anna = create_user(&home, "anna");
    assert_eq!(run(&program, &[], &home, &anna, &url).ok().line(), "9 4000 0");
}

#[test]
fn coldsnap_uploads_a_disk_and_downloads_the_same() {
    let Some(coldsnap) = client("coldsnap") else { return };
    let home = Home::new();
    let url = serve(&home, "--aws 0 --instant");
    let anna = create_user(&home, "anna");
    // 1 GiB with 20 MiB of data here and there, each piece across the border of two blocks. To upload every block takes a
    // debug build of coldsnap more than a minute, so that it leaves out those of zeros.
    let (disk, again) = (home.sibling("disk.img"), home.sibling("again.img"));
    let file = std::fs::File::create(&disk).unwrap();
    file.set_len(1 << 30).unwrap();
    for number in 0..40_u64 {
        use std::os::unix::fs::FileExt as _;
        let fill = u8::try_from(number + 1).unwrap();
        file.write_all_at(&vec![fill; 512 << 10], ((number * 25) << 20) + (100 << 10)).unwrap();
    }
    let coldsnap = |words: &[&str]| run(&coldsnap, words, &home, &anna, &url).ok().line().to_owned();
    let snapshot =
        coldsnap(&["upload", "--no-progress", "--omit-zero-blocks", "--wait", disk.to_str().unwrap()]);
    assert!(snapshot.starts_with("snap-"), "{snapshot}");
    coldsnap(&["download", "--no-progress", &snapshot, again.to_str().unwrap()]);
    let same = Command::new("cmp").args([&disk, &again]).status().unwrap();
    assert!(same.success(), "the downloaded disk differs");
}

/// The folder with Terraform's AWS provider, in the layout of a mirror of providers.
fn providers() -> Option<PathBuf> {
    let own = std::env::var_os("EBBTIDE_TERRAFORM_PROVIDERS").map(PathBuf::from);
    let known = ["/opt/tf-plugins", "/usr/share/terraform/plugins", "/usr/local/share/terraform/plugins"];
    let has = |folder: &PathBuf| folder.join("registry.terraform.io/hashicorp/aws").is_dir();
    let found = own.into_iter().chain(known.map(PathBuf::from)).find(has);
    if found.is_none() {
        println!("SKIPPED: no folder has Terraform's AWS provider; EBBTIDE_TERRAFORM_PROVIDERS names one");
    }
    found
}

#[test]
fn terraform_makes_changes_imports_and_destroys_volumes_with_the_aws_provider() {
    if !can(&[Need::BlockDevices, Need::Tool("terraform")]) {
        return;
    }
    let Some(providers) = providers() else { return };
    let Some(aws) = client("aws") else { return };
    if !aws.parent().unwrap().with_file_name("all").exists() {
        println!("SKIPPED: it takes five minutes; './dev clients --all' asks for it");
        return;
    }
    let home = Home::calibrated();
    let url = serve(&home, "--aws 0 --instant");
    let anna = create_user(&home, "anna");
    let folder = home.sibling("terraform");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(repository("tests/clients/terraform/main.tf"), folder.join("main.tf")).unwrap();
    let settings = folder.join("terraform.rc");
    let mirror = providers.display();
    std::fs::write(
        &settings,
        format!("provider_installation {{\n  filesystem_mirror {{\n    path = \"{mirror}\"\n  }}\n}}\n"),
    )
    .unwrap();
    let terraform = |words: &[&str]| terraform(words, &folder, &settings, (&home, &anna, &url)).ok();
    terraform(&["init", "-input=false", "-no-color"]);
    let apply = ["apply", "-auto-approve", "-input=false", "-no-color"];
    let made = terraform(&apply);
    assert!(
        made.stdout.contains("Resources: 7 added")
            && made.stdout.contains("gp3 3000 2 on 36 processors, root 11"),
        "{}",
        made.stdout
    );
    // Nothing is left to do: what is described is what was asked for.
    let plan = ["plan", "-detailed-exitcode", "-input=false", "-no-color"];
    terraform(&plan);
    let other = ["-var", "size=3", "-var", "kind=r6i.large", "-var", "period=180"];
    let with_other = |words: &[&'static str]| [words, &other].concat();
    let changed = terraform(&with_other(&apply));
    assert!(changed.stdout.contains("0 added, 3 changed, 0 destroyed"), "{}", changed.stdout);
    terraform(&with_other(&plan));
    // What Terraform has forgotten it takes in again, as it finds it.
    let ids: Value =
        serde_json::from_str(&terraform(&["output", "-json", "-no-color", "ids"]).stdout).unwrap();
    let id = |name: &str| ids[name].as_str().unwrap().to_owned();
    let attachment = format!("/dev/sdh:{}:{}", id("volume"), id("instance"));
    let known = [
        ("aws_instance.db", id("instance")),
        ("aws_ebs_volume.data", id("volume")),
        ("aws_kms_key.data", id("key")),
        ("aws_volume_attachment.data", attachment),
        ("aws_ebs_snapshot.nightly", id("snapshot")),
    ];
    for (address, _) in &known {
        terraform(&["state", "rm", "-no-color", address]);
    }
    for (address, id) in &known {
        let words = [&with_other(&["import", "-input=false", "-no-color"])[..], &[*address, id.as_str()]];
        let imported = terraform(&words.concat());
        assert!(imported.stdout.contains("Import successful!"), "{address}: {}", imported.stdout);
    }
    // Two settings are the provider's alone: how a volume is detached, and how long a key waits for its deletion.
    let settled = terraform(&with_other(&apply));
    assert!(settled.stdout.contains("0 added, 2 changed, 0 destroyed"), "{}", settled.stdout);
    terraform(&with_other(&plan));
    let gone = terraform(&with_other(&["destroy", "-auto-approve", "-input=false", "-no-color"]));
    assert!(gone.stdout.contains("Resources: 7 destroyed"), "{}", gone.stdout);
    assert_eq!(home.run_line("volume list").ok().line(), "no volumes");
}

fn terraform(words: &[&str], folder: &Path, settings: &Path, (home, key, url): (&Home, &Key, &str)) -> Ran {
    let mut command = Command::new("terraform");
    environment(&mut command, home, key, url);
    command
        .args(words)
        .current_dir(folder)
        .env("TF_CLI_CONFIG_FILE", settings)
        .env("CHECKPOINT_DISABLE", "1");
    Ran::of(command.output().unwrap())
}

#[test]
fn eight_clients_see_what_they_did_while_the_server_is_killed() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let Some(python) = client("python") else { return };
    let home = Home::calibrated();
    let script = repository("scripts/bench/aws-soak.py");
    let mut command = Command::new(python);
    command.arg("-B").arg(script).arg(EBBTIDE).arg("--home").arg(home.root()).env("BENCH_TINY", "1");
    let ran = Ran::of(command.output().unwrap()).ok();
    assert!(ran.stdout.contains("2 kills") && ran.stdout.contains("nothing differs"), "{}", ran.stdout);
}
