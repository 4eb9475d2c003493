//! Columns side by side.

use unicode_width::UnicodeWidthStr as _;

/// Spaces between columns, the best first.
const GAPS: [usize; 2] = [2, 1];

/// Rows of texts, the first the header. Label columns and the last one are aligned left, the rest right.
pub(super) struct Layout {
    pub(super) rows: Vec<Vec<String>>,
    pub(super) labels: usize,
}

impl Layout {
    fn columns(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    fn column_width(&self, column: usize) -> usize {
        self.rows
            .iter()
            .map(|row| row[column].width())
            .max()
            .unwrap_or(0)
    }

    /// Width of the whole with this gap between columns.
    fn width(&self, gap: usize) -> usize {
        let columns: usize = (0..self.columns()).map(|c| self.column_width(c)).sum();
        columns + gap * self.columns().saturating_sub(1)
    }

    /// Whether the whole fits, with one space between columns at least.
    pub(super) fn fits(&self, width: usize) -> bool {
        self.width(1) <= width
    }

    /// Removes the column with this header.
    pub(super) fn remove(&mut self, header: &str) {
        let names = self.rows.first().map_or(&[][..], Vec::as_slice);
        let found = names.iter().skip(self.labels).position(|h| h == header);
        if let Some(column) = found.map(|n| n + self.labels) {
            for row in &mut self.rows {
                row.remove(column);
            }
        }
    }

    /// Cuts the widest labels until the whole fits, but none to less than `shortest`.
    pub(super) fn narrow_labels(&mut self, width: usize, shortest: usize) {
        while !self.fits(width) {
            let widest = (0..self.labels).max_by_key(|&c| self.column_width(c));
            let Some(column) = widest.filter(|&c| self.column_width(c) > shortest) else {
                return;
            };
            let target = self.column_width(column) - 1;
            for row in &mut self.rows {
                cut(&mut row[column], target);
            }
        }
    }

    /// With as much space between columns as this width has room for.
    pub(super) fn render(&self, width: usize) -> String {
        let gap = GAPS.into_iter().find(|&gap| self.width(gap) <= width);
        let gap = gap.unwrap_or(1);
        let widths: Vec<usize> = (0..self.columns()).map(|c| self.column_width(c)).collect();
        let mut out = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, text) in row.iter().enumerate() {
                let space = " ".repeat(widths[column] - text.width());
                let left = column < self.labels || column + 1 == row.len();
                if column > 0 {
                    line.push_str(&" ".repeat(gap));
                }
                let (before, after) = if left {
                    ("", space.as_str())
                } else {
                    (space.as_str(), "")
                };
                line.push_str(before);
                line.push_str(text);
                line.push_str(after);
            }
            out.push_str(line.trim_end());
            out.push('\n');
            if index == 0 {
                out.push_str(&"─".repeat(self.width(gap)));
                out.push('\n');
            }
        }
        out
    }
}

fn cut(text: &mut String, width: usize) {
    if text.width() <= width {
        return;
    }
    while text.width() + 1 > width && text.pop().is_some() {}
    text.push('…');
}
