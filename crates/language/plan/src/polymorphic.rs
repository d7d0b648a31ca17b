//! Polymorphic functions: what `anyelement` and its kind stand for in a call, by PostgreSQL's rules.
//!
//! A definition that has such types is compiled once for every set of types that it is called with
//! (`sql::Library`), from a definition in which those stand in their place.

use std::sync::Arc;
use types::{DataType, FunctionResult, Polymorphic, Procedure, SqlError, SqlState, common_type};

/// What the polymorphic types of a routine stand for. Nothing where it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Actual {
    /// `anyelement`
    element: Option<DataType>,
    /// `anycompatible`
    compatible: Option<DataType>,
}

/// A routine that is called, and what its polymorphic types stand for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Callee {
    /// Its name.
    pub name: Arc<str>,
    /// Its types.
    pub actual: Actual,
}

impl Callee {
    /// A routine without polymorphic types.
    pub fn named(name: &str) -> Callee {
        Callee { name: name.into(), actual: Actual::default() }
    }
}

impl Actual {
    /// As which PostgreSQL compiles a definition before anybody has called it.
    pub const FOR_VALIDATION: Actual =
        Actual { element: Some(DataType::Integer), compatible: Some(DataType::Integer) };

    /// The type that this one stands for; itself where it is not polymorphic.
    ///
    /// # Errors
    /// `42704` for the arrays of a type that has none.
    pub fn stands_for(self, data_type: DataType) -> Result<DataType, SqlError> {
        let DataType::Polymorphic(polymorphic) = data_type else { return Ok(data_type) };
        let single = match polymorphic.is_compatible() {
            true => self.compatible,
            false => self.element,
        };
        let single = single.unwrap_or(data_type);
        match polymorphic.is_array() {
            false => Ok(single),
            true => single.array().ok_or_else(|| {
                let message = format!("could not find array type for data type {single}");
                SqlError::new(SqlState::UNDEFINED_OBJECT, message)
            }),
        }
    }

    /// The definition with these types.
    ///
    /// # Errors
    /// As [`Actual::stands_for`].
    pub fn applied_to(self, definition: &Procedure) -> Result<Procedure, SqlError> {
        let mut applied = definition.clone();
        for parameter in &mut applied.parameters {
            parameter.data_type = self.stands_for(parameter.data_type)?;
        }
        if let Some(function) = &mut applied.function
            && let FunctionResult::Value(data_type) = function.result
        {
            function.result = match self.stands_for(data_type)? {
                DataType::Record => FunctionResult::Record,
                known => FunctionResult::Value(known),
            };
        }
        Ok(applied)
    }
}

/// Whether a call is needed to know its types.
pub fn is_polymorphic(definition: &Procedure) -> bool {
    definition.parameters.iter().any(|parameter| matches!(parameter.data_type, DataType::Polymorphic(_)))
}

/// The type of the single arguments of a VARIADIC parameter.
pub fn variadic_element(array: DataType) -> DataType {
    match array {
        DataType::Polymorphic(array) => DataType::Polymorphic(array.element().unwrap_or(array)),
        array => array.element().unwrap_or(array),
    }
}

/// What the types stand for where parameters of the first types get arguments of the second ones; `None` where the
/// arguments do not fit.
///
/// # Errors
/// `42804` where only literals of unknown type are given.
pub fn resolve(given: &[(DataType, DataType)]) -> Result<Option<Actual>, SqlError> {
    let given: Vec<(Polymorphic, DataType)> = given
        .iter()
        .filter_map(|(declared, found)| match declared {
            DataType::Polymorphic(polymorphic) => Some((*polymorphic, found.family())),
            _ => None,
        })
        .collect();
    let Some(element) = element_of(given.iter().filter(|(declared, _)| !declared.is_compatible())) else {
        return Ok(None);
    };
    if element == Some(DataType::Unknown) {
        let message = "could not determine polymorphic type because input has type unknown";
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let Some(compatible) = compatible_of(given.iter().filter(|(declared, _)| declared.is_compatible()))
    else {
        return Ok(None);
    };
    Ok(Some(Actual { element, compatible }))
}

/// The one type that all arguments have: `Some(None)` where there are no such parameters, unknown where nothing tells.
fn element_of<'g>(given: impl Iterator<Item = &'g (Polymorphic, DataType)>) -> Option<Option<DataType>> {
    let (mut element, mut no_array) = (None, false);
    for (declared, found) in given {
        no_array |= declared.is_no_array();
        let single = match (found, declared.is_array()) {
            (DataType::Unknown, _) => DataType::Unknown,
            (array, true) => array.element()?,
            (single, false) => *single,
        };
        element = match element {
            None | Some(DataType::Unknown) => Some(single),
            Some(known) if single == DataType::Unknown || single == known => Some(known),
            Some(_) => return None,
        };
    }
    let is_array = element.is_some_and(|element| element.element().is_some());
    (!(no_array && is_array)).then_some(element)
}

/// The type that the arguments have together, text where nothing tells.
fn compatible_of<'g>(given: impl Iterator<Item = &'g (Polymorphic, DataType)>) -> Option<Option<DataType>> {
    let (mut types, mut no_array) = (Vec::new(), false);
    for (declared, found) in given {
        no_array |= declared.is_no_array();
        types.push(match (found, declared.is_array()) {
            (DataType::Unknown, _) => DataType::Unknown,
            (array, true) => array.element()?,
            (single, false) => *single,
        });
    }
    if types.is_empty() {
        return Some(None);
    }
    let common = common_type(types)?.family();
    (!(no_array && common.element().is_some())).then_some(Some(common))
}

/// Refuses a result that no argument tells the type of.
///
/// # Errors
/// `42P13`
pub fn check_definition(definition: &Procedure) -> Result<(), SqlError> {
    let result = definition.function.as_ref().and_then(|function| match function.result {
        FunctionResult::Value(data_type) => Some(data_type),
        _ => None,
    });
    let outputs = definition.parameters.iter().filter(|parameter| !parameter.mode.is_input());
    for data_type in outputs.map(|parameter| parameter.data_type).chain(result) {
        let DataType::Polymorphic(wanted) = data_type else { continue };
        let tells = |given: DataType| matches!(given, DataType::Polymorphic(given) if given.is_compatible() == wanted.is_compatible());
        if !definition.inputs().any(|parameter| tells(parameter.data_type)) {
            return Err(undetermined(wanted.name()));
        }
    }
    Ok(())
}

/// A result of this polymorphic type, which no argument tells.
pub fn undetermined(name: &str) -> SqlError {
    let inputs = match name {
        "anyrange" | "anymultirange" => "anyrange or anymultirange",
        "anycompatiblerange" | "anycompatiblemultirange" => "anycompatiblerange or anycompatiblemultirange",
        compatible if compatible.starts_with("anycompatible") => {
            "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange"
        }
        _ => "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange",
    };
    SqlError::new(SqlState(*b"42P13"), "cannot determine result data type")
        .detail(format!("A result of type {name} requires at least one input of type {inputs}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use DataType::{Integer, Numeric, SmallInt, Text, Unknown};

    fn any(name: &str) -> DataType {
        DataType::Polymorphic(Polymorphic::named(name).expect("a polymorphic type"))
    }

    #[test]
    fn arguments_tell_what_types_stand_for() {
        let array = |element: DataType| element.array().expect("a type that has arrays");
        let resolved = |given: &[(&str, DataType)]| {
            let given: Vec<_> = given.iter().map(|(name, found)| (any(name), *found)).collect();
            resolve(&given)
        };
        let element = |element| Ok(Some(Actual { element: Some(element), compatible: None }));
        let compatible = |compatible| Ok(Some(Actual { element: None, compatible: Some(compatible) }));
        assert_eq!(resolved(&[]), Ok(Some(Actual::default())));
        assert_eq!(resolved(&[("anyelement", Integer)]), element(Integer));
        assert_eq!(resolved(&[("anyelement", Integer), ("anyelement", Numeric(None))]), Ok(None));
        assert_eq!(resolved(&[("anyarray", array(Integer)), ("anyelement", Unknown)]), element(Integer));
        assert_eq!(resolved(&[("anyelement", Unknown), ("anyarray", array(Integer))]), element(Integer));
        assert_eq!(resolved(&[("anyarray", Integer)]), Ok(None));
        assert_eq!(resolved(&[("anynonarray", array(Integer))]), Ok(None));
        assert_eq!(resolved(&[("anyelement", array(Integer))]), element(array(Integer)));
        assert!(resolved(&[("anyelement", Unknown)]).is_err());
        assert_eq!(resolved(&[("anycompatible", Unknown)]), compatible(Text(None)));
        let both = [("anycompatible", SmallInt), ("anycompatiblearray", array(Numeric(None)))];
        assert_eq!(resolved(&both), compatible(Numeric(None)));
        assert_eq!(resolved(&[("anycompatible", Integer), ("anycompatible", Text(None))]), Ok(None));
    }

    #[test]
    fn arrays_are_found_for_elements() {
        let actual = Actual { element: Some(Integer), compatible: None };
        assert_eq!(actual.stands_for(any("anyarray")), Ok(DataType::from_oid(1007).expect("integer[]")));
        assert_eq!(actual.stands_for(Text(None)), Ok(Text(None)));
        let of_arrays = Actual { element: Integer.array(), compatible: None };
        assert_eq!(of_arrays.stands_for(any("anyarray")).map_err(|error| error.state.0), Err(*b"42704"));
    }
}
