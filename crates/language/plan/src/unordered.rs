//! What has no equality and no order: `json`, and since execution version 8 what has it inside.

use std::collections::BTreeSet;
use types::{CompositeTypes, DataType, ExecutionVersion};

/// Whether values of a type have no equality and no order.
pub fn is_unordered(types: &CompositeTypes, data_type: DataType) -> bool {
    data_type.is_unordered() || (types.rules() >= ExecutionVersion::V8 && holds_json(types, data_type))
}

/// Whether a composite type, or one of an array's elements, has a field of type `json`, however deep.
fn holds_json(types: &CompositeTypes, data_type: DataType) -> bool {
    let (mut open, mut seen) = (vec![data_type], BTreeSet::new());
    while let Some(next) = open.pop() {
        match next.element().unwrap_or(next) {
            DataType::Json => return true,
            DataType::Composite(id) if seen.insert(id) => {
                open.extend(
                    types.get(id).iter().flat_map(|known| &known.fields).map(|field| field.data_type),
                );
            }
            _ => {}
        }
    }
    false
}
