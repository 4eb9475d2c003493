//! A container's output, line by line.

use bollard::container::LogOutput;
use futures_util::StreamExt as _;

use super::error::EngineError;

/// What an attach gives.
pub(super) type Output = std::pin::Pin<
    Box<dyn futures_util::Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>,
>;

/// Lines of a container's standard output; its standard error is kept aside.
pub struct LineStream {
    output: Output,
    buffer: Vec<u8>,
    /// Last part of standard error, at most 16 KiB.
    pub stderr_tail: String,
}

impl LineStream {
    pub(super) fn new(output: Output) -> Self {
        Self {
            output,
            buffer: Vec::new(),
            stderr_tail: String::new(),
        }
    }

    /// The next line, or `None` when the container's output has ended.
    ///
    /// # Errors
    /// When the connection to the engine breaks.
    pub async fn next_line(&mut self) -> Result<Option<String>, EngineError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.truncate(end);
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            match self.output.next().await {
                None if self.buffer.is_empty() => return Ok(None),
                None => {
                    return Ok(Some(
                        String::from_utf8_lossy(&std::mem::take(&mut self.buffer)).into_owned(),
                    ));
                }
                Some(Err(e)) => {
                    return Err(EngineError::from_bollard(
                        "read the output of",
                        "the agent",
                        e,
                    ));
                }
                Some(Ok(LogOutput::StdErr { message })) => self.keep_stderr(&message),
                Some(Ok(other)) => self.buffer.extend_from_slice(&other.into_bytes()),
            }
        }
    }

    fn keep_stderr(&mut self, message: &[u8]) {
        const KEEP: usize = 16 * 1024;
        self.stderr_tail.push_str(&String::from_utf8_lossy(message));
        if self.stderr_tail.len() > KEEP {
            let mut cut = self.stderr_tail.len() - KEEP;
            while !self.stderr_tail.is_char_boundary(cut) {
                cut += 1;
            }
            self.stderr_tail.drain(..cut);
        }
    }
}
