//! What a client sends for one transaction, for the tests of descriptions.

use crate::description::Description;
use crate::play::{Next, Play, Situation};
use crate::program::Program;
use crate::unique::UniqueIds;

/// A statement that was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The statement's name.
    pub(crate) name: &'static str,
    /// Its text, with question marks.
    text: String,
    /// The number of its table; 0 where it has none.
    pub(crate) table: i64,
    /// Its parameters as SQL.
    pub(crate) params: Vec<String>,
}

impl Sent {
    /// The text with the parameters in place.
    pub(crate) fn sql(&self) -> String {
        let mut params = self.params.iter();
        let pieces = self.text.split_inclusive('?').map(|piece| match piece.strip_suffix('?') {
            Some(before) => format!("{before}{}", params.next().map_or("?", String::as_str)),
            None => piece.to_owned(),
        });
        pieces.collect()
    }
}

/// The first transaction of a client whose next commit has this number.
pub(crate) fn transaction(of: Description, seed: u64, client: u32, sequence: u64) -> Vec<Sent> {
    let program = Program::new(of).unwrap();
    let unique = UniqueIds::new(seed);
    let situation = Situation { client, sequence, unique: &unique };
    let mut play = Play::new(&program, seed, u64::from(client) + 1);
    play.choose(&program);
    let mut all = Vec::new();
    loop {
        let calls = match play.next(&program, &situation) {
            Next::Send(calls) => calls,
            Next::Commit(call) | Next::RollBack(call) => call..call + 1,
            Next::Append(_) => panic!("an INSERT of many rows is no list of statements"),
            Next::Done => return all,
        };
        for call in calls.map(|at| program.call(at)) {
            let statement = program.statement(call);
            let table = call.table.as_ref().and_then(|table| play.number(table, &situation));
            let sql = |param| {
                let mut text = Vec::new();
                play.value(param, &situation).write_sql(&mut text);
                String::from_utf8(text).unwrap()
            };
            all.push(Sent {
                name: statement.name,
                text: statement.text.clone(),
                table: table.unwrap_or(0),
                params: call.params.iter().map(sql).collect(),
            });
        }
    }
}
