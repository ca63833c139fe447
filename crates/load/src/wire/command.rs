//! Writing commands: a packet is a three-byte length, a sequence number, and the payload.

use std::io::Write as _;

use crate::distribution::Random;
use crate::plan::Param;

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;

const TYPE_LONG: u8 = 0x03;
const TYPE_LONGLONG: u8 = 0x08;
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

/// COM_STMT_EXECUTE. The parameters' types go along only the first time (`bind`).
pub(crate) fn execute(out: &mut Vec<u8>, id: u32, bind: bool, params: &[Param], random: &mut Random) {
    packet(out, 0, |out| {
        out.push(COM_STMT_EXECUTE);
        out.extend_from_slice(&id.to_le_bytes());
        // No cursor; one iteration.
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if params.is_empty() {
            return;
        }
        debug_assert!(params.len() <= 8, "one byte of NULL bitmap");
        out.extend_from_slice(&[0, u8::from(bind)]);
        if bind {
            out.extend(params.iter().flat_map(|param| [type_of(*param), 0]));
        }
        for param in params {
            binary_value(out, *param, random);
        }
    });
}

fn type_of(param: Param) -> u8 {
    match param {
        Param::Int(_) => TYPE_LONG,
        Param::Long(_) => TYPE_LONGLONG,
        Param::Digits(_) => TYPE_STRING,
    }
}

fn binary_value(out: &mut Vec<u8>, param: Param, random: &mut Random) {
    match param {
        Param::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
        Param::Long(value) => out.extend_from_slice(&value.to_le_bytes()),
        Param::Digits(groups) => {
            let length = u8::try_from(groups * 12 - 1).expect("ten groups at most");
            out.push(length);
            random.digit_groups(groups, out);
        }
    }
}

/// COM_QUERY with the question marks of `text` replaced by the parameters.
pub(crate) fn query_with(out: &mut Vec<u8>, text: &str, params: &[Param], random: &mut Random) {
    query(out, |out| {
        let mut params = params.iter();
        for (at, piece) in text.split('?').enumerate() {
            if at > 0 {
                let param = params.next().expect("as many parameters as question marks");
                text_value(out, *param, random);
            }
            out.extend_from_slice(piece.as_bytes());
        }
    });
}

fn text_value(out: &mut Vec<u8>, param: Param, random: &mut Random) {
    match param {
        Param::Int(value) => write!(out, "{value}").expect("a Vec takes everything"),
        Param::Long(value) => write!(out, "{value}").expect("a Vec takes everything"),
        Param::Digits(groups) => {
            out.push(b'\'');
            random.digit_groups(groups, out);
            out.push(b'\'');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_carries_its_types_once() {
        let mut random = Random::new(1, 1);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        execute(&mut first, 0x0102, true, &[Param::Int(5)], &mut random);
        execute(&mut second, 0x0102, false, &[Param::Int(5)], &mut random);
        assert_eq!(first, [18, 0, 0, 0, 0x17, 2, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 0, 5, 0, 0, 0]);
        assert_eq!(second, [16, 0, 0, 0, 0x17, 2, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0]);
    }

    #[test]
    fn a_text_statement_has_its_parameters_in_place() {
        let mut out = Vec::new();
        let text = "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?";
        query_with(&mut out, text, &[Param::Int(-3), Param::Int(9)], &mut Random::new(1, 1));
        assert_eq!(&out[5..], b"SELECT c FROM sbtest1 WHERE id BETWEEN -3 AND 9");
    }
}
