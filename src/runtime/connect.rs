//! Which engine to talk to: `DOCKER_HOST`, else the Docker context, else the default socket.
//!
//! bollard 0.21 knows only `DOCKER_HOST`; users of Colima, Docker Desktop and rootless engines have a context instead.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Where the engine is, and how that was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAddress {
    /// `unix://…`, `tcp://…`, `http://…`.
    pub url: String,
    /// `DOCKER_HOST`, `context NAME`, or `default`.
    pub source: String,
}

const DEFAULT_URL: &str = "unix:///var/run/docker.sock";

#[derive(Deserialize)]
struct CliConfig {
    #[serde(rename = "currentContext")]
    current_context: Option<String>,
}

#[derive(Deserialize)]
struct ContextMeta {
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "Endpoints")]
    endpoints: std::collections::BTreeMap<String, ContextEndpoint>,
}

#[derive(Deserialize)]
struct ContextEndpoint {
    #[serde(rename = "Host")]
    host: Option<String>,
}

/// Resolves the engine's address from the environment, as the docker command line does.
///
/// # Errors
/// When a context is named but cannot be read.
pub fn resolve_address(
    env: &dyn Fn(&str) -> Option<String>,
    home: Option<&Path>,
) -> Result<EngineAddress, String> {
    if let Some(url) = env("DOCKER_HOST").filter(|v| !v.is_empty()) {
        return Ok(EngineAddress { url, source: "DOCKER_HOST".to_owned() });
    }
    let config_dir = env("DOCKER_CONFIG").map(PathBuf::from).or_else(|| home.map(|h| h.join(".docker")));
    let named = env("DOCKER_CONTEXT").filter(|v| !v.is_empty()).or_else(|| {
        let text = fs_err::read_to_string(config_dir.as_ref()?.join("config.json")).ok()?;
        serde_json::from_str::<CliConfig>(&text).ok()?.current_context
    });
    match (named.as_deref(), config_dir) {
        (None | Some("" | "default"), _) => {
            Ok(EngineAddress { url: DEFAULT_URL.to_owned(), source: "default".to_owned() })
        }
        (Some(name), Some(dir)) => context_host(&dir, name)
            .map(|url| EngineAddress { url, source: format!("context {name}") })
            .ok_or_else(|| {
                format!(
                    "docker context {name:?} is selected but has no docker endpoint below {}; \
                     set DOCKER_HOST, or `docker context use default`",
                    dir.join("contexts/meta").display()
                )
            }),
        (Some(name), None) => Err(format!("docker context {name:?} is selected but there is no home directory")),
    }
}

fn context_host(config_dir: &Path, name: &str) -> Option<String> {
    let entries = fs_err::read_dir(config_dir.join("contexts/meta")).ok()?;
    entries.flatten().find_map(|entry| {
        let text = fs_err::read_to_string(entry.path().join("meta.json")).ok()?;
        let meta: ContextMeta = serde_json::from_str(&text).ok()?;
        (meta.name == name).then(|| meta.endpoints.get("docker")?.host.clone()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn docker_host_wins() {
        let env = |key: &str| (key == "DOCKER_HOST").then(|| "tcp://10.0.0.1:2375".to_owned());
        let address = resolve_address(&env, None).expect("address");
        assert_eq!((address.url.as_str(), address.source.as_str()), ("tcp://10.0.0.1:2375", "DOCKER_HOST"));
    }

    #[test]
    fn without_anything_the_default_socket() {
        let home = tempfile::tempdir().expect("tempdir");
        assert_eq!(resolve_address(&none, Some(home.path())).expect("address").url, DEFAULT_URL);
    }

    #[test]
    fn the_current_context_is_followed() {
        let home = tempfile::tempdir().expect("tempdir");
        let meta = home.path().join(".docker/contexts/meta/abc");
        fs_err::create_dir_all(&meta).expect("dir");
        fs_err::write(home.path().join(".docker/config.json"), r#"{"currentContext":"colima"}"#).expect("write");
        fs_err::write(
            meta.join("meta.json"),
            r#"{"Name":"colima","Metadata":{},"Endpoints":{"docker":{"Host":"unix:///h/.colima/docker.sock","SkipTLSVerify":false}}}"#,
        )
        .expect("write");
        let address = resolve_address(&none, Some(home.path())).expect("address");
        assert_eq!(address.url, "unix:///h/.colima/docker.sock");
        assert_eq!(address.source, "context colima");
    }

    #[test]
    fn a_context_that_is_missing_is_an_error_and_not_another_engine() {
        let home = tempfile::tempdir().expect("tempdir");
        let env = |key: &str| (key == "DOCKER_CONTEXT").then(|| "gone".to_owned());
        let error = resolve_address(&env, Some(home.path())).expect_err("must fail");
        assert!(error.contains("\"gone\"") && error.contains("DOCKER_HOST"), "{error}");
    }
}
