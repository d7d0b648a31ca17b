//! Numbers and time zones among the fields of a date.

use super::decode::Fault;

/// The largest time zone displacement that PostgreSQL reads is 15:59:59.
const ZONE_HOURS_MAX: i64 = 15;

/// Digits as PostgreSQL's 32 bits hold them.
pub(super) fn integer(digits: &str) -> Result<i64, Fault> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    digits.parse::<i32>().map(i64::from).map_err(|_| Fault::Field)
}

/// `.5` as microseconds, rounded as PostgreSQL rounds: as a double, halves to even.
pub(super) fn microseconds(fraction: &str) -> Result<i64, Fault> {
    let digits = fraction.get(1..).unwrap_or("");
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    let seconds: f64 = format!("0.{digits}0").parse().map_err(|_| Fault::Format)?;
    Ok((seconds * 1e6).round_ties_even() as i64)
}

pub(super) fn signed(text: &str) -> Result<(bool, &str), Fault> {
    match text.as_bytes() {
        [b'-', ..] => Ok((true, &text[1..])),
        [b'+', ..] => Ok((false, &text[1..])),
        _ => Err(Fault::Format),
    }
}

/// Seconds east of UTC.
pub(super) fn zone(negative: bool, text: &str) -> Result<i64, Fault> {
    let overflow = |fault| if fault == Fault::Field { Fault::Zone } else { fault };
    let mut parts = text.split(':');
    let first = parts.next().unwrap_or("");
    let digits = first.find(|c: char| !c.is_ascii_digit()).unwrap_or(first.len());
    let mut hours = integer(&first[..digits]).map_err(overflow)?;
    let (mut minutes, mut seconds) = (0, 0);
    let rest = match parts.next() {
        Some(second) if digits == first.len() => {
            minutes = integer(second).map_err(overflow)?;
            if let Some(third) = parts.next() {
                seconds = integer(third).map_err(overflow)?;
            }
            parts.next().is_some()
        }
        other => {
            if digits == first.len() && other.is_none() && digits > 2 {
                (hours, minutes) = (hours / 100, hours % 100);
            }
            digits < first.len() || other.is_some()
        }
    };
    if hours > ZONE_HOURS_MAX || minutes > 59 || seconds > 59 {
        return Err(Fault::Zone);
    }
    if rest {
        return Err(Fault::Format);
    }
    let displacement = (hours * 60 + minutes) * 60 + seconds;
    Ok(if negative { -displacement } else { displacement })
}
