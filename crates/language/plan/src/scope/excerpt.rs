//! What a statement mentions of a scope: enough to bind it when the scope is gone.

use crate::routines::Routines;
use crate::scope::{Block, TransitionTable, VariableScope};
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::plpgsql::ast::NameConflict;
use types::DataType;

/// The part of a scope that a text mentions.
#[derive(Debug)]
pub struct ScopeExcerpt {
    blocks: Vec<Block>,
    types: Vec<(usize, DataType)>,
    positions: Vec<usize>,
    source: Option<Arc<str>>,
    conflict: NameConflict,
    transition_tables: Vec<TransitionTable>,
    from_zero: Option<usize>,
}

fn is_part_of_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$') || !character.is_ascii()
}

impl VariableScope {
    /// What this text mentions of a procedure's scope, and perhaps more.
    pub fn excerpt(&self, text: &str) -> ScopeExcerpt {
        let text = text.to_ascii_lowercase();
        let words: BTreeSet<&str> = text.split(|character| !is_part_of_word(character)).collect();
        let is_mentioned = |name: &str| {
            !name.chars().all(is_part_of_word) || words.contains(name.to_ascii_lowercase().as_str())
        };
        let (mut blocks, mut slots) = (Vec::new(), BTreeSet::new());
        for block in &self.blocks {
            let variables = block.variables.iter().filter(|(name, _)| is_mentioned(name));
            let records = block.records.iter().filter(|(name, _)| is_mentioned(name));
            let known = Block {
                label: block.label.clone(),
                variables: variables.cloned().collect(),
                records: records.cloned().collect(),
            };
            slots.extend(known.variables.iter().map(|(_, slot)| *slot));
            slots.extend(known.records.iter().flat_map(|(_, fields)| fields).map(|(_, slot)| *slot));
            if !known.variables.is_empty() || !known.records.is_empty() {
                blocks.push(known);
            }
        }
        let positions = if text.contains('$') { self.positions.clone() } else { Vec::new() };
        slots.extend(&positions);
        ScopeExcerpt {
            blocks,
            types: slots.into_iter().map(|slot| (slot, self.types[slot])).collect(),
            positions,
            source: self.source.clone(),
            conflict: self.conflict,
            transition_tables: self.transition_tables.clone(),
            from_zero: self.from_zero,
        }
    }
}

impl ScopeExcerpt {
    /// The slots of what is mentioned.
    pub fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.types.iter().map(|(slot, _)| *slot)
    }

    /// A scope with what is mentioned, whose frame has so many slots.
    pub fn scope(&self, slots: usize, routines: &Routines) -> VariableScope {
        let mut types = vec![DataType::Unknown; slots];
        for (slot, data_type) in &self.types {
            types[*slot] = *data_type;
        }
        let scope = VariableScope {
            blocks: self.blocks.clone(),
            types,
            positions: self.positions.clone(),
            source: self.source.clone(),
            conflict: self.conflict,
            transition_tables: self.transition_tables.clone(),
            from_zero: self.from_zero,
            ..VariableScope::default()
        };
        scope.with_routines(routines)
    }
}
