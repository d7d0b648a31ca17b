//! The way from the founding charter to the one that holds at the height of a proof's certificate.

use crate::ProofError;
use crate::json::{from_hex, malformed, to_hex};
use std::sync::Arc;
use types::{Charter, Charters, Handover, decode_exactly, encode, limits};

/// Of all handovers of a ledger those whose charters hold at a certificate's height.
pub(crate) fn needed(handovers: impl IntoIterator<Item = Handover>, height: u64) -> Vec<Handover> {
    handovers.into_iter().take_while(|handover| is_needed(handover, height)).collect()
}

fn is_needed(handover: &Handover, height: u64) -> bool {
    handover.charters.first().is_some_and(|first| first.effective_height <= height)
}

/// The charters from the founding one on that handovers prove. `height`: what the last of them must hold for at the latest.
///
/// # Errors
/// [`ProofError`] names what is wrong.
pub(crate) fn follow(charter: &Charter, handovers: &[Handover], height: u64) -> Result<Charters, ProofError> {
    let mut charters = Charters::new(Arc::new(charter.clone()));
    for handover in handovers {
        charters.hand_over(handover)?;
        if !is_needed(handover, height) {
            return Err(ProofError::Order("a handover is not needed for what is proved"));
        }
    }
    Ok(charters)
}

pub(crate) fn check_count(handovers: &[Handover]) -> Result<(), ProofError> {
    let (found, limit) = (handovers.len(), limits::AMENDMENTS_MAX);
    match found > limit {
        true => Err(ProofError::TooLarge { what: "handovers", found, limit }),
        false => Ok(()),
    }
}

/// Their canonical encodings.
pub(crate) fn to_json(handovers: &[Handover]) -> Vec<String> {
    handovers.iter().map(|handover| to_hex(&encode(handover))).collect()
}

pub(crate) fn from_json(texts: &[String]) -> Result<Vec<Handover>, ProofError> {
    let handover = |text: &String| {
        let read = decode_exactly::<Handover>(&from_hex(text)?);
        read.map_err(|error| malformed(format!("a handover's encoding: {error}")))
    };
    texts.iter().map(handover).collect()
}
