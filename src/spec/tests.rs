#![allow(clippy::unwrap_used)]

mod bad;
mod good;
mod hostile;

use super::*;

/// Files that matrices in these tests refer to.
pub(super) fn files(path: &str) -> Result<String, String> {
    match path {
        "envoy.yaml" => Ok("static_resources: {}".to_owned()),
        "other.yaml" => Ok("admin: {}".to_owned()),
        _ => Err("no such file".to_owned()),
    }
}

pub(super) fn parsed(text: &str, overrides: &[&str]) -> Result<Matrix, SpecErrors> {
    let overrides: Vec<Override> = overrides.iter().map(|o| Override::from(*o)).collect();
    parse("matrix.toml", text, &overrides, &mut files)
}

pub(super) fn right(text: &str) -> Matrix {
    right_with(text, &[])
}

pub(super) fn right_with(text: &str, overrides: &[&str]) -> Matrix {
    parsed(text, overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

pub(super) fn wrong(text: &str) -> SpecErrors {
    match parsed(text, &[]) {
        Ok(_) => panic!("accepted: {text}"),
        Err(errors) => errors,
    }
}
