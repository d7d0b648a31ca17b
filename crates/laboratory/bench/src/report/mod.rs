//! What comes out of experiments: CSV and Markdown for machines and other documents, one HTML page that opens without a
//! network, and JSON.
//!
//! ```text
//!  measurements ──Metric──▶ Plot ──▶ Chart ─┐
//!              │                            ├─▶ Section ──▶ Page ──▶ report.html
//!              └──────────▶ Table ──────────┘
//!                             └────────────────────────────────────▶ measurements.csv, measurements.md
//! ```

mod chart;
mod metric;
mod page;
mod plot;
mod table;

pub(crate) use chart::{Chart, Value, escaped};
pub(crate) use metric::{Metric, Unit, cell, throughput};
pub(crate) use page::{Page, Section};
pub(crate) use plot::{Plot, Plotted, Published, color};
pub use table::grouped;
pub(crate) use table::{Table, quoted};

use crate::LaboratoryError;
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Everything that is written about a run.
pub(crate) struct Report {
    pub(crate) page: Page,
    /// One line per point, every metric a column, shares from 0 to 1.
    pub(crate) csv: Table,
    /// What stands before the table of the Markdown.
    pub(crate) introduction: String,
    pub(crate) markdown: Table,
}

impl Report {
    /// Writes `report.html`, `measurements.csv` and `measurements.md`.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), LaboratoryError> {
        fs::create_dir_all(folder).map_err(LaboratoryError::file("create", folder))?;
        write(&folder.join("measurements.csv"), self.csv.csv())?;
        let markdown = format!("{}\n\n{}", self.introduction, self.markdown.markdown());
        write(&folder.join("measurements.md"), markdown)?;
        write(&folder.join("report.html"), self.page.html())
    }
}

/// Writes records as `--json` promises them.
pub(crate) fn write_json(path: &Path, records: &[impl Serialize]) -> Result<(), LaboratoryError> {
    let text = serde_json::to_string_pretty(records).expect("records are plain data");
    write(path, text + "\n")
}

fn write(path: &Path, text: String) -> Result<(), LaboratoryError> {
    fs::write(path, text).map_err(LaboratoryError::file("write", path))
}
