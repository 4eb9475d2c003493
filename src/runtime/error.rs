//! What can go wrong between `sweep` and the engine: every error names the operation, its subject and the remedy.

use std::time::Duration;

/// An engine operation that failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No engine could be asked at all.
    #[error("cannot reach the container engine at {address}: {cause}; {remedy}")]
    Unreachable {
        /// Address that was tried.
        address: String,
        /// What the connection said.
        cause: String,
        /// What would help.
        remedy: String,
    },
    /// The engine answered with an error.
    #[error("cannot {operation} {subject}: the engine answered {status}: {message}{}", remedy(.message))]
    Refused {
        /// What was asked.
        operation: &'static str,
        /// Of what.
        subject: String,
        /// HTTP status.
        status: u16,
        /// The engine's text.
        message: String,
    },
    /// The engine did not answer in time.
    #[error(
        "cannot {operation} {subject}: no answer from the engine within {}; is it overloaded or stopping?",
        humantime::format_duration(*.after)
    )]
    TimedOut {
        /// What was asked.
        operation: &'static str,
        /// Of what.
        subject: String,
        /// The deadline that passed.
        after: Duration,
    },
    /// The connection broke, or the answer could not be understood.
    #[error("cannot {operation} {subject}: {cause}")]
    Broken {
        /// What was asked.
        operation: &'static str,
        /// Of what.
        subject: String,
        /// The cause.
        cause: String,
    },
    /// An image that is neither here nor to be had.
    #[error("image {image} is not on the engine and cannot be pulled: {cause}; {remedy}")]
    NoImage {
        /// Its reference.
        image: String,
        /// Why the pull failed.
        cause: String,
        /// What would help.
        remedy: String,
    },
    /// An image of ours could not be made.
    #[error("cannot make the image {image}: {cause}")]
    CannotBuildImage {
        /// Its reference.
        image: String,
        /// Why.
        cause: String,
    },
}

impl EngineError {
    /// The engine itself is gone or unwell (as opposed to one request being refused), so a retry may help.
    #[must_use]
    pub fn is_engine_trouble(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Broken { .. } => true,
            Self::Refused { status, .. } => *status >= 500,
            Self::NoImage { .. } | Self::CannotBuildImage { .. } => false,
        }
    }

    /// HTTP status of a refusal.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    pub(super) fn from_bollard(
        operation: &'static str,
        subject: &str,
        error: bollard::errors::Error,
    ) -> Self {
        use bollard::errors::Error as E;
        let subject = subject.to_owned();
        match error {
            E::DockerResponseServerError {
                status_code,
                message,
            } => Self::Refused {
                operation,
                subject,
                status: status_code,
                message: message.trim().to_owned(),
            },
            E::RequestTimeoutError => Self::TimedOut {
                operation,
                subject,
                after: super::engine::CLIENT_TIMEOUT,
            },
            other => Self::Broken {
                operation,
                subject,
                cause: with_sources(&other),
            },
        }
    }
}

/// What helps against a refusal, by the engine's words, to be put behind them; empty where nothing is known to.
fn remedy(message: &str) -> &'static str {
    let lower = message.to_lowercase();
    let says = |words: &str| lower.contains(words);
    if says("no space left on device") {
        "; make room on the engine's disk (`docker system df` tells what is there, `docker system prune` removes what nobody uses)"
    } else if says("is already in use by") {
        "; that container is not this run's, and so is left alone: remove or rename it"
    } else if says("no such image") {
        "; it was removed after the run had begun: pull or import it again, and go on with --resume"
    } else if says("error setting rlimit type 7") {
        "; the engine may not raise descriptor limits that far: lower proxy.nofile"
    } else {
        ""
    }
}

/// An error with the chain of its sources, which is where the operating system's words are. What libraries say of
/// themselves tells a reader nothing and is left out, unless it is all that there is.
pub(super) fn with_sources(error: &dyn std::error::Error) -> String {
    const OF_LIBRARIES: [&str; 2] = ["Error in the hyper legacy client", "client error ("];
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(inner) = next {
        let own = inner.to_string();
        let tells = !OF_LIBRARIES.iter().any(|words| own.starts_with(words));
        if tells && !text.contains(&own) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&own);
        }
        next = inner.source();
    }
    if text.is_empty() {
        error.to_string()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Link {
        text: &'static str,
        source: Option<Box<Link>>,
    }

    fn chain(texts: &[&'static str]) -> Option<Box<Link>> {
        let (text, inner) = texts.split_first()?;
        let source = chain(inner);
        Some(Box::new(Link { text, source }))
    }

    fn told(texts: &[&'static str]) -> String {
        with_sources(&*chain(texts).expect("not empty"))
    }

    #[test]
    fn the_cause_is_told_and_not_the_library() {
        let outer = "Error in the hyper legacy client: client error (Connect)";
        let inner = ["client error (Connect)", "dns error", "no such host"];
        assert_eq!(
            told(&[&[outer][..], &inner].concat()),
            "dns error: no such host"
        );
        assert_eq!(told(&["broken pipe", "broken pipe"]), "broken pipe");
        assert_eq!(
            told(&[outer, "client error (Connect)"]),
            outer,
            "all that there is"
        );
    }
}
