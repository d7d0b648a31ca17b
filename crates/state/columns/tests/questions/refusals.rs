//! What is not kept in columns.

use crate::world::{apply, catalog, check, image, store, table};
use state::Version;
use types::{DataType, Numeric, Value};

#[test]
fn a_type_without_an_array_is_none_and_other_columns_are_kept() {
    let made = [table(1, &[DataType::BigInt, DataType::Uuid, DataType::Numeric(None)])];
    let store = store(&made);
    apply(
        store.as_ref(),
        vec![image(1, 1, Some([Value::BigInt(1), Value::Null, Value::Null].into_iter().collect()))],
    );
    let snapshot = store.snapshot();
    assert!(!check(snapshot.as_ref(), &made[0], &[1]));
    assert!(!check(snapshot.as_ref(), &made[0], &[0, 2]));
    assert!(!check(snapshot.as_ref(), &made[0], &[3]), "no such column");
    assert!(check(snapshot.as_ref(), &made[0], &[0]));
    assert!(check(snapshot.as_ref(), &made[0], &[]), "rows are counted");
}

#[test]
fn a_value_that_does_not_fit_ends_the_columns_of_its_table() {
    let types = [DataType::BigInt, DataType::Numeric(Some((5, 2)))];
    let odd = [Numeric::NAN, Numeric::INFINITY, Numeric::new(7, 3), Numeric::new(100_000, 2)];
    for odd in odd {
        let made = [table(1, &types), table(2, &types)];
        let store = store(&made);
        let row = |number, value: Numeric| {
            let row = [Value::BigInt(number), Value::Numeric(value)].into_iter().collect();
            image(1, number, Some(row))
        };
        apply(store.as_ref(), (0..10).map(|number| row(number, Numeric::new(-99_999, 2))).collect());
        assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1]));
        apply(store.as_ref(), vec![row(4, odd.clone())]);
        assert!(!check(store.snapshot().as_ref(), &made[0], &[0, 1]), "{odd:?} is brought up");
        apply(store.as_ref(), vec![row(4, Numeric::new(1, 2))]);
        assert!(!check(store.snapshot().as_ref(), &made[0], &[0]), "it stays so");
        // Until it is another table.
        let again = [table(3, &types)];
        store.apply(Version::after_batch(9, 0), &[], Some(catalog(&again))).unwrap();
        let number = Value::Numeric(Numeric::new(1, 2));
        let fits = image(3, 1, Some([Value::BigInt(1), number].into_iter().collect()));
        apply(store.as_ref(), vec![fits]);
        assert!(check(store.snapshot().as_ref(), &again[0], &[0, 1]));
        let odd = [Value::BigInt(2), Value::Numeric(odd)].into_iter().collect();
        apply(store.as_ref(), vec![image(3, 2, Some(odd))]);
        assert!(
            check(store.snapshot().as_ref(), &again[0], &[])
                || !check(store.snapshot().as_ref(), &again[0], &[1])
        );
        assert!(!check(store.snapshot().as_ref(), &again[0], &[0, 1]));
    }
}
