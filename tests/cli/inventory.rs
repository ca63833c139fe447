//! One inventory: volumes of the command line are in the AWS endpoint, and those of the endpoint in the command line.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::aws::serve;
use crate::harness::{Home, kill_9};

/// What an endpoint without authorization answers to a call of EC2 by an account in a region.
fn call_as(url: &str, (account, region): (&str, &str), query: &str) -> String {
    let scope = format!("{account}/20261129/{region}/ec2/aws4_request");
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    write!(
        stream,
        "GET /?{query}&Version=2016-11-15 HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\
         x-amz-date: 20261129T000000Z\r\n\
         authorization: AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature={}\r\n\r\n",
        "0".repeat(64)
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The same by the account of the users, in the first region.
fn call(url: &str, query: &str) -> String {
    call_as(url, ("000000000000", "us-east-1"), query)
}

fn element<'a>(answer: &'a str, name: &str) -> &'a str {
    let rest = answer.split(&format!("<{name}>")).nth(1).unwrap_or_else(|| panic!("{name}: {answer}"));
    rest.split('<').next().unwrap()
}

fn has(url: &str, id: &str) -> bool {
    call(url, "Action=DescribeVolumes").contains(&format!("<volumeId>{id}</volumeId>"))
}

const SERVE: &str = "--aws 0 --open --instant";

#[test]
fn a_volume_of_the_command_line_is_in_the_endpoint_under_one_id() {
    let home = Home::calibrated();
    let pid = home.serve();
    let made = home.run_line("volume create db gp3:size=1GiB").ok();
    assert!(made.stdout.contains("created volume db"), "{}", made.stdout);
    let shown = home.show("db");
    let id = shown["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("vol-0") && id.len() == 21, "{id}");
    assert_eq!(shown["owner"], "000000000000/us-east-1a");
    let text = home.run_line("volume show db").ok().stdout;
    assert!(text.contains(&id) && text.contains("000000000000/us-east-1a"), "{text}");

    // The endpoint begins on a server that has volumes already.
    let changed = home.run_line(&format!("serve --change --json {SERVE}")).ok().json();
    let url = changed["aws"].as_str().unwrap().to_owned();
    let described = call(&url, "Action=DescribeVolumes");
    assert_eq!(element(&described, "volumeId"), id);
    assert_eq!((element(&described, "size"), element(&described, "status")), ("1", "available"));
    assert!(described.contains("<key>Name</key><value>db</value>"), "{described}");
    home.run_line("volume modify db gp3:size=2GiB").ok();
    assert_eq!(element(&call(&url, "Action=DescribeVolumes"), "size"), "2");
    let more = call(&url, &format!("Action=ModifyVolume&VolumeId={id}&Size=3"));
    assert!(more.starts_with("HTTP/1.1 200"), "{more}");
    assert_eq!(home.show(&id)["size_bytes"], 3_u64 << 30, "by its id");

    let socket = format!("unix:{}", home.sibling("db.sock").display());
    home.run(&["volume", "attach", "db", "--over-limit", "--nbd", &socket]).ok();
    assert_eq!(element(&call(&url, "Action=DescribeVolumes"), "status"), "in-use");
    let refused = call(&url, &format!("Action=DeleteVolume&VolumeId={id}"));
    assert!(refused.contains("<Code>VolumeInUse</Code>"), "{refused}");
    home.run(&["volume", "detach", &id]).ok();
    assert_eq!(element(&call(&url, "Action=DescribeVolumes"), "status"), "available");

    kill_9(pid);
    let url = serve(&home, SERVE);
    assert!(has(&url, &id), "also after a kill");
    assert_eq!(home.show("db")["id"], id.as_str());
    let deleted = call(&url, &format!("Action=DeleteVolume&VolumeId={id}"));
    assert!(deleted.starts_with("HTTP/1.1 200"), "{deleted}");
    assert_eq!(home.run_line("volume list").ok().line(), "no volumes");
}

#[test]
fn a_volume_of_the_endpoint_is_listed_modified_and_deleted_by_the_command_line() {
    let home = Home::calibrated();
    let url = serve(&home, SERVE);
    let create = "Action=CreateVolume&AvailabilityZone=us-east-1b&Size=1&VolumeType=gp3";
    let id = element(&call(&url, create), "volumeId").to_owned();
    let other = element(&call(&url, create), "volumeId").to_owned();
    let listed = home.run_line("volume list --json").ok().json();
    let row = listed.as_array().unwrap().iter().find(|row| row["name"] == id.as_str()).unwrap();
    assert_eq!((&row["id"], &row["owner"]), (&Value::from(id.as_str()), &"000000000000/us-east-1b".into()));
    home.run_line(&format!("volume modify {id} gp3:size=2GiB")).ok();
    let described = call(&url, &format!("Action=DescribeVolumes&VolumeId.1={id}"));
    assert_eq!(element(&described, "size"), "2");
    let changes = call(&url, &format!("Action=DescribeVolumesModifications&VolumeId.1={id}"));
    assert_eq!((element(&changes, "originalSize"), element(&changes, "targetSize")), ("1", "2"));
    home.run_line(&format!("volume delete {id}")).ok();
    assert!(!has(&url, &id) && has(&url, &other));

    // The same while no endpoint is served.
    home.run_line("serve --stop").ok();
    home.serve();
    home.run_line(&format!("volume delete {other}")).ok();
    home.run_line("serve --stop").ok();
    let url = serve(&home, SERVE);
    assert!(!has(&url, &other));
}

#[test]
fn a_volume_has_the_owner_that_it_is_given_and_a_wrong_one_is_refused() {
    let home = Home::calibrated();
    let url = serve(&home, SERVE);
    home.run_line("volume create db gp3:size=1GiB --owner 111122223333/eu-west-1b").ok();
    let id = home.show("db")["id"].as_str().unwrap().to_owned();
    assert!(!has(&url, &id));
    let sees = |account: &str, region: &str| {
        call_as(&url, (account, region), "Action=DescribeVolumes").contains(&id)
    };
    assert!(sees("111122223333", "eu-west-1") && !sees("111122223333", "us-east-1"));
    let given = home.run_line("volume modify db --owner 444455556666").ok();
    assert_eq!(given.line(), "volume db belongs to 444455556666/eu-west-1b");
    assert!(sees("444455556666", "eu-west-1") && !sees("111122223333", "eu-west-1"));
    home.run_line("volume modify db gp3:size=2GiB --owner 000000000000/us-east-1a").ok();
    assert!(has(&url, &id));
    assert_eq!(home.show("db")["size_bytes"], 2_u64 << 30);
    for (owner, why) in [
        ("anna", "12 digits"),
        ("11112222333/us-east-1a", "12 digits"),
        ("111122223333/us-east-1", "no availability zone"),
        ("111122223333/mars-1z", "no availability zone"),
        ("111122223333/", "no zone behind the slash"),
    ] {
        home.run_line(&format!("volume create x gp3:size=1GiB --owner {owner}"))
            .refused(2, &["--owner", why]);
        home.run_line(&format!("volume modify db --owner {owner}")).refused(2, &["--owner", why]);
    }
    home.run_line("volume modify db").refused(2, &["SPEC"]);
    home.run_line("volume modify db --owner 111122223333 --optimizing 10m").refused(2, &["SPEC"]);
}

#[test]
fn volumes_without_an_owner_are_where_the_only_region_of_the_endpoint_is() {
    let home = Home::calibrated();
    let url = serve(&home, &format!("{SERVE} --region eu-west-1"));
    home.run_line("volume create db gp3:size=1GiB").ok();
    assert_eq!(home.show("db")["owner"], "000000000000/eu-west-1a");
    let id = home.show("db")["id"].as_str().unwrap().to_owned();
    assert!(call_as(&url, ("000000000000", "eu-west-1"), "Action=DescribeVolumes").contains(&id));
}
