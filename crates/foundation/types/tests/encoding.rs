//! One value has one encoding: others are refused, whoever sends them.

use types::{Catalog, TypeId, decode_exactly, encode};

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
