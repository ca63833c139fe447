//! `ebbtide load ... tpcc`: its commands, and what they print.

use std::sync::Mutex;

use anyhow::Result;
use ebbtide_load::LoadError;
use ebbtide_load::answer::{self, tpcc as words};
use ebbtide_load::tpcc::{self, CheckOptions};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::{CheckArgs, PrepareArgs, RunArgs};
use super::tpcc_args::table_sets;
use super::{Live, announce, prepared, print, refuse, verdict};
use crate::answers;
use crate::document::ColorWhen;
use crate::exit::{Exit, Refusal};
use crate::signals::cancel_on;
use crate::status_line::StatusLine;
use crate::text::line;

pub(super) fn prepare(args: &PrepareArgs, json: bool) -> Result<Exit> {
    let options = args.tpcc_options()?;
    let target = args.server.target()?;
    let cancel = cancel_on([SIGINT, SIGTERM])?;
    if !json {
        line(&words::prepare_header(&target, &options));
    }
    let mut status = StatusLine::new();
    let done = tpcc::prepare(&target, &options, &cancel, &mut |progress| {
        status.show(&answer::progress(progress));
    });
    drop(status);
    prepared(done.map_err(refuse_loading)?, options.seed, "ebbtide load cleanup tpcc --execute", json)
}

/// The server's code for a table that is there already.
const TABLE_EXISTS: u16 = 1050;

fn refuse_loading(error: LoadError) -> anyhow::Error {
    if error.code() != Some(TABLE_EXISTS) {
        return refuse(error);
    }
    let hint = "run on the tables that are there, or drop them with `ebbtide load cleanup tpcc --execute`";
    Refusal::environment(error.to_string()).hint(hint).into()
}

pub(super) fn run(args: &RunArgs, color: ColorWhen, json: bool) -> Result<Exit> {
    let options = args.tpcc_options()?;
    let target = args.server.target()?;
    let cancel = cancel_on([SIGINT, SIGTERM])?;
    let header = words::run_header(&target, &options, args.report_interval);
    announce(args, &header, json);
    let mut live = Live::new(args, json);
    let report = tpcc::run(&target, &options, &cancel, &mut |sample| live.take(sample));
    drop(live);
    let report = report.map_err(refuse)?;
    if json {
        answers::print(&report);
    } else {
        let drawn = format!("seed {}; {}", options.clients.seed, options.isolation);
        print(args, &words::document(&report, &header, args.histogram), color, &drawn)?;
    }
    verdict(&report.outcome.ended, &report.outcome.generator)
}

pub(super) fn check(args: &CheckArgs, json: bool) -> Result<Exit> {
    args.must_be_tpcc()?;
    let target = args.server.target()?;
    let cancel = cancel_on([SIGINT, SIGTERM])?;
    let status = Mutex::new(StatusLine::new());
    let options = CheckOptions {
        warehouses: args.warehouses,
        table_sets: args.table_sets.map_or(Ok(0), table_sets)?,
        threads: args.threads,
    };
    let found = tpcc::check(&target, options, &cancel, &|done, all| {
        if let Ok(mut status) = status.lock() {
            status.show(&format!("{done} of {all} queries done"));
        }
    });
    drop(status);
    let report = found.map_err(refuse)?;
    if json {
        answers::print(&report);
    } else {
        line(&words::findings(&target, &report));
    }
    if report.cancelled {
        return Err(Refusal::cancelled("cancelled: not all warehouses were checked").into());
    }
    Ok(if report.consistent { Exit::Clean } else { Exit::Finding })
}
