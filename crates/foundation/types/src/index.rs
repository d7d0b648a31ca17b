//! Indexes, as the catalog has them, and the keys of their entries.

use crate::unknown_types::check_known;
use crate::{ColumnSet, Deferral, ExecutionVersion, Key, SqlError, TableId, Value};
use borsh::{BorshDeserialize, BorshSerialize};

/// An index of a table.
///
/// Its entries are ordered by the columns and then by the primary key, and follow from the table's rows
/// ([`Index::entries`]). A unique index has besides one row per key that is taken ([`Index::unique_entries`]), which
/// transactions write like any row: who takes a key that is taken is stopped at its place in the order.
///
/// An index with expressions or a predicate is *computed* ([`Index::is_computed`]). What it has of a row is known only to who can
/// evaluate SQL. So its entries are rows like others, which transactions write together with the rows of the table
/// ([`Index::computed_entries`]): they are in digests and in the state's tree, and whoever fetches a state fetches them.
///
/// ```text
/// encoding: number ‖ name ‖ columns ‖ unique ‖ 0 | 1        (constraint; as before there was anything else)
///                                            ‖ 2 | 3 ‖ details
///                                            ‖ 4 ‖ deferral ‖ primary          (a constraint that can be deferred)
///                                            ‖ 5 ‖ deferral ‖ primary ‖ details
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its number; tables and indexes share the numbers.
    pub number: u32,
    /// Its name without the schema, which is that of its table.
    pub name: String,
    /// Ordinals of its columns, in order; [`Index::EXPRESSION`] where it has an expression.
    pub columns: Vec<u16>,
    /// No two rows have the same values without a NULL.
    pub unique: bool,
    /// It was made by a UNIQUE constraint.
    pub constraint: bool,
    /// What few indexes have; none before execution version 8.
    pub details: IndexDetails,
    /// When the constraint is held: that of an index without one is never deferred.
    pub deferral: Deferral,
    /// The constraint is a PRIMARY KEY that can be deferred: rows stand under hidden keys then.
    pub primary: bool,
    /// What it has of a row. Since execution version 15 there is another one than [`IndexMethod::Ordered`].
    pub method: IndexMethod,
}

/// What an index has of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexMethod {
    /// `btree`: one entry, which is ordered as the values are.
    #[default]
    Ordered,
    /// `gin`: an entry for each part of a value, such as each lexeme of a document, by which rows are found that have the part.
    Inverted,
}

/// What few indexes have.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct IndexDetails {
    /// Expressions of the key, as SQL, in the order of their places.
    pub expressions: Vec<String>,
    /// WHERE, as SQL: rows for which it is not true have no entry.
    pub predicate: Option<String>,
    /// Ordinals of the columns of INCLUDE. They are shown, and say nothing about entries.
    pub included: Vec<u16>,
    /// NULLS NOT DISTINCT: NULL equals NULL, so that two rows with it in the same place have the same key.
    pub nulls_not_distinct: bool,
    /// How the parts of the key are written, in order; empty where all are written as usual.
    pub written: Vec<KeyOrder>,
}

/// What a definition says of a part of the key besides. Entries are read in both directions, so that it is only shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct KeyOrder {
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
    /// The operator class, where it is not that of the type.
    pub class: Option<String>,
}

impl IndexDetails {
    /// What it has written down as SQL.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.expressions.iter_mut().chain(&mut self.predicate)
    }
}

/// What the rest of the encoding of an inverted index begins with.
const INVERTED: u8 = 6;

impl BorshSerialize for Index {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        (self.number, &self.name, &self.columns, self.unique).serialize(writer)?;
        if self.method == IndexMethod::Inverted {
            return (INVERTED, &self.details).serialize(writer);
        }
        let has_details = self.details != IndexDetails::default();
        let kind = u8::from(self.constraint);
        match (self.deferral, has_details) {
            (Deferral::Never, false) => kind.serialize(writer),
            (Deferral::Never, true) => (2 + kind, &self.details).serialize(writer),
            (deferral, false) => (4_u8, deferral, self.primary).serialize(writer),
            (deferral, true) => (5_u8, deferral, self.primary, &self.details).serialize(writer),
        }
    }
}

impl BorshDeserialize for Index {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Index> {
        let invalid = |message: String| borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, message);
        let (number, name, columns, unique) = <(u32, String, Vec<u16>, bool)>::deserialize_reader(reader)?;
        let kind = u8::deserialize_reader(reader)?;
        let (deferral, primary) = match kind {
            0..=3 => (Deferral::Never, false),
            4 | 5 => <(Deferral, bool)>::deserialize_reader(reader)?,
            INVERTED => {
                check_known(INVERTED, ExecutionVersion::V15)?;
                (Deferral::Never, false)
            }
            found => return Err(invalid(format!("expected a kind of index, 0 to 6, found {found}"))),
        };
        let method = if kind == INVERTED { IndexMethod::Inverted } else { IndexMethod::Ordered };
        if method == IndexMethod::Inverted && unique {
            return Err(invalid("an index with an entry for each part of a value is not unique".to_string()));
        }
        if matches!(kind, 4 | 5) && (deferral == Deferral::Never || !unique) {
            let message = "a constraint that can be deferred is not what an index says it is";
            return Err(invalid(message.to_string()));
        }
        let has_details = matches!(kind, 2 | 3 | 5 | INVERTED);
        let details = match has_details {
            true => IndexDetails::deserialize_reader(reader)?,
            false => IndexDetails::default(),
        };
        if has_details && method == IndexMethod::Ordered && details == IndexDetails::default() {
            return Err(invalid("expected details of an index, found none".to_string()));
        }
        let places = columns.iter().filter(|column| **column == Index::EXPRESSION).count();
        if places != details.expressions.len() {
            let found = details.expressions.len();
            return Err(invalid(format!("expected {places} expressions of an index, found {found}")));
        }
        let constraint = matches!(kind, 1 | 3..=5);
        Ok(Index { number, name, columns, unique, constraint, details, deferral, primary, method })
    }
}

impl Index {
    /// What stands among the columns in the place of an expression.
    pub const EXPRESSION: u16 = u16::MAX;

    /// Columns of a row that is an entry of a computed index: the primary key that it leads to.
    pub const ENTRY_COLUMNS: usize = 1;

    /// Whether its entries are rows that transactions write, because they do not follow from columns alone.
    pub fn is_computed(&self) -> bool {
        !self.details.expressions.is_empty()
            || self.details.predicate.is_some()
            || self.method == IndexMethod::Inverted
    }

    /// Where its ordered entries stand, if it is not computed.
    pub fn entries(&self) -> TableId {
        TableId::of_entries(self.number)
    }

    /// Where the keys stand that are taken, of a unique index that is not computed.
    pub fn unique_entries(&self) -> TableId {
        TableId::of_unique(self.number)
    }

    /// Where the entries of a computed index stand, which are rows like others.
    pub fn computed_entries(&self) -> TableId {
        TableId(self.number)
    }

    /// Everything under which it has rows or entries.
    pub fn tables(&self) -> impl Iterator<Item = TableId> {
        let computed = self.is_computed();
        let unique = (self.unique && !computed).then(|| self.unique_entries());
        let first = if computed { self.computed_entries() } else { self.entries() };
        [Some(first), unique].into_iter().flatten()
    }

    /// Its columns as a set, without those that expressions look at.
    pub fn column_set(&self) -> ColumnSet {
        let columns = self.columns.iter().filter(|column| **column != Index::EXPRESSION);
        columns.fold(ColumnSet::EMPTY, |set, c| set | ColumnSet::column(usize::from(*c)))
    }

    /// Whether two images of a row have the same entry.
    pub fn is_same_entry(&self, before: &[Value], after: &[Value]) -> bool {
        self.columns.iter().all(|ordinal| before[usize::from(*ordinal)] == after[usize::from(*ordinal)])
    }

    /// The ordered entry of the row with this primary key.
    pub fn entry(&self, key: &Key, row: &[Value]) -> Key {
        Key::index_entry(self.columns.iter().map(|ordinal| &row[usize::from(*ordinal)]), key)
    }

    /// The key that a row takes in a unique index; `None` where it takes none because of a NULL.
    ///
    /// # Errors
    /// `54000` where it is too long.
    pub fn unique_entry(&self, row: &[Value]) -> Result<Option<Key>, SqlError> {
        self.unique_key(self.columns.iter().map(|ordinal| &row[usize::from(*ordinal)]))
    }

    /// The key of these values of its columns in a unique index; `None` where a NULL makes that they have none.
    ///
    /// # Errors
    /// `54000` where it is too long.
    pub fn unique_key<'v>(
        &self,
        values: impl Iterator<Item = &'v Value> + Clone,
    ) -> Result<Option<Key>, SqlError> {
        let key = match self.details.nulls_not_distinct {
            true => Key::encode_with_nulls(values),
            false if values.clone().any(Value::is_null) => return Ok(None),
            false => Key::encode(values),
        };
        key.map(Some).map_err(|error| self.too_long(error))
    }

    /// The entry of a row in a computed index whose values in it are these.
    ///
    /// # Errors
    /// `54000` where its key in a unique index is too long.
    pub fn computed_entry(&self, values: &[Value], primary: &Key) -> Result<Key, SqlError> {
        let taken = if self.unique { self.unique_key(values.iter())? } else { None };
        Ok(Key::computed_entry(values, taken.as_ref(), primary))
    }

    fn too_long(&self, error: SqlError) -> SqlError {
        SqlError {
            message: error
                .message
                .replace("the primary key has", &format!("the key in index \"{}\" has", self.name)),
            hint: Some("Use shorter values in the columns of the index.".into()),
            ..error
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_exactly, encode};

    fn index(columns: Vec<u16>, details: IndexDetails) -> Index {
        let (number, name, deferral) = (7, "i".to_string(), Deferral::Never);
        Index {
            number,
            name,
            columns,
            unique: true,
            constraint: false,
            details,
            deferral,
            primary: false,
            method: IndexMethod::Ordered,
        }
    }

    fn computed() -> Index {
        let written = vec![
            KeyOrder { descending: true, nulls_first: true, class: Some("text_pattern_ops".to_string()) },
            KeyOrder::default(),
        ];
        let details = IndexDetails {
            expressions: vec!["lower(a)".to_string()],
            predicate: Some("b > 1".to_string()),
            included: vec![2],
            nulls_not_distinct: true,
            written,
        };
        index(vec![Index::EXPRESSION, 1], details)
    }

    #[test]
    fn without_details_an_index_has_the_bytes_that_it_always_had() {
        for constraint in [false, true] {
            let plain = Index { constraint, ..index(vec![3, 0], IndexDetails::default()) };
            let bytes = encode(&(7_u32, "i", vec![3_u16, 0], true, constraint));
            assert_eq!(encode(&plain), bytes);
            assert_eq!(decode_exactly::<Index>(&bytes).expect("canonical"), plain);
        }
    }

    #[test]
    fn details_come_back_and_nothing_else_is_one() {
        for details in [
            computed().details,
            IndexDetails { expressions: Vec::new(), predicate: None, ..computed().details },
        ] {
            let columns = vec![Index::EXPRESSION; details.expressions.len()];
            let one = index(columns, details);
            let bytes = encode(&one);
            assert_eq!(decode_exactly::<Index>(&bytes).expect("canonical"), one);
            assert!((0..bytes.len()).all(|length| decode_exactly::<Index>(&bytes[..length]).is_err()));
        }
        let head = encode(&(7_u32, "i", vec![0_u16], true));
        let with = |kind: u8, details: IndexDetails| [head.clone(), vec![kind], encode(&details)].concat();
        assert!(decode_exactly::<Index>(&with(2, IndexDetails::default())).is_err(), "nothing to say");
        assert!(decode_exactly::<Index>(&with(4, computed().details)).is_err(), "no deferral");
        assert!(decode_exactly::<Index>(&with(7, computed().details)).is_err(), "no such kind");
        assert!(decode_exactly::<Index>(&with(INVERTED, IndexDetails::default())).is_err(), "unique");
        assert!(
            decode_exactly::<Index>(&with(3, computed().details)).is_err(),
            "an expression without a place"
        );
        let without = IndexDetails { expressions: Vec::new(), ..computed().details };
        assert!(decode_exactly::<Index>(&with(3, without)).is_ok());
    }

    #[test]
    fn inverted_indexes_come_back_and_older_programs_know_none() {
        for details in [IndexDetails::default(), computed().details] {
            let columns = if details.expressions.is_empty() { vec![1] } else { vec![Index::EXPRESSION, 1] };
            let one = Index { unique: false, method: IndexMethod::Inverted, ..index(columns, details) };
            let bytes = encode(&one);
            assert_eq!(decode_exactly::<Index>(&bytes).expect("canonical"), one);
            assert!(one.is_computed());
            let older = crate::with_types_of(ExecutionVersion::V14, || decode_exactly::<Index>(&bytes));
            assert!(older.is_err());
            assert!((0..bytes.len()).all(|length| decode_exactly::<Index>(&bytes[..length]).is_err()));
        }
    }

    #[test]
    fn entries_of_computed_indexes_are_found_by_their_values_and_told_apart() {
        let one = computed();
        let key = |id: i32| Key::encode([&Value::Integer(id)]).expect("short");
        let entry = |text: Option<&str>, id: i32| {
            let text = text.map_or(Value::Null, Value::text);
            one.computed_entry(&[text, Value::Integer(1)], &key(id)).expect("short")
        };
        assert_eq!(entry(Some("x"), 1), entry(Some("x"), 2), "nobody else may have it");
        assert_eq!(entry(None, 1), entry(None, 2), "nor NULL");
        let long = "y".repeat(700);
        let (other, same) = (format!("{long}z"), entry(Some(&long), 1));
        assert_eq!(same, entry(Some(&long), 2));
        assert_ne!(same, entry(Some(&other), 1), "longer than entries are");
        let prefix = Key::index_prefix([&Value::text(long.as_str())]).cut_to_index();
        assert!(same.as_bytes().starts_with(prefix.as_bytes()));
        let distinct = Index {
            details: IndexDetails { nulls_not_distinct: false, ..one.details.clone() },
            ..one.clone()
        };
        let entry = |value: &Value, id: i32| {
            distinct.computed_entry(&[value.clone(), Value::Integer(1)], &key(id)).expect("short")
        };
        assert_ne!(entry(&Value::Null, 1), entry(&Value::Null, 2));
        assert_eq!(entry(&Value::text("x"), 1), entry(&Value::text("x"), 2));
        let many = Index { unique: false, ..one.clone() };
        let entry =
            |id: i32| many.computed_entry(&[Value::text("x"), Value::Integer(1)], &key(id)).expect("short");
        assert_ne!(entry(1), entry(2));
        let values = [Value::text("x"), Value::Integer(1)];
        let long_key = Key::from_bytes(&[7; 2_700]);
        let entry = many.computed_entry(&values, &long_key).expect("short");
        assert!(entry.as_bytes().len() <= crate::limits::KEY_BYTES_MAX);
    }

    #[test]
    fn keys_with_nulls_say_which_values_are_null() {
        let (null, yes) = (Value::Null, Value::Boolean(true));
        let key = |values: &[&Value]| Key::encode_with_nulls(values.iter().copied()).expect("short");
        assert_ne!(key(&[&null, &null]), key(&[&yes, &yes]));
        assert_ne!(key(&[&null, &yes]), key(&[&yes, &null]));
        let plain = Key::encode([&yes, &yes]).expect("short");
        assert_eq!(key(&[&yes, &yes]), plain.without_nulls(2));
    }
}
