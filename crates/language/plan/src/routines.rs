//! The procedures and functions of a catalog as callers see them: names, arguments and columns of the result.

use crate::polymorphic::{Actual, is_polymorphic};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use types::{
    Catalog, CompositeTypes, DataType, DomainCheck, ExecutionVersion, Function, FunctionResult, OutputColumn,
    PUBLIC_SCHEMA, Parameter, Procedure, SearchPath, SqlError, SqlState, TypeId, UserAggregate, Volatility,
    can_cast_implicitly, catalog_name, object_name, overload_range,
};

/// A procedure or function.
#[derive(Debug)]
pub struct Routine {
    /// Its name in the catalog.
    key: Arc<str>,
    /// As the catalog has it, but with the types that domains are of: those are what callers give and get.
    pub definition: Arc<Procedure>,
    /// The columns of a function's rows: one for `void` and for a single value.
    pub columns: Arc<[OutputColumn]>,
}

/// What the rows of a function are inside of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallForm {
    /// One value.
    Value,
    /// The values of several columns.
    Columns,
    /// One value, a row.
    Row,
}

/// All of a catalog, by name. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Routines {
    version: ExecutionVersion,
    by_name: Arc<BTreeMap<String, Arc<Routine>>>,
    sequences: Arc<BTreeSet<String>>,
    schemas: Arc<BTreeSet<String>>,
    types: Arc<CompositeTypes>,
    aggregates: Arc<BTreeMap<String, Arc<UserAggregate>>>,
}

impl Default for Routines {
    /// Those of a new ledger.
    fn default() -> Routines {
        Routines::none(ExecutionVersion::CURRENT)
    }
}

/// What a parameter gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Given {
    /// The argument at this position of the call.
    Argument(usize),
    /// Its DEFAULT.
    Default,
}

impl Routines {
    /// Those of this catalog, bound and called with these rules.
    pub fn new(catalog: &Catalog, version: ExecutionVersion) -> Routines {
        let types = Arc::new(CompositeTypes::new(catalog).with_rules(version));
        let routine = |(name, definition): (&String, &Arc<Procedure>)| {
            let definition = without_domains(&types, definition);
            let (key, columns) = (name.as_str().into(), result_columns(&types, &definition).into());
            (name.clone(), Arc::new(Routine { key, definition, columns }))
        };
        Routines {
            version,
            by_name: Arc::new(catalog.procedures.iter().map(routine).collect()),
            types: types.clone(),
            sequences: Arc::new(catalog.sequences.keys().cloned().collect()),
            schemas: Arc::new(catalog.schemas.keys().cloned().collect()),
            aggregates: Arc::new(catalog.aggregates.clone()),
        }
    }

    /// Those of a ledger that has none.
    pub fn none(version: ExecutionVersion) -> Routines {
        Routines {
            version,
            by_name: Arc::default(),
            types: Arc::new(CompositeTypes::default().with_rules(version)),
            sequences: Arc::default(),
            schemas: Arc::default(),
            aggregates: Arc::default(),
        }
    }

    /// The same by these rules and by all older ones, the newest first.
    pub(crate) fn by_all_versions(&self) -> Vec<Routines> {
        let versions = ExecutionVersion::ALL.into_iter().rev().filter(|version| *version <= self.version);
        versions.map(|version| self.clone().with_rules(version)).collect()
    }

    /// The same, with who holds values against domains.
    pub(crate) fn with_domain_checks(self, checks: BTreeMap<TypeId, Arc<dyn DomainCheck>>) -> Routines {
        let types = Arc::new(CompositeTypes::clone(&self.types).with_domain_checks(checks));
        Routines { types, ..self }
    }

    fn with_rules(self, version: ExecutionVersion) -> Routines {
        let types = Arc::new(CompositeTypes::clone(&self.types).with_rules(version));
        Routines { version, types, ..self }
    }

    /// The rules that everything beside them is bound with: code that differs between versions asks here.
    pub fn version(&self) -> ExecutionVersion {
        self.version
    }

    /// The composite types beside them.
    pub fn types(&self) -> &Arc<CompositeTypes> {
        &self.types
    }

    /// The same, with names found in these schemas.
    pub fn with_search_path(&self, search_path: &SearchPath) -> Routines {
        let types = Arc::new(self.types.with_search_path(search_path));
        Routines { types, ..self.clone() }
    }

    /// Where names without a schema are looked for.
    pub fn search_path(&self) -> &SearchPath {
        self.types.search_path()
    }

    /// Whether there is a schema of this name.
    pub fn has_schema(&self, name: &str) -> bool {
        name == PUBLIC_SCHEMA || self.schemas.contains(name)
    }

    /// Whether there is a sequence of this name in the catalog, which functions draw from.
    pub fn has_sequence(&self, name: &str) -> bool {
        self.sequences.contains(name)
    }

    /// The name in the catalog of the sequence that SQL calls by this name.
    pub fn find_sequence(&self, name: &str) -> Option<String> {
        self.search_path().find(name, |found| self.has_sequence(found))
    }

    /// The aggregate of the ledger that SQL calls by this name.
    pub fn aggregate(&self, name: &str) -> Option<&Arc<UserAggregate>> {
        self.aggregates.get(&self.find(name)?)
    }

    /// A procedure or function that SQL calls by this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Routine>> {
        self.of_name(&self.find(name)?).next()
    }

    /// The procedures and functions that are called by this name, schema in front as in the catalog.
    fn of_name<'r>(&'r self, name: &str) -> impl Iterator<Item = &'r Arc<Routine>> + use<'r> {
        let first = self.by_name.get(name).into_iter();
        first.chain(self.by_name.range(overload_range(name)).map(|(_, routine)| routine))
    }

    /// All that SQL may mean by this name: of two that take the same, the one whose schema comes first.
    pub fn candidates(&self, name: &str) -> Vec<Arc<Routine>> {
        let mut found: Vec<Arc<Routine>> = Vec::new();
        let mut add = |name: &str| {
            for routine in self.of_name(name) {
                let types = routine.definition.input_types();
                if found.iter().all(|known| known.definition.input_types() != types) {
                    found.push(routine.clone());
                }
            }
        };
        match name.split_once('.') {
            Some((schema, object)) => add(&catalog_name(schema, object)),
            None => self.search_path().schemas().iter().for_each(|schema| add(&catalog_name(schema, name))),
        }
        found
    }

    /// The procedure or function of this name in the catalog.
    pub fn named(&self, name: &str) -> Option<&Arc<Routine>> {
        self.by_name.get(name)
    }

    fn has(&self, name: &str) -> bool {
        self.aggregates.contains_key(name) || self.of_name(name).next().is_some()
    }

    fn find(&self, name: &str) -> Option<String> {
        self.search_path().find(name, |found| self.has(found))
    }

    /// The name in the catalog of what SQL calls by this name; where there is nothing, one that nothing has.
    pub fn find_or_missing(&self, name: &str) -> String {
        self.search_path().find_or_missing(name, |found| self.has(found))
    }
}

impl Routine {
    /// The routine with these types in the place of its polymorphic ones, where it has some.
    ///
    /// # Errors
    /// `42704` for the arrays of a type that has none.
    pub fn applied(
        self: &Arc<Self>,
        types: &CompositeTypes,
        actual: Actual,
    ) -> Result<Arc<Routine>, SqlError> {
        if !is_polymorphic(&self.definition) {
            return Ok(self.clone());
        }
        let definition = actual.applied_to(&self.definition)?;
        let columns = result_columns(types, &definition).into();
        Ok(Arc::new(Routine { key: self.key.clone(), definition: Arc::new(definition), columns }))
    }

    /// Its name in the catalog.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// What it gives as a value: a single column, or a row of all.
    pub fn data_type(&self) -> DataType {
        match self.definition.function.as_ref().map(|function| &function.result) {
            Some(FunctionResult::Value(data_type)) => data_type.family(),
            Some(FunctionResult::Record) => DataType::Record,
            _ => match self.columns.as_ref() {
                [only] => only.data_type,
                _ => DataType::Record,
            },
        }
    }

    /// What its rows are: one value each, the columns of a row, or a value that is a row.
    pub fn form(&self) -> CallForm {
        match self.definition.function.as_ref().map(|function| &function.result) {
            Some(FunctionResult::Value(data_type)) if data_type.is_composite() => CallForm::Row,
            Some(FunctionResult::Record) => CallForm::Row,
            Some(FunctionResult::Outputs) if self.columns.len() != 1 => CallForm::Columns,
            _ => CallForm::Value,
        }
    }
}

/// True where a function may change rows, and is called for every row.
pub fn is_volatile(function: &Function) -> bool {
    function.volatility == Volatility::Volatile
}

/// The routine with the types that domains are of in their place. Whoever compiles its body sees the domains.
fn without_domains(types: &CompositeTypes, definition: &Arc<Procedure>) -> Arc<Procedure> {
    let is_domain = |data_type: &DataType| matches!(data_type, DataType::Domain(_));
    let result = |definition: &Procedure| match definition.function.as_ref().map(|function| &function.result)
    {
        Some(FunctionResult::Value(data_type)) => Some(*data_type),
        _ => None,
    };
    let mut all = definition.parameters.iter().map(|parameter| parameter.data_type).chain(result(definition));
    if !all.any(|data_type| is_domain(&data_type)) {
        return definition.clone();
    }
    let mut seen = Procedure::clone(definition);
    for parameter in &mut seen.parameters {
        parameter.data_type = types.base_of(parameter.data_type).family();
    }
    if let Some(Function { result: FunctionResult::Value(data_type), .. }) = &mut seen.function {
        *data_type = types.base_of(*data_type).family();
    }
    Arc::new(seen)
}

/// The columns of a function's rows.
fn result_columns(types: &CompositeTypes, definition: &Procedure) -> Vec<OutputColumn> {
    let Some(function) = &definition.function else { return Vec::new() };
    let only = |data_type: DataType| {
        vec![OutputColumn { name: object_name(&definition.name).to_string(), data_type }]
    };
    match &function.result {
        FunctionResult::Void | FunctionResult::Trigger => only(DataType::Text(None)),
        FunctionResult::Value(data_type) => match types.of(*data_type) {
            Some(known) => known.fields.clone(),
            None => only(data_type.family()),
        },
        FunctionResult::Outputs => definition
            .outputs()
            .enumerate()
            .map(|(position, parameter)| crate::routines::output_column(position, parameter))
            .collect(),
        // Every call names them.
        FunctionResult::Record => Vec::new(),
    }
}

/// Which argument each parameter gets; `None` where the call does not fit. `names`: the names that the arguments are
/// given under, where they are, in their order.
pub fn assign_arguments<'p>(
    parameters: impl Iterator<Item = &'p Parameter>,
    names: &[Option<String>],
) -> Option<Vec<Given>> {
    let parameters: Vec<&Parameter> = parameters.collect();
    let positional = names.iter().take_while(|name| name.is_none()).count();
    if names.len() > parameters.len() {
        return None;
    }
    let mut given: Vec<Option<Given>> = (0..positional).map(|at| Some(Given::Argument(at))).collect();
    given.resize(parameters.len(), None);
    for (at, name) in names.iter().enumerate().skip(positional) {
        let name = name.as_ref()?;
        let position = parameters.iter().position(|parameter| parameter.name == *name)?;
        if given[position].replace(Given::Argument(at)).is_some() {
            return None;
        }
    }
    let fill = |(given, parameter): (Option<Given>, &&Parameter)| {
        given.or_else(|| parameter.default.as_ref().map(|_| Given::Default))
    };
    given.into_iter().zip(&parameters).map(fill).collect()
}

/// Whether a value of this type can be an argument for this parameter.
pub fn takes(parameter: DataType, argument: DataType) -> bool {
    can_cast_implicitly(argument, parameter.family())
}

/// The column in which CALL shows an OUT or INOUT parameter.
pub fn output_column(position: usize, parameter: &Parameter) -> OutputColumn {
    let name = match parameter.name.as_str() {
        "" => format!("column{}", position + 1),
        name => name.to_string(),
    };
    OutputColumn { name, data_type: parameter.data_type.family() }
}

/// `42883`: there is no procedure of this name that takes these types, as a list.
#[cold]
pub fn no_procedure(name: &str, types: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("procedure {name}({types}) does not exist")).hint(
        "No procedure matches the given name and argument types. You might need to add explicit type casts.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::ParameterMode;

    #[test]
    fn arguments_come_by_position_then_by_name_then_by_default() {
        let parameter = |name: &str, default: Option<&str>| Parameter {
            name: name.to_string(),
            mode: ParameterMode::In,
            data_type: DataType::Integer,
            default: default.map(str::to_string),
        };
        let parameters = [parameter("a", None), parameter("b", Some("2")), parameter("c", Some("3"))];
        let assigned = |names: &[Option<&str>]| {
            let names: Vec<Option<String>> = names.iter().map(|name| name.map(str::to_string)).collect();
            assign_arguments(parameters.iter(), &names)
        };
        let (first, second) = (Given::Argument(0), Given::Argument(1));
        assert_eq!(assigned(&[None]), Some(vec![first, Given::Default, Given::Default]));
        assert_eq!(assigned(&[None, Some("c")]), Some(vec![first, Given::Default, second]));
        assert_eq!(assigned(&[Some("b"), Some("a")]), Some(vec![second, first, Given::Default]));
        for names in [&[][..], &[None; 4], &[None, Some("a")], &[Some("b")], &[None, Some("x")]] {
            assert_eq!(assigned(names), None, "{names:?}");
        }
    }
}
