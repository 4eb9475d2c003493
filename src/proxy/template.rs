//! Placeholders: `{{name}}` becomes a value.

/// Replaces each `{{name}}` that `value` knows. What it does not know stays as it is: other template languages use the same
/// braces. Values are not searched for placeholders again.
#[must_use]
pub fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        filled.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        let known = after.find("}}").and_then(|end| {
            let found = value(&after[..end])?;
            Some((found, &after[end + 2..]))
        });
        match known {
            Some((found, remaining)) => {
                filled.push_str(&found);
                rest = remaining;
            }
            None => {
                // One brace only: in `{{{name}}` the placeholder begins at the second.
                filled.push('{');
                rest = &rest[start + 1..];
            }
        }
    }
    filled.push_str(rest);
    filled
}
