//! The types that a ledger has made: composite types and enums, and the casts that need to know their fields and labels.
//!
//! A type has a number, never used twice, like a table ([`TypeId`]). So has the row type of every table and view, by
//! name; ALTER TABLE leaves that number as it is while the table's own number changes. `DataType::Composite` is the
//! number, `record` the type of anonymous rows. A value ([`Composite`]) is the number and the values of its fields.
//!
//! - **A value cannot be read as one of another type.** Types do not change. A table keeps its columns while a column
//!   anywhere holds values of its row type. A number that is gone is nobody's. What comes from outside (arguments,
//!   endorsed writes) is held against the fields (`CompositeTypes::fits`).
//! - **Casts between plain types have no catalog.** Those that need to know fields, from texts and anonymous rows,
//!   are `CompositeTypes::cast` and `assign`, and an expression that casts carries the types of the catalog that it
//!   was bound on. So messages from places without a catalog say `composite type 7`; who has a catalog names it
//!   (`named_in`).
//! - **A row that is written out stays an open expression** until something gives it a type. Its literals are
//!   converted by themselves, its fields are taken without making it, and two such rows compare by their fields' own
//!   comparisons. Values compare as PostgreSQL's records do: NULLs are equal to one another and come last.
//! - **Rows are bounded.** A row is nested at most 16 deep and has at most 1 MiB as a text, in which quotes double
//!   with every level. So nothing that can be made is expensive to write.
//! - **Enums** are types of the same numbers and names, with labels in the place of fields (`EnumValue`).
//! - **Functions.** A function of a composite type gives one value per row, which FROM takes apart. One with several
//!   OUT parameters gives columns, which an expression puts together. `AS (a integer, …)` is held against what a
//!   function that returns `record` gives.

use crate::array::{parse_array_of, values_with_room};
use crate::composite_text::split_composite;
use crate::domain::DomainChecks;
use crate::{
    Catalog, Composite, DataType, Domain, DomainCheck, ElementType, EnumValue, ExecutionVersion,
    OutputColumn, SearchPath, SqlError, SqlState, TypeId, Value, assign, cast,
};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// A type that CREATE TYPE has made, or the type of a relation's rows.
///
/// ```text
/// encoding: id ‖ name ‖ fields | id ‖ name ‖ ffffffff ‖ kind ‖ what it has      (the first as before there were others)
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompositeType {
    /// Its number.
    pub id: TypeId,
    /// Its name.
    pub name: String,
    /// Names and types of its fields, in order; none where it is no composite type.
    pub fields: Vec<OutputColumn>,
    /// What it is.
    pub kind: TypeKind,
}

/// What a type of the ledger is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TypeKind {
    /// A composite type: it has fields.
    #[default]
    Composite,
    /// An enum: its values, in their order.
    Enum(Vec<Arc<EnumValue>>),
    /// A domain.
    Domain(Domain),
}

/// What stands in the place of the number of fields where a type has none: no composite type has as many.
const NO_FIELDS: u32 = u32::MAX;
/// What follows for an enum.
const ENUM_KIND: u8 = 1;
/// What follows for a domain.
const DOMAIN_KIND: u8 = 2;

impl BorshSerialize for CompositeType {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        (self.id, &self.name).serialize(writer)?;
        match &self.kind {
            TypeKind::Composite => self.fields.serialize(writer),
            TypeKind::Enum(values) => (NO_FIELDS, ENUM_KIND, values).serialize(writer),
            TypeKind::Domain(domain) => (NO_FIELDS, DOMAIN_KIND, domain).serialize(writer),
        }
    }
}

impl BorshDeserialize for CompositeType {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<CompositeType> {
        let refused = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        let (id, name) = <(TypeId, String)>::deserialize_reader(reader)?;
        let count = u32::deserialize_reader(reader)?;
        if count != NO_FIELDS {
            let fields = (0..count).map(|_| OutputColumn::deserialize_reader(reader));
            let fields = fields.collect::<io::Result<_>>()?;
            return Ok(CompositeType { id, name, fields, kind: TypeKind::Composite });
        }
        let kind = match u8::deserialize_reader(reader)? {
            ENUM_KIND => {
                let values = <Vec<Arc<EnumValue>>>::deserialize_reader(reader)?;
                let in_order = values.windows(2).all(|pair| pair[0].place < pair[1].place);
                if !in_order || values.iter().any(|value| value.type_id != id) {
                    return refused("expected the values of an enum in their order");
                }
                TypeKind::Enum(values)
            }
            DOMAIN_KIND => TypeKind::Domain(Domain::deserialize_reader(reader)?),
            _ => return refused("expected a kind of type, 1 for an enum, 2 for a domain"),
        };
        Ok(CompositeType { id, name, fields: Vec::new(), kind })
    }
}

impl CompositeType {
    /// Its type as that of a column.
    pub fn data_type(&self) -> DataType {
        match self.kind {
            TypeKind::Composite => DataType::Composite(self.id),
            TypeKind::Enum(_) => DataType::Enum(self.id),
            TypeKind::Domain(_) => DataType::Domain(self.id),
        }
    }

    /// The values of an enum, in their order.
    pub fn enum_values(&self) -> Option<&[Arc<EnumValue>]> {
        match &self.kind {
            TypeKind::Enum(values) => Some(values),
            TypeKind::Composite | TypeKind::Domain(_) => None,
        }
    }

    /// What a domain is.
    pub fn as_domain(&self) -> Option<&Domain> {
        match &self.kind {
            TypeKind::Domain(domain) => Some(domain),
            TypeKind::Composite | TypeKind::Enum(_) => None,
        }
    }

    /// What messages call it where there is no catalog.
    fn unnamed(&self) -> &'static str {
        match self.kind {
            TypeKind::Composite => UNNAMED,
            TypeKind::Enum(_) => UNNAMED_ENUM,
            TypeKind::Domain(_) => UNNAMED_DOMAIN,
        }
    }

    /// Whether it is a composite type, which is a relation too.
    pub fn is_composite(&self) -> bool {
        self.kind == TypeKind::Composite
    }

    /// Position and type of a field.
    pub fn field(&self, name: &str) -> Option<(usize, DataType)> {
        let position = self.fields.iter().position(|field| field.name == name)?;
        Some((position, self.fields[position].data_type))
    }
}

/// The composite types of a catalog, and the schemas in which SQL finds names. Whoever casts to a type needs to know its
/// fields. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompositeTypes {
    by_id: Arc<BTreeMap<TypeId, Arc<CompositeType>>>,
    by_name: Arc<BTreeMap<String, TypeId>>,
    search_path: SearchPath,
    rules: ExecutionVersion,
    domains: DomainChecks,
    /// Of the rows of relations: positions of the columns that are of domains, and which.
    row_domains: Arc<BTreeMap<TypeId, Vec<(usize, TypeId)>>>,
}

impl Default for CompositeTypes {
    /// Those of a new ledger.
    fn default() -> CompositeTypes {
        CompositeTypes {
            by_id: Arc::default(),
            by_name: Arc::default(),
            search_path: SearchPath::default(),
            rules: ExecutionVersion::CURRENT,
            domains: DomainChecks::default(),
            row_domains: Arc::default(),
        }
    }
}

impl CompositeTypes {
    /// Those of this catalog: its own types, and those of the rows of its tables and views.
    pub fn new(catalog: &Catalog) -> CompositeTypes {
        let mut types = CompositeTypes::default();
        catalog.types.values().for_each(|known| types.add(known.clone()));
        for (name, id) in &catalog.row_types {
            if let Some(mut fields) = catalog.columns_of(name) {
                let domains = fields.iter().enumerate().filter_map(|(at, field)| match field.data_type {
                    DataType::Domain(domain) => Some((at, domain)),
                    _ => None,
                });
                let domains: Vec<(usize, TypeId)> = domains.collect();
                if !domains.is_empty() {
                    Arc::make_mut(&mut types.row_domains).insert(*id, domains);
                }
                fields.iter_mut().for_each(|field| field.data_type = types.base_of(field.data_type));
                let kind = TypeKind::Composite;
                types.add(Arc::new(CompositeType { id: *id, name: name.clone(), fields, kind }));
            }
        }
        types
    }

    /// The same, with who holds values against the domains among them.
    #[must_use]
    pub fn with_domain_checks(self, checks: BTreeMap<TypeId, Arc<dyn DomainCheck>>) -> CompositeTypes {
        CompositeTypes { domains: DomainChecks(Arc::new(checks)), ..self }
    }

    /// The type that values of a domain are of; of other types the same.
    pub fn base_of(&self, data_type: DataType) -> DataType {
        let mut base = data_type;
        // A domain may be of another one, which is older.
        while let DataType::Domain(id) = base {
            match self.get(id).and_then(|known| known.as_domain()) {
                Some(domain) => base = domain.base,
                None => return base,
            }
        }
        base
    }

    fn add(&mut self, known: Arc<CompositeType>) {
        Arc::make_mut(&mut self.by_name).insert(known.name.clone(), known.id);
        Arc::make_mut(&mut self.by_id).insert(known.id, known);
    }

    /// The same, with names found in these schemas.
    #[must_use]
    pub fn with_search_path(&self, search_path: &SearchPath) -> CompositeTypes {
        CompositeTypes { search_path: search_path.clone(), ..self.clone() }
    }

    /// The same, with the types that these rules have.
    #[must_use]
    pub fn with_rules(self, rules: ExecutionVersion) -> CompositeTypes {
        CompositeTypes { rules, ..self }
    }

    /// The rules by which SQL names types: code that differs between versions asks here.
    pub fn rules(&self) -> ExecutionVersion {
        self.rules
    }

    /// Where names without a schema are looked for.
    pub fn search_path(&self) -> &SearchPath {
        &self.search_path
    }

    /// The type that SQL calls by this name, with a schema in front or without.
    pub fn find(&self, name: &str) -> Option<&Arc<CompositeType>> {
        let found = self.search_path.find(name, |found| self.by_name.contains_key(found))?;
        self.named(&found)
    }

    /// The type with this number.
    pub fn get(&self, id: TypeId) -> Option<&Arc<CompositeType>> {
        self.by_id.get(&id)
    }

    /// The type of this name in the catalog.
    pub fn named(&self, name: &str) -> Option<&Arc<CompositeType>> {
        self.by_id.get(self.by_name.get(name)?)
    }

    /// All of them, by number.
    pub fn all(&self) -> impl Iterator<Item = &Arc<CompositeType>> {
        self.by_id.values()
    }

    /// The composite type that this is.
    pub fn of(&self, data_type: DataType) -> Option<&Arc<CompositeType>> {
        match data_type {
            DataType::Composite(id) => self.get(id),
            _ => None,
        }
    }

    /// The values of the enum that this is, in their order.
    pub fn enum_values(&self, data_type: DataType) -> Option<&[Arc<EnumValue>]> {
        match data_type {
            DataType::Enum(id) => self.get(id)?.enum_values(),
            _ => None,
        }
    }

    /// The type with this object identifier, also where it is one of the ledger's own.
    pub fn of_number(&self, oid: u32) -> Option<DataType> {
        let known = |id| self.get(id).map_or(DataType::Composite(id), |known| known.data_type());
        Some(match DataType::from_oid(oid)? {
            DataType::Composite(id) => known(id),
            DataType::Array(element) => match element.data_type() {
                DataType::Composite(id) => known(id).array()?,
                _ => DataType::Array(element),
            },
            other => other,
        })
        .map(|known| self.base_of(known))
    }

    /// The name that PostgreSQL shows for a type.
    pub fn name_of(&self, data_type: DataType) -> String {
        match data_type {
            DataType::Composite(id) | DataType::Enum(id) | DataType::Domain(id) => match self.get(id) {
                Some(known) => known.name.clone(),
                None => data_type.to_string(),
            },
            DataType::Array(element) => format!("{}[]", self.name_of(element.data_type())),
            other => other.to_string(),
        }
    }

    /// An error with the names of the composite types in its message.
    #[must_use]
    pub fn named_in(&self, error: SqlError) -> SqlError {
        let detail = error.detail.map(|detail| self.named_text(detail));
        SqlError { message: self.named_text(error.message), detail, ..error }
    }

    /// A text with the names of composite types in the place of what [`DataType`] shows.
    #[must_use]
    pub fn named_text(&self, text: String) -> String {
        [UNNAMED, UNNAMED_ENUM, UNNAMED_DOMAIN]
            .into_iter()
            .fold(text, |text, unnamed| self.named_behind(text, unnamed))
    }

    fn named_behind(&self, text: String, unnamed: &str) -> String {
        if !text.contains(unnamed) {
            return text;
        }
        let mut parts = text.split(unnamed);
        let mut named = parts.next().unwrap_or_default().to_string();
        for part in parts {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let known = part[..digits].parse().ok().and_then(|id| self.get(TypeId(id)));
            let known = known.filter(|known| unnamed == known.unnamed());
            match known {
                Some(known) => {
                    named.push_str(&known.name);
                    named.push_str(&part[digits..]);
                }
                None => {
                    named.push_str(unnamed);
                    named.push_str(part);
                }
            }
        }
        named
    }

    /// As [`cast`], to any type.
    ///
    /// # Errors
    /// As [`cast`]; `42846` where the fields do not fit.
    pub fn cast(&self, value: Value, target: DataType) -> Result<Value, SqlError> {
        self.convert(value, target, cast)
    }

    /// As [`assign`], to any type.
    ///
    /// # Errors
    /// As [`assign`]; `42846` where the fields do not fit.
    pub fn assign(&self, value: Value, target: DataType) -> Result<Value, SqlError> {
        self.convert(value, target, assign)
    }

    /// Whether a value is one of this type as it is stored: all that is inside of it, too.
    pub fn fits(&self, value: &Value, data_type: DataType) -> bool {
        match (value, data_type) {
            (Value::Null, _) => true,
            (Value::Composite(row), DataType::Composite(id)) => {
                let fields = self.get(id).map(|known| known.fields.as_slice());
                row.type_id() == Some(id)
                    && fields.is_some_and(|fields| {
                        fields.len() == row.values().len()
                            && row
                                .values()
                                .iter()
                                .zip(fields)
                                .all(|(value, field)| self.fits(value, field.data_type))
                    })
            }
            (Value::Enum(value), DataType::Enum(id)) => {
                value.type_id == id && self.known_value(value).is_some_and(|known| known == value)
            }
            (Value::Array(array), DataType::Array(element)) if data_type.needs_catalog() => {
                array.element() == element
                    && array.values().iter().all(|value| self.fits(value, element.data_type()))
            }
            (value, data_type) => {
                value.data_type().family() == data_type.family()
                    && (data_type == data_type.family()
                        || assign(value.clone(), data_type).is_ok_and(|stored| stored == *value))
            }
        }
    }

    /// The value of the enum that stands where this one does.
    fn known_value(&self, value: &EnumValue) -> Option<&Arc<EnumValue>> {
        let known = self.get(value.type_id)?.enum_values()?;
        let at = known.binary_search_by(|known| known.place.cmp(&value.place)).ok()?;
        known.get(at)
    }

    /// Refuses a value from outside that says of itself to be of an enum, or has such values in it, and is none of the enum's:
    /// what comes encoded may say anything.
    ///
    /// # Errors
    /// `42704` for a type that is not there, `22P02` for a value that it does not have.
    pub fn check_given(&self, value: &Value) -> Result<(), SqlError> {
        match value {
            Value::Enum(value) => match self.known_value(value) {
                Some(known) if known == value => Ok(()),
                _ => Err(self.no_such_value(value.type_id, &value.label)),
            },
            Value::Composite(row) => row.values().iter().try_for_each(|value| self.check_given(value)),
            Value::Array(array) => array.values().iter().try_for_each(|value| self.check_given(value)),
            _ => Ok(()),
        }
    }

    fn no_such_value(&self, id: TypeId, label: &str) -> SqlError {
        match self.get(id).filter(|known| known.enum_values().is_some()) {
            Some(known) => {
                let message = format!("invalid input value for enum {}: \"{label}\"", known.name);
                SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
            }
            None => no_type(id),
        }
    }

    fn convert(&self, value: Value, target: DataType, convert: Convert) -> Result<Value, SqlError> {
        match target {
            DataType::Composite(id) => self.to_composite(value, id, convert),
            DataType::Enum(id) => self.to_enum(value, id),
            DataType::Domain(id) => self.to_domain(value, id, convert),
            DataType::Array(element) if target.needs_catalog() => self.to_array(value, element, convert),
            _ => convert(value, target).map_err(|error| self.named_in(error)),
        }
    }

    fn to_composite(&self, value: Value, id: TypeId, convert: Convert) -> Result<Value, SqlError> {
        let target = self.get(id).ok_or_else(|| no_type(id))?;
        let fields = match value {
            Value::Null => return Ok(Value::Null),
            Value::Composite(_) if self.fits(&value, DataType::Composite(id)) => return Ok(value),
            Value::Text(text) | Value::Char(text) => {
                let texts = split_composite(&text, target.fields.len())?;
                texts.into_iter().map(|text| text.map_or(Value::Null, Value::text)).collect()
            }
            Value::Composite(row) => {
                let (given, wanted) = (row.values().len(), target.fields.len());
                if given != wanted {
                    let what = if given < wanted { "few" } else { "many" };
                    let error = cannot_cast(&self.name_of(row.data_type()), &target.name);
                    return Err(error.detail(format!("Input has too {what} columns.")));
                }
                row.values().to_vec()
            }
            other => return Err(cannot_cast(&other.data_type().to_string(), &target.name)),
        };
        let values = fields.into_iter().zip(&target.fields);
        let values = values.map(|(value, field)| self.convert(value, field.data_type, convert));
        let row = Composite::new(Some(id), values_with_room(values)?)?;
        Ok(Value::Composite(Arc::new(row)))
    }

    /// Holds a value of the type that a domain is of against its conditions.
    ///
    /// # Errors
    /// As [`DomainCheck::check`].
    pub fn check_domain(&self, value: &Value, id: TypeId) -> Result<(), SqlError> {
        self.domains.0.get(&id).ok_or_else(|| no_type(id))?.check(value)
    }

    /// Whether values of a type have rows of relations in them, or are some, that have columns of domains that are meant.
    pub fn has_domains_inside(&self, data_type: DataType, is_meant: &dyn Fn(DataType) -> bool) -> bool {
        let composite = |data_type: DataType| match data_type.element().unwrap_or(data_type) {
            DataType::Composite(id) => Some(id),
            _ => None,
        };
        if self.row_domains.is_empty() {
            return false;
        }
        let mut waiting: Vec<TypeId> = composite(data_type).into_iter().collect();
        let mut seen: BTreeSet<TypeId> = waiting.iter().copied().collect();
        while let Some(id) = waiting.pop() {
            let mut own = self.row_domains.get(&id).into_iter().flatten();
            if own.any(|(_, domain)| is_meant(DataType::Domain(*domain))) {
                return true;
            }
            let fields = self.get(id).map_or(&[][..], |known| known.fields.as_slice());
            let inside = fields.iter().filter_map(|field| composite(field.data_type));
            waiting.extend(inside.filter(|id| seen.insert(*id)));
        }
        false
    }

    /// Holds what stands in a value against the domains that it is of there.
    ///
    /// # Errors
    /// As [`DomainCheck::check`].
    pub fn check_inside(&self, value: &Value) -> Result<(), SqlError> {
        match value {
            Value::Array(array) => array.values().iter().try_for_each(|value| self.check_inside(value)),
            Value::Composite(row) => {
                let domains = row.type_id().and_then(|id| self.row_domains.get(&id));
                for (at, domain) in domains.into_iter().flatten() {
                    let value = row.values().get(*at).unwrap_or(&Value::Null);
                    self.check_domain(value, *domain)?;
                }
                row.values().iter().try_for_each(|value| self.check_inside(value))
            }
            _ => Ok(()),
        }
    }

    fn to_domain(&self, value: Value, id: TypeId, convert: Convert) -> Result<Value, SqlError> {
        let value = self.convert(value, self.base_of(DataType::Domain(id)), convert)?;
        self.check_domain(&value, id)?;
        Ok(value)
    }

    fn to_enum(&self, value: Value, id: TypeId) -> Result<Value, SqlError> {
        let target = self.get(id).and_then(|known| Some((&known.name, known.enum_values()?)));
        let (name, values) = target.ok_or_else(|| no_type(id))?;
        match value {
            Value::Null => Ok(Value::Null),
            Value::Enum(value) if value.type_id == id => match self.known_value(&value) {
                Some(_) => Ok(Value::Enum(value)),
                None => Err(self.no_such_value(id, &value.label)),
            },
            Value::Text(text) | Value::Char(text) => {
                let found = values.iter().find(|value| *value.label == *text).cloned();
                found.map(Value::Enum).ok_or_else(|| self.no_such_value(id, &text))
            }
            other => Err(cannot_cast(&self.name_of(other.data_type()), name)),
        }
    }

    fn to_array(&self, value: Value, element: ElementType, convert: Convert) -> Result<Value, SqlError> {
        let target = element.data_type();
        let array = match value {
            Value::Null => return Ok(Value::Null),
            Value::Array(_) if self.fits(&value, DataType::Array(element)) => return Ok(value),
            Value::Array(array) => {
                let values = array.values().iter().map(|value| self.convert(value.clone(), target, convert));
                array.with_values(element, values_with_room(values)?)?
            }
            Value::Text(text) | Value::Char(text) => {
                parse_array_of(&text, element, &|text| self.convert(Value::text(text), target, convert))?
            }
            other => {
                return Err(cannot_cast(
                    &other.data_type().to_string(),
                    &format!("{}[]", self.name_of(target)),
                ));
            }
        };
        Ok(Value::Array(Arc::new(array)))
    }
}

/// What makes a value of a plain type one of another.
type Convert = fn(Value, DataType) -> Result<Value, SqlError>;

/// How [`DataType`] shows a composite type, whose name only a catalog knows.
pub(crate) const UNNAMED: &str = "composite type ";
/// The same of an enum.
pub(crate) const UNNAMED_ENUM: &str = "enum type ";
/// The same of a domain.
pub(crate) const UNNAMED_DOMAIN: &str = "domain type ";

fn no_type(id: TypeId) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("cache lookup failed for type {}", id.0))
}

fn cannot_cast(from: &str, to: &str) -> SqlError {
    SqlError::new(SqlState(*b"42846"), format!("cannot cast type {from} to {to}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_value;

    fn types() -> CompositeTypes {
        let field = |name: &str, data_type| OutputColumn { name: name.to_string(), data_type };
        let fields = vec![field("n", DataType::Integer), field("t", DataType::Text(Some(3)))];
        let pair =
            CompositeType { id: TypeId(1), name: "pair".to_string(), fields, kind: TypeKind::Composite };
        let pairs = pair.data_type().array().expect("it has arrays");
        let fields = vec![field("p", pair.data_type()), field("ps", pairs)];
        let outer =
            CompositeType { id: TypeId(2), name: "outer".to_string(), fields, kind: TypeKind::Composite };
        let mut types = CompositeTypes::default();
        types.add(Arc::new(pair));
        types.add(Arc::new(outer));
        types
    }

    #[test]
    fn texts_become_rows_and_texts_again() {
        let types = types();
        let text = "(\"(1,a)\",\"{\"\"(2,\\\\\"\"b c\\\\\"\")\"\",NULL}\")";
        let value = types.cast(Value::text(text), DataType::Composite(TypeId(2))).expect("a row");
        assert_eq!(format_value(&value).as_deref(), Some(text));
        assert_eq!(crate::decode_exactly::<Value>(&crate::encode(&value)).ok(), Some(value));
    }

    #[test]
    fn fields_are_converted_and_counted() {
        let types = types();
        let target = DataType::Composite(TypeId(1));
        let row = |values| Value::Composite(Arc::new(Composite::new(None, values).expect("a small row")));
        let long = row(vec![Value::BigInt(5), Value::text("abcd")]);
        let cut = types.cast(long.clone(), target).expect("a cast cuts");
        assert_eq!(format_value(&cut).as_deref(), Some("(5,abc)"));
        assert!(types.assign(long, target).is_err(), "an assignment does not");
        // Somebody else's bytes may say anything of themselves.
        let wrong =
            Composite::new(Some(TypeId(1)), vec![Value::text("x"), Value::Null]).expect("a small row");
        let wrong = Value::Composite(Arc::new(wrong));
        assert!(!types.fits(&wrong, target) && types.assign(wrong, target).is_err());
        assert!(types.fits(&cut, target));
        let error = types.cast(row(vec![Value::Integer(1)]), target).expect_err("a field is missing");
        assert_eq!(error.detail.as_deref(), Some("Input has too few columns."));
        assert!(types.cast(Value::Integer(1), target).is_err());
        assert!(types.cast(Value::text("(x,y)"), target).is_err());
    }

    #[test]
    fn messages_get_the_names_of_types() {
        let types = types();
        let error =
            SqlError::new(SqlState::DATATYPE_MISMATCH, format!("no {} here", DataType::Composite(TypeId(1))));
        assert_eq!(types.named_in(error).message, "no pair here");
        let unknown = format!("no {}", DataType::Composite(TypeId(77)));
        let error = SqlError::new(SqlState::DATATYPE_MISMATCH, unknown.clone());
        assert_eq!(types.named_in(error).message, unknown);
    }
}
