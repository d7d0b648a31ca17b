//! Data files: rows of a table to Parquet, and back.

use crate::LakehouseError;
use crate::layout::Layout;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use types::{Key, Row};

/// Rows that are put into columns at a time.
const BATCH_ROWS: usize = 4_096;
/// A file that has so many bytes ends with the group that it has got there by.
pub(crate) const FILE_BYTES: usize = 64 << 20;

/// A data file that gets its rows, in the order of their keys.
pub(crate) struct DataFile<'l> {
    layout: &'l Layout,
    writer: ArrowWriter<Vec<u8>>,
    rows: u64,
}

impl<'l> DataFile<'l> {
    pub(crate) fn new(layout: &'l Layout) -> Result<DataFile<'l>, ParquetError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("entente".to_string())
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), layout.schema().clone(), Some(properties))?;
        Ok(DataFile { layout, writer, rows: 0 })
    }

    pub(crate) fn add(&mut self, rows: &[(Key, Row)]) -> Result<(), ParquetError> {
        for rows in rows.chunks(BATCH_ROWS) {
            self.writer.write(&self.layout.batch(rows)?)?;
            self.rows += rows.len() as u64;
        }
        Ok(())
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// About how many bytes it will have.
    pub(crate) fn bytes(&self) -> usize {
        self.writer.bytes_written() + self.writer.in_progress_size()
    }

    /// Its content.
    pub(crate) fn finish(self) -> Result<Vec<u8>, ParquetError> {
        self.writer.into_inner()
    }
}

/// Reads the rows of a data file, in its order.
pub(crate) struct DataRows<'l> {
    layout: &'l Layout,
    reader: ParquetRecordBatchReader,
    /// Rows that were read.
    read: usize,
    table: String,
    file: String,
}

impl<'l> DataRows<'l> {
    /// `table`, `file`: names for messages.
    pub(crate) fn new(
        layout: &'l Layout,
        content: Bytes,
        (table, file): (&str, &str),
    ) -> Result<DataRows<'l>, LakehouseError> {
        let wrong =
            |what: String| LakehouseError::Rows { table: table.to_string(), file: file.to_string(), what };
        let builder = ParquetRecordBatchReaderBuilder::try_new(content)
            .map_err(|error| wrong(format!("it cannot be read: {error}")))?;
        let (expected, found) = (layout.schema(), builder.schema());
        let shape = |schema: &arrow_schema::Schema| {
            let fields = schema.fields().iter();
            fields.map(|field| (field.name().clone(), field.data_type().clone())).collect::<Vec<_>>()
        };
        if shape(expected) != shape(found) {
            return Err(wrong(format!(
                "expected the columns {:?}, found {:?}",
                shape(expected),
                shape(found)
            )));
        }
        let reader = builder.with_batch_size(BATCH_ROWS).build();
        let reader = reader.map_err(|error| wrong(format!("it cannot be read: {error}")))?;
        Ok(DataRows { layout, reader, read: 0, table: table.to_string(), file: file.to_string() })
    }

    /// The next rows; none behind the last.
    pub(crate) fn next(&mut self) -> Result<Vec<(Key, Row)>, LakehouseError> {
        let wrong =
            |what: String| LakehouseError::Rows { table: self.table.clone(), file: self.file.clone(), what };
        let Some(batch) = self.reader.next() else { return Ok(Vec::new()) };
        let batch = batch.map_err(|error| wrong(format!("it cannot be read: {error}")))?;
        let rows = self.layout.rows(&batch).map_err(|error| {
            let number = self.read + error.row + 1;
            wrong(format!("row {number} is none of the table: {}", error.what))
        })?;
        self.read += rows.len();
        Ok(rows)
    }
}
