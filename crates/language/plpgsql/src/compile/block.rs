//! Compiling blocks and their handlers, and leaving them.
//!
//! ```text
//!      Protect handlers ─┐ an error inside of the block undoes what it has done
//!      … statements      │
//!      Leave; Jump end   │
//! handlers: ◀────────────┘
//!      JumpUnlessCaught … next
//!      ShowError; … statements of the first handler; Leave; Jump end
//! next: …
//!      Rethrow
//! end:
//! ```

use crate::compile::compiler::{Compiler, Enclosing, ErrorRole};
use crate::program::{Address, Instruction};
use syntax::plpgsql::ast::{Block, Expression, Name};
use types::{DataType, SqlError, SqlState};

impl Compiler<'_> {
    pub(crate) fn block(&mut self, block: &Block) -> Result<(), SqlError> {
        let before = self.variables.record_states();
        self.variables.push_block(block.label.as_ref());
        for declaration in &block.declarations {
            let position = declaration.name.position;
            self.begin_place(position, "during statement block local variable initialization");
            self.declaration(declaration)?;
            self.end_place();
        }
        self.begin_place(block.position, "at statement block");
        match block.handlers.is_empty() {
            true => {
                self.enter(block.label.as_ref(), ErrorRole::None);
                self.statements(&block.statements)?;
                self.leave_enclosing();
            }
            false => self.protected(block)?,
        }
        self.end_place();
        self.variables.pop_block();
        if block.label.is_some() || !block.handlers.is_empty() {
            // EXIT or an error may have skipped the assignments.
            self.variables.left_anywhere(&before);
        }
        Ok(())
    }

    fn enter(&mut self, label: Option<&Name>, role: ErrorRole) {
        let label = label.map(|label| label.text.clone());
        self.enclosing.push(Enclosing {
            label,
            next_turn: None,
            sets_found: false,
            exits: Vec::new(),
            role,
            cursor_level: None,
        });
    }

    fn leave_enclosing(&mut self) {
        if let Some(enclosing) = self.enclosing.pop() {
            self.land_all(enclosing.exits);
        }
    }

    /// The statements of a block and its handlers.
    fn protected(&mut self, block: &Block) -> Result<(), SqlError> {
        let label = block.label.as_ref();
        let before = self.variables.record_states();
        let mut ends = Vec::new();
        let start = self.emit(Instruction::Protect { handlers: 0 });
        self.enter(label, ErrorRole::Protects);
        self.statements(&block.statements)?;
        ends.extend(self.enclosing.pop().into_iter().flat_map(|enclosing| enclosing.exits));
        self.emit(Instruction::Leave { blocks: 1, handlers: 0 });
        ends.push(self.emit(Instruction::Jump { to: 0 }));
        self.land(start);
        self.protected_code.push(start..self.here());
        self.variables.push_block(None);
        let state = self.variables.declare_plain("sqlstate", DataType::Text(None))?;
        let message = self.variables.declare_plain("sqlerrm", DataType::Text(None))?;
        for handler in &block.handlers {
            self.variables.left_anywhere(&before);
            let conditions = handler.conditions.as_slice().into();
            let next = self.emit(Instruction::JumpUnlessCaught { conditions, to: 0 });
            self.emit(Instruction::ShowError { state, message });
            self.enter(label, ErrorRole::Handles);
            self.statements(&handler.statements)?;
            ends.extend(self.enclosing.pop().into_iter().flat_map(|enclosing| enclosing.exits));
            self.emit(Instruction::Leave { blocks: 0, handlers: 1 });
            ends.push(self.emit(Instruction::Jump { to: 0 }));
            self.land(next);
        }
        self.emit(Instruction::Rethrow);
        self.variables.pop_block();
        self.land_all(ends);
        Ok(())
    }

    /// Index among the enclosing blocks and loops of the one that a statement names.
    fn find_enclosing(&self, label: Option<&Name>) -> Result<usize, SqlError> {
        let fits = |enclosing: &Enclosing| match label {
            Some(label) => enclosing.label.as_deref() == Some(label.text.as_str()),
            None => enclosing.next_turn.is_some(),
        };
        self.enclosing.iter().rposition(fits).ok_or_else(|| {
            let message = "there is no block or loop to leave here".to_string();
            SqlError::new(SqlState::SYNTAX_ERROR, message)
        })
    }

    /// Emits what must happen before the blocks and loops from this one on are left.
    fn leave_from(&mut self, index: usize) {
        let count = |role: ErrorRole| {
            self.enclosing[index..].iter().filter(|enclosing| enclosing.role == role).count() as u16
        };
        let (blocks, handlers) = (count(ErrorRole::Protects), count(ErrorRole::Handles));
        if self.enclosing[index..].iter().any(|enclosing| enclosing.sets_found) {
            self.emit(Instruction::SetFound);
        }
        let levels: Vec<u16> =
            self.enclosing[index..].iter().filter_map(|enclosing| enclosing.cursor_level).collect();
        for level in levels {
            self.emit(Instruction::LeaveCursor { level });
        }
        if blocks + handlers > 0 {
            self.emit(Instruction::Leave { blocks, handlers });
        }
    }

    /// The jump over what is not done where the condition is false.
    fn unless(&mut self, condition: Option<&Expression>) -> Result<Option<Address>, SqlError> {
        match condition {
            Some(condition) => {
                let condition = self.condition(condition)?;
                Ok(Some(self.jump_unless(condition)))
            }
            None => Ok(None),
        }
    }

    pub(crate) fn exit(
        &mut self,
        label: Option<&Name>,
        condition: Option<&Expression>,
    ) -> Result<(), SqlError> {
        let index = self.find_enclosing(label)?;
        let is_plain = self.enclosing[index..]
            .iter()
            .all(|enclosing| !enclosing.sets_found && enclosing.role == ErrorRole::None);
        let address = match condition {
            Some(condition) if is_plain => {
                let condition = self.condition(condition)?;
                self.emit(Instruction::JumpIf { condition, to: 0 })
            }
            _ => {
                let skip = self.unless(condition)?;
                self.leave_from(index);
                let jump = self.emit(Instruction::Jump { to: 0 });
                if let Some(skip) = skip {
                    self.land(skip);
                }
                jump
            }
        };
        self.enclosing[index].exits.push(address);
        Ok(())
    }

    pub(crate) fn next_turn(
        &mut self,
        label: Option<&Name>,
        condition: Option<&Expression>,
    ) -> Result<(), SqlError> {
        let index = self.find_enclosing(label)?;
        let skip = self.unless(condition)?;
        // The blocks and loops inside of the one that goes on are left.
        self.leave_from(index + 1);
        let to = self.enclosing[index].next_turn.unwrap_or(0);
        self.emit(Instruction::Jump { to });
        if let Some(skip) = skip {
            self.land(skip);
        }
        Ok(())
    }
}
