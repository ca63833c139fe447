//! The non-uniform draws of clause 2.1.6, and their constants.

use serde::{Deserialize, Serialize};

use crate::distribution::Random;
use crate::expr::{Expr, Op, Register};

/// The constants C of NURand (clause 2.1.6). They are chosen once for a load and once for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constants {
    /// That of last names, 0 to 255.
    pub last_name: u32,
    /// That of customers, 0 to 1023.
    pub customer: u32,
    /// That of items, 0 to 8191.
    pub item: u32,
}

/// The constants A of NURand: they follow from the sizes of the ranges.
const A_LAST_NAME: u32 = 255;
const A_CUSTOMER: u32 = 1_023;
const A_ITEM: u32 = 8_191;
/// The streams that the constants are drawn from, far from those of rows and clients.
const LOAD_STREAM: u64 = 0xC_10AD << 40;
const RUN_STREAM: u64 = 0xC_0042 << 40;

impl Constants {
    /// Those of a load.
    #[must_use]
    pub fn of_load(seed: u64) -> Self {
        Self::draw(&mut Random::new(seed, LOAD_STREAM))
    }

    /// Those of a run on tables whose last names were drawn with the constant `loaded`; none where another tool has
    /// loaded them and has not kept it.
    #[must_use]
    pub fn of_run(seed: u64, loaded: Option<u32>) -> Self {
        let mut random = Random::new(seed, RUN_STREAM);
        let mut drawn = Self::draw(&mut random);
        if let Some(loaded) = loaded {
            while !Self::may_follow(loaded, drawn.last_name) {
                drawn.last_name = random.up_to(A_LAST_NAME + 1) - 1;
            }
        }
        drawn
    }

    /// Whether clause 2.1.6.1 allows the constant of last names for a run: its distance from that of the load is 65
    /// to 119, and neither 96 nor 112.
    #[must_use]
    pub fn may_follow(loaded: u32, run: u32) -> bool {
        let distance = loaded.abs_diff(run);
        (65..=119).contains(&distance) && distance != 96 && distance != 112
    }

    fn draw(random: &mut Random) -> Self {
        let mut up_to = |a: u32| random.up_to(a + 1) - 1;
        Self { last_name: up_to(A_LAST_NAME), customer: up_to(A_CUSTOMER), item: up_to(A_ITEM) }
    }

    /// The number of a last name, from 0.
    pub(super) fn last_name(self, names: u32) -> Expr {
        nurand(A_LAST_NAME, self.last_name, 0, i64::from(names) - 1)
    }

    /// A customer of a district.
    pub(super) fn customer(self, customers: u32) -> Expr {
        nurand(A_CUSTOMER, self.customer, 1, customers.into())
    }

    /// An item.
    pub(super) fn item(self, items: u32) -> Expr {
        nurand(A_ITEM, self.item, 1, items.into())
    }
}

/// NURand(A, x, y) = (((random(0, A) | random(x, y)) + C) % (y - x + 1)) + x
fn nurand(a: u32, c: u32, x: i64, y: i64) -> Expr {
    let both = Expr::between(0, a.into()).op(Op::BitOr, Expr::between(x, y));
    both.plus(c.into()).op(Op::Rem, Expr::Int(y - x + 1)).plus(x)
}

/// The syllables of last names (clause 4.3.2.3).
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The last name with the number that the register holds, 0 to 999: a syllable for each of its three digits.
pub(super) fn last_name(number: Register) -> Expr {
    let digit = |of: i64| {
        let digit = Expr::Register(number).op(Op::Div, Expr::Int(of)).op(Op::Rem, Expr::Int(10));
        Expr::Pick(Box::new(digit), SYLLABLES.map(str::to_owned).into())
    };
    Expr::Concat(vec![digit(100), digit(10), digit(1)])
}
