//! The controller's end of the line to the agent.

use std::time::Duration;

use super::OnPhase;
use crate::agent::job::{AgentEvent, AgentResult};
use crate::runtime::LineStream;

/// How long the agent may take from its start to its first line.
const HELLO: Duration = Duration::from_secs(60);

/// A started agent.
pub(super) struct AgentLink {
    lines: LineStream,
}

impl AgentLink {
    pub(super) fn new(lines: LineStream) -> Self {
        Self { lines }
    }

    /// Waits until the agent watches, so that nothing of the proxy's start is missed.
    pub(super) async fn until_watching(&mut self) -> Result<(), String> {
        match tokio::time::timeout(HELLO, self.next()).await {
            Err(_) => Err(format!("the agent said nothing within {} s{}", HELLO.as_secs(), self.stderr())),
            Ok(Ok(AgentEvent::Watching { version })) if version == crate::VERSION => Ok(()),
            Ok(Ok(AgentEvent::Watching { version })) => {
                Err(format!("the agent is version {version} and this is {}; run `sweep clean --images`", crate::VERSION))
            }
            Ok(Ok(AgentEvent::Failed { error })) | Ok(Err(error)) => Err(error),
            Ok(Ok(other)) => Err(format!("the agent began with an unexpected line: {other:?}")),
        }
    }

    /// Waits for the result, passing phases on.
    pub(super) async fn result(&mut self, budget: Duration, on_phase: &OnPhase<'_>) -> Result<AgentResult, String> {
        let read = async {
            loop {
                match self.next().await? {
                    AgentEvent::Done(result) => return Ok(*result),
                    AgentEvent::Failed { error } => return Err(error),
                    AgentEvent::Phase { phase } => on_phase(phase),
                    AgentEvent::Watching { .. } | AgentEvent::Ready { .. } => {}
                }
            }
        };
        match tokio::time::timeout(budget, read).await {
            Ok(result) => result,
            Err(_) => Err(format!("the agent did not end within {} s{}", budget.as_secs(), self.stderr())),
        }
    }

    async fn next(&mut self) -> Result<AgentEvent, String> {
        match self.lines.next_line().await {
            Ok(Some(line)) => serde_json::from_str(&line).map_err(|e| {
                let start: String = line.chars().take(200).collect();
                format!("cannot read the agent's line {start:?}: {e}")
            }),
            Ok(None) => Err(format!("the agent ended without a result{}", self.stderr())),
            Err(e) => Err(e.to_string()),
        }
    }

    fn stderr(&self) -> String {
        match self.lines.stderr_tail.trim() {
            "" => String::new(),
            text => format!("; it wrote: {text}"),
        }
    }
}
