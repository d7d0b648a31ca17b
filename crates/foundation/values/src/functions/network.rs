//! Functions and operators of addresses: `inet`, `cidr` and `macaddr`.

use crate::functions::entry::Argument::{self, From, OneOf, To};
use crate::functions::entry::Gives::Is;
use crate::functions::entry::{Computed, Function, code};
use DataType::{BigInt, Boolean, Cidr, Inet, Integer, MacAddr, SmallInt, Unknown};
use types::{DataType, ExecutionVersion, NetworkAddress, SqlError, SqlState, Value};

const TEXT: DataType = DataType::Text(None);
const V10: ExecutionVersion = ExecutionVersion::V10;

/// An address with its network; a literal is one too.
const ADDRESS: Argument = From(&[Inet, Cidr, Unknown], Inet);
const NO_LITERAL: Argument = From(&[Inet, Cidr], Inet);
const MAC: Argument = From(&[MacAddr, Unknown], MacAddr);
/// How far; a literal may be that, where no address can stand.
const DISTANCE: Argument = From(&[SmallInt, Integer, BigInt, Unknown], BigInt);

/// Of an address.
const fn of_address(
    names: &'static [&'static str],
    gives: DataType,
    code: fn(&[Value]) -> Computed,
) -> Function {
    Function::new(names, &[ADDRESS], Is(gives), code).never_fails().since(V10)
}

/// Of two addresses, one of which is no literal.
const fn of_two(names: &'static [&'static str], gives: DataType, code: fn(&[Value]) -> Computed) -> Function {
    Function::new(names, &[ADDRESS, ADDRESS], Is(gives), code).when(holds_address).since(V10)
}

fn holds_address(types: &[DataType]) -> bool {
    types.iter().any(|data_type| matches!(data_type, Inet | Cidr))
}

fn holds_mac(types: &[DataType]) -> bool {
    types.contains(&MacAddr)
}

pub(super) static FUNCTIONS: &[Function] = &[
    // Whether one network is in another.
    of_two(&["<<"], Boolean, code!(
        [Value::Inet(a), Value::Inet(b)] => truth(a.prefix > b.prefix && is_in(a, b)),
    ))
    .never_fails(),
    of_two(&["<<="], Boolean, code!(
        [Value::Inet(a), Value::Inet(b)] => truth(is_in(a, b)),
    ))
    .never_fails(),
    of_two(&[">>"], Boolean, code!(
        [Value::Inet(a), Value::Inet(b)] => truth(b.prefix > a.prefix && is_in(b, a)),
    ))
    .never_fails(),
    of_two(&[">>="], Boolean, code!(
        [Value::Inet(a), Value::Inet(b)] => truth(is_in(b, a)),
    ))
    .never_fails(),
    of_two(&["&&"], Boolean, code!(
        [Value::Inet(a), Value::Inet(b)] => truth(a.shares(b, a.prefix.min(b.prefix))),
    ))
    .never_fails(),
    // Bit by bit.
    Function::new(&["~"], &[NO_LITERAL], Is(Inet), code!(
        [Value::Inet(address)] => Ok(Value::Inet(address.with_number(!address.number() & all_ones(address)))),
    ))
    .never_fails()
    .since(V10),
    of_two(&["&"], Inet, code!([Value::Inet(a), Value::Inet(b)] => joined("AND", a, b, |a, b| a & b))),
    of_two(&["|"], Inet, code!([Value::Inet(a), Value::Inet(b)] => joined("OR", a, b, |a, b| a | b))),
    // Addresses in the order of their numbers.
    Function::new(&["+"], &[ADDRESS, DISTANCE], Is(Inet), code!(
        [Value::Inet(address), Value::BigInt(distance)] => moved(address, *distance),
    ))
    .when(|types| holds_address(&types[..1]))
    .since(V10),
    Function::new(&["+"], &[DISTANCE, ADDRESS], Is(Inet), code!(
        [Value::BigInt(distance), Value::Inet(address)] => moved(address, *distance),
    ))
    .when(|types| holds_address(&types[1..]))
    .since(V10),
    of_two(&["-"], BigInt, code!([Value::Inet(a), Value::Inet(b)] => difference(a, b))),
    Function::new(&["-"], &[NO_LITERAL, From(&[SmallInt, Integer, BigInt], BigInt)], Is(Inet), code!(
        // As in PostgreSQL, the smallest number has no opposite.
        [Value::Inet(address), Value::BigInt(distance)] => moved(address, distance.wrapping_neg()),
    ))
    .since(V10),
    // What an address and its network are.
    Function::new(&["abbrev"], &[OneOf(&[Cidr])], Is(TEXT), code!(
        [Value::Cidr(address)] => Ok(Value::text(address.abbreviated_network())),
    ))
    .never_fails()
    .since(V10),
    Function::new(&["abbrev"], &[From(&[Inet, Unknown], Inet)], Is(TEXT), code!(
        [Value::Inet(address)] => Ok(Value::text(address.abbreviated_host())),
    ))
    .never_fails()
    .since(V10),
    of_address(&["host"], TEXT, code!([Value::Inet(address)] => Ok(Value::text(address.host_text())))),
    Function::new(&["text"], &[NO_LITERAL], Is(TEXT), code!(
        [Value::Inet(address)] => Ok(Value::text(address.prefixed_text())),
    ))
    .never_fails()
    .since(V10),
    of_address(&["family"], Integer, code!(
        [Value::Inet(address)] => Ok(Value::Integer(if address.is_v6 { 6 } else { 4 })),
    )),
    of_address(&["masklen"], Integer, code!(
        [Value::Inet(address)] => Ok(Value::Integer(address.prefix.into())),
    )),
    of_address(&["network"], Cidr, code!([Value::Inet(address)] => Ok(Value::Cidr(address.network())))),
    of_address(&["broadcast"], Inet, code!(
        [Value::Inet(address)] => {
            Ok(Value::Inet(address.with_number(address.number() | address.host_mask())))
        }
    )),
    of_address(&["netmask"], Inet, code!([Value::Inet(address)] => host(address, address.network_mask()))),
    of_address(&["hostmask"], Inet, code!([Value::Inet(address)] => host(address, address.host_mask()))),
    Function::new(&["set_masklen"], &[OneOf(&[Cidr]), To(Integer)], Is(Cidr), code!(
        [Value::Cidr(address), Value::Integer(length)] => {
            prefix(address, *length).map(|prefix| Value::Cidr(address.with_prefix(prefix).network()))
        }
    ))
    .since(V10),
    Function::new(&["set_masklen"], &[From(&[Inet, Unknown], Inet), To(Integer)], Is(Inet), code!(
        [Value::Inet(address), Value::Integer(length)] => {
            prefix(address, *length).map(|prefix| Value::Inet(address.with_prefix(prefix)))
        }
    ))
    .since(V10),
    Function::new(&["inet_same_family"], &[ADDRESS, ADDRESS], Is(Boolean), code!(
        [Value::Inet(a), Value::Inet(b)] => truth(a.is_v6 == b.is_v6),
    ))
    .never_fails()
    .since(V10),
    Function::new(&["inet_merge"], &[ADDRESS, ADDRESS], Is(Cidr), code!(
        [Value::Inet(a), Value::Inet(b)] => merged(a, b),
    ))
    .since(V10),
    // Addresses of network cards.
    Function::new(&["trunc"], &[OneOf(&[MacAddr])], Is(MacAddr), code!(
        [Value::MacAddr([a, b, c, ..])] => Ok(Value::MacAddr([*a, *b, *c, 0, 0, 0])),
    ))
    .never_fails()
    .since(V10),
    Function::new(&["~"], &[OneOf(&[MacAddr])], Is(MacAddr), code!(
        [Value::MacAddr(bytes)] => Ok(Value::MacAddr(bytes.map(|byte| !byte))),
    ))
    .never_fails()
    .since(V10),
    Function::new(&["&"], &[MAC, MAC], Is(MacAddr), code!(
        [Value::MacAddr(a), Value::MacAddr(b)] => Ok(Value::MacAddr(std::array::from_fn(|at| a[at] & b[at]))),
    ))
    .when(holds_mac)
    .never_fails()
    .since(V10),
    Function::new(&["|"], &[MAC, MAC], Is(MacAddr), code!(
        [Value::MacAddr(a), Value::MacAddr(b)] => Ok(Value::MacAddr(std::array::from_fn(|at| a[at] | b[at]))),
    ))
    .when(holds_mac)
    .never_fails()
    .since(V10),
];

fn truth(truth: bool) -> Computed {
    Ok(Value::Boolean(truth))
}

#[cold]
fn refused(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

#[cold]
fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range")
}

/// Whether an address and its network are within another one's network.
fn is_in(inner: &NetworkAddress, outer: &NetworkAddress) -> bool {
    inner.prefix >= outer.prefix && inner.shares(outer, outer.prefix)
}

/// The largest number that an address of this kind has.
fn all_ones(address: &NetworkAddress) -> u128 {
    address.network_mask() | address.host_mask()
}

/// An address of this kind that is a single host.
fn host(address: &NetworkAddress, number: u128) -> Computed {
    Ok(Value::Inet(address.with_prefix(address.bits()).with_number(number)))
}

fn joined(operator: &str, a: &NetworkAddress, b: &NetworkAddress, join: fn(u128, u128) -> u128) -> Computed {
    if a.is_v6 != b.is_v6 {
        return Err(refused(format!("cannot {operator} inet values of different sizes")));
    }
    let longer = a.with_prefix(a.prefix.max(b.prefix));
    Ok(Value::Inet(longer.with_number(join(a.number(), b.number()))))
}

fn moved(address: &NetworkAddress, distance: i64) -> Computed {
    let number = address.number().checked_add_signed(i128::from(distance));
    let number = number.filter(|number| *number <= all_ones(address)).ok_or_else(out_of_range)?;
    Ok(Value::Inet(address.with_number(number)))
}

fn difference(a: &NetworkAddress, b: &NetworkAddress) -> Computed {
    if a.is_v6 != b.is_v6 {
        return Err(refused("cannot subtract inet values of different sizes"));
    }
    // As in PostgreSQL, around the end of the addresses.
    let difference = a.number().wrapping_sub(b.number()).cast_signed();
    i64::try_from(difference).map(Value::BigInt).map_err(|_| out_of_range())
}

/// The length of a prefix; -1 is that of a single host.
fn prefix(address: &NetworkAddress, length: i32) -> Result<u8, SqlError> {
    match u8::try_from(length) {
        _ if length == -1 => Ok(address.bits()),
        Ok(prefix) if prefix <= address.bits() => Ok(prefix),
        _ => Err(refused(format!("invalid mask length: {length}"))),
    }
}

/// The smallest network that both are in.
fn merged(a: &NetworkAddress, b: &NetworkAddress) -> Computed {
    if a.is_v6 != b.is_v6 {
        return Err(refused("cannot merge addresses from different families"));
    }
    let common = (a.number() ^ b.number()).leading_zeros() - (u128::BITS - u32::from(a.bits()));
    let prefix = common.min(a.prefix.min(b.prefix).into());
    Ok(Value::Cidr(a.with_prefix(prefix as u8).network()))
}
