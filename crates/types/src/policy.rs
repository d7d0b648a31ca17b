use crate::limits;
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::{BTreeMap, BTreeSet};
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
        let mut parser = Parser::new(text)?;
        let term = parser.any()?;
        match parser.token {
            Token::End => Policy::within_limits(term),
            _ => Err(parser.after_operand("`AND`, `OR` or the end", None)),
        }
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
        let mut search = Search { work_left: limits::POLICY_CHOICE_WORK_MAX };
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
        match is_word(self.0) && Keyword::of(self.0).is_none() {
            true => f.write_str(self.0),
            false => write!(f, "\"{}\"", self.0.replace('"', "\"\"")),
        }
    }
}

fn is_word(text: &str) -> bool {
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let continues = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    text.as_bytes().first().is_some_and(begins) && text.bytes().all(continues)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyword {
    And,
    Or,
    Of,
    All,
    Any,
}

impl Keyword {
    fn of(word: &str) -> Option<Keyword> {
        let keywords = [
            ("and", Keyword::And),
            ("or", Keyword::Or),
            ("of", Keyword::Of),
            ("all", Keyword::All),
            ("any", Keyword::Any),
        ];
        keywords.into_iter().find(|(text, _)| word.eq_ignore_ascii_case(text)).map(|(_, keyword)| keyword)
    }
}

enum Token {
    Name(String),
    Keyword(Keyword),
    /// Digits alone.
    Number,
    Open,
    Close,
    Comma,
    /// Anything else up to the next space, parenthesis, comma or quote.
    Other,
    End,
}

const OPERAND: &str = "an organisation, `(`, or a number and `OF`";

/// Recursive descent with one token in hand. Parentheses are the only recursion, and they are counted.
struct Parser<'a> {
    text: &'a str,
    token: Token,
    /// Where the token begins and ends.
    start: usize,
    end: usize,
    /// Parentheses that are open.
    open: usize,
    mentions: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>, PolicyError> {
        let mut parser = Parser { text, token: Token::End, start: 0, end: 0, open: 0, mentions: 0 };
        parser.advance()?;
        Ok(parser)
    }

    fn any(&mut self) -> Result<Term, PolicyError> {
        let mut operands = vec![(self.start, self.all()?)];
        while self.is_at(Keyword::Or) {
            self.advance()?;
            operands.push((self.start, self.all()?));
        }
        join("OR", 1, operands)
    }

    fn all(&mut self) -> Result<Term, PolicyError> {
        let mut operands = vec![(self.start, self.operand()?)];
        while self.is_at(Keyword::And) {
            self.advance()?;
            operands.push((self.start, self.operand()?));
        }
        join("AND", operands.len(), operands)
    }

    fn operand(&mut self) -> Result<Term, PolicyError> {
        match &mut self.token {
            Token::Name(name) => {
                let name = std::mem::take(name);
                self.mentions += 1;
                if self.mentions > limits::POLICY_MENTIONS_MAX {
                    return Err(too_many_mentions());
                }
                self.advance()?;
                Ok(Term::Organisation(name))
            }
            Token::Open => self.parentheses(),
            Token::Number | Token::Keyword(Keyword::All | Keyword::Any) => self.threshold(),
            _ => Err(self.no_operand()),
        }
    }

    fn parentheses(&mut self) -> Result<Term, PolicyError> {
        let opened_at = self.start;
        self.open()?;
        let term = self.any()?;
        match self.token {
            Token::Close => self.close().map(|()| term),
            _ => Err(self.after_operand("`AND`, `OR` or `)`", Some(opened_at))),
        }
    }

    /// `number OF (…)`, `ALL OF (…)`, `ANY OF (…)`.
    fn threshold(&mut self) -> Result<Term, PolicyError> {
        let (start, count, shown) = (self.start, self.found(), excerpt(self.found()));
        self.advance()?;
        if !self.is_at(Keyword::Of) {
            let advice =
                format!("write `{shown} of (a, b, c)`; an organisation of that name is written \"{shown}\"");
            return Err(self.unexpected("`OF`", advice));
        }
        self.advance()?;
        if !matches!(self.token, Token::Open) {
            let advice = format!("write what `OF` counts in parentheses: `{shown} of (a, b, c)`");
            return Err(self.unexpected("`(`", advice));
        }
        let operands = self.list()?;
        let needed = match Keyword::of(count) {
            Some(Keyword::All) => operands.len(),
            Some(_) => 1,
            // Digits that are too many for a number are more than there are operands.
            None => count.parse().unwrap_or(usize::MAX),
        };
        if needed == 0 || needed > operands.len() {
            return Err(PolicyError::Threshold { position: start, found: shown, operands: operands.len() });
        }
        join("OF", needed, operands)
    }

    fn list(&mut self) -> Result<Vec<(usize, Term)>, PolicyError> {
        let opened_at = self.start;
        self.open()?;
        let mut operands = vec![(self.start, self.any()?)];
        while matches!(self.token, Token::Comma) {
            self.advance()?;
            operands.push((self.start, self.any()?));
        }
        match self.token {
            Token::Close => self.close().map(|()| operands),
            _ => Err(self.after_operand("`AND`, `OR`, `,` or `)`", Some(opened_at))),
        }
    }

    fn open(&mut self) -> Result<(), PolicyError> {
        self.open += 1;
        if self.open > limits::NESTING_MAX {
            return Err(too_many_levels());
        }
        self.advance()
    }

    fn close(&mut self) -> Result<(), PolicyError> {
        self.open -= 1;
        self.advance()
    }

    fn is_at(&self, keyword: Keyword) -> bool {
        matches!(self.token, Token::Keyword(found) if found == keyword)
    }

    /// The token as it is written.
    fn found(&self) -> &'a str {
        &self.text[self.start..self.end]
    }

    /// Takes the next token in hand.
    fn advance(&mut self) -> Result<(), PolicyError> {
        let is_space = |character: char| character.is_ascii_whitespace();
        let rest = self.text[self.end..].trim_start_matches(is_space);
        self.start = self.text.len() - rest.len();
        let ends_run = |character: char| is_space(character) || "(),\"".contains(character);
        let run = &rest[..rest.find(ends_run).unwrap_or(rest.len())];
        self.end = self.start + run.len().max(rest.len().min(1));
        self.token = match rest.as_bytes().first() {
            None => Token::End,
            Some(b'(') => Token::Open,
            Some(b')') => Token::Close,
            Some(b',') => Token::Comma,
            Some(b'"') => return self.quoted_name(),
            Some(_) if run.bytes().all(|byte| byte.is_ascii_digit()) => Token::Number,
            Some(_) if !is_word(run) => Token::Other,
            Some(_) => match Keyword::of(run) {
                Some(keyword) => Token::Keyword(keyword),
                None => Token::Name(self.name(run.to_string())?),
            },
        };
        Ok(())
    }

    fn quoted_name(&mut self) -> Result<(), PolicyError> {
        let mut name = String::new();
        let mut rest = &self.text[self.start + 1..];
        loop {
            let Some((part, after)) = rest.split_once('"') else {
                self.end = self.text.len();
                let advice =
                    format!("close the quote of byte {}; a quote in a name is written twice", self.start);
                return Err(self.unexpected_end("`\"` at the end of a name", advice));
            };
            name.push_str(part);
            match after.strip_prefix('"') {
                Some(after) => {
                    name.push('"');
                    rest = after;
                }
                None => {
                    self.end = self.text.len() - after.len();
                    self.token = Token::Name(self.name(name)?);
                    return Ok(());
                }
            }
        }
    }

    fn name(&self, name: String) -> Result<String, PolicyError> {
        match name.len() {
            1..=limits::NAME_BYTES_MAX => Ok(name),
            found => Err(PolicyError::Name { position: self.start, found }),
        }
    }

    #[cold]
    fn no_operand(&self) -> PolicyError {
        let found = self.found();
        let advice = match self.token {
            Token::Keyword(_) => {
                format!("name what `{found}` is about; an organisation of that name is written \"{found}\"")
            }
            Token::Other => format!(
                "a name that does not begin with a letter or `_`, or has other characters than letters, digits, \
                 `_`, `-` and `.`, is written in double quotes: {}",
                excerpt(&Name(found).to_string())
            ),
            _ => "name an organisation, or several: `2 of (a, b AND c)`".to_string(),
        };
        self.unexpected(OPERAND, advice)
    }

    /// What comes after a complete operand neither goes on with it nor ends what it is in.
    #[cold]
    fn after_operand(&self, expected: &'static str, opened_at: Option<usize>) -> PolicyError {
        let advice = match (&self.token, opened_at) {
            (Token::End, Some(opened_at)) => format!("close the parenthesis of byte {opened_at}"),
            (Token::Close, _) => "leave it out, or open a parenthesis before".to_string(),
            (Token::Comma, _) => "write a number before a list: `2 of (a, b, c)`".to_string(),
            (Token::Keyword(Keyword::Of), _) => {
                "write a number, `ALL` or `ANY` before `OF`: `2 of (a, b, c)`".to_string()
            }
            _ => {
                "join operands with `AND` or `OR`, and write a name with spaces in double quotes".to_string()
            }
        };
        self.unexpected(expected, advice)
    }

    fn unexpected(&self, expected: &'static str, advice: String) -> PolicyError {
        if matches!(self.token, Token::End) {
            return self.unexpected_end(expected, advice);
        }
        let found = format!("`{}`", excerpt(self.found()));
        PolicyError::Syntax { position: self.start, expected, found, advice }
    }

    fn unexpected_end(&self, expected: &'static str, advice: String) -> PolicyError {
        PolicyError::Syntax { position: self.text.len(), expected, found: "the end".to_string(), advice }
    }
}

/// At least `needed` of these, each with the byte where it begins, in normal form.
fn join(
    operator: &'static str,
    needed: usize,
    mut operands: Vec<(usize, Term)>,
) -> Result<Term, PolicyError> {
    if operands.len() == 1 {
        return Ok(operands.remove(0).1);
    }
    let is_and = needed == operands.len();
    let flatten = |term: Term| match (is_and, needed) {
        (true, _) => term.into_operands_of_and(),
        (false, 1) => term.into_operands_of_or(),
        (false, _) => vec![term],
    };
    let mut seen = BTreeSet::new();
    let mut flat = Vec::new();
    for (position, term) in operands {
        for operand in flatten(term) {
            if !seen.insert(operand.sorted()) {
                let operand = excerpt(&operand.to_string());
                return Err(PolicyError::Repeated { position, operator, operand });
            }
            flat.push(operand);
        }
    }
    let needed = if is_and { flat.len() } else { needed };
    let term = Term::AtLeast { needed, operands: flat };
    // Before anything recurses into it.
    if term.levels() > limits::NESTING_MAX { Err(too_many_levels()) } else { Ok(term) }
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

// Choosing. Organisations are numbered by preference; a tree holds what is still open after some of them were
// decided. A branch-and-bound search decides the most preferred organisation that is still mentioned: first that it
// endorses, then that it does not. The first set that it finds within the smallest size is therefore the preferred
// one.

/// Of a share of one organisation: divisible by every number of mentions up to 10, so that little is lost in
/// rounding.
const SHARES: usize = 2_520;

impl Policy {
    /// Who is chosen, and whether no smaller or preferred set exists for certain.
    fn choose_with(&self, available: &[&str], search: &mut Search) -> Option<(Vec<String>, bool)> {
        let mentioned = self.organisations();
        let mut candidates: Vec<&str> = Vec::new();
        let mut numbers = BTreeMap::new();
        for name in available.iter().filter(|name| mentioned.contains(*name)) {
            numbers.entry(*name).or_insert_with(|| {
                candidates.push(name);
                candidates.len() - 1
            });
        }
        let tree = match Tree::open(&self.term, &numbers) {
            Decided::Open(tree) => tree,
            // A term is in normal form, so nothing but endorsements satisfies it.
            _ => return None,
        };
        let (numbers, is_exact) = search.smallest(&tree);
        let chosen = numbers.into_iter().map(|number| candidates[number].to_string()).collect();
        Some((chosen, is_exact))
    }
}

/// A term over the numbers of organisations that are undecided.
#[derive(Clone)]
enum Tree {
    Organisation(usize),
    AtLeast { needed: usize, operands: Vec<Tree> },
}

/// What a decision leaves of a tree.
enum Decided {
    Satisfied,
    Impossible,
    Open(Tree),
}

impl Tree {
    /// The term without the organisations that have no number.
    fn open(term: &Term, numbers: &BTreeMap<&str, usize>) -> Decided {
        match term {
            Term::Organisation(name) => match numbers.get(name.as_str()) {
                Some(number) => Decided::Open(Tree::Organisation(*number)),
                None => Decided::Impossible,
            },
            Term::AtLeast { needed, operands } => {
                Tree::join(*needed, operands.iter().map(|operand| Tree::open(operand, numbers)))
            }
        }
    }

    fn decide(&self, number: usize, endorses: bool) -> Decided {
        match self {
            Tree::Organisation(found) if *found != number => Decided::Open(self.clone()),
            Tree::Organisation(_) if endorses => Decided::Satisfied,
            Tree::Organisation(_) => Decided::Impossible,
            Tree::AtLeast { needed, operands } => {
                Tree::join(*needed, operands.iter().map(|operand| operand.decide(number, endorses)))
            }
        }
    }

    fn join(mut needed: usize, operands: impl Iterator<Item = Decided>) -> Decided {
        let mut open = Vec::new();
        for operand in operands {
            match operand {
                Decided::Satisfied if needed == 1 => return Decided::Satisfied,
                Decided::Satisfied => needed -= 1,
                Decided::Impossible => {}
                Decided::Open(tree) => open.push(tree),
            }
        }
        match open.len() {
            few if few < needed => Decided::Impossible,
            1 => Decided::Open(open.remove(0)),
            _ => Decided::Open(Tree::AtLeast { needed, operands: open }),
        }
    }

    fn is_satisfied(&self, chosen: &[usize]) -> bool {
        match self {
            Tree::Organisation(number) => chosen.contains(number),
            Tree::AtLeast { needed, operands } => {
                operands.iter().filter(|operand| operand.is_satisfied(chosen)).count() >= *needed
            }
        }
    }

    fn count_mentions(&self, mentions: &mut [usize; limits::ORGANISATIONS_MAX]) {
        match self {
            Tree::Organisation(number) => mentions[*number] += 1,
            Tree::AtLeast { operands, .. } => {
                operands.iter().for_each(|operand| operand.count_mentions(mentions));
            }
        }
    }

    /// The cheapest way to satisfy the tree if every mention is paid for by itself.
    fn cost(&self, mentions: &[usize; limits::ORGANISATIONS_MAX]) -> usize {
        match self {
            Tree::Organisation(number) => SHARES / mentions[*number],
            Tree::AtLeast { needed, operands } => {
                let mut costs: Vec<_> = operands.iter().map(|operand| operand.cost(mentions)).collect();
                costs.sort_unstable();
                costs[..*needed].iter().sum()
            }
        }
    }
}

/// The search ran out of work.
struct Exhausted;

/// How many mentions the search may still visit.
struct Search {
    work_left: usize,
}

impl Search {
    /// The preferred one of the smallest sets, and whether it is: without work left it is only minimal.
    fn smallest(&mut self, tree: &Tree) -> (Vec<usize>, bool) {
        let greedy = greedy(tree);
        for size in measure(tree).size_min..=greedy.len() {
            let mut chosen = Vec::new();
            match self.within(tree, size, &mut chosen) {
                Ok(true) => return (chosen, true),
                Ok(false) => {}
                Err(Exhausted) => return (greedy, false),
            }
        }
        unreachable!("the greedy set is one of its size")
    }

    /// Adds at most `size` organisations to `chosen` that satisfy the tree: the preferred ones of those that do.
    fn within(&mut self, tree: &Tree, size: usize, chosen: &mut Vec<usize>) -> Result<bool, Exhausted> {
        let measure = measure(tree);
        self.work_left = self.work_left.checked_sub(measure.mentions).ok_or(Exhausted)?;
        if measure.size_min > size {
            return Ok(false);
        }
        chosen.push(measure.preferred);
        match tree.decide(measure.preferred, true) {
            Decided::Satisfied => return Ok(true),
            Decided::Open(rest) if self.within(&rest, size - 1, chosen)? => return Ok(true),
            _ => chosen.pop(),
        };
        match tree.decide(measure.preferred, false) {
            Decided::Open(rest) => self.within(&rest, size, chosen),
            _ => Ok(false),
        }
    }
}

struct Measure {
    /// The most preferred organisation that is mentioned.
    preferred: usize,
    mentions: usize,
    /// No smaller set satisfies the tree. An organisation with `m` mentions pays an m-th part of itself at each, so
    /// that a set that satisfies the tree pays at most its size; mentions are then independent, and the cheapest
    /// operands of a threshold are the best. Exact where nobody is mentioned twice.
    size_min: usize,
}

fn measure(tree: &Tree) -> Measure {
    let mut mentions = [0; limits::ORGANISATIONS_MAX];
    tree.count_mentions(&mut mentions);
    Measure {
        preferred: mentions.iter().position(|count| *count > 0).expect("a tree mentions somebody"),
        mentions: mentions.iter().sum(),
        size_min: tree.cost(&mentions).div_ceil(SHARES),
    }
}

/// One descent by the bound alone; then nobody stays who can be left out, the least preferred first.
fn greedy(tree: &Tree) -> Vec<usize> {
    let mut chosen = Vec::new();
    let mut open = tree.clone();
    loop {
        let preferred = measure(&open).preferred;
        let with = open.decide(preferred, true);
        let without = open.decide(preferred, false);
        open = match (with, without) {
            (Decided::Open(with), Decided::Open(without))
                if 1 + measure(&with).size_min > measure(&without).size_min =>
            {
                without
            }
            (with, _) => {
                chosen.push(preferred);
                let Decided::Open(with) = with else { break };
                with
            }
        };
    }
    for position in (0..chosen.len()).rev() {
        let number = chosen.remove(position);
        if !tree.is_satisfied(&chosen) {
            chosen.insert(position, number);
        }
    }
    chosen
}

#[cfg(test)]
mod tests;
