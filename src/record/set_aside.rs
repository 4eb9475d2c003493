//! Trials that are to run again: out of `trials.jsonl`, but not lost.

use std::collections::BTreeMap;
use std::io;

use super::atomic::{Sync, sync_folder, write_atomically};
use super::trials::{TrialLog, read_bytes};
use super::{RecordError, RunFolder, SET_ASIDE, TRIALS, TrialKey, trial::TrialRecord};

impl RunFolder {
    /// Moves the trials against which `why` has something to say into `trials-set-aside.jsonl`, so that they run again.
    /// Tells what was said of each.
    ///
    /// # Errors
    /// When the operating system refuses. At whatever point, every trial is in one of the two files; a trial of which the
    /// move was cut is in both, and is moved again by the next call.
    pub fn set_aside(
        &mut self,
        why: impl Fn(&TrialRecord) -> Option<String>,
    ) -> Result<BTreeMap<TrialKey, String>, RecordError> {
        let mut reasons = BTreeMap::new();
        let path = self.folder.path().join(SET_ASIDE);
        let (mut aside, mut kept) = (read_bytes(&path)?, Vec::new());
        for record in &self.found.records {
            let lines = match why(record) {
                Some(reason) => {
                    reasons.insert(TrialKey::of(record), reason);
                    &mut aside
                }
                None => &mut kept,
            };
            serde_json::to_writer(&mut *lines, record).map_err(io::Error::from)?;
            lines.push(b'\n');
        }
        if reasons.is_empty() {
            return Ok(reasons);
        }
        // Each of the two whole, whenever the process dies, and this one first.
        let folder = self.folder.path();
        write_atomically(folder, &path, &aside, Sync::Now)?;
        sync_folder(folder)?;
        write_atomically(folder, &folder.join(TRIALS), &kept, Sync::Now)?;
        sync_folder(folder)?;
        // The open one is the old file, which has no name any more. What was told of it still holds.
        let notices = std::mem::take(&mut self.found.notices);
        (self.log, self.found) = TrialLog::open(&folder.join(TRIALS))?;
        self.found.notices.splice(0..0, notices);
        Ok(reasons)
    }
}
