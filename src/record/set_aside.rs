//! Trials that are to run again: out of `trials.jsonl`, but not lost.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use fs_err::OpenOptions;

use super::atomic::{Sync, sync_folder, write_atomically};
use super::trials::TrialLog;
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
        let (mut aside, mut kept) = (Vec::new(), Vec::new());
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
        let folder = self.folder.path();
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join(SET_ASIDE))?;
        file.write_all(&aside)?;
        file.sync_all()?;
        write_atomically(folder, &folder.join(TRIALS), &kept, Sync::Now)?;
        sync_folder(folder)?;
        // The open one is the old file, which has no name any more.
        (self.log, self.found) = TrialLog::open(&folder.join(TRIALS))?;
        Ok(reasons)
    }
}
