//! Values of enums: each has its label and its place among the labels of its type.
//!
//! A place is a fraction, written as bytes that compare as the places do. Between any two there is another one, so a label
//! that comes between two others changes neither them nor any row (decision 0050).

use crate::unknown_types::check_known;
use crate::{SqlError, SqlState, TypeId, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::io;
use std::sync::Arc;

/// Where a label stands among those of its type.
///
/// ```text
/// 2 bytes, big-endian: 8000 for the first label of a new type, one more for each behind it
/// further bytes: a fraction, of which the last byte is not 0
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EnumPlace(SmallVec<[u8; 8]>);

/// Bytes in front of the fraction.
const WHOLE_BYTES: usize = 2;

impl EnumPlace {
    /// The place of the label with this number in a type that is made.
    pub fn nth(number: u16) -> EnumPlace {
        EnumPlace(SmallVec::from_slice(&(0x8000 | number).to_be_bytes()))
    }

    /// A place behind one and in front of another, the first that is there; `None` where the type has no label yet.
    ///
    /// # Errors
    /// `54000` where as many labels have been put between two others as there are places.
    pub fn between(after: Option<&EnumPlace>, before: Option<&EnumPlace>) -> Result<EnumPlace, SqlError> {
        let place = match (after, before) {
            (None, None) => Some(EnumPlace::nth(0)),
            (Some(last), None) => last.whole().checked_add(1).map(EnumPlace::of_whole),
            // All of a fraction comes behind its whole.
            (None, Some(first)) if first.0.len() > WHOLE_BYTES => Some(EnumPlace::of_whole(first.whole())),
            (None, Some(first)) => first.whole().checked_sub(1).map(EnumPlace::of_whole),
            (Some(after), Some(before)) => after.middle(before),
        };
        place.filter(|place| place.0.len() <= limits::ENUM_PLACE_BYTES_MAX).ok_or_else(|| {
            let message = format!(
                "no place is left between two labels that many have been put between (ENUM_PLACE_BYTES_MAX: {} bytes)",
                limits::ENUM_PLACE_BYTES_MAX
            );
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint("Put the value somewhere else.")
        })
    }

    /// Its bytes, which compare as places do.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn of_whole(whole: u16) -> EnumPlace {
        EnumPlace(SmallVec::from_slice(&whole.to_be_bytes()))
    }

    fn whole(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// The shortest in the middle: whole numbers apart by more than one have one between them, otherwise it is a fraction.
    fn middle(&self, before: &EnumPlace) -> Option<EnumPlace> {
        let mut middle = SmallVec::new();
        let mut bounded = true;
        for at in 0..=limits::ENUM_PLACE_BYTES_MAX {
            let low = u16::from(self.0.get(at).copied().unwrap_or(0));
            let high = match bounded {
                true => u16::from(before.0.get(at).copied().unwrap_or(0)),
                false => 256,
            };
            let next = (low + high) / 2;
            if next > low {
                middle.push(next as u8);
                // A place has both bytes of its whole.
                while middle.len() < WHOLE_BYTES {
                    middle.push(0);
                }
                return Some(EnumPlace(middle));
            }
            middle.push(low as u8);
            bounded = bounded && low == high;
        }
        None
    }

    fn is_canonical(&self) -> bool {
        let lengths = WHOLE_BYTES..=limits::ENUM_PLACE_BYTES_MAX;
        lengths.contains(&self.0.len()) && (self.0.len() == WHOLE_BYTES || self.0.last() != Some(&0))
    }
}

impl BorshSerialize for EnumPlace {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        (self.0.len() as u8).serialize(writer)?;
        writer.write_all(&self.0)
    }
}

impl BorshDeserialize for EnumPlace {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<EnumPlace> {
        let length = usize::from(u8::deserialize_reader(reader)?);
        let mut bytes = SmallVec::from_elem(0, length);
        reader.read_exact(&mut bytes)?;
        let place = EnumPlace(bytes);
        if place.is_canonical() {
            return Ok(place);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "expected the place of an enum's label"))
    }
}

/// What the encoding of a value begins with.
const ENUM_TAG: u8 = 21;

/// A value of an enum. It has its label with it, so that everybody who has the value can write it, also without the catalog
/// that it comes from.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize)]
pub struct EnumValue {
    /// The number of its type.
    pub type_id: TypeId,
    /// Where it stands among the values of its type.
    pub place: EnumPlace,
    /// What it is called, of at most [`limits::NAME_BYTES_MAX`] bytes.
    pub label: Arc<str>,
}

impl EnumValue {
    /// The order of the type's definition; values of different types do not meet.
    pub fn compare(&self, other: &EnumValue) -> Ordering {
        self.place.cmp(&other.place)
    }
}

impl BorshDeserialize for EnumValue {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<EnumValue> {
        check_known(ENUM_TAG, crate::ExecutionVersion::V7)?;
        let type_id = TypeId::deserialize_reader(reader)?;
        let place = EnumPlace::deserialize_reader(reader)?;
        let length = u32::deserialize_reader(reader)? as usize;
        let refused = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        if length > limits::NAME_BYTES_MAX {
            return Err(refused("expected a label of at most NAME_BYTES_MAX bytes"));
        }
        let mut label = vec![0; length];
        reader.read_exact(&mut label)?;
        let label = String::from_utf8(label).map_err(|_| refused("expected a label in UTF-8"))?;
        Ok(EnumValue { type_id, place, label: label.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Value, decode_exactly, encode};

    fn value(place: &EnumPlace) -> Value {
        let (type_id, place) = (TypeId(7), place.clone());
        Value::Enum(Arc::new(EnumValue { type_id, place, label: "ok".into() }))
    }

    /// Labels put in front of, behind and between others, chosen by a sequence of numbers.
    fn many_places() -> Vec<EnumPlace> {
        let mut places: Vec<EnumPlace> = (0..3).map(EnumPlace::nth).collect();
        let mut chosen = 17_usize;
        for _ in 0..900 {
            chosen = chosen.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (chosen >> 33) % (places.len() + 1);
            let after = at.checked_sub(1).and_then(|at| places.get(at));
            let place = EnumPlace::between(after, places.get(at)).expect("a place");
            places.insert(at, place);
        }
        places
    }

    #[test]
    fn before_version_7_the_tag_of_an_enum_is_unknown() {
        let bytes = encode(&value(&EnumPlace::nth(3)));
        assert_eq!(bytes[0], ENUM_TAG);
        let read = || decode_exactly::<Value>(&bytes);
        let error = crate::with_types_of(crate::ExecutionVersion::V6, read).expect_err("an unknown tag");
        assert_eq!(error.to_string(), format!("Unexpected variant tag: {ENUM_TAG}"));
        assert_eq!(read().ok(), Some(value(&EnumPlace::nth(3))));
    }

    #[test]
    fn a_label_between_two_others_changes_none_and_keys_sort_as_places() {
        let places = many_places();
        assert!(places.windows(2).all(|pair| pair[0] < pair[1] && pair[0].is_canonical()));
        let keys: Vec<Key> =
            places.iter().map(|place| Key::encode([&value(place)]).expect("a short key")).collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(keys.windows(2).all(|pair| !pair[1].as_bytes().starts_with(pair[0].as_bytes())));
        let values: Vec<Value> = places.iter().map(value).collect();
        assert!(values.windows(2).all(|pair| pair[0].compare(&pair[1]) == Some(Ordering::Less)));
    }

    #[test]
    fn one_spot_has_room_for_two_hundred_labels_and_then_says_so() {
        for (behind, ahead) in [(true, false), (false, true)] {
            let (mut low, mut high) = (EnumPlace::nth(0), EnumPlace::nth(1));
            let mut made = 0;
            let error = loop {
                match EnumPlace::between(Some(&low), Some(&high)) {
                    Ok(place) if behind => low = place,
                    Ok(place) => high = place,
                    Err(error) => break error,
                }
                made += 1;
            };
            assert!(made >= 200, "{made} with {ahead}");
            assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
        }
    }

    #[test]
    fn values_round_trip_and_malformed_ones_are_refused() {
        for place in many_places() {
            let bytes = encode(&value(&place));
            assert_eq!(decode_exactly::<Value>(&bytes).expect("it round-trips"), value(&place));
        }
        let bytes = encode(&value(&EnumPlace::nth(1)));
        assert!((0..bytes.len()).all(|length| decode_exactly::<Value>(&bytes[..length]).is_err()));
        let (tag, length) = (0, 5);
        let changed = |at: usize, with: &[u8]| {
            let mut changed = bytes.clone();
            changed.splice(at..=at, with.iter().copied());
            decode_exactly::<Value>(&changed)
        };
        assert!(changed(length, &[2]).is_ok());
        // A place of one byte, one with a zero behind it, one that is too long.
        assert!(changed(length, &[1]).is_err());
        assert!(decode_exactly::<EnumPlace>(&[3, 0x80, 0, 0]).is_err());
        assert!(decode_exactly::<EnumPlace>(&[200; 201]).is_err());
        assert!(changed(tag, &[250]).is_err());
        // A label that is too long, and one that is no text.
        let mut long = bytes[..8].to_vec();
        long.extend_from_slice(&encode(&"x".repeat(64)));
        assert!(decode_exactly::<Value>(&long).is_err());
        let mut no_text = bytes.clone();
        *no_text.last_mut().expect("it has a label") = 0xff;
        assert!(decode_exactly::<Value>(&no_text).is_err());
    }
}
