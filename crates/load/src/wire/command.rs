//! Writing commands: a packet is a three-byte length, a sequence number, and the payload.

use std::io::Write as _;

use ebbtide_workload::{Datum, Expr, ParamKind, Play, Situation, Statement};

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;

const TYPE_LONG: u8 = 0x03;
const TYPE_LONGLONG: u8 = 0x08;
const TYPE_NEWDECIMAL: u8 = 0xF6;
const TYPE_STRING: u8 = 0xFE;

/// The largest payload of one packet; we never send longer ones.
pub(crate) const MAX_PAYLOAD: usize = 0xFF_FFFF;

/// Appends a packet whose payload `fill` writes.
pub(crate) fn packet(out: &mut Vec<u8>, sequence: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, sequence]);
    fill(out);
    seal(out, start);
}

fn seal(out: &mut [u8], start: usize) {
    let length = out.len() - start - 4;
    assert!(length < MAX_PAYLOAD, "no statement of ours reaches 16 MiB");
    let bytes = length.to_le_bytes();
    out[start..start + 3].copy_from_slice(&bytes[..3]);
}

/// COM_QUERY with the text that `fill` writes.
pub(crate) fn query(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    packet(out, 0, |out| {
        out.push(COM_QUERY);
        fill(out);
    });
}

/// COM_STMT_PREPARE.
pub(crate) fn prepare(out: &mut Vec<u8>, text: &str) {
    packet(out, 0, |out| {
        out.push(COM_STMT_PREPARE);
        out.extend_from_slice(text.as_bytes());
    });
}

/// COM_QUIT.
pub(crate) fn quit(out: &mut Vec<u8>) {
    packet(out, 0, |out| out.push(COM_QUIT));
}

/// The values of a call, worked out one after the other while it is written.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    pub(crate) play: &'a mut Play,
    pub(crate) params: &'a [Expr],
    pub(crate) situation: Situation<'a>,
}

impl Values<'_> {
    fn get(&mut self, at: usize) -> Datum<'_> {
        self.play.value(&self.params[at], &self.situation)
    }
}

/// COM_STMT_EXECUTE. The parameters' types go along only the first time (`bind`).
pub(crate) fn execute(out: &mut Vec<u8>, id: u32, bind: bool, kinds: &[ParamKind], values: &mut Values<'_>) {
    packet(out, 0, |out| {
        out.push(COM_STMT_EXECUTE);
        out.extend_from_slice(&id.to_le_bytes());
        // No cursor; one iteration.
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if kinds.is_empty() {
            return;
        }
        let nulls = out.len();
        out.resize(nulls + kinds.len().div_ceil(8), 0);
        out.push(u8::from(bind));
        if bind {
            out.extend(kinds.iter().flat_map(|kind| [type_of(*kind), 0]));
        }
        for (at, kind) in kinds.iter().enumerate() {
            if !binary_value(out, *kind, values.get(at)) {
                out[nulls + at / 8] |= 1 << (at % 8);
            }
        }
    });
}

fn type_of(kind: ParamKind) -> u8 {
    match kind {
        ParamKind::Int => TYPE_LONG,
        ParamKind::Long => TYPE_LONGLONG,
        ParamKind::Decimal => TYPE_NEWDECIMAL,
        ParamKind::Text => TYPE_STRING,
    }
}

/// Appends a value; false where it is NULL, which has no bytes.
fn binary_value(out: &mut Vec<u8>, kind: ParamKind, value: Datum<'_>) -> bool {
    // A text is read as a number only where a number is sent.
    let number = match value {
        Datum::Null => return false,
        Datum::Int(number) => Some(number),
        Datum::Text(_) if kind == ParamKind::Text => None,
        Datum::Text(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
    };
    match (kind, number) {
        (ParamKind::Int, Some(number)) => {
            let nearest = if number < 0 { i32::MIN } else { i32::MAX };
            out.extend_from_slice(&i32::try_from(number).unwrap_or(nearest).to_le_bytes());
        }
        (ParamKind::Long, Some(number)) => out.extend_from_slice(&number.to_le_bytes()),
        (ParamKind::Int | ParamKind::Long, None) => return false,
        (ParamKind::Text | ParamKind::Decimal, _) => match value {
            Datum::Text(text) => {
                length_encoded(out, text.len());
                out.extend_from_slice(text);
            }
            Datum::Int(number) => {
                let text = number.to_string();
                length_encoded(out, text.len());
                out.extend_from_slice(text.as_bytes());
            }
            Datum::Null => return false,
        },
    }
    true
}

fn length_encoded(out: &mut Vec<u8>, length: usize) {
    let bytes = length.to_le_bytes();
    match length {
        0..=250 => out.push(bytes[0]),
        251..=0xFFFF => out.extend_from_slice(&[0xFC, bytes[0], bytes[1]]),
        _ => out.extend_from_slice(&[0xFD, bytes[0], bytes[1], bytes[2]]),
    }
}

/// COM_QUERY with the question marks of the statement replaced by the values, and `{}` by the number of the table.
pub(crate) fn query_with(out: &mut Vec<u8>, statement: &Statement, number: u32, values: &mut Values<'_>) {
    let is_numbered = statement.tables > 0;
    query(out, |out| {
        // Without parameters a question mark is one.
        let pieces = if statement.params.is_empty() { 1 } else { usize::MAX };
        for (at, piece) in statement.text.splitn(pieces, '?').enumerate() {
            if at > 0 {
                write_value(out, statement.params[at - 1], values.get(at - 1));
            }
            if is_numbered {
                write_numbered(out, piece, number);
            } else {
                out.extend_from_slice(piece.as_bytes());
            }
        }
    });
}

/// Appends a value as SQL. A decimal has no quotes, so that the server computes with it exactly.
fn write_value(out: &mut Vec<u8>, kind: ParamKind, value: Datum<'_>) {
    let plain = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    match value {
        Datum::Text(text) if kind == ParamKind::Decimal && !text.is_empty() && text.iter().all(plain) => {
            out.extend_from_slice(text);
        }
        other => other.write_sql(out),
    }
}

/// Appends a text with the number of a table in place of each `{}`.
pub(crate) fn write_numbered(out: &mut Vec<u8>, text: &str, number: u32) {
    for (at, piece) in text.split("{}").enumerate() {
        if at > 0 {
            write!(out, "{number}").expect("a Vec takes everything");
        }
        out.extend_from_slice(piece.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_workload::{Call, Description, Program, Step, Transaction, UniqueIds};

    use super::*;

    /// Calls `write` with the values of a call.
    fn with(params: &[Expr], write: impl FnOnce(&mut Values<'_>)) {
        let description = Description {
            name: "test".into(),
            form: String::new(),
            tables: Vec::new(),
            statements: vec![Statement::plain("do", "DO 1")],
            transactions: vec![Transaction::alone("test", vec![Step::Send(vec![Call::new(0, Vec::new())])])],
            session: Vec::new(),
            opening: Vec::new(),
            undo: None,
            finish: Vec::new(),
            registers: 0,
        };
        let program = Program::new(description).unwrap();
        let unique = UniqueIds::new(1);
        let situation = Situation { client: 0, sequence: 1, unique: &unique };
        write(&mut Values { play: &mut Play::new(&program, 1, 1), params, situation });
    }

    #[test]
    fn an_execution_carries_its_types_once() {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let (params, kinds) = ([Expr::Int(5)], [ParamKind::Int]);
        with(&params, |values| execute(&mut first, 0x0102, true, &kinds, values));
        with(&params, |values| execute(&mut second, 0x0102, false, &kinds, values));
        assert_eq!(first, [18, 0, 0, 0, 0x17, 2, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 0, 5, 0, 0, 0]);
        assert_eq!(second, [16, 0, 0, 0, 0x17, 2, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0]);
    }

    #[test]
    fn null_has_a_bit_and_a_text_its_length() {
        let mut out = Vec::new();
        let params =
            [Expr::Null, Expr::Text("x".repeat(300)), Expr::Text("7".into()), Expr::Text("y".into())];
        let kinds = [ParamKind::Text, ParamKind::Text, ParamKind::Long, ParamKind::Int];
        with(&params, |values| execute(&mut out, 1, false, &kinds, values));
        assert_eq!(out[14], 0b1001, "what is no number is NULL where a number is expected");
        assert_eq!(out[16..19], [0xFC, 44, 1]);
        assert_eq!(out[out.len() - 8..], [7, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_text_statement_has_its_parameters_in_place() {
        let mut out = Vec::new();
        let text = "SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ? AND c=?";
        let statement = Statement {
            tables: 20,
            params: vec![ParamKind::Int, ParamKind::Int, ParamKind::Text],
            ..Statement::plain("read", text)
        };
        let params = [Expr::Int(-3), Expr::Int(9), Expr::Text("it's".into())];
        with(&params, |values| query_with(&mut out, &statement, 12, values));
        assert_eq!(&out[5..], b"SELECT c FROM sbtest12 WHERE id BETWEEN -3 AND 9 AND c='it''s'");
    }

    #[test]
    fn a_decimal_is_no_text_and_no_floating_point_number() {
        let (mut text, mut binary) = (Vec::new(), Vec::new());
        let params = vec![ParamKind::Decimal, ParamKind::Decimal, ParamKind::Decimal];
        let statement = Statement { params, ..Statement::plain("add", "SELECT ?+?+?") };
        let amount = Expr::Decimal(Expr::Int(-1_050).into(), 2);
        let params = [amount, Expr::Text("1 OR 1".into()), Expr::Int(7)];
        with(&params, |values| query_with(&mut text, &statement, 0, values));
        assert_eq!(&text[5..], b"SELECT -10.50+'1 OR 1'+7");
        with(&params[..1], |values| execute(&mut binary, 1, true, &statement.params[..1], values));
        assert_eq!(binary[14..], [0, 1, 0xF6, 0, 6, b'-', b'1', b'0', b'.', b'5', b'0']);
    }

    #[test]
    fn a_statement_without_parameters_and_number_is_sent_unchanged() {
        let mut out = Vec::new();
        let text = "SELECT '{}', 'why?'";
        with(&[], |values| query_with(&mut out, &Statement::plain("any", text), 0, values));
        assert_eq!(&out[5..], text.as_bytes());
    }
}
