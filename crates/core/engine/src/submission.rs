//! Admitted transactions as protocols get them.

use crate::VerifiedBlock;
use crate::admission::Admission;
use crate::endorsement::{EndorsedInvocation, endorsed_context};
use sql::{Context, Invocation, Library};
use state::Simulate;
use std::sync::Arc;

/// The transactions of a block, under the schema that they run with.
pub(crate) struct Submission<'a> {
    pub(crate) block: &'a VerifiedBlock,
    pub(crate) library: &'a Arc<Library>,
    /// Steps of one execution of a transaction.
    pub(crate) step_limit: u64,
    /// Their endorsers have executed them: endorsements come with effects.
    pub(crate) has_endorsed_effects: bool,
}

impl Submission<'_> {
    /// What a transaction is when it runs.
    pub(crate) fn invocation(&self, position: u32) -> Invocation {
        let transaction = self.block.transactions[position as usize].as_ref();
        let transaction = transaction.expect("only admitted transactions are executed");
        let step_limit = self.step_limit;
        let invocation =
            |context| Invocation::new(self.library.clone(), context, transaction.payload.clone());
        let invocation =
            |context| invocation(context).by(transaction.principal.clone()).signed_by(transaction.client);
        match transaction.endorsed.as_ref().filter(|_| self.has_endorsed_effects) {
            Some(endorsement) => {
                let effects = &endorsement.effects;
                let context = endorsed_context(transaction.id, effects.now_ms, step_limit);
                invocation(context).asking(effects.clone())
            }
            None => invocation(Context {
                height: self.block.header.height,
                timestamp_ms: self.block.header.timestamp_ms,
                index: position,
                transaction: transaction.id,
                step_limit,
            }),
        }
    }

    /// The transactions at these positions, with their endorsed effects where they have any.
    pub(crate) fn of_batch(
        &self,
        positions: &[u32],
        admission: &mut Admission<'_>,
    ) -> Vec<Arc<dyn Simulate>> {
        let transaction = |position: &u32| -> Arc<dyn Simulate> {
            let invocation = self.invocation(*position);
            match admission.take_endorsed(*position) {
                Some(endorsed) => Arc::new(EndorsedInvocation { invocation, endorsed }),
                None => Arc::new(invocation),
            }
        };
        positions.iter().map(transaction).collect()
    }
}
