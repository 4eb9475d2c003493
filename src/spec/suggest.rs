//! What an unknown key was probably meant to be.

use super::keys;

/// Names that other tools use for what a key means.
const KNOWN_ELSEWHERE: &[(&str, &str)] = &[
    ("concurrency", "proxy.workers"),
    ("cpus", "limits.cpu"),
    ("mem", "limits.memory"),
    ("qps", "load.rate"),
    ("rps", "load.rate"),
    ("reps", "repetitions"),
    ("http2", "load.protocol"),
    ("latency", "upstream.delay"),
    ("ulimit", "proxy.nofile"),
    ("somaxconn", "proxy.backlog"),
    ("mtls", "tls.mutual"),
    ("period", "limits.cpu_period"),
    ("memory_swap", "limits.swap"),
];

/// A remedy for a key that does not exist: the nearest known path, else the keys that the section has.
pub(super) fn key(section: &str, unknown: &str) -> String {
    let siblings = siblings(section);
    if let Some(near) = nearest(unknown, siblings.iter().map(String::as_str)) {
        return format!("did you mean \"{near}\"?");
    }
    let anywhere = keys::all()
        .map(|key| key.path)
        .chain(keys::OTHER.iter().map(|key| key.path))
        .find(|path| path.rsplit('.').next() == Some(unknown) || *path == unknown);
    let elsewhere = KNOWN_ELSEWHERE
        .iter()
        .find(|(name, _)| *name == unknown)
        .map(|(_, path)| *path);
    match anywhere.or(elsewhere) {
        Some(path) => match path.split_once('.') {
            Some((same, leaf)) if same == section => format!("did you mean \"{leaf}\"?"),
            Some((section, leaf)) => format!("did you mean \"{leaf}\" in [{section}]?"),
            None => format!("did you mean \"{path}\" at the top of the file?"),
        },
        None if section.is_empty() => {
            format!("known here are {}", siblings.join(", "))
        }
        None => format!("[{section}] knows {}", siblings.join(", ")),
    }
}

/// A remedy for a factor that does not exist.
pub(super) fn factor(unknown: &str) -> String {
    let names = keys::all().map(keys::Key::factor_name);
    if let Some(near) = nearest(unknown, names) {
        return format!("did you mean \"{near}\"?");
    }
    let leaf = unknown.rsplit('.').next().unwrap_or(unknown);
    let by_leaf = keys::all().find(|key| key.leaf() == leaf);
    let elsewhere = KNOWN_ELSEWHERE.iter().find(|(name, _)| *name == leaf);
    match (by_leaf, elsewhere.and_then(|(_, path)| keys::find(path))) {
        (Some(key), _) | (None, Some(key)) => format!("did you mean \"{}\"?", key.factor_name()),
        _ => "give cpu, memory, swap, or the path of a scalar key, such as \"load.rate\"; docs/matrix.md lists them".to_owned(),
    }
}

/// The keys of a section, those of the top level with the sections' own names.
fn siblings(section: &str) -> Vec<String> {
    let mut known: Vec<String> = keys::all()
        .filter(|key| key.section() == section)
        .map(|key| key.leaf().to_owned())
        .collect();
    let prefix = format!("{section}.");
    known.extend(keys::OTHER.iter().filter_map(|other| match section {
        "" => (!other.path.contains('.')).then(|| other.path.to_owned()),
        _ => other.path.strip_prefix(&prefix).map(str::to_owned),
    }));
    if section.is_empty() {
        known.extend(keys::SECTIONS.iter().map(|name| (*name).to_owned()));
    }
    known
}

/// The nearest name by edits with transpositions, if it is near enough to be a slip.
fn nearest<'a>(unknown: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if unknown.len() > 64 {
        return None;
    }
    let slips = |name: &str| strsim::damerau_levenshtein(&unknown.to_lowercase(), name);
    names
        .map(|name| (slips(name), name))
        .filter(|(slips, name)| *slips <= (name.len() / 3).clamp(1, 3))
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_key() {
        assert_eq!(
            key("load", "handshake-rate"),
            "did you mean \"handshake_rate\"?"
        );
        assert_eq!(key("", "repetition"), "did you mean \"repetitions\"?");
        assert_eq!(key("", "rate"), "did you mean \"rate\" in [load]?");
        assert_eq!(
            key("load", "workers"),
            "did you mean \"workers\" in [proxy]?"
        );
        assert_eq!(key("proxy", "concurrency"), "did you mean \"workers\"?");
        assert_eq!(
            key("placement", "xyzzy"),
            "[placement] knows proxy, upstream, agent"
        );
        assert!(key("", "xyzzy").starts_with("known here are warmup, duration, name"));
    }

    #[test]
    fn factors_find_theirs() {
        assert_eq!(factor("cpus"), "did you mean \"cpu\"?");
        assert_eq!(factor("load.rates"), "did you mean \"load.rate\"?");
        assert_eq!(factor("workers"), "did you mean \"proxy.workers\"?");
        assert!(factor("xyzzy").starts_with("give cpu"));
    }
}
