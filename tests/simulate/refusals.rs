//! Bad input: exit code 2, the value, the allowed range, and what to do.

use crate::support::simulate;

const JOB: &str = "rw=randread,runtime=10";

#[test]
fn a_wrong_request_exits_with_2_and_says_what_to_do() {
    let gp3 = "gp3:size=100GiB";
    let cases: &[(&[&str], &[&str])] = &[
        (&["--volume", "gp9:size=1GiB", "--job", JOB], &["gp9", "hint:"]),
        (&["--volume", "gp3:size=100TiB", "--job", JOB], &["65536", "hint:"]),
        (
            &["--volume", gp3, "--job", "rw=randread,iodpeth=4"],
            &["'iodpeth'", "did you mean 'iodepth'", "hint:"],
        ),
        (&["--volume", gp3, "--job", "rw=randread,iodepth=0"], &["iodepth=0", "from 1 to 65536"]),
        (&["--volume", gp3, "--job", "missing.fio"], &["missing.fio", "no such file"]),
        (&["--volume", gp3, "--job", "rw=randread,size=200g"], &["100GiB", "give offset and size within it"]),
        (&["--volume", gp3, "--job", JOB, "--interval", "1parsec"], &["--interval=1parsec", "3h or 500ms"]),
        (&["--volume", gp3, "--job", JOB, "--interval", "0"], &["--interval 0", "at least"]),
        (
            &["--volume", gp3, "--job", "rw=read,runtime=30d", "--interval", "1s"],
            &["at least 2.59 s", "hint:"],
        ),
        (&["--volume", gp3, "--job", JOB, "--instance", "r5.lage"], &["r5.lage", "r5.large"]),
        (
            &["--volume", gp3, "--job", JOB, "--region", "eu-west-9"],
            &["--region: there are no prices for region 'eu-west-9'", "us-west-2", "hint: Name one of these"],
        ),
        (&["--volume", gp3, "--job", JOB, "--together"], &["--instance"]),
        (&["--volume", "ideal:size=1GiB", "--job", JOB], &["virtual time stands still", "rate_iops"]),
        (&["--job", JOB], &["--volume"]),
    ];
    for (arguments, parts) in cases {
        let output = simulate(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        for part in *parts {
            assert!(error.contains(part), "{arguments:?}: no '{part}' in {error}");
        }
    }
}

#[test]
fn a_page_that_cannot_be_written_is_the_environments_fault() {
    let output = simulate(&["--volume", "gp3:size=1GiB", "--job", JOB, "--html", "/no/such/folder/a.html"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("/no/such/folder/a.html"), "{error}");
    assert!(error.contains("\nhint: give --html a file in a directory that is there"), "{error}");
}
