//! Addresses of networks and of hosts in them: values of `inet`, `cidr` and `macaddr`.

mod mac;
mod read;
mod write;

pub(crate) use mac::{format_macaddr, parse_macaddr, read_macaddr};
pub(crate) use read::{parse_cidr, parse_inet};

use crate::ExecutionVersion;
use crate::unknown_types::check_known;
use borsh::{BorshDeserialize, BorshSerialize};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::io;

/// What the encodings of values of `inet` and `cidr` begin with.
const INET_TAG: u8 = 22;
const CIDR_TAG: u8 = 23;

/// Bytes of an address of IPv4.
const V4_BYTES: usize = 4;

/// An address of IPv4 or IPv6 and the length of its network's prefix: what `inet` and `cidr` hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, BorshSerialize)]
pub struct NetworkAddress {
    /// Whether it is one of IPv6.
    pub is_v6: bool,
    /// How many bits from the left name the network: at most 32 of IPv4, 128 of IPv6.
    pub prefix: u8,
    /// The address; of IPv4 the first four bytes, zeros behind them.
    pub bytes: [u8; 16],
}

impl NetworkAddress {
    /// An address of IPv6, or of IPv4 with its number in the last 32 bits.
    pub fn of_number(is_v6: bool, prefix: u8, number: u128) -> NetworkAddress {
        let number = if is_v6 { number } else { number << (128 - 32) };
        NetworkAddress { is_v6, prefix, bytes: number.to_be_bytes() }
    }

    /// The address as a number: below 2^32 of IPv4.
    pub fn number(&self) -> u128 {
        u128::from_be_bytes(self.bytes) >> (128 - self.bits())
    }

    /// How many bits the address has.
    pub fn bits(&self) -> u8 {
        if self.is_v6 { 128 } else { 32 }
    }

    /// The bytes of the address: four or sixteen.
    pub fn octets(&self) -> &[u8] {
        if self.is_v6 { &self.bytes } else { &self.bytes[..V4_BYTES] }
    }

    /// Ones in the bits behind the prefix.
    pub fn host_mask(&self) -> u128 {
        low_ones(self.bits() - self.prefix)
    }

    /// Ones in the bits of the prefix.
    pub fn network_mask(&self) -> u128 {
        low_ones(self.bits()) & !self.host_mask()
    }

    /// The network alone: zeros in the bits behind the prefix.
    #[must_use]
    pub fn network(&self) -> NetworkAddress {
        self.with_number(self.number() & self.network_mask())
    }

    /// The same prefix of another address of its kind.
    #[must_use]
    pub fn with_number(&self, number: u128) -> NetworkAddress {
        NetworkAddress::of_number(self.is_v6, self.prefix, number)
    }

    /// The same address with a prefix of another length, at most as long as the address.
    #[must_use]
    pub fn with_prefix(&self, prefix: u8) -> NetworkAddress {
        NetworkAddress { prefix, ..*self }
    }

    /// Whether both are of one kind and have the first `prefix` bits alike.
    pub fn shares(&self, other: &NetworkAddress, prefix: u8) -> bool {
        self.is_v6 == other.is_v6 && self.first_bits(prefix) == other.first_bits(prefix)
    }

    /// Compares as PostgreSQL does: IPv4 first, then the bits that both networks have, then the prefixes, then the whole address.
    pub fn compare(&self, other: &NetworkAddress) -> Ordering {
        let common = self.prefix.min(other.prefix);
        self.is_v6
            .cmp(&other.is_v6)
            .then_with(|| self.first_bits(common).cmp(&other.first_bits(common)))
            .then_with(|| self.prefix.cmp(&other.prefix))
            .then_with(|| self.bytes.cmp(&other.bytes))
    }

    fn first_bits(&self, count: u8) -> u128 {
        self.number().checked_shr(u32::from(self.bits() - count)).unwrap_or(0)
    }

    fn is_canonical(&self) -> bool {
        self.prefix <= self.bits() && (self.is_v6 || self.bytes[V4_BYTES..].iter().all(|byte| *byte == 0))
    }
}

fn low_ones(count: u8) -> u128 {
    u128::MAX.checked_shr(128 - u32::from(count)).unwrap_or(0)
}

fn read_address<R: io::Read>(reader: &mut R) -> io::Result<NetworkAddress> {
    let address = NetworkAddress {
        is_v6: bool::deserialize_reader(reader)?,
        prefix: u8::deserialize_reader(reader)?,
        bytes: <[u8; 16]>::deserialize_reader(reader)?,
    };
    match address.is_canonical() {
        true => Ok(address),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "expected the address of a network")),
    }
}

/// The encoded `inet`.
pub(crate) fn read_inet<R: io::Read>(reader: &mut R) -> io::Result<NetworkAddress> {
    check_known(INET_TAG, ExecutionVersion::V10)?;
    read_address(reader)
}

/// The encoded `cidr`, which has no bits behind its prefix.
pub(crate) fn read_cidr<R: io::Read>(reader: &mut R) -> io::Result<NetworkAddress> {
    check_known(CIDR_TAG, ExecutionVersion::V10)?;
    let address = read_address(reader)?;
    match address == address.network() {
        true => Ok(address),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "expected a network without a host")),
    }
}

/// Appends bytes that sort as addresses compare: the kind, the network filled up with zeros, the length of its prefix, and the address. Of
/// two networks of which one is in the other, the shorter prefix has the smaller bytes, or the same and a smaller length.
pub(crate) fn push_network_key(bytes: &mut SmallVec<[u8; 16]>, address: &NetworkAddress) {
    bytes.push(u8::from(address.is_v6));
    bytes.extend_from_slice(address.network().octets());
    bytes.push(address.prefix);
    bytes.extend_from_slice(address.octets());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataType, Key, Value, format_value, parse_value, with_types_of};

    fn read(data_type: DataType, text: &str) -> Value {
        parse_value(text, data_type).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    /// In the order that PostgreSQL sorts them in.
    const SORTED: [&str; 14] = [
        "0.0.0.0/0",
        "0.0.0.1/0",
        "10.0.0.0/8",
        "10.1.2.3/8",
        "10.0.0.0/9",
        "10.1.0.0/16",
        "10.1.2.3",
        "192.168.1.0/24",
        "255.255.255.255",
        "::/0",
        "::1/64",
        "::1",
        "fe80::/10",
        "ffff::/16",
    ];

    #[test]
    fn addresses_sort_as_networks_and_so_do_their_keys() {
        let values = SORTED.map(|text| read(DataType::Inet, text));
        let keys = values.each_ref().map(|value| Key::encode([value]).expect("a short key"));
        for (at, (value, key)) in values.iter().zip(&keys).enumerate() {
            for (other_at, (other, other_key)) in values.iter().zip(&keys).enumerate() {
                let expected = at.cmp(&other_at);
                assert_eq!(value.compare(other), Some(expected), "{} {}", SORTED[at], SORTED[other_at]);
                assert_eq!(key.cmp(other_key), expected, "{} {}", SORTED[at], SORTED[other_at]);
            }
        }
    }

    #[test]
    fn masks_have_as_many_ones_as_the_prefix() {
        for (text, network, host) in
            [("1.2.3.4/0", 0, 0xffff_ffff), ("1.2.3.4/24", 0xffff_ff00, 0xff), ("1.2.3.4", 0xffff_ffff, 0)]
        {
            let address = parse_inet(text).expect("an address");
            assert_eq!((address.network_mask(), address.host_mask()), (network, host), "{text}");
        }
        let all = parse_inet("::1/0").expect("an address");
        assert_eq!((all.network_mask(), all.host_mask()), (0, u128::MAX));
        assert_eq!(parse_inet("::1").expect("an address").network_mask(), u128::MAX);
        let number = parse_inet("1.2.3.4/7").expect("an address").number();
        assert_eq!(number, 0x0102_0304);
    }

    #[test]
    fn only_canonical_addresses_are_decoded() {
        let address = |is_v6, prefix, at: usize| {
            let mut bytes = [0; 16];
            bytes[at] = 1;
            NetworkAddress { is_v6, prefix, bytes }
        };
        let decode = |value: &Value| {
            let bytes = borsh::to_vec(value).expect("a value");
            Value::try_from_slice(&bytes).map(|read| read == *value).unwrap_or(false)
        };
        for (of, is_inet, is_cidr) in [
            (address(false, 32, 3), true, true),
            (address(false, 31, 3), true, false),
            (address(false, 33, 3), false, false),
            (address(false, 32, 4), false, false),
            (address(true, 128, 15), true, true),
            (address(true, 127, 15), true, false),
            (address(true, 129, 15), false, false),
        ] {
            assert_eq!(decode(&Value::Inet(of)), is_inet, "{of:?}");
            assert_eq!(decode(&Value::Cidr(of)), is_cidr, "{of:?}");
        }
        let mac = Value::MacAddr([1, 2, 3, 4, 5, 6]);
        assert!(decode(&mac));
        for value in [read(DataType::Inet, "::1"), read(DataType::Cidr, "10"), mac] {
            let bytes = borsh::to_vec(&value).expect("a value");
            let before = with_types_of(ExecutionVersion::V9, || Value::try_from_slice(&bytes));
            let expected = format!("Unexpected variant tag: {}", bytes[0]);
            assert_eq!(before.map_err(|error| error.to_string()), Err(expected));
            assert!(Value::try_from_slice(&bytes[..bytes.len() - 1]).is_err());
            assert_eq!(read(value.data_type(), &format_value(&value).expect("a text")), value);
        }
    }
}
