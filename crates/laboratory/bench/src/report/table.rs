/// Rows of cells under their titles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// For machines.
    pub(super) fn csv(&self) -> String {
        let line =
            |cells: &[String]| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n";
        let lines = std::iter::once(&self.columns).chain(&self.rows);
        lines.map(|cells| line(cells)).collect()
    }

    /// For other documents.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
        let rule = format!("|{}\n", " --- |".repeat(self.columns.len()));
        line(&self.columns) + &rule + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }
}

/// A text as a cell of CSV.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn cells_with_commas_are_quoted_in_csv_and_left_alone_in_markdown() {
        let mut table = Table::new(["name", "tps"]);
        table.rows.push(vec!["a, \"b\"".to_string(), "7".to_string()]);
        assert_eq!(table.csv(), "name,tps\n\"a, \"\"b\"\"\",7\n");
        assert_eq!(table.markdown(), "| name | tps |\n| --- | --- |\n| a, \"b\" | 7 |\n");
    }
}
