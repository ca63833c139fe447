//! The file of names: what commands take by name, and which file is believed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::harness::{Home, Ran};

const SHOP: &str = "\
[servers.shop]
host = \"127.0.0.1\"
port = 1
volumes = { data = \"shop-data\" }
instance = \"web\"
[volumes]
shop-data = \"gp2:size=600GiB\"
[instances]
web = \"r5.2xlarge\"
[regions]
home = \"eu-west-1\"
";

fn file(home: &Home, text: &str) -> PathBuf {
    let path = home.sibling("names.toml");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn run(home: &Home, file: &Path, words: &[&str]) -> Ran {
    let mut command = home.command(words);
    command.env("EBBTIDE_CONFIG", file).env_remove("SUDO_USER");
    Ran::of(command.output().unwrap()).with(words)
}

fn metrics() -> String {
    format!("{}/examples/metrics/shop-gp2.csv", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_command_takes_names_and_answers_as_for_what_they_are() {
    let home = Home::new();
    let names = file(&home, SHOP);
    let metrics = metrics();
    let named = ["size", &metrics, "--volume", "shop-data", "--instance", "web", "--region", "home"];
    let written = [
        "size",
        &metrics,
        "--volume",
        "gp2:size=600GiB",
        "--instance",
        "r5.2xlarge",
        "--region",
        "eu-west-1",
    ];
    let [named, written] = [named, written].map(|words| run(&home, &names, &words).ok().stdout);
    assert_eq!(named, written);
    // Only an attached volume takes the ID of an instance that several share.
    let shared = file(&home, &SHOP.replace("r5.2xlarge", "r5.2xlarge/shop-1"));
    let of_shared = ["size", &metrics, "--volume", "shop-data", "--instance", "web", "--region", "home"];
    assert_eq!(run(&home, &shared, &of_shared).ok().stdout, written);
    let names = file(&home, SHOP);
    // A server of a name is looked for where the file says it is.
    run(&home, &names, &["doctor", "shop"]).refused(3, &["127.0.0.1:1"]);
    run(&home, &names, &["doctor", "capture", "shop"]).refused(3, &["127.0.0.1:1"]);
    run(&home, &names, &["doctor", "shop", "--mysql-socket=/nowhere.sock"]).refused(3, &["/nowhere.sock"]);
}

#[test]
fn a_captured_server_has_the_volumes_of_its_name() {
    let home = Home::new();
    let names = file(&home, SHOP);
    let variables = home.sibling("variables");
    fs::write(&variables, "version\t8.0.36\nlog_bin\tON\nsync_binlog\t0\n").unwrap();
    let variables = variables.to_str().unwrap();
    let written = ["--volume", "gp2:size=600GiB", "--instance", "r5.2xlarge"];
    let of =
        |more: &[&str]| run(&home, &names, &[&["doctor", "--from", variables][..], more].concat()).stdout;
    let named = of(&["shop"]);
    assert!(named.contains("sync_binlog") && named != of(&[]), "{named}");
    assert_eq!(named, of(&written));
}

#[test]
fn what_was_mistyped_is_named_with_what_was_meant() {
    let home = Home::new();
    let names = file(&home, SHOP);
    let metrics = metrics();
    run(&home, &names, &["doctor", "shp"]).refused(2, &["no server 'shp'", "did you mean 'shop'?"]);
    run(&home, &names, &["doctor", "captur"]).refused(2, &["did you mean 'capture'?"]);
    let mistyped = ["size", &metrics, "--volume", "shop-dta"];
    run(&home, &names, &mistyped).refused(2, &["'shop-dta'", "did you mean 'shop-data'?", "config show"]);
    // Without a name like it, the catalogue answers as it always does.
    run(&home, &names, &["size", &metrics, "--volume", "gp33"]).refused(2, &["'gp33'", "such as gp3:size"]);
    let none = home.sibling("none.toml");
    run(&home, &none, &["doctor", "shop"]).refused(3, &["none.toml"]);
    run(&home, &none, &["size", &metrics, "--volume", "gp2:size=600GiB"]).ok();
}

#[test]
fn check_lists_what_is_wrong_with_its_line_and_show_prints_what_is_there() {
    let home = Home::new();
    let names = file(&home, SHOP);
    let shown = run(&home, &names, &["config", "show", "--json"]).ok().json();
    assert_eq!(shown["servers"]["shop"]["volumes"]["data"], "shop-data");
    assert_eq!(shown["volumes"]["shop-data"], "gp2:size=600GiB");
    let text = run(&home, &names, &["config", "show"]).ok().stdout;
    assert!(text.contains("region    home       eu-west-1"), "{text}");
    let checked = run(&home, &names, &["config", "check"]).ok().stdout;
    assert!(checked.contains("1 server, 1 volume, 1 instance, 1 region; nothing is wrong"), "{checked}");

    let wrong = SHOP.replace("host", "hst").replace("600GiB", "600GB").replace("r5.", "r55.");
    let names = file(&home, &format!("{wrong}[servers.other]\npassword = \"hunter2\"\n"));
    let checked = run(&home, &names, &["config", "check"]);
    assert_eq!(checked.code, 1, "{}", checked.stdout);
    for part in [
        "names.toml line 2: unknown key 'hst' in [servers.shop] (did you mean 'host'?)",
        "line 7: volumes.shop-data: size=600GB",
        "600GiB or 559GiB",
        "line 9: instances.web",
        "line 13: 'password' in [servers.other]: no secret is kept in this file",
        "option file",
    ] {
        assert!(checked.stdout.contains(part), "'{part}' is not in: {}", checked.stdout);
    }
    assert!(!checked.stdout.contains("hunter2"), "{}", checked.stdout);
    let json = run(&home, &names, &["config", "check", "--json"]);
    assert_eq!((json.code, json.json()["problems"].as_array().map(Vec::len)), (1, Some(4)));
    // A command that needs a name of it is refused; one that needs none is not.
    let metrics = metrics();
    run(&home, &names, &["size", &metrics, "--volume", "shop-data"]).refused(3, &["line 2", "config check"]);
    run(&home, &names, &["size", &metrics, "--volume", "gp2:size=600GiB"]).ok();
}

#[test]
fn a_file_that_others_may_write_is_refused_and_under_sudo_the_file_is_named() {
    let home = Home::new();
    let names = file(&home, SHOP);
    fs::set_permissions(&names, fs::Permissions::from_mode(0o620)).unwrap();
    let metrics = metrics();
    run(&home, &names, &["doctor", "shop"]).refused(3, &["others may write it (mode 620)", "chmod go-w"]);
    run(&home, &names, &["config", "check"]).refused(3, &["others may write it"]);
    if !rustix::process::geteuid().is_root() {
        return;
    }
    fs::set_permissions(&names, fs::Permissions::from_mode(0o600)).unwrap();
    let folder = home.sibling("settings");
    fs::create_dir_all(folder.join("ebbtide")).unwrap();
    fs::rename(&names, folder.join("ebbtide/config.toml")).unwrap();
    let mut command = home.command(&["size", &metrics, "--volume", "shop-data"]);
    command.env_remove("EBBTIDE_CONFIG").env("XDG_CONFIG_HOME", &folder).env("SUDO_USER", "anna");
    let ran = Ran::of(command.output().unwrap()).ok();
    let path = folder.join("ebbtide/config.toml");
    for part in ["under sudo", path.to_str().unwrap(), "not in anna's file", "EBBTIDE_CONFIG"] {
        assert!(ran.stderr.contains(part), "'{part}' is not in: {}", ran.stderr);
    }
}
