//! Counts with their noun.

/// `1 trial`, `2 trials`: for nouns whose plural is an `s` more.
#[must_use]
pub(crate) fn counted<N: std::fmt::Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let plural = if n == N::from(1) { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let texts = [0_u64, 1, 2].map(|n| counted(n, "trial"));
        assert_eq!(texts, ["0 trials", "1 trial", "2 trials"]);
        assert_eq!(counted(1_usize, "CPU"), "1 CPU");
    }
}
