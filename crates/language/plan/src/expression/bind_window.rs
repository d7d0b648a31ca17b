//! Binding of window functions.

use crate::aggregate::{AggregateFunction, AggregateOrder, OrderedSet};
use crate::expression::refusals::no_function;
use crate::expression::written::{is_window_function, plain_argument};
use crate::expression::{Binder, Expression, Kind};
use crate::window::{Bound, Frame, FrameUnits, WindowCall, WindowFunction};
use sqlparser::ast::{
    self, FunctionArguments, NamedWindowExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec,
    WindowType,
};
use syntax::names::name_of;
use syntax::parse::{Exclusion, exclusion};
use types::{DataType, ExecutionVersion, SqlError, SqlState, Value, can_cast_implicitly};

/// What a window is partitioned and sorted by, and its frame.
#[derive(Clone, Copy, Default)]
struct Specification<'a> {
    partition: &'a [ast::Expr],
    order: &'a [ast::OrderByExpr],
    frame: Option<&'a WindowFrame>,
    exclusion: Option<Exclusion>,
}

fn windowing_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState(*b"42P20"), message)
}

impl Binder<'_> {
    /// `function(…) OVER window`
    pub(super) fn bind_window(
        &self,
        name: &str,
        function: &ast::Function,
        window: &WindowType,
    ) -> Result<Expression, SqlError> {
        match (self.no_aggregates_in.get(), self.no_windows_in.get()) {
            (Some("aggregate"), _) => {
                let message = "aggregate function calls cannot contain window function calls";
                return Err(SqlError::new(SqlState::GROUPING_ERROR, message));
            }
            (None, Some("window")) => {
                return Err(windowing_error("window function calls cannot be nested"));
            }
            (Some(clause), _) | (None, Some(clause)) => {
                return Err(windowing_error(format!("window functions are not allowed in {clause}")));
            }
            (None, None) => {}
        }
        let specification = self.specification(window)?;
        // An aggregate of the query may stand inside, another window function may not.
        self.no_windows_in.set(Some("window"));
        let call = self.window_call(name, function, specification);
        self.no_windows_in.set(None);
        let call = call?;
        let data_type = call.data_type;
        let mut windows = self.windows.borrow_mut();
        let number = windows.iter().position(|known| *known == call).unwrap_or_else(|| {
            windows.push(call);
            windows.len() - 1
        });
        Ok(Expression { kind: Kind::Window(number as u16), data_type })
    }

    fn named_window(&self, name: &ast::Ident) -> Result<Specification<'_>, SqlError> {
        let wanted = name_of(name)?;
        for ast::NamedWindowDefinition(known, definition) in self.named_windows {
            if name_of(known)? != wanted {
                continue;
            }
            return match definition {
                NamedWindowExpr::WindowSpec(spec @ WindowSpec { window_name: None, .. }) => {
                    let (exclusion, partition, order) = exclusion(spec);
                    Ok(Specification { partition, order, frame: spec.window_frame.as_ref(), exclusion })
                }
                _ => Err(SqlError::unsupported("a window that is defined by another one")),
            };
        }
        let message = format!("window \"{wanted}\" does not exist");
        Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
    }

    fn specification<'s>(&'s self, window: &'s WindowType) -> Result<Specification<'s>, SqlError> {
        let spec = match window {
            WindowType::NamedWindow(name) => return self.named_window(name),
            WindowType::WindowSpec(spec) => spec,
        };
        let (exclusion, partition, order) = exclusion(spec);
        let base = match &spec.window_name {
            None => Specification::default(),
            Some(name) => {
                let base = self.named_window(name)?;
                let name = name_of(name)?;
                let overridden = match () {
                    () if !partition.is_empty() => Some("PARTITION BY clause"),
                    () if !order.is_empty() && !base.order.is_empty() => Some("ORDER BY clause"),
                    () => None,
                };
                if let Some(what) = overridden {
                    return Err(windowing_error(format!("cannot override {what} of window \"{name}\"")));
                }
                if base.frame.is_some() {
                    let message = format!("cannot copy window \"{name}\" because it has a frame clause");
                    return Err(windowing_error(message));
                }
                base
            }
        };
        Ok(Specification {
            partition: if partition.is_empty() { base.partition } else { partition },
            order: if order.is_empty() { base.order } else { order },
            frame: spec.window_frame.as_ref(),
            exclusion,
        })
    }

    fn window_call(
        &self,
        name: &str,
        function: &ast::Function,
        specification: Specification<'_>,
    ) -> Result<WindowCall, SqlError> {
        let partition = self.bind_all_known(specification.partition)?;
        partition.iter().try_for_each(|key| self.check_sortable(key, "equality"))?;
        let order = self.bind_keys(specification.order)?;
        let frame = self.frame(specification.frame, specification.exclusion, &order)?;
        let (function, data_type) = self.window_function(name, function)?;
        Ok(WindowCall { function, partition, order, frame, data_type })
    }

    fn window_function(
        &self,
        name: &str,
        function: &ast::Function,
    ) -> Result<(WindowFunction, DataType), SqlError> {
        if !function.within_group.is_empty()
            || (OrderedSet::named(name).is_some() && !is_window_function(name))
        {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let of_ledger = || self.scope().routines().aggregate(name).map(|_| AggregateFunction::User);
        if let Some(aggregate) = AggregateFunction::named(name, self.scope().version()).or_else(of_ledger) {
            if let FunctionArguments::List(list) = &function.args {
                if list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct) {
                    let message = "DISTINCT is not implemented for window functions";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                if !list.clauses.is_empty() {
                    let message = "aggregate ORDER BY is not implemented for window functions";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
            }
            let aggregate = self.aggregate(aggregate, name, function)?;
            let data_type = aggregate.data_type;
            return Ok((WindowFunction::Aggregate(Box::new(aggregate)), data_type));
        }
        if !is_window_function(name) {
            let message =
                format!("OVER specified, but {name} is not a window function nor an aggregate function");
            return Err(SqlError::new(SqlState(*b"42809"), message));
        }
        if function.filter.is_some() {
            let message = "FILTER is not implemented for non-aggregate window functions";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let arguments = match &function.args {
            FunctionArguments::List(list)
                if list.clauses.is_empty() && list.duplicate_treatment.is_none() =>
            {
                let bind = |argument| self.bind_known(plain_argument(argument)?);
                list.args.iter().map(bind).collect::<Result<Vec<_>, _>>()?
            }
            _ => return Err(SqlError::unsupported(format_args!("this form of the function {name}"))),
        };
        self.plain_window_function(name, arguments)
    }

    fn plain_window_function(
        &self,
        name: &str,
        arguments: Vec<Expression>,
    ) -> Result<(WindowFunction, DataType), SqlError> {
        use WindowFunction as F;
        let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
        let missing = || no_function(name, &types);
        let integer = |value: Expression| self.argument(value, DataType::Integer).ok_or_else(missing);
        let mut arguments = arguments.into_iter();
        let (first, second, third) = (arguments.next(), arguments.next(), arguments.next());
        if arguments.next().is_some() {
            return Err(missing());
        }
        Ok(match (name, first, second, third) {
            ("row_number", None, ..) => (F::RowNumber, DataType::BigInt),
            ("rank", None, ..) => (F::Rank, DataType::BigInt),
            ("dense_rank", None, ..) => (F::DenseRank, DataType::BigInt),
            ("percent_rank", None, ..) => (F::PercentRank, DataType::Double),
            ("cume_dist", None, ..) => (F::CumulativeShare, DataType::Double),
            ("ntile", Some(buckets), None, None) => (F::Buckets(integer(buckets)?), DataType::Integer),
            ("first_value", Some(value), None, None) => {
                let data_type = value.data_type;
                (F::First(value), data_type)
            }
            ("last_value", Some(value), None, None) => {
                let data_type = value.data_type;
                (F::Last(value), data_type)
            }
            ("nth_value", Some(value), Some(number), None) => {
                let data_type = value.data_type;
                (F::Nth(value, integer(number)?), data_type)
            }
            ("lag" | "lead", Some(value), offset, default) => {
                let offset = match offset {
                    Some(offset) => integer(offset)?,
                    None => Expression::constant(Value::Integer(1), DataType::Integer),
                };
                let (value, default, data_type) = match default {
                    None => {
                        let data_type = value.data_type;
                        (value, Expression::constant(Value::Null, data_type), data_type)
                    }
                    Some(default) => {
                        let (mut both, data_type) =
                            self.unify(vec![value, default], name).map_err(|_| missing())?;
                        match (both.pop(), both.pop()) {
                            (Some(default), Some(value)) => (value, default, data_type),
                            _ => return Err(missing()),
                        }
                    }
                };
                (F::Shifted { value, offset, default, back: name == "lag" }, data_type)
            }
            _ => return Err(missing()),
        })
    }

    fn frame(
        &self,
        frame: Option<&WindowFrame>,
        exclusion: Option<Exclusion>,
        order: &[AggregateOrder],
    ) -> Result<Frame, SqlError> {
        let Some(frame) = frame else { return Ok(Frame::default()) };
        let units = self.units(frame.units, order)?;
        let current = WindowFrameBound::CurrentRow;
        let (start, end) = (&frame.start_bound, frame.end_bound.as_ref().unwrap_or(&current));
        check_bounds(start, end)?;
        let (start, end) = (self.bound(start, units, order)?, self.bound(end, units, order)?);
        Ok(Frame { units, start, end, exclusion })
    }

    fn units(&self, units: WindowFrameUnits, order: &[AggregateOrder]) -> Result<FrameUnits, SqlError> {
        Ok(match units {
            WindowFrameUnits::Rows => FrameUnits::Rows,
            WindowFrameUnits::Range => FrameUnits::Range,
            WindowFrameUnits::Groups if self.scope().version() < ExecutionVersion::V14 => {
                return Err(SqlError::unsupported("a window frame of GROUPS").hint("Use ROWS or RANGE."));
            }
            WindowFrameUnits::Groups if order.is_empty() => {
                return Err(windowing_error("GROUPS mode requires an ORDER BY clause"));
            }
            WindowFrameUnits::Groups => FrameUnits::Groups,
        })
    }

    fn bound(
        &self,
        bound: &WindowFrameBound,
        units: FrameUnits,
        order: &[AggregateOrder],
    ) -> Result<Bound, SqlError> {
        let (offset, preceding) = match bound {
            WindowFrameBound::CurrentRow => return Ok(Bound::Current),
            WindowFrameBound::Preceding(None) => return Ok(Bound::First),
            WindowFrameBound::Following(None) => return Ok(Bound::Last),
            WindowFrameBound::Preceding(Some(offset)) => (offset, true),
            WindowFrameBound::Following(Some(offset)) => (offset, false),
        };
        if units == FrameUnits::Range && self.scope().version() < ExecutionVersion::V14 {
            return Err(SqlError::unsupported("a window frame of RANGE with an offset").hint("Use ROWS."));
        }
        let called = match units {
            FrameUnits::Rows => "ROWS",
            FrameUnits::Range => "RANGE",
            FrameUnits::Groups => "GROUPS",
        };
        let offset = self.bind(offset)?;
        if !offset.is_row_independent() {
            let message = format!("argument of {called} must not contain variables");
            return Err(SqlError::new(SqlState(*b"42P10"), message));
        }
        let offset = match units {
            FrameUnits::Range => self.range_offset(offset, order)?,
            FrameUnits::Rows | FrameUnits::Groups => {
                self.assign_to_column(offset, called, DataType::BigInt)?
            }
        };
        Ok(if preceding { Bound::Before(offset) } else { Bound::After(offset) })
    }

    /// The offset of a frame of values, of the type that PostgreSQL chooses for what the window is sorted by.
    fn range_offset(&self, offset: Expression, order: &[AggregateOrder]) -> Result<Expression, SqlError> {
        let [key] = order else {
            let message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return Err(windowing_error(message));
        };
        let (sorted_by, given) = (key.expression.data_type.family(), offset.data_type.family());
        let refused = |of: String| {
            let message =
                format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {of}");
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        };
        let candidates = offset_types(sorted_by);
        let of = class_input(sorted_by);
        if candidates.is_empty() {
            return Err(refused(of));
        }
        let wanted = if given == DataType::Unknown { sorted_by } else { given };
        let mut fitting = candidates.iter().filter(|known| can_cast_implicitly(given, **known));
        let chosen = match (candidates.contains(&wanted), fitting.next(), fitting.next()) {
            (true, ..) => wanted,
            (false, Some(only), None) => *only,
            (false, None, _) => {
                return Err(refused(format!("{of} and offset type {given}"))
                    .hint("Cast the offset value to an appropriate type."));
            }
            (false, Some(_), Some(_)) => {
                let message = format!(
                    "RANGE with offset PRECEDING/FOLLOWING has multiple interpretations for column type {of} and offset type {given}"
                );
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                    .hint("Cast the offset value to the exact intended type."));
            }
        };
        self.assign_to_column(offset, "RANGE", chosen)
    }
}

/// What PostgreSQL calls the values that an operator class sorts to which the type belongs.
fn class_input(sorted_by: DataType) -> String {
    match sorted_by {
        DataType::Enum(_) => "anyenum".to_string(),
        DataType::Array(_) => "anyarray".to_string(),
        DataType::Range(_) => "anyrange".to_string(),
        DataType::Multirange(_) => "anymultirange".to_string(),
        DataType::Composite(_) => "record".to_string(),
        other => other.to_string(),
    }
}

/// Types of the offsets by which values of a type may be apart in a frame.
fn offset_types(sorted_by: DataType) -> &'static [DataType] {
    match sorted_by {
        DataType::SmallInt | DataType::Integer => &[DataType::SmallInt, DataType::Integer, DataType::BigInt],
        DataType::BigInt => &[DataType::BigInt],
        DataType::Real | DataType::Double => &[DataType::Double],
        DataType::Numeric(None) => &[DataType::Numeric(None)],
        DataType::Date
        | DataType::Time
        | DataType::TimeTz
        | DataType::Timestamp
        | DataType::TimestampTz
        | DataType::Interval => &[DataType::Interval],
        _ => &[],
    }
}

/// Refuses bounds that stand in no order.
fn check_bounds(start: &WindowFrameBound, end: &WindowFrameBound) -> Result<(), SqlError> {
    let message = match (start, end) {
        (WindowFrameBound::Following(None), _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (_, WindowFrameBound::Preceding(None)) => "frame end cannot be UNBOUNDED PRECEDING",
        (WindowFrameBound::CurrentRow, WindowFrameBound::Preceding(_)) => {
            "frame starting from current row cannot have preceding rows"
        }
        (WindowFrameBound::Following(_), WindowFrameBound::Preceding(_)) => {
            "frame starting from following row cannot have preceding rows"
        }
        (WindowFrameBound::Following(_), WindowFrameBound::CurrentRow) => {
            "frame starting from following row cannot end with current row"
        }
        _ => return Ok(()),
    };
    Err(windowing_error(message))
}
