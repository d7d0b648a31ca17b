//! Writing of `inet` and `cidr`.

use super::{NetworkAddress, V4_BYTES};
use std::ops::Range;

/// Words of an address of IPv6.
const WORDS: usize = 8;

impl NetworkAddress {
    /// The address without its prefix.
    pub fn host_text(&self) -> String {
        match self.is_v6 {
            true => v6(&self.bytes),
            false => octets(&self.bytes[..V4_BYTES]),
        }
    }

    /// The address and its prefix: how a `cidr` is written, and what a cast of an `inet` to text gives.
    pub fn prefixed_text(&self) -> String {
        format!("{}/{}", self.host_text(), self.prefix)
    }

    /// How an `inet` is written: without a prefix where it is a single host.
    pub fn abbreviated_host(&self) -> String {
        match self.prefix == self.bits() {
            true => self.host_text(),
            false => self.prefixed_text(),
        }
    }

    /// As short as PostgreSQL's `abbrev` writes a `cidr`: no more bytes of it than the prefix has.
    pub fn abbreviated_network(&self) -> String {
        let network = self.network();
        let address = match (self.prefix, self.is_v6) {
            (0, true) => "::".to_string(),
            (0, false) => "0".to_string(),
            (prefix, false) => octets(&network.bytes[..usize::from(prefix).div_ceil(8)]),
            (prefix, true) => first_words(&words(&network.bytes), prefix),
        };
        format!("{address}/{}", self.prefix)
    }
}

fn octets(bytes: &[u8]) -> String {
    let octets: Vec<String> = bytes.iter().map(u8::to_string).collect();
    octets.join(".")
}

fn words(bytes: &[u8; 16]) -> [u16; WORDS] {
    std::array::from_fn(|at| u16::from_be_bytes([bytes[2 * at], bytes[2 * at + 1]]))
}

/// The first of the longest runs of zeros; an empty one where there is none.
fn longest_zeros(words: &[u16]) -> Range<usize> {
    let mut longest = 0..0;
    let mut start = 0;
    for (at, word) in words.iter().enumerate() {
        if *word != 0 {
            start = at + 1;
        } else if at + 1 - start > longest.len() {
            longest = start..at + 1;
        }
    }
    longest
}

fn hexadecimal(words: &[u16]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:x}")).collect();
    words.join(":")
}

/// Two colons stand for the longest zeros, if these are more than one word. An address of IPv4 within one of IPv6 is written as such.
fn v6(bytes: &[u8; 16]) -> String {
    let words = words(bytes);
    let zeros = longest_zeros(&words);
    if zeros.len() < 2 {
        return hexadecimal(&words);
    }
    let holds_v4 = zeros.start == 0
        && match zeros.len() {
            5 => words[5] == 0xffff,
            6 => true,
            _ => false,
        };
    if holds_v4 {
        let mapped = if zeros.len() == 5 { "ffff:" } else { "" };
        return format!("::{mapped}{}", octets(&bytes[12..]));
    }
    format!("{}::{}", hexadecimal(&words[..zeros.start]), hexadecimal(&words[zeros.end..]))
}

/// As many words of a network of IPv6 as its prefix needs, at least two. Of one of IPv4 the last byte is left out where that has no bit of
/// the prefix.
fn first_words(words: &[u16; WORDS], prefix: u8) -> String {
    let count = usize::from(prefix).div_ceil(16).max(2);
    let zeros = zeros_of_network(&words[..count]);
    let [high, low] = words[7].to_be_bytes();
    let holds_v4 = zeros.start == 0
        && count > zeros.len()
        && match zeros.len() {
            5 => words[5] == 0xffff,
            6 => true,
            7 => high != 0 && low != 1,
            _ => false,
        };
    let mut text = String::new();
    for (at, word) in words[..count].iter().enumerate() {
        let [high, low] = word.to_be_bytes();
        if zeros.contains(&at) {
            text.extend((at == zeros.start).then_some(':'));
            text.extend((at == count - 1).then_some(':'));
        } else if holds_v4 && at > 5 {
            text.push(if at == 6 { ':' } else { '.' });
            text.push_str(&high.to_string());
            if at == 6 || prefix > 120 {
                text.push('.');
                text.push_str(&low.to_string());
            }
        } else {
            text.extend((!text.is_empty()).then_some(':'));
            text.push_str(&format!("{word:x}"));
        }
    }
    text
}

/// The zeros that two colons stand for in a network. As in PostgreSQL, a run that is no longer than the longest before it counts together
/// with the next one, as if it were all zeros from there on.
fn zeros_of_network(words: &[u16]) -> Range<usize> {
    let (mut longest, mut run) = (0..0, 0..0);
    for (at, word) in words.iter().enumerate() {
        if *word == 0 {
            run = if run.is_empty() { at..at + 1 } else { run.start..run.end + 1 };
        } else if run.len() > longest.len() {
            longest = std::mem::take(&mut run);
        }
    }
    if run.len() > longest.len() { run } else { longest }
}

#[cfg(test)]
mod tests {
    use crate::network_address::{parse_cidr, parse_inet};

    #[test]
    fn addresses_are_written_as_postgresql_writes_them() {
        for (text, written) in [
            ("1.2.3.4/32", "1.2.3.4"),
            ("1.2.3.4/24", "1.2.3.4/24"),
            ("::/128", "::"),
            ("::1", "::1"),
            ("::2", "::2"),
        ] {
            let address = parse_inet(text).expect("an address");
            assert_eq!(address.abbreviated_host(), written, "{text}");
            assert_eq!(parse_inet(written), Ok(address));
        }
        assert_eq!(parse_inet("1.2.3.4").map(|address| address.prefixed_text()).as_deref(), Ok("1.2.3.4/32"));
    }

    #[test]
    fn networks_are_as_short_as_those_of_postgresql() {
        for (text, written) in [
            ("10.1.0.0/16", "10.1/16"),
            ("1:0:2::/48", "1::2/48"),
            ("::1.2.0.0/112", "::1.2/112"),
            ("1:0:0:2:0:3:0:0/128", "1:0:0:2::0/128"),
        ] {
            let network = parse_cidr(text).expect("a network");
            assert_eq!(network.abbreviated_network(), written, "{text}");
        }
    }
}
