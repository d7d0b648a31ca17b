//! Handlers of errors while a procedure runs.
//!
//! What a block has done is undone when an error leaves it, as in PostgreSQL: rows, and nothing else. Variables keep their
//! values. How it is possible to go on after an error although commands are judged again at their place in the order:
//! `execute::protect`.

use crate::program::Address;
use crate::run::activation::{Activation, Protection};
use crate::run::store::store;
use crate::target::Store;
use execute::Execution;
use syntax::plpgsql::ast::{Condition, StackedItem};
use types::{SqlError, SqlState, Value};

impl Activation<'_> {
    /// Runs to the end, through handlers where there are errors.
    ///
    /// # Errors
    /// The one that no handler took.
    pub(crate) fn run_to_the_end(&mut self, execution: &mut Execution<'_>) -> Result<(), SqlError> {
        let mut start = 0;
        loop {
            let Err(error) = self.run(execution, start) else {
                let blocks = self.protections.len();
                self.leave(blocks as u16, 0, execution);
                return Ok(());
            };
            // That a row cannot be read is no error of the procedure.
            let handled = self.protections.pop().filter(|_| !execution.has_unread());
            let Some(protection) = handled else { return Err(error) };
            execution.undo(protection.savepoint);
            // Commands whose matches nobody has looked at are gone, and what they used is read.
            self.forget_unseen();
            self.caught.truncate(protection.caught);
            self.caught.push((error, execution.take_error_places()));
            start = protection.handlers as usize;
        }
    }

    /// A block with handlers begins.
    pub(crate) fn protect(&mut self, handlers: Address, execution: &mut Execution<'_>) {
        if self.procedure.looks_at_matched {
            // Afterwards the last change would be one of the block.
            self.look_at_unseen(execution);
        }
        let (savepoint, caught) = (execution.protect(), self.caught.len());
        self.protections.push(Protection { handlers, savepoint, caught });
    }

    /// Blocks with handlers have come to their end, or handlers have.
    pub(crate) fn leave(&mut self, blocks: u16, handlers: u16, execution: &mut Execution<'_>) {
        for _ in 0..blocks {
            if self.protections.pop().is_some() {
                execution.unprotect();
            }
        }
        let left = self.caught.len().saturating_sub(usize::from(handlers));
        self.caught.truncate(left);
    }

    /// Whether the error at hand is one of these.
    pub(crate) fn is_caught_by(&self, conditions: &[Condition]) -> bool {
        let Some((error, _)) = self.caught.last() else { return false };
        conditions.iter().any(|condition| match condition {
            Condition::Others => {
                error.state != SqlState::QUERY_CANCELED && error.state != SqlState(*b"P0004")
            }
            Condition::State(SqlState(state)) => {
                error.state.0 == *state || (state.ends_with(b"000") && error.state.0[..2] == state[..2])
            }
        })
    }

    /// SQLSTATE and SQLERRM of the handler that begins.
    pub(crate) fn show_error(&mut self, state: u16, message: u16) {
        let Some((error, _)) = self.caught.last() else { return };
        let (shown_state, shown_message) = (error.state.to_string(), error.message.clone());
        self.frame[usize::from(state)] = Value::text(shown_state);
        self.frame[usize::from(message)] = Value::text(shown_message);
    }

    /// The error that goes on: no handler fits, or `RAISE;`.
    pub(crate) fn error_at_hand(&self, execution: &mut Execution<'_>) -> SqlError {
        let Some((error, places)) = self.caught.last() else {
            return outside_of_handlers(
                "RAISE without parameters cannot be used outside an exception handler",
            );
        };
        execution.raise_again(places.clone());
        error.clone()
    }

    /// GET STACKED DIAGNOSTICS
    pub(crate) fn stacked_diagnostics(&mut self, items: &[(StackedItem, Store)]) -> Result<(), SqlError> {
        let Some((error, places)) = self.caught.last() else {
            let message = "GET STACKED DIAGNOSTICS cannot be used outside an exception handler";
            return Err(outside_of_handlers(message));
        };
        let text = |text: &Option<String>| Value::text(text.as_deref().unwrap_or_default());
        let value = |item: &StackedItem| match item {
            StackedItem::State => Value::text(error.state.to_string()),
            StackedItem::Message => Value::text(error.message.as_str()),
            StackedItem::Detail => text(&error.detail),
            StackedItem::Hint => text(&error.hint),
            StackedItem::Context => {
                let lines = places.iter().map(|(described, address)| described.place(*address));
                Value::text(lines.collect::<Vec<String>>().join("\n"))
            }
        };
        let values: Vec<Value> = items.iter().map(|(item, _)| value(item)).collect();
        for ((_, target), value) in items.iter().zip(values) {
            store(&mut self.frame, target, value, &self.procedure.types)?;
        }
        Ok(())
    }
}

fn outside_of_handlers(message: &str) -> SqlError {
    SqlError::new(SqlState(*b"0Z002"), message)
}
