//! Histograms as files that every HdrHistogram library reads (V2 encoding, uncompressed).

use super::analysis::Analysis;
use super::text::file_name;
use crate::hdr::LatencyHistogram;
use crate::record::columns::METRICS;
use crate::record::derived;

/// Every file: path below the results folder, and bytes. Per trial and metric, and per cell the valid repetitions merged;
/// requests of unknown length stand in a file of their own (`…-censored.hdr`). Empty histograms have no file.
#[must_use]
pub fn files(analysis: &Analysis<'_>) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut add =
        |cell: &str, part: &str, metric: &str, histogram: &LatencyHistogram, suffix: &str| {
            if !histogram.inner().is_empty() {
                let path = format!("histograms/{}/{part}-{metric}{suffix}.hdr", file_name(cell));
                files.push((path, histogram.to_v2_bytes()));
            }
        };
    for judged in &analysis.trials {
        let Some(load) = derived::load(judged.trial) else {
            continue;
        };
        let part = format!("repetition-{}", judged.trial.repetition);
        for metric in &METRICS {
            let (successes, censored) = (metric.histograms)(load);
            add(&judged.trial.cell, &part, metric.name, successes, "");
            if let Some(censored) = censored {
                add(
                    &judged.trial.cell,
                    &part,
                    metric.name,
                    censored,
                    "-censored",
                );
            }
        }
    }
    for cell in &analysis.cells {
        for (metric, successes, censored) in &cell.merged {
            add(&cell.cell, "merged", metric, successes, "");
            add(&cell.cell, "merged", metric, censored, "-censored");
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;
    use crate::report::analysis::analyse;
    use hdrhistogram::serialization::Deserializer;

    #[test]
    fn files_read_back_and_merged_ones_hold_every_value() {
        let (manifest, records) = sample::quick_run();
        let files = files(&analyse(&manifest, &records));
        let read = |path: &str| -> hdrhistogram::Histogram<u64> {
            let (_, bytes) = files
                .iter()
                .find(|(p, _)| p == path)
                .unwrap_or_else(|| panic!("{path}"));
            Deserializer::new()
                .deserialize(&mut bytes.as_slice())
                .expect("V2")
        };
        let folder = "histograms/cpu=250m,memory=64Mi,swap=0";
        assert_eq!(
            read(&format!("{folder}/repetition-1-response_time.hdr")).len(),
            1000
        );
        assert_eq!(
            read(&format!("{folder}/merged-response_time.hdr")).len(),
            3000
        );
        assert!(
            files.iter().all(|(p, _)| !p.contains("handshake_settings")),
            "HTTP/1.1 has none"
        );
    }
}
