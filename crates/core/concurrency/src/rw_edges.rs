//! The conflicts of a batch pair by pair, with what commands use counted as read: the definition that the decisions of
//! Aria and SSI are compared with.

use crate::conflict::reads_before_image_of;
use crate::optimistic::{Decision, Simulated};
use crate::written_rows::WrittenRows;
use state::{Effects, PlainState, Read};

/// Every pair of transactions of a batch.
pub(crate) struct Pairs {
    effects: Vec<Option<Effects>>,
    /// `edges[t][u]`: t read a before-image of what u writes.
    edges: Vec<Vec<bool>>,
    snapshot: PlainState,
}

impl Pairs {
    pub(crate) fn of(effects: Vec<Option<Effects>>) -> Pairs {
        let snapshot = PlainState::default();
        let mut readers = effects.clone();
        for effects in readers.iter_mut().flatten() {
            let used = effects.commands.iter();
            let used = used.map(|command| Read { row: command.row.clone(), columns: command.uses });
            effects.reads.extend(used);
        }
        let leads = |reader: usize, writer: usize| match (&readers[reader], &effects[writer]) {
            (Some(one), Some(other)) => {
                reader != writer && reads_before_image_of(one, other, &snapshot.catalog)
            }
            _ => false,
        };
        let numbers = 0..effects.len();
        let edges = numbers.clone().map(|from| numbers.clone().map(|to| leads(from, to)).collect()).collect();
        Pairs { effects, edges, snapshot }
    }

    /// What the batch looks like to a protocol.
    pub(crate) fn decide<T>(&self, decide: impl FnOnce(&Simulated<'_>) -> T) -> T {
        let rows = WrittenRows::new(&self.effects);
        decide(&Simulated { effects: &self.effects, rows: &rows, snapshot: &self.snapshot })
    }

    /// The executed transactions, ascending.
    pub(crate) fn executed(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.effects.len() as u32).filter(|number| self.effects[*number as usize].is_some())
    }

    pub(crate) fn leads(&self, from: u32, to: u32) -> bool {
        self.edges[from as usize][to as usize]
    }

    pub(crate) fn writes(&self, number: u32) -> bool {
        self.effects[number as usize].as_ref().is_some_and(|effects| !effects.commands.is_empty())
    }

    pub(crate) fn write_the_same(&self, a: u32, b: u32) -> bool {
        let commands =
            |number: u32| self.effects[number as usize].iter().flat_map(|effects| &effects.commands);
        commands(a).any(|one| commands(b).any(|two| one.row == two.row && one.writes.intersects(two.writes)))
    }

    /// What every decision must keep: everybody executed is in one of the lists, number 0 and who writes nothing are
    /// accepted, no edge points backward in the order, and nobody writes what another one writes.
    ///
    /// # Errors
    /// What it does not keep.
    pub(crate) fn check(&self, decision: &Decision) -> Result<(), String> {
        let mut all = [decision.order.as_slice(), decision.rejected.as_slice()].concat();
        all.sort_unstable();
        if all != self.executed().collect::<Vec<_>>() || !decision.rejected.is_sorted() {
            return Err(format!("{decision:?} is not a partition"));
        }
        if let Some(number) = decision.rejected.iter().find(|one| **one == 0 || !self.writes(**one)) {
            return Err(format!("{number} is rejected"));
        }
        for (place, one) in decision.order.iter().enumerate() {
            for later in &decision.order[place + 1..] {
                if self.leads(*later, *one) {
                    return Err(format!("{later} must come before {one}"));
                }
                if self.write_the_same(*one, *later) {
                    return Err(format!("{one} and {later} write the same"));
                }
            }
        }
        Ok(())
    }
}
