//! One value has one encoding: others are refused, whoever sends them.

use std::sync::Arc;
use types::{
    Catalog, Check, Column, CompositeType, DataType, Deferral, Domain, EnumPlace, EnumValue, ForeignKey,
    Index, IndexDetails, OutputColumn, ReferentialAction, TableId, TypeId, TypeKind, decode_exactly, encode,
};

/// A catalog with two row types, and where they stand in its encoding.
fn two_types() -> (Catalog, Vec<u8>, usize) {
    let mut catalog = Catalog::default();
    catalog.row_types.extend([("a".to_string(), TypeId(1)), ("b".to_string(), TypeId(2))]);
    let bytes = encode(&catalog);
    let first = [encode("a"), encode(&TypeId(1))].concat();
    let at = bytes.windows(first.len()).position(|part| part == first).expect("the first entry");
    (catalog, bytes, at)
}

#[test]
fn maps_come_in_their_order() {
    let (catalog, bytes, at) = two_types();
    assert_eq!(decode_exactly::<Catalog>(&bytes).expect("canonical"), catalog);
    let length = encode("a").len() + encode(&TypeId(1)).len();
    let mut swapped = bytes.clone();
    swapped[at..at + 2 * length].rotate_left(length);
    assert_eq!(&swapped[at..at + length], [encode("b"), encode(&TypeId(2))].concat());
    assert!(decode_exactly::<Catalog>(&swapped).is_err(), "entries in another order");
    let mut twice = bytes.clone();
    twice.copy_within(at..at + length, at + length);
    assert!(decode_exactly::<Catalog>(&twice).is_err(), "an entry that is there twice");
}

/// A catalog with a composite type and perhaps an enum.
fn with_types(values: Option<Vec<Arc<EnumValue>>>) -> Catalog {
    let mut catalog = Catalog { next_type: 9, ..Catalog::default() };
    let fields = vec![OutputColumn { name: "n".to_string(), data_type: DataType::Integer }];
    let kind = TypeKind::Composite;
    let pair = CompositeType { id: TypeId(7), name: "pair".to_string(), fields, kind };
    catalog.types.insert("pair".to_string(), Arc::new(pair));
    if let Some(values) = values {
        let kind = TypeKind::Enum(values);
        let mood = CompositeType { id: TypeId(8), name: "mood".to_string(), fields: Vec::new(), kind };
        catalog.types.insert("mood".to_string(), Arc::new(mood));
    }
    catalog
}

fn value(type_id: u32, number: u16) -> Arc<EnumValue> {
    let place = EnumPlace::nth(number);
    Arc::new(EnumValue { type_id: TypeId(type_id), place, label: format!("label {number}").into() })
}

#[test]
fn catalogs_without_enums_are_encoded_as_before_there_were_any() {
    let catalog = with_types(None);
    let fields = vec![("n".to_string(), DataType::Integer)];
    let before = encode(&(TypeId(7), "pair".to_string(), fields));
    let bytes = encode(&catalog);
    assert!(bytes.windows(before.len()).any(|part| part == before), "as version 6 has it");
    assert_eq!(decode_exactly::<Catalog>(&bytes).expect("canonical"), catalog);
}

#[test]
fn enums_are_encoded_in_one_way() {
    let catalog = with_types(Some(vec![value(8, 0), value(8, 1)]));
    let bytes = encode(&catalog);
    assert_eq!(decode_exactly::<Catalog>(&bytes).expect("canonical"), catalog);
    for wrong in [vec![value(8, 1), value(8, 0)], vec![value(8, 0), value(8, 0)], vec![value(7, 0)]] {
        assert!(decode_exactly::<Catalog>(&encode(&with_types(Some(wrong)))).is_err());
    }
    let known = CompositeType::clone(&catalog.types["mood"]);
    let bytes = encode(&known);
    assert!((0..bytes.len()).all(|length| decode_exactly::<CompositeType>(&bytes[..length]).is_err()));
    let kind = 4 + 4 + "mood".len() + 4;
    let mut other = bytes.clone();
    other[kind] = 200;
    assert!(decode_exactly::<CompositeType>(&other).is_err(), "a kind that nobody knows");
}

#[test]
fn columns_are_encoded_as_before_there_were_generated_ones() {
    let column = |default: Option<&str>, generated| Column {
        name: "c".to_string(),
        data_type: DataType::Integer,
        not_null: true,
        default: default.map(str::to_string),
        generated,
    };
    for default in [None, Some("1")] {
        let before = encode(&("c".to_string(), DataType::Integer, true, default.map(str::to_string)));
        assert_eq!(encode(&column(default, false)), before, "as version 6 has it");
    }
    for column in [column(None, false), column(Some("1"), false), column(Some("a * 2"), true)] {
        let bytes = encode(&column);
        assert_eq!(decode_exactly::<Column>(&bytes).expect("canonical"), column);
        assert!((0..bytes.len()).all(|length| decode_exactly::<Column>(&bytes[..length]).is_err()));
    }
    let mut other = encode(&column(None, false));
    *other.last_mut().expect("it has a default") = 3;
    assert!(decode_exactly::<Column>(&other).is_err(), "a kind that nobody knows");
}

#[test]
fn domains_are_encoded_in_one_way() {
    let check = Check { name: "c".to_string(), condition: "VALUE > 0".to_string(), valid: true };
    let domain = Domain {
        base: DataType::Integer,
        not_null: true,
        default: Some("1".to_string()),
        checks: vec![check],
    };
    let kind = TypeKind::Domain(domain);
    let known = CompositeType { id: TypeId(9), name: "positive".to_string(), fields: Vec::new(), kind };
    let bytes = encode(&known);
    assert_eq!(decode_exactly::<CompositeType>(&bytes).expect("canonical"), known);
    assert!((0..bytes.len()).all(|length| decode_exactly::<CompositeType>(&bytes[..length]).is_err()));
}

/// Every beginning of an encoding is refused, and the whole says what it was made of.
fn is_one_encoding<T: borsh::BorshSerialize + borsh::BorshDeserialize + PartialEq + std::fmt::Debug>(
    value: &T,
) -> Vec<u8> {
    let bytes = encode(value);
    assert_eq!(&decode_exactly::<T>(&bytes).expect("canonical"), value);
    assert!((0..bytes.len()).all(|length| decode_exactly::<T>(&bytes[..length]).is_err()), "{value:?}");
    bytes
}

#[test]
fn constraints_are_encoded_as_before_they_could_wait() {
    let check = |valid| Check { name: "c".to_string(), condition: "a > 0".to_string(), valid };
    assert_eq!(is_one_encoding(&check(true)), encode(&("c".to_string(), "a > 0".to_string())));
    assert_eq!(is_one_encoding(&check(false))[..4], u32::MAX.to_le_bytes());

    let index = |constraint, deferral, primary| Index {
        number: 7,
        name: "i".to_string(),
        columns: vec![1, 0],
        unique: true,
        constraint,
        details: IndexDetails::default(),
        deferral,
        primary,
        method: types::IndexMethod::Ordered,
    };
    for constraint in [false, true] {
        let before = encode(&(7_u32, "i".to_string(), vec![1_u16, 0], true, constraint));
        assert_eq!(is_one_encoding(&index(constraint, Deferral::Never, false)), before);
    }
    for deferral in [Deferral::InitiallyImmediate, Deferral::InitiallyDeferred] {
        for primary in [false, true] {
            let bytes = is_one_encoding(&index(true, deferral, primary));
            let kind = bytes.len() - 3;
            for (at, wrong) in [(kind, 3), (kind + 1, 0), (kind + 1, 3), (kind + 2, 2), (kind - 1, 0)] {
                let mut other = bytes.clone();
                other[at] = wrong;
                assert!(decode_exactly::<Index>(&other).is_err(), "byte {at} is {wrong}");
            }
            let details = IndexDetails { nulls_not_distinct: true, ..IndexDetails::default() };
            is_one_encoding(&Index { details, ..index(true, deferral, primary) });
        }
    }
}

#[test]
fn foreign_keys_are_encoded_as_before_they_said_more() {
    let plain = ForeignKey {
        number: 3,
        name: "f".to_string(),
        columns: vec![1, 2],
        parent: TableId(1),
        referenced: vec![0, 1],
        index: Some(9),
        on_delete: ReferentialAction::SetNull,
        on_update: ReferentialAction::Cascade,
        deferral: Deferral::Never,
        match_full: false,
        valid: true,
        set_on_delete: Vec::new(),
    };
    let before =
        (3_u32, "f".to_string(), vec![1_u16, 2], TableId(1), vec![0_u16, 1], Some(9_u32), 3_u8, 2_u8);
    assert_eq!(is_one_encoding(&plain), encode(&before), "as version 7 has it");
    let more = [
        ForeignKey { deferral: Deferral::InitiallyDeferred, ..plain.clone() },
        ForeignKey { deferral: Deferral::InitiallyImmediate, ..plain.clone() },
        ForeignKey { match_full: true, ..plain.clone() },
        ForeignKey { valid: false, ..plain.clone() },
        ForeignKey { set_on_delete: vec![2], ..plain.clone() },
    ];
    for foreign_key in more {
        let bytes = is_one_encoding(&foreign_key);
        let kind = encode(&before).len() - 1;
        for wrong in [5, 127, 128 + 5, 255] {
            let mut other = bytes.clone();
            other[kind] = wrong;
            assert!(decode_exactly::<ForeignKey>(&other).is_err(), "{foreign_key:?} with {wrong}");
        }
    }
    let mut nothing = encode(&before);
    *nothing.last_mut().expect("ON UPDATE") += 128;
    nothing.extend(encode(&(Deferral::Never, false, false, Vec::<u16>::new())));
    assert!(decode_exactly::<ForeignKey>(&nothing).is_err(), "it says more, and does not");
}
