//! nginx's `stub_status` page. It has neither histograms nor an internal queue.

use super::stats::Page;

/// Where the page is.
pub(crate) const PATH: &str = "/stub_status";

/// Parses the page; `None` if it is another one.
///
/// `accepts`, `handled` and `requests` are counters; `active`, `reading`, `writing` and `waiting` are connections now.
pub(crate) fn parse(text: &str) -> Option<Page> {
    let mut lines = text.lines().map(str::trim);
    let active = lines.next()?.strip_prefix("Active connections:")?;
    let names = lines.next()?.strip_prefix("server ")?;
    let values = lines.next()?;
    let mut page = Page::default();
    for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
        page.counters.insert(name.to_owned(), value.parse().ok()?);
    }
    page.gauges
        .insert("active".to_owned(), active.trim().parse().ok()?);
    let words: Vec<&str> = lines.next()?.split_whitespace().collect();
    for pair in words.chunks_exact(2) {
        let name = pair[0].strip_suffix(':')?.to_ascii_lowercase();
        page.gauges.insert(name, pair[1].parse().ok()?);
    }
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "Active connections: 291 \nserver accepts handled requests\n 16630948 16630947 31070465 \nReading: 6 Writing: 179 Waiting: 106 \n";

    #[test]
    fn a_page_of_nginx() {
        let page = parse(PAGE).expect("a page");
        assert_eq!(page.counters["accepts"], 16_630_948);
        assert_eq!(page.counters["handled"], 16_630_947);
        assert_eq!(page.counters["requests"], 31_070_465);
        assert_eq!(page.gauges["active"], 291.0);
        assert_eq!(page.gauges["writing"], 179.0);
        assert_eq!(page.gauges["waiting"], 106.0);
    }

    #[test]
    fn another_page_is_refused() {
        assert_eq!(parse("<html>404</html>"), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse(&PAGE.replace("31070465", "many")), None);
    }

    proptest::proptest! {
        #[test]
        fn no_page_panics(cut in 0_usize..130, text in "(?s).{0,100}") {
            let _ = parse(PAGE.get(..cut).unwrap_or_default());
            let _ = parse(&text);
        }
    }
}
