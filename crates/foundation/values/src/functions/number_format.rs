//! `to_char(number, template)`: the part of PostgreSQL's `formatting.c` that writes numbers, in the C locale.

use types::{Numeric, SqlError, SqlState, Value};

/// Longest Roman number, and how wide one is written.
const ROMAN_WIDTH: usize = 15;

/// Decimal digits that a double surely has.
const DOUBLE_DIGITS: usize = 15;

/// Decimal digits that a real surely has.
const SINGLE_DIGITS: usize = 6;

/// What a template asks for, in order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Nine,
    Zero,
    Comma,
    Point,
    LocalPoint,
    Blank,
    Exponent,
    FillMode,
    Group,
    Currency,
    Minus,
    Plus,
    Bracket,
    Roman {
        lower: bool,
    },
    Sign,
    PlusMinus,
    Ordinal {
        lower: bool,
    },
    Shift,
    /// SP and C, which do nothing.
    Nothing,
    Literal(char),
}

/// In the order in which PostgreSQL tries them; letters of either case unless a node says which.
const KEYWORDS: [(&str, Node); 24] = [
    (",", Node::Comma),
    (".", Node::Point),
    ("0", Node::Zero),
    ("9", Node::Nine),
    ("B", Node::Blank),
    ("C", Node::Nothing),
    ("D", Node::LocalPoint),
    ("EEEE", Node::Exponent),
    ("FM", Node::FillMode),
    ("G", Node::Group),
    ("L", Node::Currency),
    ("MI", Node::Minus),
    ("PL", Node::Plus),
    ("PR", Node::Bracket),
    ("RN", Node::Roman { lower: false }),
    ("rn", Node::Roman { lower: true }),
    ("SG", Node::PlusMinus),
    ("SP", Node::Nothing),
    ("S", Node::Sign),
    ("TH", Node::Ordinal { lower: false }),
    ("th", Node::Ordinal { lower: true }),
    ("V", Node::Shift),
    ("v", Node::Shift),
    ("eeee", Node::Exponent),
];

pub(super) fn nodes(template: &str) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut rest = template;
    let mut quoted = false;
    while let Some(next) = rest.chars().next() {
        let exact = KEYWORDS.iter().find(|(keyword, _)| rest.starts_with(keyword));
        let keyword = exact.or_else(|| {
            KEYWORDS.iter().find(|(keyword, _)| {
                let begins = rest.get(..keyword.len());
                begins.is_some_and(|begins| begins == keyword.to_ascii_lowercase())
            })
        });
        match keyword {
            Some((keyword, node)) if !quoted => {
                nodes.push(*node);
                rest = &rest[keyword.len()..];
                continue;
            }
            _ => {}
        }
        rest = &rest[next.len_utf8()..];
        match (next, rest.chars().next()) {
            ('"', _) => quoted = !quoted,
            ('\\', Some(escaped)) if quoted || escaped == '"' => {
                nodes.push(Node::Literal(escaped));
                rest = &rest[escaped.len_utf8()..];
            }
            _ => nodes.push(Node::Literal(next)),
        }
    }
    nodes
}

/// Where a sign that is part of the number stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SignPlace {
    None,
    Before,
    After,
}

/// What a template says about the whole number.
pub(super) struct Picture {
    pub before: usize,
    pub after: usize,
    pub shift: usize,
    zero: bool,
    zero_start: usize,
    zero_end: usize,
    pub point: bool,
    blank: bool,
    fill: bool,
    pub bracket: bool,
    pub minus: bool,
    pub plus: bool,
    pub roman: bool,
    pub multiplied: bool,
    pub exponent: bool,
    pub sign: SignPlace,
    sign_after_digits: usize,
}

fn refused(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

impl Picture {
    pub fn of(nodes: &[Node]) -> Result<Picture, SqlError> {
        let mut picture = Picture {
            before: 0,
            after: 0,
            shift: 0,
            zero: false,
            zero_start: 0,
            zero_end: 0,
            point: false,
            blank: false,
            fill: false,
            bracket: false,
            minus: false,
            plus: false,
            roman: false,
            multiplied: false,
            exponent: false,
            sign: SignPlace::None,
            sign_after_digits: 0,
        };
        for node in nodes {
            if !matches!(node, Node::Literal(_)) {
                picture.add(*node)?;
            }
        }
        Ok(picture)
    }

    pub fn has_sign(&self) -> bool {
        self.sign != SignPlace::None
    }

    fn add(&mut self, node: Node) -> Result<(), SqlError> {
        if self.exponent && node != Node::Exponent {
            return Err(refused("\"EEEE\" must be the last pattern used"));
        }
        match node {
            Node::Nine | Node::Zero => self.add_digit(node)?,
            Node::Blank => self.blank |= self.before == 0 && self.after == 0 && !self.zero,
            Node::Point | Node::LocalPoint => {
                if self.point {
                    return Err(refused("multiple decimal points"));
                }
                if self.multiplied {
                    return Err(refused("cannot use \"V\" and decimal point together"));
                }
                self.point = true;
            }
            Node::FillMode => self.fill = true,
            Node::Sign | Node::Minus | Node::Plus | Node::PlusMinus | Node::Bracket => self.add_sign(node)?,
            Node::Roman { .. } => self.roman = true,
            Node::Shift => {
                if self.point {
                    return Err(refused("cannot use \"V\" and decimal point together"));
                }
                self.multiplied = true;
            }
            Node::Exponent => {
                if self.exponent {
                    return Err(refused("cannot use \"EEEE\" twice"));
                }
                if self.blank
                    || self.fill
                    || self.has_sign()
                    || self.bracket
                    || self.minus
                    || self.plus
                    || self.roman
                    || self.multiplied
                {
                    return Err(refused("\"EEEE\" is incompatible with other formats").detail(
                        "\"EEEE\" may only be used together with digit and decimal point patterns.",
                    ));
                }
                self.exponent = true;
            }
            Node::Comma
            | Node::Group
            | Node::Currency
            | Node::Ordinal { .. }
            | Node::Nothing
            | Node::Literal(_) => {}
        }
        Ok(())
    }

    fn add_digit(&mut self, node: Node) -> Result<(), SqlError> {
        if self.bracket {
            let digit = if node == Node::Nine { 9 } else { 0 };
            return Err(refused(&format!("\"{digit}\" must be ahead of \"PR\"")));
        }
        if node == Node::Nine && self.multiplied {
            self.shift += 1;
            return Ok(());
        }
        if node == Node::Zero && !self.zero && !self.point {
            self.zero = true;
            self.zero_start = self.before + 1;
        }
        if self.point {
            self.after += 1;
        } else {
            self.before += 1;
        }
        if node == Node::Zero {
            self.zero_end = self.before + self.after;
        }
        Ok(())
    }

    fn add_sign(&mut self, node: Node) -> Result<(), SqlError> {
        if node == Node::Sign {
            if self.has_sign() {
                return Err(refused("cannot use \"S\" twice"));
            }
            if self.plus || self.minus || self.bracket {
                return Err(refused("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
            }
            self.sign = if self.point { SignPlace::After } else { SignPlace::Before };
            if !self.point {
                self.sign_after_digits = self.before;
            }
            return Ok(());
        }
        if node == Node::Bracket {
            if self.has_sign() || self.plus || self.minus {
                return Err(refused("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
            }
            self.bracket = true;
            return Ok(());
        }
        if self.has_sign() {
            let other = match node {
                Node::Minus => "MI",
                Node::Plus => "PL",
                _ => "SG",
            };
            return Err(refused(&format!("cannot use \"S\" and \"{other}\" together")));
        }
        self.minus |= node != Node::Plus;
        self.plus |= node != Node::Minus;
        Ok(())
    }
}

/// The number's digits as the template wants them, and its sign.
struct Digits {
    negative: bool,
    text: String,
    spaces: usize,
}

/// `to_char` of a number.
///
/// # Errors
/// `42601` of a template that contradicts itself; `22003` where the number has too many digits for it.
pub(super) fn to_char(number: &Value, template: &str) -> Result<Value, SqlError> {
    let nodes = nodes(template);
    let mut picture = Picture::of(&nodes)?;
    if picture.exponent {
        return Ok(Value::text(scientific(number, picture.before, picture.after)?));
    }
    let digits = if picture.roman {
        Digits { negative: false, text: roman(number)?, spaces: 0 }
    } else {
        digits(number, &mut picture)?
    };
    Ok(Value::text(Writer::new(picture, digits).write(&nodes)))
}

/// The number as numeric, where it is exact.
fn numeric(number: &Value) -> Result<Numeric, SqlError> {
    match types::cast(number.clone(), types::DataType::Numeric(None))? {
        Value::Numeric(number) => Ok(number),
        _ => Err(crate::broken("to_char was bound for another type")),
    }
}

fn digits(number: &Value, picture: &mut Picture) -> Result<Digits, SqlError> {
    let text = match number {
        Value::Real(number) => double_digits(f64::from(*number), SINGLE_DIGITS, picture),
        Value::Double(number) => double_digits(*number, DOUBLE_DIGITS, picture),
        exact => {
            let mut value = numeric(exact)?;
            for _ in 0..picture.shift {
                value = value.checked_mul(&Numeric::from(10))?;
            }
            value.round(picture.after as i32)?.to_string()
        }
    };
    picture.before += picture.shift;
    let (negative, text) = match text.strip_prefix('-') {
        Some(digits) => (true, digits.to_string()),
        None => (false, text),
    };
    let whole = text.find('.').unwrap_or(text.len());
    if whole > picture.before {
        let text = format!("{}.{}", "#".repeat(picture.before), "#".repeat(picture.after));
        return Ok(Digits { negative, text, spaces: 0 });
    }
    Ok(Digits { negative, text, spaces: picture.before - whole })
}

/// As many digits as a number of this type surely has.
fn double_digits(number: f64, most: usize, picture: &mut Picture) -> String {
    let shifted = (0..picture.shift).fold(number, |shifted, _| shifted * 10.0);
    if !shifted.is_finite() {
        picture.after =
            if shifted.is_nan() { picture.after } else { picture.after.min(most.saturating_sub(8)) };
        return types::format_value(&Value::Double(shifted)).unwrap_or_default();
    }
    let whole = format!("{:.0}", shifted.abs()).len();
    picture.after = picture.after.min(most.saturating_sub(whole));
    format!("{shifted:.*}", picture.after)
}

/// As C's `%e`, with a blank for the sign of a positive number.
fn scientific(number: &Value, before: usize, after: usize) -> Result<String, SqlError> {
    let text = match number {
        Value::Double(number) => format!("{number:.after$e}"),
        Value::Real(number) => format!("{:.after$e}", f64::from(*number)),
        exact => scientific_numeric(numeric(exact)?, after),
    };
    if !text.ends_with(|last: char| last.is_ascii_digit()) {
        // Of what has no digits: six more for the sign, the point and the exponent.
        return Ok(format!(" {}.{}", "#".repeat(before), "#".repeat(after + 4)));
    }
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    let blank = if mantissa.starts_with('-') { "" } else { " " };
    Ok(format!("{blank}{mantissa}e{sign}{exponent:0>2}"))
}

/// The digits before `e` are rounded half away from zero, and may come to ten.
fn scientific_numeric(number: Numeric, after: usize) -> String {
    if number.is_special() {
        return number.to_string();
    }
    let digits = number.digits();
    let exponent = if number.is_zero() { 0 } else { digits.len() as i32 - 1 - i32::from(number.scale()) };
    let mut kept: Vec<u8> = digits.bytes().map(|digit| digit - b'0').take(after + 1).collect();
    kept.resize(after + 1, 0);
    let mut carry = digits.as_bytes().get(after + 1).is_some_and(|next| *next >= b'5');
    for digit in kept.iter_mut().rev() {
        if !carry {
            break;
        }
        carry = *digit == 9;
        *digit = if carry { 0 } else { *digit + 1 };
    }
    let fraction: String = kept[1..].iter().map(|digit| char::from(b'0' + digit)).collect();
    let whole = if carry { 10 } else { i32::from(kept[0]) };
    let sign = if number.is_negative() { "-" } else { "" };
    let point = if after > 0 { "." } else { "" };
    format!("{sign}{whole}{point}{fraction}e{exponent}")
}

fn roman(number: &Value) -> Result<String, SqlError> {
    const PARTS: [(i32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut rest = numeric(number)?.to_i32()?;
    if !(1..=3999).contains(&rest) {
        return Ok("#".repeat(ROMAN_WIDTH));
    }
    let mut text = String::new();
    for (value, letters) in PARTS {
        while rest >= value {
            text += letters;
            rest -= value;
        }
    }
    Ok(text)
}

/// Walks over the template and the number side by side.
struct Writer {
    picture: Picture,
    negative: bool,
    number: Vec<u8>,
    spaces: usize,
    /// The next digit.
    at: usize,
    /// Digits of the template so far.
    current: usize,
    count: i64,
    sign_written: bool,
    /// Whether a digit has been written.
    inside: bool,
    /// The last digit that FM keeps.
    last_relevant: Option<usize>,
    out: String,
}

impl Writer {
    fn new(mut picture: Picture, digits: Digits) -> Writer {
        let Digits { negative, text, spaces } = digits;
        let number = text.into_bytes();
        picture.zero_start = picture.zero_start.saturating_sub(1);
        if picture.roman {
            picture.sign = SignPlace::None;
            (picture.before, picture.after) = (0, 0);
            (picture.zero, picture.point, picture.bracket, picture.minus, picture.plus) = Default::default();
        }
        let sign_written = if picture.plus || picture.minus {
            picture.minus
        } else {
            if !negative && picture.fill {
                picture.bracket = false;
            }
            let hidden = !negative && picture.fill && !picture.has_sign();
            if picture.sign == SignPlace::Before && picture.before == picture.sign_after_digits {
                picture.sign = SignPlace::After;
            }
            hidden
        };
        let last_relevant = match number.iter().position(|digit| *digit == b'.') {
            Some(point) if picture.fill && picture.point => {
                let last = number.iter().rposition(|digit| *digit != b'0').unwrap_or(point).max(point);
                let kept = if picture.zero_end > spaces {
                    (number.len() - 1).min(picture.zero_end - spaces)
                } else {
                    0
                };
                Some(last.max(kept))
            }
            _ => None,
        };
        let count = (picture.before + picture.after) as i64 - 1 + i64::from(!sign_written && spaces == 0);
        Writer {
            picture,
            negative,
            number,
            spaces,
            at: 0,
            current: 0,
            count,
            sign_written,
            inside: false,
            last_relevant,
            out: String::new(),
        }
    }

    fn write(mut self, nodes: &[Node]) -> String {
        for node in nodes {
            match *node {
                Node::Nine | Node::Zero | Node::Point | Node::LocalPoint => self.digit(*node),
                Node::Comma | Node::Group if self.inside => self.out.push(','),
                Node::Comma | Node::Group | Node::Minus | Node::Plus
                    if self.picture.fill && !self.signed(*node) => {}
                Node::Comma | Node::Group | Node::Currency => self.out.push(' '),
                Node::Minus => self.out.push(if self.negative { '-' } else { ' ' }),
                Node::Plus => self.out.push(if self.negative { ' ' } else { '+' }),
                Node::PlusMinus => self.out.push(self.sign()),
                Node::Roman { lower } => self.roman(lower),
                Node::Ordinal { lower } => self.ordinal(lower),
                Node::Literal(character) => self.out.push(character),
                Node::Blank
                | Node::Exponent
                | Node::FillMode
                | Node::Bracket
                | Node::Sign
                | Node::Shift
                | Node::Nothing => {}
            }
        }
        self.out
    }

    fn sign(&self) -> char {
        if self.negative { '-' } else { '+' }
    }

    /// Whether MI or PL has a sign to write.
    fn signed(&self, node: Node) -> bool {
        match node {
            Node::Minus => self.negative,
            Node::Plus => !self.negative,
            _ => false,
        }
    }

    fn roman(&mut self, lower: bool) {
        let mut text = String::from_utf8_lossy(&self.number).into_owned();
        if lower {
            text.make_ascii_lowercase();
        }
        self.out += &if self.picture.fill { text } else { format!("{text:>ROMAN_WIDTH$}") };
    }

    fn ordinal(&mut self, lower: bool) {
        if self.picture.roman || self.number.first() == Some(&b'#') || self.negative || self.picture.point {
            return;
        }
        let teens = self.number.len() > 1 && self.number[self.number.len() - 2] == b'1';
        let text = match self.number.last() {
            Some(b'1') if !teens => "ST",
            Some(b'2') if !teens => "ND",
            Some(b'3') if !teens => "RD",
            _ => "TH",
        };
        self.out += &if lower { text.to_ascii_lowercase() } else { text.to_string() };
    }

    /// Whether this is the zero before the point that `9.9` leaves out.
    fn is_hidden_zero(&self) -> bool {
        !self.picture.zero && self.at == 0 && self.number.first() == Some(&b'0') && self.picture.after != 0
    }

    fn keeps_only_point(&self) -> bool {
        self.last_relevant.is_some_and(|last| self.number.get(last) == Some(&b'.'))
    }

    fn sign_before_digit(&mut self) {
        let here =
            self.current >= self.spaces || (self.picture.zero && self.picture.zero_start == self.current);
        if self.sign_written || !here || (self.is_hidden_zero() && !self.keeps_only_point()) {
            return;
        }
        if self.picture.has_sign() {
            if self.picture.sign == SignPlace::Before {
                self.out.push(self.sign());
                self.sign_written = true;
            }
            return;
        }
        match (self.picture.bracket, self.negative) {
            (true, negative) => self.out.push(if negative { '<' } else { ' ' }),
            (false, true) => self.out.push('-'),
            (false, false) if !self.picture.fill => self.out.push(' '),
            (false, false) => {}
        }
        self.sign_written = true;
    }

    fn digit(&mut self, node: Node) {
        if self.picture.roman {
            return;
        }
        self.inside = false;
        self.sign_before_digit();
        let before_number = self.current < self.spaces;
        if before_number && (self.picture.zero_start > self.current || !self.picture.zero) {
            if !self.picture.fill {
                self.out.push(' ');
            }
        } else if before_number {
            self.out.push('0');
            self.inside = true;
        } else {
            self.number_digit(node);
        }
        let mut end = self.count + i64::from(self.spaces > 0) + i64::from(self.picture.point);
        if self.last_relevant == Some(self.at) {
            end = self.current as i64;
        }
        if self.current as i64 + 1 == end {
            if self.sign_written && self.picture.bracket {
                self.out.push(if self.negative { '>' } else { ' ' });
            } else if self.picture.sign == SignPlace::After {
                self.out.push(self.sign());
            }
        }
        self.current += 1;
    }

    fn number_digit(&mut self, node: Node) {
        let digit = self.number.get(self.at).copied();
        if digit == Some(b'.') {
            if !self.keeps_only_point() || self.picture.fill {
                self.out.push('.');
            }
        } else if self.last_relevant.is_some_and(|last| self.at > last) && node != Node::Zero {
        } else if self.is_hidden_zero() {
            if !self.picture.fill {
                self.out.push(' ');
            } else if self.keeps_only_point() {
                self.out.push('0');
            }
        } else if let Some(digit) = digit {
            self.out.push(char::from(digit));
            self.inside = true;
        }
        self.at += usize::from(digit.is_some());
    }
}
