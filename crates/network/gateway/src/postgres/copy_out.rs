//! COPY TO STDOUT: the rows of a query, written as they are found.
//!
//! ```text
//!  outside of a block, a query that reads: a thread runs it ──parts of the data, a few at a time──▶ the session ─▶ client
//!  anything else (in a block, of temporary tables, RETURNING, the catalogue): its result, then the data
//! ```

use super::copy::{CopySource, CopyTo};
use super::copy_format::{CopyFormat, Layout};
use super::copy_writer::CopyWriter;
use super::rows_out::WriteRows;
use super::script::{Class, Statement, classify, split};
use super::session::{Failure, Session, problem};
use super::statement::{ParsedStatement, shift};
use pgwire::messages::copy::{CopyDone, CopyOutResponse};
use pgwire::messages::response::CommandComplete;
use types::session_format::within_format;
use types::{SqlError, SqlState};

/// A COPY TO STDOUT statement that was bound.
pub(super) struct CopyOut {
    query: ParsedStatement,
    format: CopyFormat,
}

impl Session {
    pub(super) async fn parse_copy_out(
        &mut self,
        statement: &Statement<'_>,
        copy: CopyTo<'_>,
    ) -> Result<CopyOut, Failure> {
        let query = match &copy.source {
            CopySource::Query(query) => {
                let class = classify(query, &*self.known_tables()?);
                let parsed = Box::pin(self.parse(query, class, Vec::new())).await;
                parsed.map_err(|failure| shift(failure, statement.text, query.start - statement.start))?
            }
            CopySource::Table(query) => match split(query).as_slice() {
                [query] => Box::pin(self.parse(query, Class::Read, Vec::new())).await?,
                _ => return Err(SqlError::unsupported("COPY of a table without columns").into()),
            },
        };
        if !query.parameters.is_empty() {
            return Err(problem(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        if query.columns.is_empty() {
            let selects = query.sql.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
            let message = match selects {
                true => "COPY (SELECT INTO) is not supported",
                false => "COPY query must have a RETURNING clause",
            };
            return Err(problem(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        // What is wrong in FORCE_QUOTE is said now.
        CopyWriter::new(copy.format.clone(), query.columns.clone())?;
        Ok(CopyOut { query, format: copy.format })
    }

    /// Runs COPY TO STDOUT to its end.
    pub(super) async fn copy_out(&mut self, copy: &CopyOut) -> Result<(), Failure> {
        let mut writer = CopyWriter::new(copy.format.clone(), copy.query.columns.clone())?;
        if let Some(cached) = self.streamed(&copy.query).await? {
            self.wait_for_min_height().await?;
            self.begin_copy_out(copy);
            loop {
                // Where a block has changed the catalog since it was bound, it is bound again.
                let prepared = self.current(&copy.query, cached).await?;
                let ended = self.send_as_found(prepared, Vec::new(), writer).await?;
                writer = ended.writer;
                if ended.ran {
                    break;
                }
            }
        } else {
            let result = self.execute_statement(&copy.query, Vec::new()).await?;
            self.connection.put_notices(&result.notices);
            self.begin_copy_out(copy);
            let format = self.settings.format();
            for row in &result.rows {
                within_format(format, || writer.row(self.connection.output(), row));
                self.connection.flush_if_full().await?;
            }
            writer.finish(self.connection.output());
        }
        self.connection.put(&CopyDone::new());
        self.connection.put(&CommandComplete::new(format!("COPY {}", writer.rows())));
        Ok(())
    }

    fn begin_copy_out(&mut self, copy: &CopyOut) {
        let (columns, binary) = (copy.query.columns.len(), copy.format.layout == Layout::Binary);
        let code = i8::from(binary);
        self.connection.put(&CopyOutResponse::new(code, columns as i16, vec![i16::from(code); columns]));
    }
}
