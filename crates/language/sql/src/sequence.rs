//! `nextval`, `setval`, `currval` and `lastval`: functions that run in the execution of their statement.

use crate::execution::Execution;
use crate::expression::{Binder, Expression, Kind, RoutineCall, broken};
use crate::parse::tokenize;
use crate::polymorphic::Callee;
use crate::routines::CallForm;
use crate::scope::name_of;
use sqlparser::tokenizer::{Span, Token};
use types::{
    DataType, Sequence, SqlError, SqlState, Value, catalog_name, quoted_catalog_name, split_catalog_name,
};

/// The name under which a call of nextval() stands; no function of the ledger has it.
pub(crate) const NEXT_VALUE: &str = "pg_catalog.nextval";
/// The same of setval().
pub(crate) const SET_VALUE: &str = "pg_catalog.setval";
const CURRENT_VALUE: &str = "pg_catalog.currval";
const LAST_VALUE: &str = "pg_catalog.lastval";

/// Whether a call of this name is one of these functions.
pub(crate) fn is_sequence_function(name: &str) -> bool {
    matches!(name, NEXT_VALUE | SET_VALUE | CURRENT_VALUE | LAST_VALUE)
}

/// Whether a function of this name looks at a sequence.
pub(crate) fn draws_value(name: &str) -> bool {
    matches!(name, "nextval" | "setval" | "currval" | "lastval")
}

/// The name in the catalog of the sequence that a text names where no search path is at hand.
///
/// # Errors
/// As [`sequence_name`].
pub(crate) fn stored_sequence_name(text: &str) -> Result<String, SqlError> {
    let name = sequence_name(text)?;
    Ok(match split_catalog_name(&name) {
        (schema, object) if name.contains('.') => catalog_name(schema, object),
        _ => name,
    })
}

/// The sequence that a text names: an identifier, as in SQL, with a schema in front or without.
///
/// # Errors
/// `42602` for what is no name.
pub(crate) fn sequence_name(text: &str) -> Result<String, SqlError> {
    let invalid = || SqlError::new(SqlState(*b"42602"), "invalid name syntax");
    let tokens = tokenize(text).map_err(|_| invalid())?;
    let mut words = Vec::new();
    for token in tokens.iter().filter(|token| token.token != Token::EOF) {
        match &token.token {
            Token::Word(word) => words.push(name_of(&word.clone().into_ident(Span::empty()))?),
            Token::Period if words.len() == 1 => {}
            _ => return Err(invalid()),
        }
    }
    match words.as_slice() {
        [name] => Ok(name.clone()),
        [schema, name] => Ok(format!("{schema}.{name}")),
        _ => Err(invalid()),
    }
}

pub(crate) fn no_sequence(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
}

impl Binder<'_> {
    /// A call of one of these functions; `None` where it is none.
    ///
    /// # Errors
    /// `42P01` for a sequence that is not there.
    pub fn bind_sequence_call(
        &self,
        name: &str,
        arguments: &[Expression],
    ) -> Result<Option<Expression>, SqlError> {
        let name = match (name, arguments.len()) {
            ("nextval", 1) => NEXT_VALUE,
            ("currval", 1) => CURRENT_VALUE,
            ("lastval", 0) => LAST_VALUE,
            ("setval", 2 | 3) => SET_VALUE,
            _ => return Ok(None),
        };
        let mut cast = Vec::with_capacity(arguments.len());
        for (position, argument) in arguments.iter().enumerate() {
            let expected = match position {
                0 => DataType::Text(None),
                1 => DataType::BigInt,
                _ => DataType::Boolean,
            };
            let Some(mut argument) = self.argument(argument.clone(), expected) else {
                return Ok(None);
            };
            if let Kind::Constant(Value::Text(text)) = &argument.kind {
                let sequence = sequence_name(text)?;
                let routines = self.scope().routines();
                let found = routines.find_sequence(&sequence).ok_or_else(|| no_sequence(&sequence))?;
                if found != sequence {
                    // The name in the catalog is the same under every search path.
                    argument.kind = Kind::Constant(Value::text(quoted_catalog_name(&found)));
                }
            }
            cast.push(argument);
        }
        let callee = Callee::named(name);
        self.scope().note_call(&callee);
        let call = RoutineCall {
            callee,
            is_volatile: true,
            is_strict: true,
            arguments: cast,
            form: CallForm::Value,
            columns: None,
            columns_are_asked: false,
        };
        Ok(Some(Expression { kind: Kind::Call(Box::new(call)), data_type: DataType::BigInt }))
    }
}

/// Values that a transaction has drawn.
#[derive(Default)]
pub(crate) struct Drawn {
    count: u32,
    /// By sequence, the last one; the sequence drawn from last at the end.
    last: Vec<(String, i64)>,
}

impl Execution<'_> {
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
        if !self.library().catalog().sequences.contains_key(&name) {
            return Err(match self.library().catalog().columns_of(&name) {
                Some(_) => SqlError::new(SqlState(*b"42809"), format!("\"{name}\" is not a sequence")),
                None => no_sequence(&name),
            });
        }
        let known = self.drawn.last.iter().position(|(known, _)| *known == name);
        if function == CURRENT_VALUE {
            let message = format!("currval of sequence \"{name}\" is not yet defined in this session");
            return known.map(|known| self.drawn.last[known].1).ok_or_else(|| undrawn(message));
        }
        let sequence = self.library().catalog().sequences.get(&name).cloned();
        let owner = sequence.as_ref().and_then(|one| one.owner.as_ref());
        if self.is_local() && !owner.is_some_and(|owner| owner.table.is_temporary()) {
            return Err(SqlError::unsupported("a value of the ledger's sequence in a temporary table")
                .hint("Only a transaction of the ledger has a place to make a value of."));
        }
        let counter = sequence.as_ref().and_then(|one| one.counter.as_ref());
        if self.asks_oracles() && self.session_place().is_none() && counter.is_none() {
            // The same for every endorser, whatever its height: then there is no height to make a value of.
            return Err(SqlError::unsupported("nextval() on a ledger that executes before it orders").hint(
                "Choose keys in the client, or make a sequence that counts: CREATE SEQUENCE … START WITH 1.",
            ));
        }
        if function == SET_VALUE {
            self.authorise_setting(&name)?;
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
            Some((now_ms, organisation)) => Sequence::session_value(now_ms, organisation, draw),
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

impl Drawn {
    /// This value has been drawn last, from this sequence.
    fn note(&mut self, name: String, value: i64) {
        self.last.retain(|(known, _)| *known != name);
        self.last.push((name, value));
    }
}

/// The refusal of what only a sequence that counts can do.
pub(crate) fn does_not_count(what: &str) -> SqlError {
    SqlError::unsupported(format_args!("{what} of a sequence that does not count")).hint(
        "Its values are made of the block's height and the place in it, so that nobody waits for anybody. One that is created with START, INCREMENT or AS integer counts.",
    )
}
