//! Statements: the model counts those that the load sends, and each takes one round trip.

use ebbtide_twin::innodb::{Costs, ModelSetup, run, sysbench, tpcc};
use ebbtide_volume::Nanos;
use ebbtide_workload::log_bytes::LogMaker;
use ebbtide_workload::sysbench::{Mix, Schema, Sysbench, Workload};
use ebbtide_workload::tpcc::{Constants, Isolation, Scale, Statements, Tpcc, WaitMode};
use ebbtide_workload::{Datum, Description, Distribution, Next, Play, Program, Situation, UniqueIds};

use crate::close;
use crate::support::{setup, volume};

/// Round trips of each kind of transaction, on average: what a client sends at once takes one. The server's answers are made
/// up, with as many rows as the statement is described to return.
fn round_trips(of: Description, transactions: u64) -> Vec<f64> {
    println!("seed 1");
    let program = Program::new(of).expect("the description is sound");
    let unique = UniqueIds::new(1);
    let mut play = Play::new(&program, 1, 1);
    let mut counted = vec![(0.0, 0.0); program.description().transactions.len()];
    for sequence in 1..=transactions {
        let situation = Situation { client: 0, sequence, unique: &unique };
        play.choose(&program);
        let (count, trips) = &mut counted[play.transaction()];
        *count += 1.0;
        loop {
            let calls = match play.next(&program, &situation) {
                Next::Send(calls) => calls,
                Next::Commit(call) | Next::RollBack(call) => call..call + 1,
                Next::Append(_) => 0..0,
                Next::Done => break,
            };
            *trips += 1.0;
            for call in calls.map(|at| program.call(at)) {
                let rows = program.statement(call).access.as_ref().map_or(0, |access| access.rows);
                if let Some(register) = call.count {
                    play.set(register, Datum::Int(rows.into()));
                }
                call.binds.iter().for_each(|bind| play.set(bind.into, Datum::Int(1)));
            }
        }
    }
    counted.into_iter().map(|(count, trips)| trips / count).collect()
}

fn sysbench(workload: Workload, mix: Mix) -> Sysbench {
    let (schema, distribution) = (Schema::default(), Distribution::Uniform);
    Sysbench { workload, schema, mix, distribution, clients: 1, marks: false }
}

#[test]
fn the_statements_of_each_script_of_sysbench_are_those_that_the_load_sends() {
    let other = Mix {
        point_selects: 3,
        order_ranges: 0,
        index_updates: 4,
        non_index_updates: 5,
        delete_inserts: 2,
        gets_pct: 30,
        ..Mix::default()
    };
    let all = [
        (Workload::PointSelect, [1.0, 1.0]),
        (Workload::ReadOnly, [16.0, 8.0]),
        (Workload::ReadWrite, [20.0, 21.0]),
        (Workload::WriteOnly, [6.0, 15.0]),
        (Workload::Insert, [1.0, 1.0]),
        (Workload::Delete, [1.0, 1.0]),
        (Workload::UpdateIndex, [1.0, 4.0]),
        (Workload::UpdateNonIndex, [1.0, 5.0]),
        (Workload::BulkInsert, [1.0, 1.0]),
        (Workload::KeyValue, [1.0, 1.0]),
    ];
    for (workload, expected) in all {
        for (mix, expected) in [Mix::default(), other.clone()].into_iter().zip(expected) {
            let of = sysbench(workload, mix);
            assert_eq!(round_trips(of.describe(), 100), [expected], "{workload:?} as it is sent");
            let model = sysbench::shape(&of, LogMaker::MariaDb, 1).statements();
            assert!((model - expected).abs() < 1e-9, "{workload:?}: {model} in the model, not {expected}");
        }
    }
}

/// Round trips of the five transactions of TPC-C.
fn tpcc_round_trips(statements: Statements) -> Vec<f64> {
    let tpcc = Tpcc {
        warehouses: 10,
        table_sets: 0,
        scale: Scale::default(),
        constants: Constants::of_run(1, None),
        foreign_keys: false,
        isolation: Isolation::default(),
        wait: WaitMode::None,
        statements,
        marks: 0,
    };
    round_trips(tpcc.describe(), 20_000)
}

#[test]
fn the_statements_of_tpc_c_are_those_of_its_kit() {
    let sent = tpcc_round_trips(Statements::Single);
    let statements = |kit: tpcc::Kit| -> Vec<f64> {
        tpcc::shape(10, kit, kit.keys(), LogMaker::MariaDb).types.iter().map(|of| of.statements).collect()
    };
    let (own, other) = (statements(tpcc::Kit::TpccMysql), statements(tpcc::Kit::SysbenchTpcc));
    assert_eq!((sent.len(), own.len()), (5, 5));
    for ((sent, own), other) in sent.iter().zip(&own).zip(other) {
        assert!((sent - own).abs() < 0.5, "{sent} are sent, {own} in the model");
        assert!((other - own - 1.0).abs() < 1e-9, "sysbench-tpcc sends BEGIN, too: {other} and {own}");
    }
}

#[test]
fn the_statements_of_tpc_c_are_fewer_where_they_are_batched() {
    let sent = tpcc_round_trips(Statements::Batched);
    let mut shape = tpcc::shape(10, tpcc::Kit::TpccMysql, tpcc::Keys::Nurand, LogMaker::MariaDb);
    assert!((shape.statements() - 37.0).abs() < 2.0, "{}", shape.statements());
    tpcc::batch(&mut shape);
    assert_eq!(sent.len(), 5);
    for (sent, of) in sent.iter().zip(&shape.types) {
        assert!((sent - of.statements).abs() < 0.5, "{sent} are sent, {} in the model", of.statements);
    }
}

#[test]
fn each_statement_takes_one_round_trip_that_its_connection_waits_for() {
    println!("seed 1");
    // BEGIN, 14 reads of pages that are cached, COMMIT.
    let shape = sysbench::shape(&sysbench(Workload::ReadOnly, Mix::default()), LogMaker::MariaDb, 1);
    let tps = |clients, round_trip_us| {
        let base = setup(shape.clone(), volume(Nanos::from_us(100), None, None), clients, 0.0, 64);
        let costs = Costs { cpu_us: 400.0, round_trip_us, ..Costs::default() };
        run(ModelSetup { costs, ..base }).tps()
    };
    close(tps(1, 0.0), 1.0 / 400e-6, 0.02);
    close(tps(1, 30.0), 1.0 / (400e-6 + 16.0 * 30e-6), 0.02);
    close(tps(8, 1_000.0), 8.0 / (400e-6 + 16.0 * 1e-3), 0.02);
}
