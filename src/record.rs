//! The results folder: manifest, append-only trials, and their schema.

pub mod trial;
