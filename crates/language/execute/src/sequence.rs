//! Drawing values from sequences.

use crate::execution::Execution;
use plan::sequence::{
    CURRENT_VALUE, SET_VALUE, STANDING_IS_DRAWN, does_not_count, no_sequence, stored_sequence_name,
};
use types::{Privileges, Sequence, SqlError, SqlState, Value};
use values::broken;

impl Execution<'_> {
    /// Refuses what draws from, or sets, a sequence of the ledger where that cannot be.
    fn check_may_draw(&self, function: &str, is_temporary: bool) -> Result<(), SqlError> {
        if is_temporary {
            return Ok(());
        }
        if self.on.read_only {
            let name = function.strip_prefix("pg_catalog.").unwrap_or(function);
            return Err(SqlError::not_in_read_only(&format!("{name}()")));
        }
        if self.is_local() {
            return Err(SqlError::unsupported("a value of the ledger's sequence in a temporary table")
                .hint("Only a transaction of the ledger has a place to make a value of."));
        }
        Ok(())
    }

    /// Where a sequence stands: the value that was drawn or set last, or whether it was drawn. One that does not count has a value that is
    /// larger than those that were drawn before.
    ///
    /// # Errors
    /// `42P01` for a sequence that is not there, `42501`.
    pub(super) fn sequence_standing(
        &mut self,
        function: &str,
        arguments: &[Value],
    ) -> Result<Value, SqlError> {
        let [Value::Text(text)] = arguments else { return Err(broken("the standing of no sequence")) };
        let name = stored_sequence_name(text)?;
        let sequence = self.on.programs.catalog().sequences.get(&name).cloned();
        let sequence = sequence.ok_or_else(|| no_sequence(&name))?;
        self.authorise_sequence(&name, Privileges::SELECT)?;
        let (value, is_drawn) = match &sequence.counter {
            Some(counter) => self.counter_standing(counter)?,
            None => {
                let context = self.context();
                let value = Sequence::session_value(context.timestamp_ms, 0, 0);
                (value.or(Sequence::value(context.height, context.index, 0)).unwrap_or(1), false)
            }
        };
        Ok(if function == STANDING_IS_DRAWN { Value::Boolean(is_drawn) } else { Value::BigInt(value) })
    }

    /// Runs one of these functions.
    ///
    /// # Errors
    /// `42P01` for a sequence that is not there, `55000` where nothing has been drawn.
    pub fn sequence_value(&mut self, function: &str, arguments: &[Value]) -> Result<i64, SqlError> {
        let undrawn = |message: String| SqlError::new(SqlState(*b"55000"), message);
        let name = match arguments {
            [Value::Text(text), ..] => stored_sequence_name(text)?,
            _ => {
                let last = self.drawn.last.last();
                return last
                    .map(|(_, value)| *value)
                    .ok_or_else(|| undrawn("lastval is not yet defined in this session".to_string()));
            }
        };
        if !self.on.programs.catalog().sequences.contains_key(&name) {
            return Err(match self.on.programs.catalog().columns_of(&name) {
                Some(_) => SqlError::new(SqlState(*b"42809"), format!("\"{name}\" is not a sequence")),
                None => no_sequence(&name),
            });
        }
        let known = self.drawn.last.iter().position(|(known, _)| *known == name);
        if function == CURRENT_VALUE {
            let message = format!("currval of sequence \"{name}\" is not yet defined in this session");
            return known.map(|known| self.drawn.last[known].1).ok_or_else(|| undrawn(message));
        }
        let sequence = self.on.programs.catalog().sequences.get(&name).cloned();
        let owner = sequence.as_ref().and_then(|one| one.owner.as_ref());
        self.check_may_draw(function, owner.is_some_and(|owner| owner.table.is_temporary()))?;
        let counter = sequence.as_ref().and_then(|one| one.counter.as_ref());
        if self.asks_oracles() && self.session_place().is_none() && counter.is_none() {
            // The same for every endorser, whatever its height: then there is no height to make a value of.
            return Err(SqlError::unsupported("nextval() on a ledger that executes before it orders").hint(
                "Choose keys in the client, or make a sequence that counts: CREATE SEQUENCE … START WITH 1.",
            ));
        }
        if function == SET_VALUE {
            self.authorise_sequence(&name, Privileges::UPDATE)?;
            let counter = counter.ok_or_else(|| does_not_count("setval()"))?;
            let (value, is_drawn) = match arguments {
                [_, Value::BigInt(value)] => (*value, true),
                [_, Value::BigInt(value), Value::Boolean(is_drawn)] => (*value, *is_drawn),
                _ => return Err(broken("setval() of no value")),
            };
            if !(counter.smallest..=counter.largest).contains(&value) {
                let (smallest, largest) = (counter.smallest, counter.largest);
                let message = format!(
                    "setval: value {value} is out of bounds for sequence \"{name}\" ({smallest}..{largest})"
                );
                return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
            }
            self.set_counter(counter, value, is_drawn)?;
            if is_drawn {
                self.drawn.note(name, value);
            }
            return Ok(value);
        }
        if let Some(counter) = counter {
            let value = self.count(counter, &name)?;
            self.drawn.note(name, value);
            return Ok(value);
        }
        let (context, draw) = (self.context(), self.drawn.count);
        let value = match self.session_place() {
            // A transaction block has no place before it is committed.
            Some(place) => Sequence::session_value(place.now_ms, place.organisation, draw),
            None => Sequence::value(context.height, context.index, draw),
        };
        let value = value.ok_or_else(|| {
            let message = format!(
                "a transaction draws at most {} values from sequences (DRAWS_MAX)",
                Sequence::DRAWS_MAX
            );
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint("Split it.")
        })?;
        self.drawn.count += 1;
        self.drawn.note(name, value);
        Ok(value)
    }
}
