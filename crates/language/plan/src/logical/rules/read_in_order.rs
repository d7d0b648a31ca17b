//! `read_in_order`: a table alone is read in the order that is wanted, forwards or backwards, where its path has that
//! order, because rows that need not be sorted need not be kept, and a LIMIT stops the reading.

use crate::expression::Kind;
use crate::logical::block::{below_outputs_mut, parts, runs_anything};
use crate::logical::{LogicalPlan, Scan};
use crate::statement::{AccessPath, SortKey};
use types::{DataType, limits};

pub(super) fn apply(block: &mut LogicalPlan) {
    let Some(backwards) = way(block) else { return };
    let sorted = below_outputs_mut(block);
    if let LogicalPlan::Sort { input, .. } = sorted {
        *sorted = std::mem::replace(input, LogicalPlan::OneRow);
    }
    if let LogicalPlan::Scan(scan) = sorted {
        scan.backwards = backwards;
        if let Some(AccessPath::Index(access)) = &mut scan.path {
            access.in_order = true;
        }
    }
}

/// Where the table of a block can be read in the order of its rows: whether backwards.
fn way(block: &LogicalPlan) -> Option<bool> {
    let (above, source) = parts(block);
    let LogicalPlan::Scan(scan) = source else { return None };
    let mut order = None;
    for node in above {
        match node {
            LogicalPlan::Limit { ties: false, .. } | LogicalPlan::Project { .. } => {}
            LogicalPlan::Sort { keys, .. } => order = Some(keys),
            _ => return None,
        }
    }
    let order = order?;
    if runs_anything(block) {
        return None;
    }
    has_order(scan, order)
}

/// Where the rows can be read in the wanted order: whether backwards.
fn has_order(scan: &Scan, order: &[SortKey]) -> Option<bool> {
    let (table, path) = (&scan.table, scan.path.as_ref()?);
    match path {
        AccessPath::Key(_) => return Some(false),
        AccessPath::Index(access) if access.index.is_computed() => return None,
        _ => {}
    }
    let (columns, fixed) = path.order(table);
    let (fixed, varying) = columns.split_at(fixed);
    let mut rest = varying.iter();
    let mut backwards = None;
    for key in order {
        let Kind::Column(ordinal) = key.expression.kind else { return None };
        if fixed.contains(&ordinal) {
            continue;
        }
        if !table.has_in_order(key.expression.data_type) {
            return None;
        }
        match rest.next() {
            Some(next) if *next == ordinal && backwards.is_none_or(|known| known == key.descending) => {
                // An index has NULLs last, and first where it is read backwards.
                if !table.columns[usize::from(ordinal)].not_null && key.nulls_first != key.descending {
                    return None;
                }
                backwards = Some(key.descending);
            }
            // All columns of the key have gone before: no two rows are equal in them.
            None if !table.key.is_empty() => break,
            _ => return None,
        }
    }
    let backwards = backwards.unwrap_or(false);
    let AccessPath::Index(access) = path else { return Some(backwards) };
    let named = fixed.len() + (varying.len() - rest.len());
    let all_named = named >= access.index.columns.len();
    // Rows that are equal in the wanted order come by their primary key, which stands last in an entry.
    let ties = backwards && (rest.next().is_some() || table.key.is_empty());
    let cut = access.index.columns.iter().map(|ordinal| table.columns[usize::from(*ordinal)].data_type);
    let cut = cut.map(entry_bytes_max).fold(0, usize::saturating_add) > limits::INDEX_BYTES_MAX;
    (all_named && !ties && !cut).then_some(backwards)
}

/// Bytes that a value of this type takes in an entry of an index at most.
fn entry_bytes_max(data_type: DataType) -> usize {
    match data_type {
        // A byte below 2 takes two.
        DataType::Text(Some(characters)) | DataType::Char(Some(characters)) => {
            (characters as usize).saturating_mul(4).saturating_add(2)
        }
        // So many bytes, of which one below 2 takes two.
        DataType::Enum(_) => 2 * limits::ENUM_PLACE_BYTES_MAX + 2,
        DataType::Text(None)
        | DataType::Char(None)
        | DataType::Bytea
        | DataType::Array(_)
        | DataType::Composite(_)
        | DataType::Record
        | DataType::Json
        | DataType::Hstore
        | DataType::Citext
        | DataType::Jsonb
        | DataType::Bit(_)
        | DataType::VarBit(_)
        | DataType::Range(_)
        | DataType::Multirange(_)
        | DataType::Unknown => usize::MAX,
        DataType::Inet | DataType::Cidr => 48,
        _ => 32,
    }
}
