//! `to_number(text, template)`: the part of PostgreSQL's `formatting.c` that reads numbers, in the C locale.

use crate::functions::number_format::{Node, Picture, SignPlace, nodes};
use types::{DataType, Numeric, SqlError, Value};

/// `to_number` of a text; NULL where the template is empty.
///
/// # Errors
/// `42601` of a template that contradicts itself, `0A000` of one that cannot be read by; `22P02` where the text is no number.
pub(super) fn to_number(text: &str, template: &str) -> Result<Value, SqlError> {
    if template.is_empty() {
        return Ok(Value::Null);
    }
    let nodes = nodes(template);
    let picture = Picture::of(&nodes)?;
    for (there, what) in [(picture.exponent, "EEEE"), (picture.roman, "RN")] {
        if there {
            return Err(SqlError::unsupported(format_args!("\"{what}\" in the template of to_number()")));
        }
    }
    let (digits, read_after) = Reader::new(&picture, text).read(&nodes);
    let precision = picture.before + picture.shift + read_after;
    let precision = u16::try_from(precision).map_err(|_| too_long())?;
    let scale = i16::try_from(read_after).map_err(|_| too_long())?;
    let read = types::parse_value(&digits, DataType::Numeric(Some((precision.max(1), scale))))?;
    let Value::Numeric(mut number) = read else {
        return Err(crate::broken("a text became another type"));
    };
    if picture.multiplied {
        let shift = number.scale().max(16).into();
        for _ in 0..picture.shift {
            number = number.checked_div(&Numeric::from(10))?;
        }
        number = number.round(shift)?;
    }
    Ok(Value::Numeric(number))
}

fn too_long() -> SqlError {
    SqlError::unsupported("a template of to_number() of so many digits")
}

/// Walks over the template and the text side by side.
struct Reader<'a> {
    picture: &'a Picture,
    text: Vec<char>,
    /// The next character.
    at: usize,
    sign: char,
    digits: String,
    read_before: usize,
    read_after: usize,
    point_read: bool,
}

impl<'a> Reader<'a> {
    fn new(picture: &'a Picture, text: &str) -> Reader<'a> {
        Reader {
            picture,
            text: text.chars().collect(),
            at: 0,
            sign: ' ',
            digits: String::new(),
            read_before: 0,
            read_after: 0,
            point_read: false,
        }
    }

    fn next(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    /// The number as written, and how many digits it has after the point.
    fn read(mut self, nodes: &[Node]) -> (String, usize) {
        for node in nodes {
            let Some(next) = self.next() else { break };
            match *node {
                Node::Nine | Node::Zero | Node::Point | Node::LocalPoint => self.digit(*node),
                Node::Comma | Node::Group if next == ',' => self.at += 1,
                Node::Comma | Node::Group => {}
                Node::Minus | Node::Plus | Node::PlusMinus => self.sign(*node, next),
                Node::Currency => self.skip_other(1),
                Node::Ordinal { .. } if !self.picture.point => self.skip_other(2),
                Node::Literal(_) => self.at += 1,
                _ => {}
            }
        }
        let digits = self.digits.strip_suffix('.').unwrap_or(&self.digits);
        (format!("{}{digits}", self.sign), self.read_after)
    }

    fn sign(&mut self, node: Node, next: char) {
        let expected = match node {
            Node::Minus => next == '-',
            Node::Plus => next == '+',
            _ => matches!(next, '-' | '+'),
        };
        if expected {
            self.sign = next;
            self.at += 1;
        } else {
            self.skip_other(1);
        }
    }

    /// Skips characters that are no part of a number.
    fn skip_other(&mut self, count: usize) {
        for _ in 0..count {
            match self.next() {
                Some(next) if !"0123456789.,+-".contains(next) => self.at += 1,
                _ => return,
            }
        }
    }

    /// One digit or the point, with a sign around it.
    fn digit(&mut self, node: Node) {
        if self.next() == Some(' ') {
            self.at += 1;
        }
        let digit_node = matches!(node, Node::Nine | Node::Zero);
        if self.sign == ' ' && digit_node && self.read_before + self.read_after == 0 {
            self.leading_sign();
        }
        let Some(next) = self.next() else { return };
        let mut is_read = false;
        if next.is_ascii_digit() {
            if self.point_read && self.read_after == self.picture.after {
                self.at += 1;
                return;
            }
            self.digits.push(next);
            if self.point_read {
                self.read_after += 1;
            } else {
                self.read_before += 1;
            }
            is_read = true;
        } else if self.picture.point && !self.point_read && next == '.' {
            self.digits.push('.');
            self.point_read = true;
            is_read = true;
        }
        if self.sign == ' ' && self.read_before + self.read_after > 0 {
            self.trailing_sign(next, is_read);
        }
        self.at += 1;
    }

    fn leading_sign(&mut self) {
        let Some(next) = self.next() else { return };
        let found = match (self.picture.sign, next) {
            (SignPlace::Before, '-' | '+') => Some(next),
            (SignPlace::Before, _) => None,
            (_, '-' | '+') => Some(next),
            (_, '<') if self.picture.bracket => Some('-'),
            _ => None,
        };
        if let Some(sign) = found {
            self.sign = sign;
            self.at += 1;
        }
    }

    fn trailing_sign(&mut self, next: char, is_read: bool) {
        if self.picture.has_sign() && is_read {
            if let Some(sign @ ('-' | '+')) = self.text.get(self.at + 1).copied() {
                self.sign = sign;
                self.at += 1;
            }
        } else if !is_read
            && !self.picture.has_sign()
            && (self.picture.plus || self.picture.minus)
            && matches!(next, '-' | '+')
        {
            self.sign = next;
        }
    }
}
