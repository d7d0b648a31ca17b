//! The rows as files of CSV without titles, which PostgreSQL and DuckDB load.

use super::table::Table;
use crate::LaboratoryError;
use crate::report::quoted;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use types::{Value, format_value};

/// A folder with one file for each table; it goes when this is dropped.
pub(super) struct Files {
    folder: TempDir,
}

impl Files {
    pub(super) fn write(tables: &[Table]) -> Result<Files, LaboratoryError> {
        let folder = temporary_folder()?;
        let files = Files { folder };
        for table in tables {
            let path = files.path(table);
            write(&path, (table.rows)()).map_err(LaboratoryError::file("write", &path))?;
        }
        Ok(files)
    }

    /// The file of a table.
    pub(super) fn path(&self, table: &Table) -> PathBuf {
        self.folder.path().join(table.name).with_extension("csv")
    }
}

/// A folder that goes when this is dropped.
pub(super) fn temporary_folder() -> Result<TempDir, LaboratoryError> {
    let folder = tempfile::Builder::new().prefix("entente-bench-").tempdir();
    folder.map_err(LaboratoryError::file("create", &std::env::temp_dir()))
}

fn write(path: &Path, rows: impl Iterator<Item = Vec<Value>>) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for row in rows {
        let mut cells = row.iter().map(cell);
        write!(file, "{}", cells.next().unwrap_or_default())?;
        cells.try_for_each(|cell| write!(file, ",{cell}"))?;
        writeln!(file)?;
    }
    file.flush()
}

/// A value that is not NULL. The spaces at the end of a `char(n)` are left out: who has that type fills it up.
fn cell(value: &Value) -> String {
    let text = format_value(value).unwrap_or_default();
    match value {
        Value::Char(_) => quoted(text.trim_end_matches(' ')),
        _ => quoted(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_values_of_a_row() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.csv");
        let row = vec![Value::BigInt(7), Value::Char("RAIL      ".into()), Value::text("a, \"b\"")];
        write(&path, std::iter::once(row)).expect("it can be written");
        assert_eq!(std::fs::read_to_string(path).expect("it is there"), "7,RAIL,\"a, \"\"b\"\"\"\n");
    }
}
