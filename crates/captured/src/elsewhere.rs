//! Texts that people have beside those that are read: what each is, and what to give in its place.

use std::fmt;

use serde_json::Value;

/// A text of a known kind that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    kind: String,
    instead: String,
}

impl fmt::Display for Elsewhere {
    /// The kind, in words that follow `is`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

impl Elsewhere {
    /// A kind, in words that follow `is`, and what to do, in words that follow a colon.
    pub(crate) fn new(kind: &str, instead: String) -> Self {
        Self { kind: kind.to_owned(), instead }
    }

    /// What to do, in words that follow a colon.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.instead
    }
}

/// Bytes of a text by which its kind is known.
const HEAD: usize = 1 << 16;
/// Volumes that a message names.
const MOST_VOLUMES: usize = 4;

/// A kind: what one text of it has, in any of some sets of words, and what is said of it.
struct Kind {
    words: &'static [&'static [&'static str]],
    name: &'static str,
    instead: &'static str,
}

const VOLUMES: &str =
    "it has no load: name the volume with --volume, such as gp3:size=500GiB,iops=6000,throughput=250";
const IOSTAT: &str = "record `iostat -x -t 10` beside it; for the server give SHOW GLOBAL VARIABLES, and SHOW GLOBAL STATUS twice";
const STATUS: &str =
    "give SHOW GLOBAL VARIABLES, and SHOW GLOBAL STATUS twice; for devices `iostat -x -t 10`";
const POINT: &str = "its figures are of a point of a profile (docs/predict.md: tps, clients, volume); a profile is made of SHOW GLOBAL \
                     VARIABLES, SHOW GLOBAL STATUS twice and `iostat -x -t 10` of the time of the test";

/// The kinds, the surest first.
const KINDS: [Kind; 26] = [
    Kind {
        words: &[
            &["DescribeVolumesModifications"],
            &["\"VolumesModifications\""],
            &["VolumesModifications:"],
            &["VOLUMESMODIFICATIONS\t"],
        ],
        name: "the answer of DescribeVolumesModifications",
        instead: VOLUMES,
    },
    Kind {
        words: &[
            &["\"Volumes\"", "\"VolumeType\""],
            &["Volumes:", "VolumeType:"],
            &["VOLUMES\t"],
            &["|DescribeVolumes|"],
            &["DescribeVolumes "],
        ],
        name: "the answer of DescribeVolumes",
        instead: VOLUMES,
    },
    Kind {
        words: &[
            &["\"Reservations\"", "\"InstanceType\""],
            &["Reservations:", "InstanceType:"],
            &["RESERVATIONS\t"],
            &["DescribeInstances "],
        ],
        name: "the answer of DescribeInstances",
        instead: "it has no load: name the instance with --instance, such as r6i.large, and its volumes with --volume",
    },
    Kind {
        words: &[
            &["\"InstanceTypes\"", "\"EbsInfo\""],
            &["InstanceTypes:", "EbsInfo:"],
            &["INSTANCETYPES\t"],
            &["DescribeInstanceTypes "],
        ],
        name: "the answer of DescribeInstanceTypes",
        instead: "the program has the limits of all types: name one with --instance, such as r6i.large",
    },
    Kind {
        words: &[
            &["\"terraform_version\""],
            &["\"format_version\"", "\"planned_values\""],
            &["resource \"aws_ebs_volume\""],
            &["resource \"aws_instance\""],
        ],
        name: "a file of Terraform",
        instead: VOLUMES,
    },
    Kind {
        words: &[&["AWS::EC2::Volume"], &["AWSTemplateFormatVersion"]],
        name: "a template of CloudFormation",
        instead: VOLUMES,
    },
    Kind {
        words: &[&["datetime.datetime(", "'Timestamps'"], &["datetime.datetime(", "'Datapoints'"]],
        name: "an answer of CloudWatch as Python prints it",
        instead: "write it as JSON: json.dump(answer, file, default=str)",
    },
    Kind {
        words: &[&["{'", "datetime.datetime("], &["{'ResponseMetadata'"]],
        name: "a value as Python prints it",
        instead: "write it as JSON: json.dump(answer, file, default=str)",
    },
    Kind {
        words: &[&["\"MetricAlarms\""], &["\"Metrics\"", "\"MetricName\"", "\"Namespace\""]],
        name: "a list of metrics or alarms of CloudWatch, without their values",
        instead: "ask for the values with get-metric-data: docs/size.md has the whole command",
    },
    Kind {
        words: &[&["thds:", "tps:", "qps:"], &["transactions:", "(", "per sec.)", "95th percentile"]],
        name: "a report of sysbench",
        instead: POINT,
    },
    Kind {
        words: &[&["<TpmC>"], &["[transaction percentage]"]],
        name: "a report of tpcc-mysql",
        instead: POINT,
    },
    Kind {
        words: &[&["tpmC:", "efficiency:"], &["[Summary] NEW_ORDER"], &["[Current] NEW_ORDER"]],
        name: "a report of go-tpc",
        instead: POINT,
    },
    Kind {
        words: &[&["sysbench ", "--"], &["go-tpc ", "-"], &["tpcc_start ", "-"]],
        name: "a command line of a load",
        instead: "`ebbtide load run NAME` runs sysbench's workloads and TPC-C with sysbench's options; a profile describes them (docs/predict.md)",
    },
    Kind {
        words: &[&["\"fio version\""], &["clat percentiles"], &["Run status group 0"]],
        name: "a report of fio",
        instead: "`ebbtide simulate --job` takes fio's job, and a log of `write_iolog` as a trace; of a device at work record `iostat -x -t 10`",
    },
    Kind { words: &[&["procs -", "swpd"]], name: "the output of vmstat", instead: IOSTAT },
    Kind { words: &[&["%usr", "%iowait", "CPU"]], name: "the output of mpstat", instead: IOSTAT },
    Kind { words: &[&["kB_rd/s", "PID"]], name: "the output of pidstat", instead: IOSTAT },
    Kind { words: &[&["top - ", "load average"]], name: "the output of top", instead: IOSTAT },
    Kind {
        words: &[&["buff/cache", "Mem:"]],
        name: "the output of free",
        instead: "give /proc/meminfo, which says its unit",
    },
    Kind {
        words: &[&["Filesystem", "Inodes"]],
        name: "the output of `df -i`, which counts inodes",
        instead: "give the output of df",
    },
    Kind { words: &[&["# Query_time:"]], name: "a log of slow queries", instead: STATUS },
    Kind { words: &[&["# Profile", "Query ID"]], name: "a report of pt-query-digest", instead: STATUS },
    Kind { words: &[&["MySQLTuner"]], name: "a report of MySQLTuner", instead: STATUS },
    Kind {
        words: &[&["Aborted_clients  ", "Bytes_received  "]],
        name: "the output of pt-mext",
        instead: "give what `mysqladmin ext -i 10 -c 7` prints",
    },
    Kind {
        words: &[&["ready for connections"], &["[Note] InnoDB:"], &["] [InnoDB] "]],
        name: "the log of a server",
        instead: STATUS,
    },
    Kind {
        words: &[&["Threads: ", "Slow queries: ", "Opens: "]],
        name: "a status of one line",
        instead: STATUS,
    },
];

/// The kind of a text that no reader takes; None of an unknown one.
pub(crate) fn found(text: &str) -> Option<Elsewhere> {
    let end = (0..=HEAD.min(text.len())).rev().find(|end| text.is_char_boundary(*end))?;
    let head = &text[..end];
    let kind =
        KINDS.iter().find(|kind| kind.words.iter().any(|all| all.iter().all(|word| head.contains(word))))?;
    let volumes = serde_json::from_str(text).map(|value: Value| volumes(&value)).unwrap_or_default();
    let instead = match &volumes[..] {
        [] => kind.instead.to_owned(),
        all => {
            let more = if all.len() > MOST_VOLUMES {
                format!(" and {} more", all.len() - MOST_VOLUMES)
            } else {
                String::new()
            };
            format!(
                "it has no load: name the volume with --volume {}{more}",
                all[..all.len().min(MOST_VOLUMES)].join(", or --volume ")
            )
        }
    };
    Some(Elsewhere { kind: kind.name.to_owned(), instead })
}

/// The volumes of a document of AWS or Terraform, as --volume names them.
fn volumes(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    collect(value, &mut all);
    all.dedup();
    all
}

fn collect(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Object(object) => match spec(value) {
            Some(spec) => all.push(spec),
            None => object.values().for_each(|value| collect(value, all)),
        },
        Value::Array(list) => list.iter().for_each(|value| collect(value, all)),
        _ => {}
    }
}

/// The volume that an object describes, with the names of AWS or of Terraform.
fn spec(value: &Value) -> Option<String> {
    let number = |names: [&str; 2]| {
        names.iter().find_map(|name| value.get(*name)?.as_u64()).filter(|number| *number > 0)
    };
    let kind = ["VolumeType", "type"].iter().find_map(|name| value.get(*name)?.as_str())?;
    if !matches!(kind, "gp2" | "gp3" | "io1" | "io2" | "st1" | "sc1" | "standard") {
        return None;
    }
    let mut spec = format!("{kind}:size={}GiB", number(["Size", "size"])?);
    if let (true, Some(iops)) = (matches!(kind, "gp3" | "io1" | "io2"), number(["Iops", "iops"])) {
        spec.push_str(&format!(",iops={iops}"));
    }
    if let (true, Some(throughput)) = (kind == "gp3", number(["Throughput", "throughput"])) {
        spec.push_str(&format!(",throughput={throughput}"));
    }
    Some(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_volumes_of_an_answer_are_named_as_the_option_takes_them() {
        let volume = |id: &str, more: &str| format!("{{\"VolumeId\":\"{id}\",\"Size\":500,{more}}}");
        let answer = format!(
            "{{\"Volumes\":[{},{}]}}",
            volume("vol-1", "\"VolumeType\":\"gp3\",\"Iops\":6000,\"Throughput\":250"),
            volume("vol-2", "\"VolumeType\":\"gp2\",\"Iops\":1500")
        );
        let hint = found(&answer).unwrap().hint().to_owned();
        assert!(
            hint.ends_with("--volume gp3:size=500GiB,iops=6000,throughput=250, or --volume gp2:size=500GiB"),
            "{hint}"
        );
        let state = "{\"version\":4,\"terraform_version\":\"1.9.8\",\"resources\":[{\"type\":\"aws_ebs_volume\",\"instances\":[{\"attributes\":\
                     {\"type\":\"io2\",\"size\":100,\"iops\":5000,\"throughput\":0}}]}]}";
        let state = found(state).unwrap();
        assert!(state.hint().ends_with("--volume io2:size=100GiB,iops=5000"), "{}", state.hint());
        assert_eq!(state.to_string(), "a file of Terraform");
    }

    #[test]
    fn what_people_have_beside_what_is_read_is_named() {
        for (text, kind) in [
            ("VOLUMES\tus-east-1a\tgp3\n", "the answer of DescribeVolumes"),
            ("Volumes:\n- VolumeType: gp3\n  Size: 5\n", "the answer of DescribeVolumes"),
            (
                "{\"Reservations\": [{\"Instances\": [{\"InstanceType\": \"r6i.large\"}]}]}",
                "the answer of DescribeInstances",
            ),
            ("{\"VolumesModifications\": []}", "the answer of DescribeVolumesModifications"),
            ("Resources:\n  A:\n    Type: AWS::EC2::Volume\n", "a template of CloudFormation"),
            (
                "{'MetricDataResults': [{'Timestamps': [datetime.datetime(2026, 1, 1)]}]}",
                "an answer of CloudWatch as Python prints it",
            ),
            ("[ 10s ] thds: 64 tps: 1009.40 qps: 20239.00\n", "a report of sysbench"),
            ("$ time sysbench oltp_read_write --threads=4 run\n", "a command line of a load"),
            ("procs -----------memory----------\n r b swpd free\n", "the output of vmstat"),
            ("# Query_time: 1.0  Lock_time: 0\n", "a log of slow queries"),
        ] {
            assert_eq!(found(text).unwrap_or_else(|| panic!("{text}")).to_string(), kind);
        }
        assert_eq!(found("a text\n"), None);
        assert_eq!(found(""), None);
    }
}
