//! What proves a block to be final: votes of n − f members of one epoch, as the consensus crate encodes them.

use super::block::{consensus_digest, plain_digest};
use crate::CertificateError;
use crate::members::committee::{members, namespace, private_key};
use bytes::Bytes;
use commonware_codec::{Decode as _, Encode as _};
use commonware_consensus::Epochable as _;
use commonware_consensus::simplex::scheme::ed25519::Scheme;
use commonware_consensus::simplex::types::{Finalization, Finalize, Proposal};
use commonware_consensus::types::{Epoch, Round, View};
use commonware_cryptography::{certificate::Verifier as _, sha256};
use commonware_parallel::Sequential;
use commonware_utils::{non_empty, sys_rng};
use crypto::{Digest, SecretKey};
use types::Charter;

/// Checks the signatures of n − f members of one epoch.
pub(crate) struct FinalizationVerifier {
    scheme: Scheme,
    epoch: Epoch,
}

impl FinalizationVerifier {
    pub(crate) fn new(charter: &Charter) -> Result<FinalizationVerifier, CertificateError> {
        let scheme = Scheme::verifier(&namespace(charter), members(charter)?);
        Ok(FinalizationVerifier { scheme, epoch: Epoch::new(charter.version) })
    }

    /// The digest that the bytes prove to be final; `None` where too few signed it.
    pub(crate) fn verify(&self, finalization: &[u8]) -> Result<Option<Digest>, String> {
        let limits = self.scheme.certificate_codec_config();
        let read =
            Finalization::<Scheme, sha256::Digest>::decode_cfg(Bytes::copy_from_slice(finalization), &limits)
                .map_err(|error| error.to_string())?;
        let good = read.epoch() == self.epoch && read.verify(&mut sys_rng(), &self.scheme, &Sequential);
        Ok(good.then(|| plain_digest(&read.proposal.payload)))
    }
}

/// Where a node begins that does not need the blocks before: the finalization of that block.
pub(crate) type Floor = Finalization<Scheme, sha256::Digest>;

/// The consensus crate's form of a finalization whose signatures have been checked.
pub(crate) fn floor(charter: &Charter, finalization: &[u8]) -> Option<Floor> {
    let limits = FinalizationVerifier::new(charter).ok()?.scheme.certificate_codec_config();
    Floor::decode_cfg(Bytes::copy_from_slice(finalization), &limits).ok()
}

/// Makes what [`FinalizationVerifier`] accepts, with the keys of as many members as it takes.
pub(crate) struct FinalizationSigner {
    schemes: Vec<Scheme>,
    epoch: Epoch,
}

impl FinalizationSigner {
    pub(crate) fn new(charter: &Charter, keys: &[SecretKey]) -> Result<FinalizationSigner, CertificateError> {
        let (members, namespace) = (members(charter)?, namespace(charter));
        let stranger = |key: &SecretKey| CertificateError::Key(key.public_key().to_string());
        let signer = |key: &SecretKey| {
            Scheme::signer(&namespace, members.clone(), private_key(key)).ok_or_else(|| stranger(key))
        };
        let schemes = keys.iter().map(signer).collect::<Result<_, _>>()?;
        Ok(FinalizationSigner { schemes, epoch: Epoch::new(charter.version) })
    }

    /// Votes of all keys for the block with this header, as if every block took one view.
    pub(crate) fn sign(&self, height: u64, digest: &Digest) -> Vec<u8> {
        let (round, parent) = (Round::new(self.epoch, View::new(height)), View::new(height - 1));
        let proposal = Proposal::new(round, parent, consensus_digest(digest));
        let votes = self.schemes.iter().map(|scheme| Finalize::sign(scheme, proposal.clone()));
        let votes: Vec<Finalize<Scheme, sha256::Digest>> = votes.flatten().collect();
        Finalization::from_finalizes(&self.schemes[0], non_empty![@&votes], &Sequential)
            .expect("a quorum of members signs")
            .encode()
            .to_vec()
    }
}
