//! What the chain says of transactions in schemas: who has a place, and what is decided. Told from one ledger, without what members
//! execute.

use crypto::Digest;
use ledger::Ledger;
use std::collections::{BTreeMap, BTreeSet};
use types::{
    Charters, Outcome, PartMembers, PartVotes, Payload, SchemaCertificate, SignedTransaction, TransactionId,
};

/// Where a transaction stands: height and position.
type Position = (u64, u32);

/// A transaction that the ledger has admitted.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) position: Position,
    pub(super) schemas: Vec<String>,
    /// Whose votes count; nobody's where it has one part.
    members: Vec<PartMembers>,
    /// Numbers of schemas that have said yes, each with what stands for what it moves, by the other schema.
    yes: BTreeMap<u32, BTreeMap<u32, Digest>>,
    /// The last block in which it can be decided.
    last: u64,
    /// In which block, and whether it takes effect.
    pub(super) decided: Option<(u64, bool)>,
}

impl Admitted {
    /// It has parts in several schemas.
    pub(super) fn is_crossing(&self) -> bool {
        self.schemas.len() > 1
    }
}

/// The chain up to a height.
#[derive(Default, Debug)]
pub(super) struct Chain {
    pub(super) admitted: BTreeMap<TransactionId, Admitted>,
    by_position: BTreeMap<Position, TransactionId>,
    pub(super) height: u64,
    /// Certificates of votes that stand in blocks, and those of them that say something.
    pub(super) certificates: u64,
}

impl Chain {
    /// Of a ledger that begins with its first block.
    ///
    /// # Errors
    /// It cannot be read, or has a transaction twice.
    pub(super) fn of(ledger: &Ledger, charters: &Charters) -> Result<Chain, String> {
        let mut chain = Chain::default();
        for record in ledger.blocks_from(1) {
            let record = record.map_err(|error| format!("a ledger cannot be read: {error}"))?;
            chain.height = record.block.header.height;
            let mut new = Vec::new();
            for (bytes, receipt) in record.block.transactions.iter().zip(&record.outcome.receipts) {
                let Outcome::Committed(results) = &receipt.outcome else { continue };
                let Ok(signed) = SignedTransaction::from_bytes(bytes) else { continue };
                match signed.transaction.payload {
                    Payload::Parts { parts } => {
                        let schemas = parts.into_iter().map(|part| part.schema).collect();
                        new.push((
                            receipt.transaction,
                            receipt.index,
                            schemas,
                            PartMembers::of_results(results),
                        ));
                    }
                    Payload::SchemaOutcomes { certificates } | Payload::MovingOutcomes { certificates } => {
                        certificates.iter().for_each(|certificate| chain.count(certificate, charters));
                    }
                    _ => {}
                }
            }
            chain.end_windows();
            let window = charters.at(chain.height).charter.window_blocks;
            for (id, index, schemas, members) in new {
                chain.admit(id, (index, schemas, members), window)?;
            }
        }
        Ok(chain)
    }

    fn admit(
        &mut self,
        id: TransactionId,
        (index, schemas, members): (u32, Vec<String>, Vec<PartMembers>),
        window: u32,
    ) -> Result<(), String> {
        let (position, last) = ((self.height, index), self.height + u64::from(window.max(1)));
        let (yes, decided) = Default::default();
        if schemas.len() > 1 && schemas.len() != members.len() {
            return Err(format!("the receipt at {position:?} does not name the members of {schemas:?}"));
        }
        let admitted = Admitted { position, schemas, members, yes, last, decided };
        if self.admitted.insert(id, admitted).is_some() {
            return Err(format!("exactly once: {id} has a second place at {position:?}"));
        }
        self.by_position.insert(position, id);
        Ok(())
    }

    /// Whoever has signed it, as far as that counts.
    fn count(&mut self, certificate: &SchemaCertificate, charters: &Charters) {
        self.certificates += 1;
        let SchemaCertificate { statement, signatures } = certificate;
        if statement.height > self.height
            || certificate.check_signed(&charters.at(statement.height).rules).is_err()
        {
            return;
        }
        let signed: BTreeSet<u16> = signatures.iter().map(|(member, _)| *member).collect();
        for PartVotes { height, yes, no } in &statement.votes {
            let votes = yes.iter().map(|index| (index, true)).chain(no.iter().map(|index| (index, false)));
            for (index, is_yes) in votes {
                let of_it = statement.moves.iter().filter(|one| (one.height, one.index) == (*height, *index));
                let moves = of_it.map(|one| (one.with, one.digest)).collect();
                self.vote((*height, *index), (statement.schema, &signed), is_yes.then_some(moves));
            }
        }
    }

    /// `yes`: with these moves.
    fn vote(
        &mut self,
        position: Position,
        (schema, signed): (u32, &BTreeSet<u16>),
        yes: Option<BTreeMap<u32, Digest>>,
    ) {
        let Some(id) = self.by_position.get(&position) else { return };
        let Some(admitted) = self.admitted.get_mut(id) else { return };
        let members = admitted.members.iter().find(|members| members.number == schema);
        let Some(members) = members.filter(|_| admitted.decided.is_none()) else { return };
        let count = members.organisations.iter().filter(|member| signed.contains(member)).count();
        if 2 * count <= members.organisations.len() {
            return;
        }
        let Some(moves) = yes else {
            admitted.decided = Some((self.height, false));
            return;
        };
        admitted.yes.entry(schema).or_insert(moves);
        if admitted.yes.len() == admitted.members.len() {
            let moves = |(schema, moves): (&u32, &BTreeMap<u32, Digest>)| {
                let schema = *schema;
                moves.iter().map(|(with, digest)| (schema, *with, *digest)).collect::<Vec<_>>()
            };
            let one: BTreeSet<(u32, u32, Digest)> = admitted.yes.iter().flat_map(moves).collect();
            let other = one.iter().map(|(schema, with, digest)| (*with, *schema, *digest)).collect();
            admitted.decided = Some((self.height, one == other));
        }
    }

    fn end_windows(&mut self) {
        for admitted in self.admitted.values_mut().filter(|admitted| admitted.is_crossing()) {
            if admitted.decided.is_none() && self.height >= admitted.last {
                admitted.decided = Some((self.height, false));
            }
        }
    }

    /// Everything that has a place is decided.
    pub(super) fn is_settled(&self) -> bool {
        self.admitted.values().all(|admitted| !admitted.is_crossing() || admitted.decided.is_some())
    }
}
