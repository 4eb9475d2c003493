//! HAProxy's statistics as CSV. Its times are means of the last 1,024 requests, not histograms.

use super::stats::Page;

/// Where the page is.
pub(crate) const PATH: &str = "/stats;csv";

/// Columns that only grow; every other number is a gauge. Names: HAProxy's management guide, 9.1 "CSV format".
const COUNTERS: [&str; 40] = [
    "stot",
    "bin",
    "bout",
    "dreq",
    "dresp",
    "ereq",
    "econ",
    "eresp",
    "wretr",
    "wredis",
    "chkfail",
    "chkdown",
    "downtime",
    "lbtot",
    "hrsp_1xx",
    "hrsp_2xx",
    "hrsp_3xx",
    "hrsp_4xx",
    "hrsp_5xx",
    "hrsp_other",
    "hanafail",
    "req_tot",
    "cli_abrt",
    "srv_abrt",
    "comp_in",
    "comp_out",
    "comp_byp",
    "comp_rsp",
    "conn_tot",
    "intercepted",
    "dcon",
    "dses",
    "wrew",
    "connect",
    "reuse",
    "cache_lookups",
    "cache_hits",
    "eint",
    "ssl_sess",
    "ssl_reused_sess",
];

/// The modules' columns count too, but for what is open now.
fn is_counter(column: &str) -> bool {
    let of_module = ["h1_", "h2_", "ssl_"]
        .iter()
        .any(|module| column.starts_with(module));
    COUNTERS.contains(&column) || (of_module && !column.contains("_open_"))
}

/// Parses the page, by its header; `None` if it is another one. Names are `proxy.server.column`.
pub(crate) fn parse(text: &str) -> Option<Page> {
    let text = text.strip_prefix("# ")?;
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(text.as_bytes());
    let header = reader.headers().ok()?.clone();
    let column = |name: &str| header.iter().position(|h| h == name);
    let (proxy, server) = (column("pxname")?, column("svname")?);
    let mut page = Page::default();
    for row in reader.records() {
        let row = row.ok()?;
        let (Some(proxy_name), Some(server_name)) = (row.get(proxy), row.get(server)) else {
            continue;
        };
        for (name, value) in header.iter().zip(&row) {
            let Ok(number) = value.parse::<f64>() else {
                continue;
            };
            if !number.is_finite() {
                continue;
            }
            let full = format!("{proxy_name}.{server_name}.{name}");
            match (is_counter(name), value.parse::<u64>()) {
                (true, Ok(count)) => {
                    page.counters.insert(full, count);
                }
                _ => {
                    page.gauges.insert(full, number);
                }
            }
        }
    }
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# pxname,svname,qcur,qmax,scur,smax,stot,econ,status,qtime,ttime,mode,\ningress,FRONTEND,,,40,40,7123,,OPEN,,,http,\nbe,s1,34,36,4,4,7123,2,no check,3,12,http,\n";

    #[test]
    fn a_page_of_haproxy() {
        let page = parse(PAGE).expect("a page");
        assert_eq!(page.counters["be.s1.stot"], 7123);
        assert_eq!(page.counters["be.s1.econ"], 2);
        assert_eq!(page.gauges["be.s1.qcur"], 34.0);
        assert_eq!(page.gauges["be.s1.qtime"], 3.0);
        assert_eq!(page.gauges["ingress.FRONTEND.scur"], 40.0);
        assert!(
            !page.counters.contains_key("ingress.FRONTEND.econ"),
            "empty is unknown"
        );
        assert!(!page.gauges.contains_key("be.s1.mode"));
    }

    #[test]
    fn another_page_is_refused() {
        assert_eq!(parse("<html>"), None);
        assert_eq!(parse("# name,value\nx,1\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_page_panics(cut in 0_usize..220, text in "(?s).{0,100}") {
            let _ = parse(PAGE.get(..cut).unwrap_or_default());
            let _ = parse(&format!("# pxname,svname,stot\n{text}"));
        }
    }
}
