//! Where in a body instructions come from: what PG_CONTEXT shows.

use crate::compile::compiler::Compiler;
use execute::Described;
use types::{Language, Procedure};

impl Compiler<'_> {
    /// Its name and lines, for PG_CONTEXT.
    pub(crate) fn described(&self, procedure: &Procedure) -> Described {
        let types = self.tables.routines().types();
        let inputs = procedure.inputs().map(|parameter| types.name_of(parameter.data_type).to_string());
        let signature = match (procedure.language, procedure.name.as_str()) {
            (Language::Sql, name) | (_, name @ "inline_code_block") => name.to_string(),
            (Language::PlPgSql, name) => format!("{name}({})", inputs.collect::<Vec<String>>().join(", ")),
        };
        Described { language: procedure.language, signature, lines: self.lines.as_slice().into() }
    }

    /// What is emitted from here on comes from this place in the body.
    pub(crate) fn begin_place(&mut self, position: u32, what: &'static str) {
        let line = self.line_ends.partition_point(|end| *end < position) as u32 + 1;
        self.around.push((line, what));
        self.mark_place(line, what);
    }

    /// What is emitted from here on comes from what is around that.
    pub(crate) fn end_place(&mut self) {
        self.around.pop();
        if let Some((line, what)) = self.around.last().copied() {
            self.mark_place(line, what);
        }
    }

    pub(crate) fn mark_place(&mut self, line: u32, what: &'static str) {
        let here = self.here();
        match self.lines.last_mut() {
            Some(last) if last.0 == here => *last = (here, line, what),
            _ => self.lines.push((here, line, what)),
        }
    }
}
