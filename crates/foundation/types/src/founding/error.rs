use crate::CharterError;
use crypto::Digest;

/// Why a card, a draft or a signature is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FoundingError {
    /// A file in the place of another.
    #[error("expected {what}, which begins with `{expected}`; found a file that begins with `{found}`")]
    OtherFile {
        /// What is needed.
        what: &'static str,
        /// Its first line.
        expected: String,
        /// The first line that came.
        found: String,
    },
    /// A file in a format that this program does not know.
    #[error(
        "expected {what}, which begins with `{expected}`; found `{found}`, which another version of Entente has written: install \
         that version"
    )]
    OtherVersion {
        /// What is needed.
        what: &'static str,
        /// Its first line.
        expected: String,
        /// The first line that came.
        found: String,
    },
    /// Not TOML, a field missing, a field unknown, a key that is none.
    #[error("{what} cannot be read: {reason}; take the file as it was sent")]
    Malformed {
        /// Which file.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that means the same as the one that was sent, and is another.
    #[error(
        "{what} was altered in line {line}: expected `{expected}`, found `{found}`; take the file as it was sent, as an \
         attachment"
    )]
    Altered {
        /// Which file.
        what: &'static str,
        /// The line, from 1.
        line: usize,
        /// As the program writes it.
        expected: String,
        /// As it is.
        found: String,
    },
    /// A value that cannot be.
    #[error("{what}: {field} must be {expected}, found `{found}`")]
    Value {
        /// Which file.
        what: &'static str,
        /// Which field.
        field: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// One key for two purposes.
    #[error(
        "the card of {organisation} has the key {key} twice: each purpose needs a key of its own; `entente keys` makes them"
    )]
    OneKey {
        /// Whose card it is.
        organisation: String,
        /// The key.
        key: String,
    },
    /// A card that the root key has not signed yet, because it is kept elsewhere.
    #[error(
        "the card of {organisation} is not signed by its root key yet: run `entente root-key sign` where that key is, and take \
         the card that it writes"
    )]
    CardNotSigned {
        /// Whose card it is.
        organisation: String,
    },
    /// A card that was altered.
    #[error(
        "the card of {organisation} is not as its {key} has signed it: a value in it was altered; ask {organisation} for the \
         card again"
    )]
    CardSignature {
        /// Whose card it is said to be.
        organisation: String,
        /// Which of its keys: `root key` or `node key`.
        key: &'static str,
    },
    /// A card or a signature of another network.
    #[error(
        "{what} of {organisation} is for the network `{found}`, expected one for `{expected}`; ask {organisation} for one"
    )]
    OtherNetwork {
        /// Card or signature.
        what: &'static str,
        /// Whose it is.
        organisation: String,
        /// The network that is founded.
        expected: String,
        /// The network that it names.
        found: String,
    },
    /// Two cards of one name.
    #[error("two cards are of an organisation {name}: every member needs its own name, and gives one card")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// Two cards with one key.
    #[error(
        "the cards of {first} and {second} have the same {what} {key}: two members, or two nodes, with one key count as one; \
         each makes its own with `entente keys`"
    )]
    KeyTwice {
        /// Who stands first.
        first: String,
        /// Who has it too.
        second: String,
        /// `root key` or `node key`, of the second.
        what: &'static str,
        /// The key.
        key: String,
    },
    /// Two cards with one address.
    #[error(
        "the cards of {first} and {second} have the same address {address}: one of them has to listen elsewhere"
    )]
    AddressTwice {
        /// Who stands first.
        first: String,
        /// Who has it too.
        second: String,
        /// The address.
        address: String,
    },
    /// A card whose organisation the draft does not have.
    #[error(
        "the draft has no member {organisation}: its members are {members}; have its card put into a new draft"
    )]
    NotInDraft {
        /// Whose card it is.
        organisation: String,
        /// Who is in the draft.
        members: String,
    },
    /// A draft that says something else of a member than its card.
    #[error(
        "the draft differs from the card of {organisation}: {differences}; sign nothing, and have a draft made from the card"
    )]
    DraftDiffers {
        /// Whose card it is.
        organisation: String,
        /// Field by field.
        differences: String,
    },
    /// A signature over another draft.
    #[error(
        "{organisation} has signed another draft, of ledger {found}; this one is ledger {expected}: `entente charter show` with \
         `--against` says what differs; have {organisation} sign this one"
    )]
    OtherDraft {
        /// Who has signed.
        organisation: String,
        /// Digest of this draft.
        expected: Digest,
        /// Digest that the signature names.
        found: Digest,
    },
    /// A signature of somebody who is no member.
    #[error("the signature is of {organisation}, which is no member; the members are {members}")]
    NoMember {
        /// Who has signed.
        organisation: String,
        /// Who is in the charter.
        members: String,
    },
    /// A signature that does not fit.
    #[error(
        "the signature of {organisation} is not one by its root key over this charter: it was altered, or made with another \
         key; ask {organisation} for it again"
    )]
    WrongSignature {
        /// Who is said to have signed.
        organisation: String,
    },
    /// Two different signatures of one member.
    #[error(
        "there are two different signatures of {organisation} over this charter: take the one that {organisation} says is its \
         own, and leave the other out"
    )]
    SignedTwice {
        /// Who has signed.
        organisation: String,
    },
    /// Credentials that do not fit.
    #[error(
        "the credentials are not those that {organisation}'s root key has given for this charter: {reason}"
    )]
    Credentials {
        /// Whose they are.
        organisation: String,
        /// What is wrong.
        reason: String,
    },
    /// A draft that cannot become a charter.
    #[error(transparent)]
    Charter(#[from] CharterError),
}
