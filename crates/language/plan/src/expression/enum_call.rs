//! What `enum_first`, `enum_last` and `enum_range` give.

use std::sync::Arc;
use types::{Array, DataType, ElementType, EnumValue, ExecutionVersion, SqlError, Value};

/// A function of enums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnumCall {
    /// `enum_first`
    First,
    /// `enum_last`
    Last,
    /// `enum_range`
    Range,
}

impl EnumCall {
    /// The one of this name.
    pub fn named(name: &str, version: ExecutionVersion) -> Option<EnumCall> {
        let named = [EnumCall::First, EnumCall::Last, EnumCall::Range];
        let mut named = named.into_iter().filter(|_| version >= ExecutionVersion::V7);
        named.find(|call| call.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            EnumCall::First => "enum_first",
            EnumCall::Last => "enum_last",
            EnumCall::Range => "enum_range",
        }
    }

    /// Its value. The arguments of a range bound it, where they are not NULL.
    pub(super) fn evaluate(
        self,
        known: &[Arc<EnumValue>],
        arguments: &[Value],
        data_type: DataType,
    ) -> Result<Value, SqlError> {
        let value = |found: Option<&Arc<EnumValue>>| found.cloned().map_or(Value::Null, Value::Enum);
        Ok(match (self, arguments) {
            (EnumCall::First, _) => value(known.first()),
            (EnumCall::Last, _) => value(known.last()),
            (EnumCall::Range, arguments) => {
                let (lower, upper) = match arguments {
                    [Value::Enum(lower), Value::Enum(upper)] => (Some(&lower.place), Some(&upper.place)),
                    [Value::Enum(lower), Value::Null] => (Some(&lower.place), None),
                    [Value::Null, Value::Enum(upper)] => (None, Some(&upper.place)),
                    _ => (None, None),
                };
                let inside = known.iter().filter(|value| {
                    lower.is_none_or(|lower| *lower <= value.place)
                        && upper.is_none_or(|upper| value.place <= *upper)
                });
                let values = inside.cloned().map(Value::Enum).collect();
                let element = data_type.element().and_then(ElementType::new);
                let element = element.ok_or_else(|| values::broken("a range of an enum that is no array"))?;
                Value::Array(Arc::new(Array::new(element, values)?))
            }
        })
    }
}
