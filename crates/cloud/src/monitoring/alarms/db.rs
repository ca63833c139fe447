//! The alarms and their history in the tables of [`Db`].

use rusqlite::params;

use super::{Alarm, HistoryItem};
use crate::monitoring::db::{Db, DbError, stored};

impl Db {
    /// All alarms.
    pub(in crate::monitoring) fn alarms(&self) -> Result<Vec<Alarm>, DbError> {
        let mut statement = self.connection.prepare("SELECT name, record FROM alarms")?;
        let mut rows = statement.query(())?;
        let mut alarms = Vec::new();
        while let Some(row) = rows.next()? {
            let text = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
            let alarm = serde_json::from_str(text)
                .map_err(|source| DbError::Damaged { name: row.get(0).unwrap_or_default(), source })?;
            alarms.push(alarm);
        }
        Ok(alarms)
    }

    /// Writes alarms, deletes others, and adds to the history: all of it or nothing.
    pub(in crate::monitoring) fn change_alarms(
        &mut self,
        put: &[Alarm],
        dropped: &[Alarm],
        history: &[HistoryItem],
    ) -> Result<(), DbError> {
        let transaction = self.connection.transaction()?;
        for alarm in put {
            let text = serde_json::to_string(alarm).expect("a record is plain data with text keys");
            let sql = "INSERT INTO alarms (owner, region, name, record) VALUES (?1, ?2, ?3, ?4) \
                       ON CONFLICT DO UPDATE SET record = excluded.record";
            transaction.prepare_cached(sql)?.execute(params![alarm.owner, alarm.region, alarm.name, text])?;
        }
        for alarm in dropped {
            let sql = "DELETE FROM alarms WHERE owner = ?1 AND region = ?2 AND name = ?3";
            transaction.prepare_cached(sql)?.execute(params![alarm.owner, alarm.region, alarm.name])?;
        }
        for item in history {
            let sql = "INSERT INTO history (owner, region, name, at_ms, kind, summary, data) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            transaction.prepare_cached(sql)?.execute(params![
                item.owner,
                item.region,
                item.name,
                stored(item.at_ms),
                item.kind,
                item.summary,
                item.data
            ])?;
        }
        Ok(transaction.commit()?)
    }

    /// The history of an account and Region, or of one alarm, oldest first.
    pub(in crate::monitoring) fn history(
        &self,
        (owner, region): (&str, &str),
        name: Option<&str>,
    ) -> Result<Vec<HistoryItem>, DbError> {
        let sql = "SELECT owner, region, name, at_ms, kind, summary, data FROM history \
                   WHERE owner = ?1 AND region = ?2 AND (?3 IS NULL OR name = ?3) ORDER BY id";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![owner, region, name], |row| {
            Ok(HistoryItem {
                owner: row.get(0)?,
                region: row.get(1)?,
                name: row.get(2)?,
                at_ms: u64::try_from(row.get::<_, i64>(3)?).unwrap_or_default(),
                kind: row.get(4)?,
                summary: row.get(5)?,
                data: row.get(6)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
