//! What organisations send one another before there is a ledger: member cards, and signatures over a draft of the charter.
//!
//! ```text
//!  each: keys ─▶ MemberCard ──mail──▶ one of them: draft (a Charter without signatures) ──mail──▶ each
//!  each: checks the draft against its card ─▶ CharterSignature ──mail──▶ anybody: puts them together ─▶ Charter
//! ```
//!
//! Each file says in its first line what it is. Each is read only if every byte is as the program has written it, and every
//! value in it is signed, so that what was altered on its way is refused.

mod card;
mod credentials;
mod difference;
mod draft;
mod error;
mod file;
mod signature;

pub use card::MemberCard;
pub use credentials::Credentials;
pub use difference::Difference;
pub use error::FoundingError;
pub use signature::CharterSignature;

/// The first half of a digest or of a key in groups of four digits, for people who compare it over the phone. To make two that
/// share it takes 2^64 attempts.
pub fn fingerprint(bytes: &[u8; 32]) -> String {
    let groups = bytes[..16].chunks(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1]));
    groups.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_the_first_half_in_groups() {
        let bytes = std::array::from_fn(|byte| byte as u8 * 7);
        assert_eq!(fingerprint(&bytes), "0007 0e15 1c23 2a31 383f 464d 545b 6269");
    }
}
