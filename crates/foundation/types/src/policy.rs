mod choose;
mod parse;

use crate::limits;
use borsh::{BorshDeserialize, BorshSerialize};
use choose::Search;
use parse::{is_bare_word, term};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::str::FromStr;

/// Whose endorsement is needed: an expression over organisations.
///
/// ```
/// use types::Policy;
///
/// let policy: Policy = "registry AND 2 of (bank, exchange, clearing OR depository)".parse()?;
/// assert!(policy.is_satisfied(&|name| ["registry", "bank", "depository"].contains(&name)));
/// assert!(!policy.is_satisfied(&|name| ["registry", "clearing", "depository"].contains(&name)));
///
/// policy.check(&["bank", "clearing", "depository", "exchange", "registry"])?;
/// let chosen = policy.choose(&["exchange", "clearing", "bank", "registry"]);
/// assert_eq!(chosen, Some(vec!["exchange".into(), "clearing".into(), "registry".into()]));
/// # Ok::<(), types::PolicyError>(())
/// ```
///
/// # Language
///
/// ```text
/// policy    = all { OR all }                 AND binds tighter than OR
/// all       = operand { AND operand }
/// operand   = name | "(" policy ")" | ( number | ALL | ANY ) OF "(" policy { "," policy } ")"
/// name      = word | '"' any characters, `""` for one `"` '"'
/// word      = a letter or _, then letters, digits, _ - .      (ASCII; no keyword)
/// ```
///
/// Keywords (`AND`, `OR`, `OF`, `ALL`, `ANY`) are written in any case; names are those of the charter, byte by byte,
/// so `Bank` is not `bank`. A name that is a keyword, begins with a digit or has other characters stands in double
/// quotes: `"all"`, `"3com"`, `"Sparkasse Köln"`. ASCII alone decides what needs quotes, because Unicode's tables
/// change between compilers and nodes must agree.
///
/// # Meaning
///
/// - A name holds if that organisation has endorsed. `a AND b` is `ALL of (a, b)` is `2 of (a, b)`; `a OR b` is
///   `ANY of (a, b)` is `1 of (a, b)`.
/// - `n of (…)` holds if at least `n` of its **operands** hold. An endorsement counts in every operand that mentions
///   its organisation: `a` alone satisfies `2 of (a, a OR b, c)`, as one organisation may fill two roles.
/// - No operand stands twice in one `AND`, `OR` or `OF`, whatever the order inside it, so none is counted twice:
///   `2 of (a, a, b)` and `2 of (a OR b, b OR a, c)` are refused.
/// - `n` is from 1 to the number of operands. So every policy can be satisfied by all whom it mentions, none by
///   nobody, and more endorsements never unsatisfy one.
///
/// # Canonical text
///
/// [`Display`](fmt::Display) writes it and parsing gives the same policy back. Operands stay in their order; needless
/// parentheses and quotes go; `AND` inside `OR` gets parentheses, so that nobody has to know which binds tighter;
/// thresholds that are `AND` or `OR` are written so.
///
/// ```
/// # use types::Policy;
/// let policy: Policy = r#"a and (("b")) or 1 OF (c, 2 of (d, e, f))"#.parse()?;
/// assert_eq!(policy.to_string(), "(a AND b) OR c OR 2 of (d, e, f)");
/// # Ok::<(), types::PolicyError>(())
/// ```
///
/// Equality is of this text: `a AND b` and `b AND a` mean the same and are not equal. The encoding is this text too,
/// and decoding refuses every other text.
///
/// # Limits
///
/// [`limits::POLICY_BYTES_MAX`] for the text as written and for the canonical one, [`limits::POLICY_MENTIONS_MAX`],
/// [`limits::ORGANISATIONS_MAX`] and [`limits::NESTING_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    term: Term,
}

/// Why a text is no policy, or a policy does not fit its ledger. Positions are in bytes, from 0.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum PolicyError {
    /// Something that cannot stand there.
    #[error("policy, byte {position}: expected {expected}, found {found}; {advice}")]
    Syntax {
        /// Where it stands.
        position: usize,
        /// What may stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
        /// What to do.
        advice: String,
    },
    /// A threshold that holds always or never.
    #[error(
        "policy, byte {position}: expected a number from 1 to {operands}, which is how many operands follow, \
         found {found}; count operands, not the organisations in them"
    )]
    Threshold {
        /// Where the number stands.
        position: usize,
        /// The number.
        found: String,
        /// How many operands it counts.
        operands: usize,
    },
    /// An operand that stands twice, perhaps in another order.
    #[error(
        "policy, byte {position}: expected different operands of one {operator}, found {operand} again; \
         name it once, it does not count twice"
    )]
    Repeated {
        /// Where it stands again.
        position: usize,
        /// `AND`, `OR` or `OF`.
        operator: &'static str,
        /// The operand.
        operand: String,
    },
    /// A name that no organisation can have.
    #[error(
        "policy, byte {position}: expected an organisation's name of 1 to {} bytes, found {found} bytes; \
         write it as the charter does",
        limits::NAME_BYTES_MAX
    )]
    Name {
        /// Where the name begins.
        position: usize,
        /// Its bytes.
        found: usize,
    },
    /// A stated limit is exceeded, by the policy as a whole.
    #[error("the policy has more than {limit} {what} ({constant}); write a smaller one")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much may be.
        limit: usize,
        /// Which constant of [`limits`] says so.
        constant: &'static str,
    },
    /// Organisations that are none of the ledger's.
    #[error(
        "expected a policy over the ledger's organisations {}, found {}; correct the names, capitals count",
        names(members),
        names(unknown)
    )]
    UnknownOrganisations {
        /// Those that the policy mentions and the ledger does not have.
        unknown: Vec<String>,
        /// Those that the ledger has.
        members: Vec<String>,
    },
}

impl Policy {
    /// Reads a policy. What is read can be satisfied; whether its organisations exist, [`Policy::check`] says.
    ///
    /// # Errors
    /// [`PolicyError`] says at which byte what was expected, what came, and what to do.
    ///
    /// ```
    /// # use types::Policy;
    /// let error = Policy::parse("bank exchange").unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "policy, byte 5: expected `AND`, `OR` or the end, found `exchange`; \
    ///      join operands with `AND` or `OR`, and write a name with spaces in double quotes"
    /// );
    /// ```
    pub fn parse(text: &str) -> Result<Policy, PolicyError> {
        if text.len() > limits::POLICY_BYTES_MAX {
            return Err(too_many_bytes());
        }
        Policy::within_limits(term(text)?)
    }

    /// Checks that every organisation is one of the ledger's `members`. That a policy can be satisfied at all needs
    /// no check: [`Policy::parse`] refuses what cannot.
    ///
    /// # Errors
    /// [`PolicyError::UnknownOrganisations`] names all that are unknown, and the members.
    pub fn check(&self, members: &[&str]) -> Result<(), PolicyError> {
        let unknown: Vec<String> =
            self.organisations().into_iter().filter(|name| !members.contains(name)).map(Into::into).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let members = members.iter().map(ToString::to_string).collect();
        Err(PolicyError::UnknownOrganisations { unknown, members })
    }

    /// Whether the policy holds, given who has endorsed.
    pub fn is_satisfied(&self, has_endorsed: &dyn Fn(&str) -> bool) -> bool {
        self.term.is_satisfied(has_endorsed)
    }

    /// What has to hold besides, given who has endorsed; `None` where it holds.
    ///
    /// ```
    /// # use types::Policy;
    /// let policy: Policy = "registry AND 2 of (bank, exchange, clearing)".parse()?;
    /// let remaining = policy.remaining(&|name| ["registry", "bank"].contains(&name));
    /// assert_eq!(remaining.expect("one more").to_string(), "exchange OR clearing");
    /// # Ok::<(), types::PolicyError>(())
    /// ```
    pub fn remaining(&self, has_endorsed: &dyn Fn(&str) -> bool) -> Option<Policy> {
        self.term.remaining(has_endorsed).map(|term| Policy { term })
    }

    /// The organisations that it mentions.
    pub fn organisations(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        self.term.visit_names(&mut |name| {
            names.insert(name);
        });
        names
    }

    /// A smallest set among `available` that satisfies the policy, in the order of `available`; `None` where all of
    /// them together do not. Of several smallest sets it is the one that prefers those named first: it has the
    /// earliest organisation that the sets do not share. Names that the policy does not mention, or that stand
    /// again, are passed over.
    ///
    /// Exact where no organisation is mentioned twice, in time that is quadratic in the mentions. Otherwise it is a
    /// hitting set that is sought, and the search stops after [`limits::POLICY_CHOICE_WORK_MAX`], about 0.2 s; the
    /// answer is then what a greedy descent found: it satisfies the policy and nobody in it can be left out, but a
    /// smaller set may exist. Random policies of 24 organisations with three to six mentions each were all within
    /// the limit, of 32 a half.
    ///
    /// ```
    /// # use types::Policy;
    /// let policy: Policy = "(a OR b) AND (b OR c)".parse()?;
    /// assert_eq!(policy.choose(&["a", "c", "b"]), Some(vec!["b".to_string()]));
    /// assert_eq!(policy.choose(&["c", "a"]), Some(vec!["c".to_string(), "a".to_string()]));
    /// assert_eq!(policy.choose(&["a"]), None);
    /// # Ok::<(), types::PolicyError>(())
    /// ```
    pub fn choose(&self, available: &[&str]) -> Option<Vec<String>> {
        let mut search = Search::new(limits::POLICY_CHOICE_WORK_MAX);
        self.choose_with(available, &mut search).map(|(chosen, _is_exact)| chosen)
    }

    /// The policy that holds where all of these hold; `None` where there are none. Operands that several of them
    /// share stand in it once.
    ///
    /// # Errors
    /// [`PolicyError::TooLarge`] where they exceed the limits of one policy together.
    ///
    /// ```
    /// # use types::Policy;
    /// let both = Policy::and([Policy::parse("a AND b")?, Policy::parse("b AND (c OR d)")?])?;
    /// assert_eq!(both.expect("of two policies").to_string(), "a AND b AND (c OR d)");
    /// # Ok::<(), types::PolicyError>(())
    /// ```
    pub fn and(policies: impl IntoIterator<Item = Policy>) -> Result<Option<Policy>, PolicyError> {
        let mut operands = Vec::new();
        let mut seen = BTreeSet::new();
        for operand in policies.into_iter().flat_map(|policy| policy.term.into_operands_of_and()) {
            if seen.insert(operand.sorted()) {
                operands.push(operand);
            }
            if operands.len() > limits::POLICY_MENTIONS_MAX {
                return Err(too_many_mentions());
            }
        }
        let term = match operands.len() {
            0 => return Ok(None),
            1 => operands.remove(0),
            needed => Term::AtLeast { needed, operands },
        };
        Policy::within_limits(term).map(Some)
    }

    fn within_limits(term: Term) -> Result<Policy, PolicyError> {
        let policy = Policy { term };
        let mut mentions = 0;
        policy.term.visit_names(&mut |_| mentions += 1);
        if mentions > limits::POLICY_MENTIONS_MAX {
            return Err(too_many_mentions());
        }
        if policy.term.levels() > limits::NESTING_MAX {
            return Err(too_many_levels());
        }
        if policy.organisations().len() > limits::ORGANISATIONS_MAX {
            let (limit, constant) = (limits::ORGANISATIONS_MAX, "ORGANISATIONS_MAX");
            return Err(PolicyError::TooLarge { what: "organisations", limit, constant });
        }
        if policy.to_string().len() > limits::POLICY_BYTES_MAX {
            return Err(too_many_bytes());
        }
        Ok(policy)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.term, f)
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Policy, PolicyError> {
        Policy::parse(text)
    }
}

impl BorshSerialize for Policy {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        self.to_string().serialize(writer)
    }
}

impl BorshDeserialize for Policy {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Policy> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
        let length = u32::deserialize_reader(reader)? as usize;
        if length > limits::POLICY_BYTES_MAX {
            return Err(invalid(too_many_bytes().to_string()));
        }
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes)?;
        let text = String::from_utf8(bytes).map_err(|error| invalid(format!("policy: {error}")))?;
        let policy = Policy::parse(&text).map_err(|error| invalid(error.to_string()))?;
        if policy.to_string() != text {
            let (expected, found) = (excerpt(&policy.to_string()), excerpt(&text));
            return Err(invalid(format!(
                "policy: expected its canonical text `{expected}`, found `{found}`"
            )));
        }
        Ok(policy)
    }
}

fn too_many_bytes() -> PolicyError {
    let (limit, constant) = (limits::POLICY_BYTES_MAX, "POLICY_BYTES_MAX");
    PolicyError::TooLarge { what: "bytes of text", limit, constant }
}

fn too_many_mentions() -> PolicyError {
    let (limit, constant) = (limits::POLICY_MENTIONS_MAX, "POLICY_MENTIONS_MAX");
    PolicyError::TooLarge { what: "mentions of organisations", limit, constant }
}

fn too_many_levels() -> PolicyError {
    PolicyError::TooLarge { what: "levels of nesting", limit: limits::NESTING_MAX, constant: "NESTING_MAX" }
}

/// Names as policies write them, separated by commas.
fn names(names: &[String]) -> String {
    names.iter().map(|name| excerpt(&Name(name).to_string())).collect::<Vec<_>>().join(", ")
}

/// What a policy says, in normal form: an `AtLeast` has at least two operands, which differ even when sorted;
/// `1 ≤ needed ≤ operands`; no AND is an operand of AND, and no OR of OR.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Term {
    Organisation(String),
    AtLeast { needed: usize, operands: Vec<Term> },
}

impl Term {
    /// `AND` and `OR` for the thresholds that are written so.
    fn operator(&self) -> Option<&'static str> {
        match self {
            Term::AtLeast { needed, operands } if *needed == operands.len() => Some("AND"),
            Term::AtLeast { needed: 1, .. } => Some("OR"),
            _ => None,
        }
    }

    fn into_operands_of_and(self) -> Vec<Term> {
        match self {
            Term::AtLeast { needed, operands } if needed == operands.len() => operands,
            other => vec![other],
        }
    }

    fn into_operands_of_or(self) -> Vec<Term> {
        match self {
            Term::AtLeast { needed: 1, operands } => operands,
            other => vec![other],
        }
    }

    /// What has to hold besides; `None` where the term holds.
    fn remaining(&self, has_endorsed: &dyn Fn(&str) -> bool) -> Option<Term> {
        let (needed, operands) = match self {
            Term::Organisation(name) => return (!has_endorsed(name)).then(|| self.clone()),
            Term::AtLeast { needed, operands } => (*needed, operands),
        };
        let mut open: Vec<Term> = operands.iter().filter_map(|one| one.remaining(has_endorsed)).collect();
        let needed = needed.checked_sub(operands.len() - open.len()).filter(|needed| *needed > 0)?;
        match open.len() {
            1 => open.pop(),
            _ => Some(Term::AtLeast { needed, operands: open }),
        }
    }

    fn is_satisfied(&self, has_endorsed: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Term::Organisation(name) => has_endorsed(name),
            Term::AtLeast { needed, operands } => {
                let satisfied = operands.iter().filter(|operand| operand.is_satisfied(has_endorsed));
                satisfied.take(*needed).count() == *needed
            }
        }
    }

    fn visit_names<'a>(&'a self, visit: &mut dyn FnMut(&'a str)) {
        match self {
            Term::Organisation(name) => visit(name),
            Term::AtLeast { operands, .. } => {
                operands.iter().for_each(|operand| operand.visit_names(visit));
            }
        }
    }

    fn levels(&self) -> usize {
        match self {
            Term::Organisation(_) => 0,
            Term::AtLeast { operands, .. } => 1 + operands.iter().map(Term::levels).max().unwrap_or(0),
        }
    }

    /// The same with all operands sorted: equal for terms that differ in order alone.
    fn sorted(&self) -> Term {
        match self {
            Term::Organisation(_) => self.clone(),
            Term::AtLeast { needed, operands } => {
                let mut operands: Vec<_> = operands.iter().map(Term::sorted).collect();
                operands.sort();
                Term::AtLeast { needed: *needed, operands }
            }
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (needed, operands) = match self {
            Term::Organisation(name) => return Name(name).fmt(f),
            Term::AtLeast { needed, operands } => (needed, operands),
        };
        let operator = self.operator();
        if operator.is_none() {
            write!(f, "{needed} of (")?;
        }
        for (position, operand) in operands.iter().enumerate() {
            match operator {
                _ if position == 0 => {}
                Some(operator) => write!(f, " {operator} ")?,
                None => f.write_str(", ")?,
            }
            match (operator, operand.operator()) {
                (Some(_), Some(_)) => write!(f, "({operand})")?,
                _ => operand.fmt(f)?,
            }
        }
        f.write_str(if operator.is_none() { ")" } else { "" })
    }
}

/// A name as policies write it: in double quotes where it is no word.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match is_bare_word(self.0) {
            true => f.write_str(self.0),
            false => write!(f, "\"{}\"", self.0.replace('"', "\"\"")),
        }
    }
}

/// The beginning of what was written, for a message: one line, and not all of a long text. Which characters are
/// control characters, Unicode never changes, so that nodes give the same messages.
fn excerpt(text: &str) -> String {
    const CHARACTERS_MAX: usize = 80;
    let mut shown = String::new();
    for (position, character) in text.chars().enumerate() {
        match character {
            _ if position == CHARACTERS_MAX => {
                shown.push('…');
                break;
            }
            _ if character.is_control() => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests;
