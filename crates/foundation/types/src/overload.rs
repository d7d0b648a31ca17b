//! Routines of one name, told apart by the types of their arguments.
//!
//! The first routine of a name has that name in the catalog, others have the types of their arguments behind it: `f`,
//! `f(integer,text)`. No routine has a parenthesis in its name.

use crate::{Catalog, DataType, Procedure};
use std::ops::Bound;
use std::sync::Arc;

/// The name in the catalog of a routine beside others of its name.
fn overload_key(name: &str, inputs: impl Iterator<Item = DataType>) -> String {
    let types: Vec<String> = inputs.map(|data_type| data_type.to_string()).collect();
    format!("{name}({})", types.join(","))
}

/// Whether a name in the catalog is that of a routine that is called `name`.
pub fn is_overload_of(key: &str, name: &str) -> bool {
    key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
}

/// Between which names in the catalog those of the routines stand that are called `name`.
pub fn overload_range(name: &str) -> (Bound<String>, Bound<String>) {
    (Bound::Included(format!("{name}(")), Bound::Excluded(format!("{name})")))
}

impl Procedure {
    /// Its name in the catalog.
    pub fn key(&self) -> String {
        match self.overload {
            false => self.name.clone(),
            true => overload_key(&self.name, self.inputs().map(|parameter| parameter.data_type)),
        }
    }

    /// The types of the arguments that tell it from others of its name.
    pub fn input_types(&self) -> Vec<DataType> {
        self.inputs().map(|parameter| parameter.data_type).collect()
    }
}

impl Catalog {
    /// The procedures and functions that are called by this name, schema in front, with their names in the catalog.
    pub fn overloads<'c>(
        &'c self,
        name: &str,
    ) -> impl Iterator<Item = (&'c String, &'c Arc<Procedure>)> + use<'c> {
        let first = self.procedures.get_key_value(name);
        first.into_iter().chain(self.procedures.range(overload_range(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Language, Parameter, ParameterMode, SearchPath};

    fn routine(name: &str, overload: bool, types: &[DataType]) -> Procedure {
        let parameter = |data_type: &DataType| Parameter {
            name: String::new(),
            mode: ParameterMode::In,
            data_type: *data_type,
            default: None,
        };
        Procedure {
            name: name.to_string(),
            parameters: types.iter().map(parameter).collect(),
            function: None,
            language: Language::PlPgSql,
            body: String::new(),
            endorsement: None,
            security_definer: false,
            search_path: SearchPath::default(),
            overload,
        }
    }

    #[test]
    fn routines_of_one_name_stand_together() {
        let mut catalog = Catalog::default();
        let text = DataType::Text(None);
        for routine in [
            routine("f", false, &[]),
            routine("f", true, &[DataType::Integer, text]),
            routine("f", true, &[text]),
            routine("f_", false, &[]),
            routine("s.f", false, &[text]),
            routine("g", true, &[text]),
        ] {
            catalog.procedures.insert(routine.key(), Arc::new(routine));
        }
        let keys = |name| catalog.overloads(name).map(|(key, _)| key.as_str()).collect::<Vec<_>>();
        assert_eq!(keys("f"), ["f", "f(integer,text)", "f(text)"]);
        assert_eq!(keys("s.f"), ["s.f"]);
        assert_eq!(keys("g"), ["g(text)"]);
        assert!(keys("h").is_empty());
        assert!(is_overload_of("f(text)", "f") && is_overload_of("f", "f") && !is_overload_of("f_", "f"));
    }
}
