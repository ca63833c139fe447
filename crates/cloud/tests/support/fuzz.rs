//! Random requests: any operation, parameters of AWS's model with values that fit or do not, and damaged bodies.
//!
//! All choices come from a stream of bytes, so that proptest can shorten a request that fails: a zero is the plainest
//! choice. `EBBTIDE_FUZZ_CASES` is the number of cases.

use std::time::{Duration, Instant};

use http::Request;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde_json::{Map, Value, json};

use crate::wire::{KEY, Message, Protocol, SECRET, Shapes, Wire};

/// The longest that a call may take. An unoptimized build on a busy machine takes a second for some.
const LIMIT: Duration = Duration::from_secs(60);
/// Calls of a case.
const CALLS: usize = 12;
/// How deep parameters are nested.
const DEPTH: usize = 6;

/// Runs a test for a number of cases of bytes.
pub(crate) fn run(cases: u32, test: impl Fn(&[u8]) -> Result<(), TestCaseError>) {
    let set = std::env::var("EBBTIDE_FUZZ_CASES").ok();
    let cases = set.map_or(cases, |text| text.parse().expect("EBBTIDE_FUZZ_CASES is a number of cases"));
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    };
    let bytes = proptest::collection::vec(any::<u8>(), 0..CALLS * 60);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| test(&bytes));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// What a client may call.
pub(crate) struct Target<'a> {
    pub(crate) service: &'static str,
    pub(crate) shapes: &'a Shapes,
    pub(crate) protocols: &'a [Protocol],
    pub(crate) actions: &'a [&'static str],
}

/// Sends calls until the bytes are used up, at most [`CALLS`]: to an endpoint that verifies signatures, or to one that does
/// not. None of them is an internal error, and none takes long. `words` are texts that mean something, such as ids.
pub(crate) fn calls(
    bytes: &[u8],
    targets: &[Target<'_>],
    words: &[String],
    (closed, open): (&Wire, &Wire),
) -> Result<(), TestCaseError> {
    let mut draw = Draw { bytes: bytes.iter().copied(), words };
    for _ in 0..CALLS {
        if draw.bytes.len() == 0 {
            break;
        }
        let target = &targets[draw.below(targets.len())];
        let action = target.actions[draw.below(target.actions.len())];
        let protocol = target.protocols[draw.below(target.protocols.len())];
        let input = draw.structure(target.shapes, target.shapes.input(action), 0);
        let payload = vec![draw.byte(); [0, 1, 1_000, 512 << 10][draw.below(4)]];
        let mut message = target.shapes.request(protocol, action, (&Value::Object(input.clone()), &payload));
        if draw.below(3) == 2 {
            draw.damage(&mut message);
        }
        let is_signed = draw.below(2) == 0;
        let wire = if is_signed { closed } else { open };
        let request = if is_signed {
            message.signed(target.service, (KEY, SECRET), wire.now_ms())
        } else {
            message.unsigned()
        };
        let (status, took) = send(wire, request);
        let place = || format!("{protocol:?} {action} {}: {message:?}", Value::Object(input.clone()));
        prop_assert!(status != 500, "an internal error to {}", place());
        prop_assert!(took < LIMIT, "{took:?} for {}", place());
    }
    Ok(())
}

fn send(wire: &Wire, request: Request<Vec<u8>>) -> (u16, Duration) {
    let begun = Instant::now();
    (wire.send(request).status().as_u16(), begun.elapsed())
}

/// Choices by a stream of bytes, which ends in zeroes.
struct Draw<'a, I> {
    bytes: I,
    words: &'a [String],
}

impl<I: ExactSizeIterator<Item = u8>> Draw<'_, I> {
    fn byte(&mut self) -> u8 {
        self.bytes.next().unwrap_or(0)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    fn structure(&mut self, shapes: &Shapes, shape: &Value, depth: usize) -> Map<String, Value> {
        let required: Vec<&str> =
            shape["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut members = Map::new();
        for (name, inner) in shapes.members(shape) {
            let odds = self.byte();
            let is_there = if required.contains(&name) { odds < 250 } else { odds >= 190 };
            if is_there && depth < DEPTH {
                members.insert(name.to_owned(), self.value(shapes, inner, depth + 1));
            }
        }
        members
    }

    fn value(&mut self, shapes: &Shapes, shape: &Value, depth: usize) -> Value {
        if self.byte() >= 240 {
            return self.anything();
        }
        match shape["type"].as_str().unwrap_or("string") {
            "structure" => Value::Object(self.structure(shapes, shape, depth)),
            "list" => {
                let items = self.below(4);
                (0..items).map(|_| self.value(shapes, shapes.item(shape), depth + 1)).collect()
            }
            "map" => json!({"key": "value"}),
            "boolean" => json!(self.below(2) == 1),
            "integer" | "long" => self.integer(),
            "timestamp" => {
                let all = [
                    json!(1_790_000_000),
                    json!(0),
                    json!(-1),
                    json!(1_790_000_100.5),
                    json!(9_999_999_999_999_i64),
                ];
                all[self.below(all.len())].clone()
            }
            "double" | "float" => {
                let all = [json!(0.0), json!(1.5), json!(-1e9), json!(1e308), json!(5e-324)];
                all[self.below(all.len())].clone()
            }
            "blob" => json!("AAECAw=="),
            _ => self.text(shape),
        }
    }

    fn integer(&mut self) -> Value {
        let all = [
            1,
            0,
            -1,
            2,
            5,
            60,
            100,
            1_000,
            3_000,
            65_536,
            i64::from(i32::MAX),
            i64::from(i32::MIN),
            i64::MAX,
        ];
        json!(all[self.below(all.len())])
    }

    fn text(&mut self, shape: &Value) -> Value {
        let known = shape["enum"].as_array().filter(|known| !known.is_empty());
        match (self.byte(), known) {
            (0..200, Some(known)) => known[self.below(known.len())].clone(),
            (0..160, None) => json!(self.words[self.below(self.words.len())]),
            _ => {
                let all = [
                    "",
                    "x",
                    "*",
                    "?\\",
                    "a\u{0}b",
                    "ä☃",
                    "vol-",
                    "-1",
                    "9999999999999999999999",
                    "{\"a\":[",
                    "<a>&b",
                ];
                match self.below(all.len() + 1) {
                    0 => json!("y".repeat(2_000)),
                    number => json!(all[number - 1]),
                }
            }
        }
    }

    /// A value of a kind that the model does not want.
    fn anything(&mut self) -> Value {
        let all = [
            json!("text"),
            json!(-7),
            json!(true),
            json!(null),
            json!([]),
            json!({"a": {"b": [1]}}),
            json!([[["x"]]]),
        ];
        all[self.below(all.len())].clone()
    }

    /// Changes, removes or adds bytes of the body, or a word of the path.
    fn damage(&mut self, message: &mut Message) {
        for _ in 0..=self.below(3) {
            let place = usize::from(self.byte()) * (message.body.len() + 1) / 256;
            match self.below(5) {
                0 => message.body.truncate(place),
                1 => message.body.insert(place, self.byte()),
                2 => {
                    let byte = self.byte();
                    if let Some(there) = message.body.get_mut(place) {
                        *there = byte;
                    }
                }
                3 => {
                    let again = message.body[place..].to_vec();
                    message.body.extend(again);
                }
                _ => message.path.push_str("/x"),
            }
        }
    }
}
