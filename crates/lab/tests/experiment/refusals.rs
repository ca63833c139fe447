//! What is refused, in which words.

use ebbtide_lab::experiment::Overrides;

use crate::support::{check, check_refused, mariadb, read, read_with, refused, set};

/// Each text with the whole of what it is refused with.
fn all(cases: &[(&str, &str)]) {
    for (text, words) in cases {
        assert_eq!(refused(text), *words, "{text}");
    }
}

#[test]
fn unknown_keys_name_the_line_and_the_nearest() {
    all(&[
        (
            "title = 'x'\n[data]\ntabels = 3\n",
            "mine.toml line 3: unknown key 'tabels' in [data] (did you mean 'tables'?); the keys are tables, rows, aged, \
             c_length, pad_length, warehouses",
        ),
        (
            "[dta]\n",
            "mine.toml line 1: unknown key 'dta' in the experiment (did you mean 'data'?); the keys are title, \
             question, source, scale, region, equal_arms, over_limit, compare, data, instance, volumes, settings, \
             topology, load, trial, warmup, batch, backup, crash, arms, axes, claim, quick",
        ),
        (
            "[arms.a.lod]\nx = 1\n",
            "mine.toml line 1: unknown key 'lod' in option 'a' of axis 'arm' (did you mean 'load'?); the keys are \
             settings, volumes, topology, load, instance, batch, backup, trial, warmup, crash",
        ),
        (
            "[arms.a.data]\nrows = 1\n",
            "mine.toml line 1: all arms share [data]: it is not allowed in option 'a' of axis 'arm'; an arm may have \
             settings, volumes, topology, load, instance, batch, backup, trial, warmup, crash",
        ),
        (
            "[arms.a.trial]\nrepeats = 1\n",
            "mine.toml line 2: all arms share trial.repeats: it is not allowed in option 'a' of axis 'arm', only in [trial]",
        ),
        (
            "[arms.a.quick.trial]\nrepeats = 1\n",
            "mine.toml line 2: all arms share trial.repeats: it is not allowed in [quick] of option 'a' of axis 'arm', \
             only in [trial]",
        ),
    ]);
}

#[test]
fn a_plan_of_cuts_is_refused_with_the_words_that_it_may_have() {
    all(&[
        (
            "[crash]\ncuts = 0\n",
            "mine.toml line 2: crash.cuts = 0: it must be a whole number from 1 to 1000000",
        ),
        (
            "[crash]\nend = 'kil'\n",
            "mine.toml line 2: crash.end = \"kil\": 'kil' is none of power-cut, kill (did you mean 'kill'?)",
        ),
        (
            "[crash]\nfault = 'ignore-flushes'\n",
            "mine.toml line 2: crash.fault = \"ignore-flushes\": 'ignore-flushes' is none of none, answer-early, ignore-flush \
             (did you mean 'ignore-flush'?)",
        ),
        (
            "[crash]\nrole = 'slave'\n",
            "mine.toml line 2: crash.role = \"slave\": 'slave' is none of primary, replica",
        ),
        (
            "[crash]\nrole = 'replica'\nend = 'kill'\n",
            "mine.toml line 3: crash.end = \"kill\": a replica's power is cut, and nothing else: leave it out, or say \
             \"power-cut\"",
        ),
        (
            "[crash]\nrole = 'replica'\nmoments = ['ddl']\n",
            "mine.toml line 3: crash.moments = a list: 'ddl' needs a statement, which nobody gives to a replica: leave \
             it out",
        ),
        (
            "[crash]\nmoments = ['random', 'checkpint']\n",
            "mine.toml line 2: crash.moments = a list: 'checkpint' is none of random, checkpoint, doublewrite, \
             page, redo, binlog-rotation, ddl, extension (did you mean 'checkpoint'?)",
        ),
        (
            "[crash]\nend = 'kill'\nmoments = ['ddl']\n",
            "mine.toml line 3: crash.moments = a list: 'ddl' needs a statement, which a kill of the server ends: leave \
             it out",
        ),
        (
            "[arms.a.crash]\ngain = 'same-twice'\n",
            "mine.toml line 2: all arms share crash.gain: it is not allowed in option 'a' of axis 'arm', only in [crash]",
        ),
        ("[crash]\ngain = 3\n", "mine.toml line 2: crash.gain = 3: it must be a text in quotes"),
        ("[crash]\nmoments = []\n", "mine.toml line 2: crash.moments = a list: name one at least"),
        (
            "[crash]\nmoments = [1]\n",
            "mine.toml line 2: crash.moments = a list: it must be a list of texts, like [\"random\", \"redo\"]",
        ),
    ]);
}

#[test]
fn wrong_values_are_reported_with_the_allowed_ones() {
    all(&[
        (
            "[data]\nrows = 0\n",
            "mine.toml line 2: data.rows = 0: it must be a whole number from 1 to 2147483647",
        ),
        (
            "[data]\n\nrows = \"many\"\n",
            "mine.toml line 3: data.rows = \"many\": it must be a whole number from 1 to 2147483647",
        ),
        (
            "[trial]\nmeasure = 60\n",
            "mine.toml line 2: trial.measure = 60: a duration has its unit, like \"60s\", \"5m\" or \"1h\"",
        ),
        ("[trial]\nmeasure = \"5s\"\n", "mine.toml line 2: trial.measure = \"5s\": it must be 10s to 24h"),
        (
            "[trial]\nmeasure = \"60\"\n",
            "mine.toml line 2: trial.measure = \"60\": '60' has no unit: write it like 60s, 60ms or 60m",
        ),
        (
            "[trial]\nmeasure = \"a minute\"\n",
            "mine.toml line 2: trial.measure = \"a minute\": 'a minute' is no duration: write it like 500us, 2ms, \
             90s or 10m",
        ),
        (
            "[trial]\nmeasure = \"10.5s\"\n",
            "mine.toml line 2: trial.measure = \"10.5s\": it must be a whole number of seconds",
        ),
        ("[trial]\nmeasure = \"25h\"\n", "mine.toml line 2: trial.measure = \"25h\": it must be 10s to 24h"),
    ]);
}

#[test]
fn wrong_words_and_values_of_other_sections_are_reported_with_the_allowed_ones() {
    all(&[
        (
            "[instance]\nmemory = \"2GB\"\n",
            "mine.toml line 2: instance.memory = \"2GB\": '2GB' has a decimal unit, and sizes are binary: \
             write 2GiB or 1907MiB",
        ),
        (
            "[instance]\nmemory = \"1MiB\"\n",
            "mine.toml line 2: instance.memory = \"1MiB\": it must be 256MiB to 64TiB",
        ),
        (
            "[instance]\nfs = \"btrfs\"\n",
            "mine.toml line 2: instance.fs = \"btrfs\": the file systems are xfs, ext4 and ext4-bigalloc",
        ),
        (
            "[load]\nworkload = \"oltp_write_olny\"\n",
            "mine.toml line 2: load.workload = \"oltp_write_olny\": there is no such workload (did you mean \
             'oltp_write_only'?); use one of oltp_point_select, oltp_read_only, oltp_read_write, oltp_write_only, \
             oltp_insert, oltp_delete, oltp_update_index, oltp_update_non_index, bulk_insert, key_value, tpcc",
        ),
        (
            "[load]\nrate = 10\narrival = \"closed\"\n",
            "mine.toml line 3: load.arrival = \"closed\": a closed loop has no rate: set rate = 0 with it",
        ),
        (
            "[load]\ndistribution = \"normal\"\n",
            "mine.toml line 2: load.distribution = \"normal\": the distributions are uniform, special, gaussian, \
             pareto and zipfian",
        ),
        ("[load]\nskip_trx = 1\n", "mine.toml line 2: load.skip_trx = 1: it must be true or false"),
        ("load = 3\n", "mine.toml line 1: load = 3: it must be a table, like [load]"),
        ("title = 3\n", "mine.toml line 1: title = 3: it must be a text in quotes"),
        (
            "[settings]\nio_capacity = [1]\n",
            "mine.toml line 2: settings.io_capacity = a list: a setting has one value",
        ),
        (
            "[volumes]\ndata = \"gp3:sise=10GiB\"\n",
            "mine.toml line 2: volumes.data = \"gp3:sise=10GiB\": unknown key 'sise' (did you mean 'size'?); the keys \
             are size, iops, throughput, credits, twp",
        ),
        (
            "[batch]\nstart = \"10s\"\n",
            "mine.toml line 1: batch.sql: a batch job needs its statement, like sql = \"SELECT ...\"",
        ),
        (
            "[batch]\nsql = \"SELECT 1\"\nstart = \"2m\"\n",
            "mine.toml line 3: batch.start = \"2m\": the measurement is over after 60s",
        ),
    ]);
}

#[test]
fn a_text_that_is_no_toml_names_its_line() {
    let words = refused("title = \"x\"\n[data\n");
    assert!(words.starts_with("mine.toml line 2: "), "{words}");
    let words = refused("[data]\nrows = 1\nrows = 2\n");
    assert!(words.starts_with("mine.toml line 3: duplicate key"), "{words}");
}

#[test]
fn a_key_and_its_other_word_together_are_refused() {
    all(&[(
        "[load]\nthreads = 8\nconnections = 9\n",
        "mine.toml line 3: 'connections' is another word for 'connections', which is given too",
    )]);
}

#[test]
fn an_unknown_setting_names_the_nearest() {
    all(&[
        (
            "[settings]\ninnodb_flush_neighbours = 0\n",
            "mine.toml line 2: there is no setting 'innodb_flush_neighbours' (did you mean 'flush_neighbors'?)",
        ),
        (
            "[arms.a.settings]\nio_capacity = \"lots\"\n",
            "mine.toml line 2: io_capacity cannot be 'lots': it takes a whole number from 100 to 4294967295",
        ),
        (
            "[settings]\nio_capacity = 200\ninnodb_io_capacity = 300\n",
            "mine.toml line 3: 'innodb_io_capacity' is another word for 'io_capacity', which is given too",
        ),
    ]);
}

#[test]
fn a_setting_that_the_server_lacks_is_refused_before_it_starts() {
    let words = check_refused("[settings]\npage_cleaners = 4\n");
    assert_eq!(
        words,
        "arm 'base': MariaDB 10.11.14 has no page_cleaners (innodb_page_cleaners): removed in 10.6, ignored since \
         10.5.1: one thread flushes its one pool"
    );
}

#[test]
fn comparisons_must_be_of_something() {
    let axes = "[axes.volume.gp2]\n[axes.volume.gp3.volumes]\ndata = \"gp3\"\n";
    let with = |compare: &str| refused(&format!("compare = {compare}\n{axes}"));
    assert_eq!(
        with("{ axis = \"volum\" }"),
        "mine.toml line 1: there is no axis 'volum' (did you mean 'volume'?); there is volume"
    );
    assert_eq!(
        with("{ axis = \"volume\", baseline = \"gp4\" }"),
        "mine.toml line 1: there is no option of axis 'volume' 'gp4' (did you mean 'gp3'?); there is gp2, gp3"
    );
    assert_eq!(
        with("{ axes = \"volume\" }"),
        "mine.toml line 1: unknown key 'axes' in compare (did you mean 'axis'?); the keys are axis, baseline"
    );
}

#[test]
fn equal_arms_are_refused_unless_they_are_meant() {
    let arms = "[arms.a]\n[arms.b.settings]\n";
    assert_eq!(
        refused(arms),
        "arm 'b': it is the same as 'a' in volumes, settings, instance, load and batch: change one of them, or say \
         equal_arms = true where noise is what you want to see"
    );
    assert!(read(&format!("equal_arms = true\n{arms}")).is_ok());
}

#[test]
fn names_that_cannot_be_distinguished_are_refused() {
    all(&[
        (
            "[arms.settings]\n",
            "mine.toml line 1: the option 'settings' needs another name: that is a section's",
        ),
        (
            "[arms.'a / b']\n",
            "mine.toml line 1: the option 'a / b' needs another name: 1 to 40 letters, digits, '-', '_', '+' and '.'",
        ),
        (
            "[arms.a]\n[axes.arm.b]\n",
            "mine.toml line 2: [arms] is the axis 'arm': give the axis 'arm' another name",
        ),
    ]);
}

#[test]
fn a_mistake_in_the_other_form_is_found_at_once() {
    all(&[
        (
            "[quick.trial]\nmeasure = \"1s\"\n",
            "mine.toml line 2: trial.measure = \"1s\": it must be 10s to 24h",
        ),
        ("[arms.one]\n[quick]\narms = [\"two\"]\n", "mine.toml line 3: there is no arm 'two'; there is one"),
    ]);
}

#[test]
fn more_arms_than_anyone_runs_are_refused() {
    let mut text = String::new();
    for axis in ["a", "b", "c"] {
        for option in 0..6 {
            text.push_str(&format!("[axes.{axis}.{axis}{option}.load]\npoint_selects = {option}\n"));
        }
    }
    assert_eq!(
        refused(&text),
        "mine.toml line 25: with the axis 'c' the experiment has 216 arms or more, and at most 200 are allowed: take \
         out options or make it several experiments"
    );
}

const ARMS: &str = "[arms.default]\n[arms.tuned.settings]\nio_capacity = 1000\n";

#[test]
fn set_paths_that_mean_nothing_or_two_things_are_refused() {
    let words = |path: &str, value: &str| read_with(ARMS, &set(path, value)).unwrap_err().to_string();
    assert_eq!(
        words("tunde.io_capacity", "1"),
        "--set tunde.io_capacity=1: there is no section or arm 'tunde' (did you mean 'tuned'?); there is settings, \
         volumes, topology, load, instance, batch, backup, trial, warmup, crash, data, default, tuned"
    );
    assert_eq!(
        words("io_capacity", "1"),
        "--set io_capacity=1: write settings.io_capacity for all arms, or default.io_capacity for one arm"
    );
    assert_eq!(
        words("tuned.trial.repeats", "3"),
        "--set tuned.trial.repeats=3: all arms share trial.repeats: write --set trial.repeats=3 for all of them"
    );
    assert_eq!(
        words("load.conections", "3"),
        "--set load.conections=3: unknown key 'conections' in [load] (did you mean 'connections'?); the keys are \
         workload, connections, round_trip, rate, arrival, trx_level, wait_mode, statements, distribution, rand_spec_iter, rand_spec_pct, rand_spec_res, \
         rand_pareto_h, rand_zipfian_exp, point_selects, simple_ranges, sum_ranges, order_ranges, distinct_ranges, \
         range_size, range_selects, index_updates, non_index_updates, delete_inserts, skip_trx, gets_pct"
    );
    assert_eq!(
        words("trial.repeats", "0"),
        "--set trial.repeats=0: trial.repeats = 0: it must be a whole number from 1 to 100"
    );
    assert_eq!(
        words("tuned.conections", "3"),
        "--set tuned.conections=3: there is no setting and no key 'conections' (did you mean 'connections'?)"
    );
    let refused = words("tuned.port", "3306");
    assert!(refused.starts_with("--set tuned.port=3306: 'port' cannot be set: "), "{refused}");
    assert_eq!(
        words("tuned.connection", "3"),
        "--set tuned.connection=3: there is no setting and no key 'connection' (did you mean 'connections'?)"
    );
}

#[test]
fn an_option_of_two_axes_must_be_distinguished() {
    let text =
        "[axes.a.on.load]\npoint_selects = 1\n[axes.a.off]\n[axes.b.on.load]\nrange_size = 5\n[axes.b.off]\n";
    let error = read_with(text, &set("on.connections", "3")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--set on.connections=3: several axes have such an option: write a.on.connections or b.on.connections"
    );
    assert!(read_with(text, &set("b.on.load.connections", "3")).is_ok());
}

#[test]
fn one_volume_for_arms_that_differ_in_theirs_is_refused() {
    let text = "[axes.volume.gp2.volumes]\ndata = \"gp2:size=100GiB\"\n[axes.volume.gp3]\n";
    let overrides = Overrides { volume: Some("io2:size=100GiB".into()), ..Overrides::default() };
    assert_eq!(
        read_with(text, &overrides).unwrap_err().to_string(),
        "--volume io2:size=100GiB: the axis 'volume' of this experiment gives its arms their data volumes (gp2, gp3), \
         and one volume for all would make them equal: choose with --arms gp2, or change one with \
         --set gp2.volumes.data=SPEC"
    );
}

#[test]
fn an_arm_that_does_not_exist_cannot_be_kept() {
    let overrides = Overrides { arms: vec!["tune".into()], ..Overrides::default() };
    assert_eq!(
        read_with(ARMS, &overrides).unwrap_err().to_string(),
        "--arms tune: there is no arm 'tune' (did you mean 'tuned'?); there is default, tuned"
    );
}

#[test]
fn what_aws_would_refuse_is_refused_in_its_words() {
    let words = check_refused("[volumes]\ndata = \"gp3:size=10GiB,iops=90000\"\n");
    assert!(words.starts_with("arm 'base': its data volume gp3:size=10GiB,iops=90000: "), "{words}");
    assert!(words.ends_with("Give at most iops=80000."), "{words}");
    let words = check_refused("[volumes]\ndata = \"gp5:size=10GiB\"\n");
    assert!(words.contains("Did you mean 'gp"), "{words}");
}

#[test]
fn a_volume_smaller_than_the_data_is_refused_with_both_figures() {
    assert_eq!(
        check_refused("[data]\nrows = 100_000_000\n[volumes]\ndata = \"gp3:size=10GiB\"\n"),
        "arm 'base': its data volume has 10240 MiB, and needs 28370 MiB: the tables take about 22411 MiB and grow by \
         a quarter, the server's own files 256 MiB and the redo log 100 MiB; take a larger volume or fewer rows"
    );
    assert_eq!(
        check_refused(
            "[instance]\ndivided_by = 100\n[data]\nrows = 1000\n[volumes]\ndata = \"gp3:size=50GiB\"\nredo = \"gp3:size=10GiB\"\n"
        ),
        "arm 'base': its redo volume (1/100 of gp3:size=10GiB) has 102 MiB, and needs 164 MiB: the redo log takes 100 \
         MiB; take a larger volume or a smaller redo_capacity"
    );
    assert_eq!(
        check_refused(
            "[instance]\ndivided_by = 100\n[data]\nrows = 1000\n[settings]\nlog_bin = true\n[volumes]\ndata = \"gp3:size=50GiB\"\nbinlog = \"gp3:size=10GiB\"\n"
        ),
        "arm 'base': its binlog volume (1/100 of gp3:size=10GiB) has 102 MiB, and a file system is made on 300 MiB or \
         more: take a larger volume"
    );
}

#[test]
fn a_volume_for_both_logs_has_room_for_the_redo_log_and_the_data_need_none() {
    let text = |both: &str, data: &str| {
        format!(
            "[data]\nrows = 1000\n[settings]\nlog_bin = true\nredo_capacity = \"2GiB\"\n[volumes]\ndata = \"gp3:size={data}\"\n\
             \"redo+binlog\" = \"gp3:size={both}\"\n"
        )
    };
    assert_eq!(
        check_refused(&text("2GiB", "1GiB")),
        "arm 'base': its redo+binlog volume has 2048 MiB, and needs 2112 MiB: the redo log takes 2048 MiB; take a larger \
         volume or a smaller redo_capacity"
    );
    check(&read(&text("3GiB", "1GiB")).unwrap(), &mariadb()).unwrap();
}

#[test]
fn memory_below_the_buffer_pool_is_refused() {
    assert_eq!(
        check_refused("[settings]\nbuffer_pool_size = \"4GiB\"\n"),
        "arm 'base': its buffer pool of 4096 MiB and the 128 MiB that a server needs besides do not fit into the \
         instance's memory of 2048 MiB: set a smaller buffer_pool_size or a larger instance.memory"
    );
}

#[test]
fn a_volume_for_a_binary_log_that_is_off_is_refused() {
    assert_eq!(
        check_refused("[volumes]\nbinlog = \"gp3:size=10GiB\"\n"),
        "arm 'base': it has a volume for the binary log, and log_bin is off: set log_bin = true"
    );
    assert_eq!(
        check_refused("[volumes]\n\"redo+binlog\" = \"gp3:size=10GiB\"\n"),
        "arm 'base': its redo log and its binary log share a volume, and log_bin is off: set log_bin = true, or name the \
         volume redo in place of redo+binlog"
    );
}

#[test]
fn a_volume_for_both_logs_stands_alone_and_in_quotes() {
    let alone = |log: &str| {
        format!(
            "mine.toml line 2: volumes.redo+binlog = \"gp3:size=10GiB\": it is the volume of both logs, and volumes.{log} \
             is another one: set {log} = \"none\", or leave one of them out"
        )
    };
    for key in ["redo", "binlog"] {
        let text = format!("[volumes]\n\"redo+binlog\" = \"gp3:size=10GiB\"\n{key} = \"gp3:size=10GiB\"\n");
        assert_eq!(refused(&text), alone(key));
    }
    let bare = refused("[volumes]\nredo+binlog = \"gp3:size=10GiB\"\n");
    assert!(
        bare.starts_with("mine.toml line 2: ") && bare.ends_with("with quotes, \"redo+binlog\""),
        "{bare}"
    );
    let other = refused("[volumes]\nredo+undo = \"gp3:size=10GiB\"\n");
    assert!(!other.contains("quotes"), "{other}");
    let unknown = refused("[volumes]\n\"redo+binlogs\" = \"gp3:size=10GiB\"\n");
    assert!(
        unknown.contains("unknown key 'redo+binlogs' in [volumes] (did you mean 'redo+binlog'?)"),
        "{unknown}"
    );
}

#[test]
fn a_snapshot_does_not_hold_the_logs_of_a_volume_that_they_share() {
    assert_eq!(
        check_refused(
            "[settings]\nlog_bin = true\n[volumes]\n\"redo+binlog\" = \"gp3:size=10GiB\"\n[backup]\nmethod = \"snapshot\"\n"
        ),
        "arm 'base': its snapshot is of the data volume alone, and the server recovers from the redo log and binary log \
         volume too: put the redo log and binary log on the data volume with volumes.\"redo+binlog\" = \"none\""
    );
}

#[test]
fn instances_must_exist_and_have_room() {
    let words = check_refused("[instance]\ntype = \"r5.larg\"\n");
    assert!(words.contains("r5.large"), "{words}");
    assert_eq!(
        check_refused("[instance]\ntype = \"r5.large\"\n[volumes]\ndata = \"raid0(28x gp3:size=10GiB)\"\n"),
        "arm 'base': its 28 volumes do not fit on an r5.large, which takes 27: use fewer volumes or a larger instance"
    );
}
