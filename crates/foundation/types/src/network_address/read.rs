//! Reading of `inet` and `cidr`.

use super::{NetworkAddress, V4_BYTES};
use crate::SqlError;
use crate::text::invalid_syntax;
use smallvec::SmallVec;

/// Bytes of an address of IPv6.
const V6_BYTES: usize = 16;

/// Reads an `inet`: `192.168.1.5`, `192.168.1/24`, `::ffff:1.2.3.4/96`.
///
/// # Errors
/// `22P02` where it is none.
pub(crate) fn parse_inet(text: &str) -> Result<NetworkAddress, SqlError> {
    read(text, host_v4).ok_or_else(|| invalid_syntax("inet", text))
}

/// Reads a `cidr`, which has no bits behind its prefix: `192.168.0.0/16`, `10.1`.
///
/// # Errors
/// `22P02` where it is none.
pub(crate) fn parse_cidr(text: &str) -> Result<NetworkAddress, SqlError> {
    let address = read(text, network_v4).ok_or_else(|| invalid_syntax("cidr", text))?;
    if address == address.network() {
        return Ok(address);
    }
    let message = format!("invalid cidr value: \"{text}\"");
    Err(SqlError::new(crate::SqlState::INVALID_TEXT_REPRESENTATION, message)
        .detail("Value has bits set to right of mask."))
}

/// The octets that are written and the length of the prefix.
type WrittenV4 = (SmallVec<[u8; V4_BYTES]>, u8);

fn read(text: &str, read_v4: fn(&[u8]) -> Option<WrittenV4>) -> Option<NetworkAddress> {
    let mut bytes = [0; V6_BYTES];
    let is_v6 = text.contains(':');
    let prefix = match is_v6 {
        true => v6(text.as_bytes(), &mut bytes)?,
        false => {
            let (octets, prefix) = read_v4(text.as_bytes())?;
            bytes[..octets.len()].copy_from_slice(&octets);
            prefix
        }
    };
    Some(NetworkAddress { is_v6, prefix, bytes })
}

/// Octets of an `inet`. Where some are left out, the prefix is within those that are there; a point may stand behind the last.
fn host_v4(text: &[u8]) -> Option<WrittenV4> {
    let mut rest = text;
    let mut octets = SmallVec::new();
    while rest.first().is_some_and(u8::is_ascii_digit) {
        rest = octet(rest, &mut octets)?;
        match rest {
            [b'.', after @ ..] => rest = after,
            [] | [b'/', ..] => break,
            _ => return None,
        }
    }
    let prefix = match prefix_v4(rest)? {
        Some(prefix) => prefix,
        None if octets.len() == V4_BYTES => 32,
        None => return None,
    };
    (!octets.is_empty() && usize::from(prefix / 8) <= octets.len()).then_some((octets, prefix))
}

/// Octets of a `cidr`, or `0x` and their digits. Without a prefix it is that of the network's class, and long enough for what is written.
fn network_v4(text: &[u8]) -> Option<WrittenV4> {
    let mut octets = SmallVec::new();
    let rest = match text {
        [b'0', b'x' | b'X', digits @ ..] if digits.first().is_some_and(u8::is_ascii_hexdigit) => {
            hexadecimal_octets(digits, &mut octets)?
        }
        _ => {
            let mut rest = octet(text, &mut octets)?;
            while let [b'.', after @ ..] = rest {
                rest = octet(after, &mut octets)?;
            }
            rest
        }
    };
    let written = octets.len() as u8 * 8;
    let prefix = prefix_v4(rest)?.unwrap_or_else(|| {
        let of_class = match octets[0] {
            240.. => 32,
            224..240 => 8,
            192..224 => 24,
            128..192 => 16,
            _ => 8,
        };
        match of_class.max(written) {
            8 if octets[0] == 224 => 4,
            prefix => prefix,
        }
    });
    Some((octets, prefix))
}

/// A decimal number up to 255, the next octet.
fn octet<'a>(text: &'a [u8], octets: &mut SmallVec<[u8; V4_BYTES]>) -> Option<&'a [u8]> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || octets.len() == V4_BYTES {
        return None;
    }
    octets.push(u8::try_from(decimal(&text[..digits], 255)?).ok()?);
    Some(&text[digits..])
}

fn hexadecimal_octets<'a>(text: &'a [u8], octets: &mut SmallVec<[u8; V4_BYTES]>) -> Option<&'a [u8]> {
    let count = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if count > 2 * V4_BYTES {
        return None;
    }
    let (digits, rest) = text.split_at(count);
    for pair in digits.chunks(2) {
        let low = pair.get(1).copied().map_or(Some(0), digit)?;
        octets.push((digit(pair[0])? * 16 + low) as u8);
    }
    Some(rest)
}

/// `/24`, or nothing, to the end of the text.
fn prefix_v4(text: &[u8]) -> Option<Option<u8>> {
    match text {
        [] => Some(None),
        [b'/', digits @ ..] if !digits.is_empty() => Some(u8::try_from(decimal(digits, 32)?).ok()),
        _ => None,
    }
}

/// The prefix's length to the end of the text, without zeros in front.
fn prefix_v6(digits: &[u8]) -> Option<u8> {
    let is_plain = !digits.is_empty() && (digits.len() == 1 || digits[0] != b'0');
    if is_plain { u8::try_from(decimal(digits, 128)?).ok() } else { None }
}

fn decimal(digits: &[u8], most: u32) -> Option<u32> {
    digits.iter().try_fold(0, |number: u32, byte| {
        let next = number * 10 + char::from(*byte).to_digit(10)?;
        (next <= most).then_some(next)
    })
}

fn digit(byte: u8) -> Option<u16> {
    char::from(byte).to_digit(16).map(|digit| digit as u16)
}

/// What has been read of an address of IPv6.
struct Words<'a> {
    bytes: &'a mut [u8; V6_BYTES],
    /// How many bytes of it.
    at: usize,
    /// Where zeros are left out.
    gap: Option<usize>,
}

impl Words<'_> {
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        self.bytes.get_mut(self.at..self.at + bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }

    /// Puts what stands behind the gap to the end.
    fn close(self) -> Option<()> {
        let missing = V6_BYTES - self.at;
        match (self.gap, missing) {
            (None, 0) => Some(()),
            (None, _) | (Some(_), 0) => None,
            (Some(gap), _) => {
                self.bytes[gap..].rotate_right(missing);
                Some(())
            }
        }
    }
}

/// Reads an address of IPv6, of which the end may be written as one of IPv4; gives the length of its prefix.
fn v6(text: &[u8], bytes: &mut [u8; V6_BYTES]) -> Option<u8> {
    let mut words = Words { bytes, at: 0, gap: None };
    let mut rest = match text {
        [b':', b':', ..] => &text[1..],
        [b':', ..] => return None,
        _ => text,
    };
    // Where the word begins, how many digits of it have been read, and what they are.
    let (mut word, mut digits, mut value) = (rest, 0, 0u16);
    let mut prefix = 128;
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b':' => {
                word = rest;
                if digits == 0 {
                    if words.gap.replace(words.at).is_some() {
                        return None;
                    }
                    continue;
                }
                if rest.is_empty() {
                    return None;
                }
                words.push(&value.to_be_bytes())?;
                (digits, value) = (0, 0);
            }
            b'.' => {
                prefix = embedded_v4(word, &mut words)?;
                digits = 0;
                break;
            }
            b'/' => {
                prefix = prefix_v6(rest)?;
                break;
            }
            _ => {
                value = (value << 4) | digit(*first)?;
                digits += 1;
                if digits > 4 {
                    return None;
                }
            }
        }
    }
    if digits > 0 {
        words.push(&value.to_be_bytes())?;
    }
    words.close()?;
    Some(prefix)
}

/// Octets to the end of the text; PostgreSQL does not mind if there are fewer than four.
fn embedded_v4(text: &[u8], words: &mut Words<'_>) -> Option<u8> {
    let (address, prefix) = match text.iter().position(|byte| *byte == b'/') {
        Some(at) => (&text[..at], prefix_v6(&text[at + 1..])?),
        None => (text, 128),
    };
    let mut bytes = [0; V4_BYTES];
    let octets: Vec<&[u8]> = address.split(|byte| *byte == b'.').collect();
    for (place, octet) in octets.iter().enumerate() {
        // Only in front of a point or a prefix may there be nothing.
        let may_be_empty = place + 1 < octets.len() || address.len() < text.len();
        let is_plain = octet.len() <= 1 || octet[0] != b'0';
        if !is_plain || (octet.is_empty() && !may_be_empty) {
            return None;
        }
        *bytes.get_mut(place)? = u8::try_from(decimal(octet, 255)?).ok()?;
    }
    words.push(&bytes)?;
    Some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqlState;

    #[test]
    fn errors_are_those_of_postgresql() {
        let error = parse_cidr("192.168.1.2/30").expect_err("bits behind the prefix");
        assert_eq!(error.message, "invalid cidr value: \"192.168.1.2/30\"");
        assert_eq!(error.detail.as_deref(), Some("Value has bits set to right of mask."));
        for (error, data_type) in [(parse_cidr("1.2.3.4.5"), "cidr"), (parse_inet("1.2.3.4.5"), "inet")] {
            let error = error.expect_err("five octets");
            assert_eq!(error.state, SqlState::INVALID_TEXT_REPRESENTATION);
            assert_eq!(error.message, format!("invalid input syntax for type {data_type}: \"1.2.3.4.5\""));
        }
    }
}
