//! The transactions: what client and sequence number stand for, and the statements that do it.

use std::fmt::Write as _;

use crate::distribution::Random;
use crate::sql::LEDGER_TABLE;

use super::schema::{ABORTED, ABORTED_PAYLOAD, ACCOUNT, BALLAST, HISTORY, Schema, crc_of};

/// The largest amount that is transferred.
const MAX_AMOUNT: u32 = 100;
/// Groups of eleven digits in the payload of a history row.
const PAYLOAD_GROUPS: usize = 3;

/// A statement, and how many rows it must change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) changes: u64,
}

/// Whether a transaction is meant to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Committed,
    RolledBack,
}

/// One transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transfer {
    client: u32,
    seq: u64,
    fate: Fate,
    from: u32,
    to: u32,
    amount: u32,
    /// The row of the ballast.
    row: u32,
    payload: String,
}

impl Transfer {
    /// The transaction `seq` of `client`: the same for the same seed.
    pub(super) fn draw(schema: &Schema, seed: u64, client: u32, seq: u64, fate: Fate) -> Self {
        let random = &mut Random::new(seed, stream(client, seq, fate));
        let from = random.up_to(schema.accounts);
        // Any account but that one.
        let to = (from - 1 + random.up_to(schema.accounts - 1)) % schema.accounts + 1;
        let (amount, row) = (random.up_to(MAX_AMOUNT), random.up_to(schema.rows));
        let mut digits = Vec::new();
        random.digit_groups(PAYLOAD_GROUPS, &mut digits);
        let mark = if fate == Fate::RolledBack { ABORTED_PAYLOAD } else { "" };
        let payload = format!("{mark}{}", String::from_utf8_lossy(&digits));
        Self { client, seq, fate, from, to, amount, row, payload }
    }

    /// Everything before COMMIT or ROLLBACK. Accounts come in the order of their ids and before the ballast, so
    /// that clients hardly ever wait for one another in a circle.
    pub(super) fn statements(&self, schema: &Schema) -> Vec<Statement> {
        let amount = i64::from(self.amount);
        let mut moves = [(self.from, -amount), (self.to, amount)];
        moves.sort_unstable();
        let mut all: Vec<String> = moves.iter().map(|&(id, by)| account(id, by)).collect();
        all.push(format!(
            "UPDATE {} SET k=k+1,hits=hits+1,crc={} WHERE id={}",
            BALLAST.name,
            BALLAST.crc(),
            self.row
        ));
        all.push(self.history());
        let window = u64::from(schema.window);
        if self.seq > window {
            let old = self.seq - window;
            all.push(format!("DELETE FROM {} WHERE client={} AND seq={old}", HISTORY.name, self.client));
        }
        all.push(match self.fate {
            // The text is what the binary log is searched for.
            Fate::Committed => {
                format!("UPDATE {LEDGER_TABLE} SET seq={} WHERE client={}", self.seq, self.client)
            }
            Fate::RolledBack => {
                format!("INSERT INTO {ABORTED} (client, seq) VALUES ({},{})", self.client, self.seq)
            }
        });
        all.into_iter().map(|sql| Statement { sql, changes: 1 }).collect()
    }

    fn history(&self) -> String {
        let Self { client, seq, from, to, amount, payload, .. } = self;
        let crc = crc_of(format!("{client}|{seq}|{from}|{to}|{amount}|{payload}").as_bytes());
        let mut sql = format!("INSERT INTO {} (client,seq,a,b,amount,payload,crc) VALUES ", HISTORY.name);
        write!(sql, "({client},{seq},{from},{to},{amount},'{payload}',{crc})")
            .expect("a String takes everything");
        sql
    }
}

/// Assignments are made from left to right: the checksum is of the new values.
fn account(id: u32, by: i64) -> String {
    format!(
        "UPDATE {} SET balance=balance+({by}),version=version+1,crc={} WHERE id={id}",
        ACCOUNT.name,
        ACCOUNT.crc()
    )
}

/// Whether a transaction that is rolled back comes before the transaction `seq`.
pub(super) fn abort_comes_first(seed: u64, client: u32, seq: u64, every: u32) -> bool {
    // Not the stream of the transaction itself: what it does must not depend on `every`.
    every > 0 && Random::new(!seed, stream(client, seq, Fate::RolledBack)).up_to(every) == 1
}

/// Clients have 40 bits each. Stream numbers below 2^40 are those of `prepare`.
fn stream(client: u32, seq: u64, fate: Fate) -> u64 {
    u64::from(client + 1) << 40 ^ (seq << 1 | u64::from(fate == Fate::RolledBack))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seq: u64) -> Transfer {
        Transfer::draw(&Schema::default(), 5, 3, seq, Fate::Committed)
    }

    #[test]
    fn a_transaction_is_the_same_whenever_it_is_drawn() {
        assert_eq!(drawn(9), drawn(9));
        assert_ne!(drawn(9).payload, drawn(10).payload);
    }

    #[test]
    fn a_transfer_has_two_accounts_of_the_table_even_where_there_are_but_two() {
        let schema = Schema { accounts: 2, rows: 1, ..Schema::default() };
        for seq in 1..500 {
            let transfer = Transfer::draw(&schema, 5, 0, seq, Fate::Committed);
            assert_eq!(transfer.from + transfer.to, 3);
            assert_eq!(transfer.row, 1);
        }
    }

    #[test]
    fn the_statements_of_a_transaction_are_these() {
        let mut transfer = drawn(101);
        (transfer.from, transfer.to, transfer.amount, transfer.row) = (9, 4, 50, 77);
        transfer.payload = "x".into();
        let statements = transfer.statements(&Schema::default());
        let text: Vec<&str> = statements.iter().map(|statement| statement.sql.as_str()).collect();
        assert_eq!(
            text,
            [
                "UPDATE ebbtide_account SET balance=balance+(50),version=version+1,\
                 crc=CRC32(CONCAT_WS('|',id,balance,version)) WHERE id=4",
                "UPDATE ebbtide_account SET balance=balance+(-50),version=version+1,\
                 crc=CRC32(CONCAT_WS('|',id,balance,version)) WHERE id=9",
                "UPDATE ebbtide_ballast SET k=k+1,hits=hits+1,\
                 crc=CRC32(CONCAT_WS('|',id,k,c,pad,hits)) WHERE id=77",
                &format!(
                    "INSERT INTO ebbtide_history (client,seq,a,b,amount,payload,crc) VALUES \
                     (3,101,9,4,50,'x',{})",
                    crc_of(b"3|101|9|4|50|x")
                ),
                "DELETE FROM ebbtide_history WHERE client=3 AND seq=1",
                "UPDATE ebbtide_ledger SET seq=101 WHERE client=3",
            ]
        );
    }

    #[test]
    fn a_transaction_to_be_rolled_back_leaves_markers_and_no_mark() {
        let transfer = Transfer::draw(&Schema::default(), 5, 3, 7, Fate::RolledBack);
        let statements = transfer.statements(&Schema::default());
        assert!(statements.iter().all(|statement| !statement.sql.contains("ebbtide_ledger")));
        assert!(statements.iter().any(|statement| statement.sql.contains("INTO ebbtide_aborted")));
        assert!(statements.iter().any(|statement| statement.sql.contains("'aborted-")));
    }

    #[test]
    fn about_one_in_so_many_transactions_has_an_abort_before_it() {
        let count = (1..=16_000).filter(|seq| abort_comes_first(5, 2, *seq, 16)).count();
        assert!((900..1_100).contains(&count), "seed 5: {count}");
        assert!((1..1_000).all(|seq| !abort_comes_first(5, 2, seq, 0)));
    }
}
