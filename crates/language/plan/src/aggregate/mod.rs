//! Aggregates, bound.

mod support;

use crate::expression::Expression;
use std::sync::Arc;
pub use support::support_function;
use types::{DataType, ExecutionVersion, Value};

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateFunction {
    /// `count(*)` and `count(x)`
    Count,
    /// `sum`
    Sum,
    /// `avg`
    Average,
    /// `min`
    Minimum,
    /// `max`
    Maximum,
    /// `bool_and`, `every`
    And,
    /// `bool_or`
    Or,
    /// `string_agg(value, delimiter)`
    Join,
    /// `array_agg`
    Array,
    /// `variance` and its kin
    Variance(Deviation),
    /// `bit_and`
    BitAnd,
    /// `bit_or`
    BitOr,
    /// `bit_xor`
    BitXor,
    /// `corr` and its kin
    Regression(Regression),
    /// `percentile_cont` and its kin
    OrderedSet(OrderedSet),
    /// `json_agg` and its kin
    Json(JsonAggregate),
    /// `range_agg`
    Ranges,
    /// `range_intersect_agg`
    Intersection,
    /// One of the ledger
    User,
}

/// What `json_agg` and its kin make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonAggregate {
    /// An object of keys and values, not an array.
    pub has_keys: bool,
    /// A `jsonb`.
    pub is_binary: bool,
    /// Its elements are arrays or rows, which PostgreSQL puts on lines of their own.
    pub has_lines: bool,
    /// DISTINCT tells apart what the order sorts by: the arguments as they are, not as JSON.
    pub tells_by_order: bool,
}

/// What `variance` and its kin measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Of a sample: one value less than there are counts.
    pub sample: bool,
    /// The root of it: the standard deviation.
    pub root: bool,
}

/// An aggregate of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Which.
    pub function: AggregateFunction,
    /// Over what; `None` is `count(*)`.
    pub argument: Option<Expression>,
    /// The delimiter of `string_agg`, X of `corr` and its kin.
    pub second: Option<Expression>,
    /// What stands in the parentheses where the rows are named behind WITHIN GROUP: the same for all rows of a group.
    pub direct: Vec<Expression>,
    /// DISTINCT
    pub distinct: bool,
    /// ORDER BY: the order in which rows are taken.
    pub order: Vec<AggregateOrder>,
    /// FILTER (WHERE …)
    pub filter: Option<Expression>,
    /// Type of the result.
    pub data_type: DataType,
    /// What an aggregate of the ledger does.
    pub user: Option<Box<UserFunctions>>,
}

/// A key of the ORDER BY of an aggregate or a window.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateOrder {
    /// What to sort by.
    pub expression: Expression,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}

impl Aggregate {
    /// One that takes nothing yet.
    pub fn plain(function: AggregateFunction, data_type: DataType) -> Aggregate {
        Aggregate {
            function,
            argument: None,
            second: None,
            direct: Vec::new(),
            distinct: false,
            order: Vec::new(),
            filter: None,
            data_type,
            user: None,
        }
    }

    /// Its expressions, over the rows that are grouped.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let ordered = self.order.iter().map(|key| &key.expression);
        let user =
            self.user.iter().flat_map(|user| user.arguments.iter().chain([&user.transition, &user.result]));
        let own = self.argument.iter().chain(&self.second).chain(&self.direct);
        own.chain(&self.filter).chain(ordered).chain(user)
    }

    /// The same, to be changed.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expression> {
        let ordered = self.order.iter_mut().map(|key| &mut key.expression);
        let user = self.user.iter_mut().flat_map(|user| {
            let UserFunctions { arguments, transition, result, .. } = user.as_mut();
            arguments.iter_mut().chain([transition, result])
        });
        let own = self.argument.iter_mut().chain(&mut self.second).chain(self.direct.iter_mut());
        own.chain(&mut self.filter).chain(ordered).chain(user)
    }
}

impl AggregateFunction {
    /// The function of this name.
    pub fn named(name: &str, version: ExecutionVersion) -> Option<AggregateFunction> {
        let json = |has_keys, is_binary| {
            let has_it = version >= ExecutionVersion::V7;
            let (has_lines, tells_by_order) = (false, false);
            let of = JsonAggregate { has_keys, is_binary, has_lines, tells_by_order };
            has_it.then_some(AggregateFunction::Json(of))
        };
        let variance = |sample, root| AggregateFunction::Variance(Deviation { sample, root });
        let regression = AggregateFunction::Regression;
        Some(match name {
            "count" => AggregateFunction::Count,
            "sum" => AggregateFunction::Sum,
            "avg" => AggregateFunction::Average,
            "min" => AggregateFunction::Minimum,
            "max" => AggregateFunction::Maximum,
            "bool_and" | "every" => AggregateFunction::And,
            "bool_or" => AggregateFunction::Or,
            "string_agg" => AggregateFunction::Join,
            "array_agg" => AggregateFunction::Array,
            "range_agg" if version >= ExecutionVersion::V10 => AggregateFunction::Ranges,
            "range_intersect_agg" if version >= ExecutionVersion::V10 => AggregateFunction::Intersection,
            "variance" | "var_samp" => variance(true, false),
            "var_pop" => variance(false, false),
            "stddev" | "stddev_samp" => variance(true, true),
            "stddev_pop" => variance(false, true),
            "bit_and" => AggregateFunction::BitAnd,
            "bit_or" => AggregateFunction::BitOr,
            "bit_xor" => AggregateFunction::BitXor,
            "regr_count" => regression(Regression::Count),
            "regr_sxx" => regression(Regression::SquaresX),
            "regr_syy" => regression(Regression::SquaresY),
            "regr_sxy" => regression(Regression::Products),
            "regr_avgx" => regression(Regression::AverageX),
            "regr_avgy" => regression(Regression::AverageY),
            "regr_r2" => regression(Regression::Determination),
            "regr_slope" => regression(Regression::Slope),
            "regr_intercept" => regression(Regression::Intercept),
            "covar_pop" => regression(Regression::CovarianceOfAll),
            "covar_samp" => regression(Regression::CovarianceOfSample),
            "corr" => regression(Regression::Correlation),
            "json_agg" => json(false, false)?,
            "jsonb_agg" => json(false, true)?,
            "json_object_agg" => json(true, false)?,
            "jsonb_object_agg" => json(true, true)?,
            _ => return None,
        })
    }

    /// Type of the argument after a cast, and of the result; `None` where there is no such function.
    pub fn types(self, argument: DataType) -> Option<(DataType, DataType)> {
        use AggregateFunction as F;
        use DataType::{
            BigInt, Boolean, Bytea, Char, Composite, Double, Integer, Interval, Numeric, Real, Record,
            SmallInt, Text, Unknown, Uuid,
        };
        let result = match (self, argument.family()) {
            (F::Count, _) => BigInt,
            (F::Sum, SmallInt | Integer) => BigInt,
            (F::Sum, Real) => Real,
            (F::Sum | F::Average, Interval) => Interval,
            (F::Sum | F::Average, BigInt | Numeric(_)) => Numeric(None),
            (F::Average | F::Variance(_), SmallInt | Integer) => Numeric(None),
            (F::Variance(_), BigInt | Numeric(_)) => Numeric(None),
            (F::Average | F::Variance(_), Real) => Double,
            (F::Sum | F::Average | F::Variance(_), Double) => Double,
            (F::Minimum | F::Maximum, Boolean | Uuid | Bytea | Composite(_) | Record) => return None,
            (F::Minimum | F::Maximum, DataType::Json | DataType::Jsonb) => return None,
            (F::Minimum | F::Maximum, DataType::Cidr) => DataType::Inet,
            (F::Minimum | F::Maximum, DataType::MacAddr | DataType::Bit(_) | DataType::VarBit(_)) => {
                return None;
            }
            (F::Minimum | F::Maximum, DataType::TsVector | DataType::TsQuery | DataType::Hstore) => {
                return None;
            }
            (F::Minimum | F::Maximum, DataType::Range(_) | DataType::Multirange(_)) => return None,
            (F::Ranges, DataType::Range(of) | DataType::Multirange(of)) => DataType::Multirange(of),
            (F::Intersection, range @ (DataType::Range(_) | DataType::Multirange(_))) => range,
            (F::Minimum | F::Maximum, other) => other,
            (F::And | F::Or, Boolean) => Boolean,
            (F::Join, Text(_) | Char(_) | Unknown) => Text(None),
            (F::Join, Bytea) => Bytea,
            // Arrays side by side are an array of one dimension more.
            (F::Array, array @ DataType::Array(_)) => array.family(),
            (F::Array, other) => other.array()?,
            (F::BitAnd | F::BitOr | F::BitXor, whole @ (SmallInt | Integer | BigInt)) => whole,
            (F::BitAnd | F::BitOr | F::BitXor, DataType::Bit(_) | DataType::VarBit(_)) => DataType::Bit(None),
            (F::Regression(wanted), SmallInt | Integer | BigInt | Numeric(_) | Real | Double | Unknown) => {
                if wanted == Regression::Count {
                    BigInt
                } else {
                    Double
                }
            }
            _ => return None,
        };
        let operand = match self {
            F::Sum | F::Average | F::Variance(_) | F::Join => result,
            F::Minimum | F::Maximum | F::BitAnd | F::BitOr | F::BitXor if argument.is_of_version_10() => {
                result
            }
            F::Array => argument.family(),
            F::Regression(_) => Double,
            _ => argument,
        };
        Some((operand, result))
    }

    /// True where the result depends on the order of the values.
    pub fn follows_order(self) -> bool {
        matches!(self, AggregateFunction::Join | AggregateFunction::Array | AggregateFunction::Json(_))
    }
}

/// What an aggregate of the ledger does, bound for a query.
#[derive(Clone, Debug, PartialEq)]
pub struct UserFunctions {
    /// Its name.
    pub name: Arc<str>,
    /// What a row adds, of the types that the aggregate takes.
    pub arguments: Vec<Expression>,
    /// The next state, of the state and what a row adds.
    pub transition: Expression,
    /// Rows with a NULL add nothing, and the first other one is the state where there was none.
    pub is_strict: bool,
    /// The state before the first row.
    pub initial: Value,
    /// The result, of the state and as many NULLs as there are arguments.
    pub result: Expression,
}

/// What is measured of the pairs (Y, X).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regression {
    /// `regr_count`
    Count,
    /// `regr_sxx`
    SquaresX,
    /// `regr_syy`
    SquaresY,
    /// `regr_sxy`
    Products,
    /// `regr_avgx`
    AverageX,
    /// `regr_avgy`
    AverageY,
    /// `regr_r2`
    Determination,
    /// `regr_slope`
    Slope,
    /// `regr_intercept`
    Intercept,
    /// `covar_pop`
    CovarianceOfAll,
    /// `covar_samp`
    CovarianceOfSample,
    /// `corr`
    Correlation,
}

/// What is asked of the sorted values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedSet {
    /// `percentile_cont(fraction)`: between the two values that are nearest
    Continuous,
    /// `percentile_disc(fraction)`: the first value at or behind it
    Discrete,
    /// `mode()`: the value that is there most often
    Mode,
    /// `rank(values)`: of a row with these values
    Rank,
    /// `dense_rank(values)`
    DenseRank,
    /// `percent_rank(values)`
    PercentRank,
    /// `cume_dist(values)`
    CumulativeShare,
}

impl OrderedSet {
    /// The aggregate of this name.
    pub fn named(name: &str) -> Option<OrderedSet> {
        Some(match name {
            "percentile_cont" => OrderedSet::Continuous,
            "percentile_disc" => OrderedSet::Discrete,
            "mode" => OrderedSet::Mode,
            "rank" => OrderedSet::Rank,
            "dense_rank" => OrderedSet::DenseRank,
            "percent_rank" => OrderedSet::PercentRank,
            "cume_dist" => OrderedSet::CumulativeShare,
            _ => return None,
        })
    }

    /// True where what stands in the parentheses is a row like those that are sorted.
    pub fn is_hypothetical(self) -> bool {
        !matches!(self, OrderedSet::Continuous | OrderedSet::Discrete | OrderedSet::Mode)
    }
}
