//! Agreement on the whole state at checkpoints: this node's checkpoints whose roots wait for a quorum, and what is done when
//! one says the same or something else.

use super::attestations::{Attestations, Output};
use super::certified::{CertifiedCheckpoint, Divergence};
use super::heal::Heal;
use super::message::Message;
use super::stage::Attester;
use ledger::CheckpointStore;
use state::KeptState;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use types::{CheckpointCertificate, CheckpointRoot, TableId, decode_exactly, encode};

/// How often the pipeline is asked to heal, if it does not.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// Own checkpoints that wait for a quorum: each has a tree in memory and an open file.
const WAITING_MAX: usize = 3;

/// The roots of this node's checkpoints, and what is known of others'.
pub(crate) struct Roots {
    pub(super) attestations: Attestations<CheckpointRoot>,
    pub(super) outputs: Vec<Output<CheckpointRoot>>,
    store: Arc<CheckpointStore>,
    /// Own checkpoints that are not certified.
    kept: BTreeMap<u64, Arc<KeptState>>,
    /// What differs from a quorum, until it agrees.
    differing: Option<Differing>,
}

struct Differing {
    height: u64,
    /// What was found instead.
    kept: Option<Arc<KeptState>>,
    /// What the pipeline has to do, and when it was asked last; `None` once it has done so.
    heal: Option<(Heal, Duration)>,
}

impl Roots {
    /// Certificates that were kept beside checkpoints count as what others say: the checkpoints are compared with them.
    pub(crate) fn new(attestations: Attestations<CheckpointRoot>, store: Arc<CheckpointStore>) -> Roots {
        let (outputs, kept) = (Vec::new(), BTreeMap::new());
        let mut roots = Roots { attestations, outputs, store, kept, differing: None };
        for height in roots.store.certified() {
            let kept = roots.store.certificate(height).map_err(|error| error.to_string()).and_then(|bytes| {
                decode_exactly::<CheckpointCertificate>(&bytes.unwrap_or_default())
                    .map_err(|error| error.to_string())
            });
            let heard = kept.and_then(|certificate| {
                let Roots { attestations, outputs, .. } = &mut roots;
                attestations.hear_certificate(certificate, outputs).map_err(|error| error.to_string())
            });
            if let Err(error) = heard {
                tracing::warn!(
                    height,
                    error,
                    "the certificate of a checkpoint cannot be used; it is collected again"
                );
            }
        }
        roots
    }

    /// The node's state differs from that of a quorum.
    pub(super) fn differ(&self) -> bool {
        self.differing.is_some()
    }

    /// A checkpoint is kept, with its tree.
    pub(super) fn found(&mut self, kept: Arc<KeptState>) {
        let (header, state_root) = (*kept.header(), kept.tree().root());
        let root = CheckpointRoot {
            ledger: header.ledger,
            height: header.height,
            outcome: header.outcome,
            state_root,
        };
        self.kept.insert(header.height, kept);
        while self.kept.len() > WAITING_MAX {
            self.kept.pop_first();
        }
        self.attestations.found(root, &mut self.outputs);
    }

    /// The node goes on behind a checkpoint of others that a quorum has attested; its store keeps it like any other.
    pub(super) fn join(&mut self, certificate: CheckpointCertificate) {
        let height = certificate.statement.height;
        self.kept = self.kept.split_off(&height);
        self.differing.take_if(|differing| differing.height <= height);
        if let Err(error) = self.attestations.hear_certificate(certificate, &mut self.outputs) {
            tracing::error!(height, %error, "the checkpoint that this node has joined from is not certified");
        }
    }

    /// Checkpoints from `height` on are made again.
    pub(super) fn take_back(&mut self, height: u64) {
        self.attestations.take_back(height);
        self.kept.split_off(&height);
        if let Some(differing) = self.differing.as_mut().filter(|differing| differing.height >= height) {
            differing.heal = None;
        }
    }
}

impl Attester {
    /// Does what follows from what was said of roots.
    pub(super) fn act_on_roots(&mut self) {
        let Roots { attestations, outputs, .. } = &mut self.roots;
        attestations.tell(outputs);
        for output in std::mem::take(outputs) {
            match output {
                Output::Say { again, attestations } => self.send(&Message::Roots { again, attestations }),
                Output::Show(certificate) => self.send(&Message::RootCertificate(certificate)),
                Output::Certified(certificate) => self.keep(certificate),
                Output::Diverged(certificate) => {
                    let height = certificate.statement.height;
                    let text = format!(
                        "the state behind block {height} is not the one that a quorum of organisations has: this node's memory \
                         or its checkpoint was changed"
                    );
                    self.metrics.diverged();
                    self.differ_in_state(height, text, Some(certificate.statement));
                }
                Output::Contradiction(both) => {
                    let [first, second] = *both;
                    tracing::warn!(
                        member = first.organisation,
                        height = first.statement.height,
                        ?first,
                        ?second,
                        "a member has attested two different states; these two signatures prove it"
                    );
                    self.metrics.contradicted();
                }
                Output::Split(height) => {
                    let text = format!("no root of the state behind block {height} finds a quorum");
                    self.differ_in_state(height, text, None);
                }
            }
        }
        self.ask_to_heal();
    }

    /// A quorum has the state that this node has.
    fn keep(&mut self, certificate: CheckpointCertificate) {
        let height = certificate.statement.height;
        self.certifying.certify_checkpoint(certificate.clone());
        if let Err(error) = self.roots.store.certify(height, &encode(&certificate)) {
            tracing::warn!(height, %error, "the certificate of a checkpoint is not kept");
        }
        self.metrics.checkpoint_certified(height);
        tracing::info!(height, "the checkpoint is certified");
        let kept = self.roots.kept.get(&height).cloned();
        self.roots.kept = self.roots.kept.split_off(&(height + 1));
        let differing = self.roots.differing.take_if(|differing| differing.height <= height);
        if let Some(differing) = differing {
            let tables =
                differing.kept.zip(kept.clone()).map(|(one, other)| self.differing_tables(&one, &other));
            let (at, tables) = (differing.height, tables.unwrap_or_default());
            tracing::warn!(height = at, tables, "the state is that of a quorum again; these tables were not");
            if !tables.is_empty() {
                let text = format!("the state behind block {at} was not that of a quorum, in {tables}");
                self.certified.report(text);
            }
            self.serve_again();
        }
        if let Some(kept) = kept {
            self.certified.keep_checkpoint(Some(CertifiedCheckpoint { certificate, kept }));
        }
    }

    pub(super) fn differ_in_state(&mut self, height: u64, text: String, expected: Option<CheckpointRoot>) {
        self.report(Divergence { height, text });
        let agreed = self.roots.attestations.certified();
        let heal = Heal::State { height, expected, agreed };
        let kept = self.roots.kept.get(&height).cloned();
        self.roots.differing = Some(Differing { height, kept, heal: Some((heal, Duration::ZERO)) });
        if self.certified.checkpoint().is_some_and(|kept| kept.certificate.statement.height >= height) {
            self.certified.keep_checkpoint(None);
        }
    }

    /// Until the pipeline has done so: it may be busy with something else.
    fn ask_to_heal(&mut self) {
        let now = self.now();
        let waiting = self.roots.differing.as_mut().and_then(|differing| differing.heal.as_mut());
        if let Some((heal, asked)) = waiting
            && (*asked == Duration::ZERO || now >= *asked + ASK_AGAIN)
        {
            *asked = now.max(Duration::from_nanos(1));
            let _ = self.heal.try_send(heal.clone());
        }
    }

    /// Names of the tables whose rows are not the same in both states.
    fn differing_tables(&self, one: &KeptState, other: &KeptState) -> String {
        let found = tables_that_differ(one, other);
        found.iter().map(|id| other.table_name(*id)).collect::<Vec<_>>().join(", ")
    }
}

fn tables_that_differ(one: &KeptState, other: &KeptState) -> BTreeSet<TableId> {
    let leaves = [one.tree().leaves(), other.tree().leaves()];
    let known = leaves.map(|leaves| leaves.iter().copied().collect::<BTreeSet<_>>());
    let mut tables = BTreeSet::new();
    for (state, known) in [(one, &known[1]), (other, &known[0])] {
        let nodes = state.tree().nodes().iter().zip(state.tree().leaves());
        let differing = nodes.filter(|(_, leaf)| !known.contains(leaf));
        tables.extend(differing.map(|(node, _)| node.table()));
    }
    tables
}
