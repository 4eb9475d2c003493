//! What dead runs and this one leave on the engine.

use std::time::Duration;

use super::RunError;
use crate::progress::{Event, Progress};
use crate::runtime::{Engine, Owner};

/// What dead owners left on this engine would disturb the measurement, and nobody else will remove it.
pub(super) async fn reap(engine: &Engine, progress: &dyn Progress) -> Result<(), RunError> {
    for removed in engine.reap().await? {
        let text = match removed.error {
            None => format!(
                "removed {}, left by run {} whose process is gone",
                removed.name, removed.run
            ),
            Some(error) => format!(
                "cannot remove {}, left by run {}: {error}",
                removed.name, removed.run
            ),
        };
        progress.event(&Event::Notice { text });
    }
    Ok(())
}

/// Removes everything of this run; bounded, since an engine that hangs must not keep the process.
pub(super) async fn clean_up(engine: &Engine, owner: &Owner, progress: &dyn Progress) {
    const DEADLINE: Duration = Duration::from_secs(10);
    let failed = match tokio::time::timeout(DEADLINE, engine.remove_run(&owner.run)).await {
        Ok(Ok(removed)) => removed
            .into_iter()
            .filter_map(|r| Some(format!("{}: {}", r.name, r.error?)))
            .collect::<Vec<_>>(),
        Ok(Err(error)) => vec![error.to_string()],
        Err(_) => vec![format!(
            "the engine did not answer within {} s",
            DEADLINE.as_secs()
        )],
    };
    for error in failed {
        let text = format!(
            "something of this run is left ({error}); `sweep clean` removes it once the engine is well"
        );
        progress.event(&Event::Notice { text });
    }
}
