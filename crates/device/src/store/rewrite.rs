//! The manifest written as a whole, so that the log of its changes does not grow for ever.
//!
//! Both files are written while changes go on. They wait only while those of the meantime are taken over.

use super::StoreError;
use super::change_log::ChangeLog;
use super::home::keep_spare;
use super::manifest_file::{encode, put_in_place, sync_names, write_new};
use super::shared::{Job, StoreShared};
use super::synced::{Synced, notify_synced};

impl StoreShared {
    /// Puts the log on the host's disk, says so in it, and removes the files of layers that waited for it.
    pub(super) fn sync_log(&self) -> Result<(), StoreError> {
        let ((file, path, upto), number, unnamed, doomed) = {
            let mut state = self.state.lock();
            state.log_unsynced = false;
            if state.log.is_lost() {
                return Ok(()); // what waits goes with the next log
            }
            let log = &state.log;
            (log.to_sync(), log.number(), log.is_unnamed(), std::mem::take(&mut state.doomed))
        };
        let content = file.sync_data().map_err(StoreError::io("sync", &path));
        let content_lost = content.is_err();
        let synced = content.and_then(|()| if unnamed { sync_names(&self.dir) } else { Ok(()) });
        let mut state = self.state.lock();
        let is_same = state.log.number() == number;
        if is_same && content_lost {
            state.log.mark_lost();
        }
        // A log that has taken its place meanwhile is synced later.
        if synced.is_err() || !is_same {
            state.log_unsynced = true;
            state.doomed.extend(doomed);
            return synced;
        }
        if unnamed {
            state.log.mark_named();
        }
        notify_synced(Synced::Content(&path));
        state.log.seal(upto);
        drop(state);
        if !doomed.is_empty() {
            self.remove_doomed(doomed);
            keep_spare(&self.dir);
            self.room_was_made();
        }
        Ok(())
    }

    /// Writes the manifest as a whole, with an empty log. Until the rename the old manifest and its log hold, after it the
    /// new ones.
    pub(super) fn rewrite_manifest(&self) -> Result<(), StoreError> {
        let (entries, number, upto) = {
            let state = self.state.lock();
            (state.manifest.entries().clone(), state.log.number() + 1, state.log.end())
        };
        let bytes = encode(&entries, number);
        drop(entries);
        let manifest_bytes = u64::try_from(bytes.len()).expect("a length fits into 64 bits");
        let mut log = ChangeLog::create(&self.dir, number, manifest_bytes)?;
        write_new(&self.dir, &bytes).inspect_err(|_| log.discard())?;
        drop(bytes);
        let durable = self.options.host_sync;
        let old = {
            let mut state = self.state.lock();
            let switched = log.take_over(&state.log, upto, durable).and_then(|()| put_in_place(&self.dir));
            switched.inspect_err(|_| log.discard())?;
            log.mark_unnamed();
            state.log_unsynced = log.is_unsealed() || !state.doomed.is_empty();
            state.given_up.remove(&Job::SyncLog);
            let old = std::mem::replace(&mut state.log, log);
            if durable {
                // Before the next change is answered.
                sync_names(&self.dir)?;
                state.log.mark_named();
            }
            old
        };
        if !durable {
            sync_names(&self.dir)?;
        }
        old.discard();
        self.room_was_made();
        Ok(())
    }
}
