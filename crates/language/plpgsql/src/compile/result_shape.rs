//! What a procedure or function gives back, as its definition says it.

use crate::program::ResultForm;
use plan::tables::Tables;
use types::{DataType, FunctionResult, Procedure, SqlError, SqlState, TypeId};

/// What a procedure or function gives back.
pub(crate) struct ResultShape {
    pub(crate) returns: Returns,
    /// It gives any number of rows.
    pub(crate) is_set: bool,
    /// Types of the columns of its rows; one for a value.
    pub(crate) types: Vec<DataType>,
    /// Types of the fields of a value of a composite type; none for `record`.
    pub(crate) fields: Option<Vec<DataType>>,
    /// The domains that its columns are of.
    pub(crate) domains: Vec<(usize, TypeId)>,
}

/// How RETURN names it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Returns {
    Procedure,
    Void,
    Value,
    /// By the OUT and INOUT parameters.
    Outputs,
    /// The row that a trigger's table gets, or NULL.
    TriggeredRow,
}

impl ResultShape {
    /// That of this definition.
    ///
    /// # Errors
    /// `42704` where it is of a type that is not there.
    pub fn of(tables: &Tables, procedure: &Procedure) -> Result<ResultShape, SqlError> {
        let types = tables.routines().types();
        // A domain says what length, precision and scale its values have.
        let base_of = |data_type: DataType| match data_type {
            DataType::Domain(_) => types.base_of(data_type),
            other => other.family(),
        };
        let declared: Vec<DataType> = match procedure.function.as_ref().map(|function| &function.result) {
            Some(FunctionResult::Value(data_type)) => vec![*data_type],
            None | Some(FunctionResult::Outputs) => {
                procedure.outputs().map(|parameter| parameter.data_type).collect()
            }
            _ => Vec::new(),
        };
        let domains = declared.iter().enumerate().filter_map(|(at, data_type)| match data_type {
            DataType::Domain(id) => Some((at, *id)),
            _ => None,
        });
        let domains = domains.collect();
        let outputs = || declared.iter().map(|data_type| base_of(*data_type)).collect();
        let Some(function) = &procedure.function else {
            let (returns, fields) = (Returns::Procedure, None);
            return Ok(ResultShape { returns, is_set: false, types: outputs(), fields, domains });
        };
        let mut fields = None;
        let (returns, types) = match &function.result {
            FunctionResult::Void => (Returns::Void, Vec::new()),
            FunctionResult::Trigger => {
                let message = "trigger functions can only be called as triggers";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            FunctionResult::Value(data_type) => {
                let data_type = types.base_of(*data_type);
                if data_type.is_composite() {
                    let known = types.of(data_type).ok_or_else(|| {
                        let message = format!("{} does not exist", types.name_of(data_type));
                        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
                    })?;
                    fields = Some(known.fields.iter().map(|field| field.data_type).collect());
                }
                (Returns::Value, declared.iter().map(|data_type| base_of(*data_type)).collect())
            }
            FunctionResult::Record => (Returns::Value, vec![DataType::Record]),
            FunctionResult::Outputs => (Returns::Outputs, outputs()),
        };
        Ok(ResultShape { returns, is_set: function.is_set, types, fields, domains })
    }

    /// That of a trigger function for a table with columns of these types.
    pub fn of_trigger(types: Vec<DataType>) -> ResultShape {
        let (returns, domains) = (Returns::TriggeredRow, Vec::new());
        ResultShape { returns, is_set: false, types, fields: None, domains }
    }

    /// The domain that its only value is of.
    pub fn domain(&self) -> Option<DataType> {
        match (self.returns, self.domains.as_slice()) {
            (Returns::Value, [(_, id)]) => Some(DataType::Domain(*id)),
            _ => None,
        }
    }

    /// Whether it is that of a trigger function.
    pub fn is_triggered_row(&self) -> bool {
        self.returns == Returns::TriggeredRow
    }

    /// What is wrong with a row of these columns that a trigger function returns.
    pub fn refuses_row(&self, types: &[DataType]) -> Option<SqlError> {
        let mismatch = |detail: String| {
            let message = "returned row structure does not match the structure of the triggering table";
            Some(SqlError::new(SqlState::DATATYPE_MISMATCH, message).detail(detail))
        };
        for (position, (found, expected)) in types.iter().zip(&self.types).enumerate() {
            if found.family() != expected.family() {
                let (found, expected) = (found.family(), expected.family());
                return mismatch(format!(
                    "Returned type {found} does not match expected type {expected} in column {}.",
                    position + 1
                ));
            }
        }
        if types.len() != self.types.len() {
            return mismatch(format!(
                "Number of returned columns ({}) does not match expected column count ({}).",
                types.len(),
                self.types.len()
            ));
        }
        None
    }

    /// How the program gives it.
    pub fn form(&self) -> ResultForm {
        match self.returns {
            _ if self.is_set => ResultForm::Rows,
            Returns::Procedure | Returns::Outputs => ResultForm::Outputs,
            Returns::Void => ResultForm::Void,
            Returns::Value | Returns::TriggeredRow => ResultForm::Value,
        }
    }

    /// The composite type of its value.
    pub fn row(&self) -> Option<DataType> {
        match (self.returns, self.types.as_slice()) {
            (Returns::Value, [only]) if only.is_composite() => Some(*only),
            _ => None,
        }
    }

    /// What RETURN with a value is refused with.
    pub fn refuses_value(&self) -> Option<SqlError> {
        let refused = |what: &str| {
            let message = format!("RETURN cannot have a parameter in {what}");
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        };
        Some(match self.returns {
            _ if self.is_set => refused("function returning set").hint("Use RETURN NEXT or RETURN QUERY."),
            Returns::Procedure => refused("a procedure"),
            Returns::Void => refused("function returning void"),
            Returns::Outputs => refused("function with OUT parameters"),
            Returns::Value | Returns::TriggeredRow => return None,
        })
    }
}
