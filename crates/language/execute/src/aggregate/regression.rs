//! Aggregates over pairs of doubles: `corr`, `covar_pop`, `regr_slope` and their kin, by the method of Youngs and Cramer,
//! which PostgreSQL uses as well. There is no operation in it that IEEE 754 leaves open.

use plan::aggregate::Regression;
use types::{SqlError, SqlState, Value};

/// Sums over the pairs so far, and sums of products of their deviations from the average.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pairs {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Pairs {
    /// Takes a pair.
    ///
    /// # Errors
    /// `22003` where a sum is out of range.
    pub fn add(&mut self, y: f64, x: f64) -> Result<(), SqlError> {
        let before = *self;
        self.count += 1.0;
        self.x += x;
        self.y += y;
        if before.count == 0.0 {
            // Infinities and NaN make all deviations unknown.
            if !x.is_finite() {
                (self.xx, self.xy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.yy, self.xy) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let from_x = x * self.count - self.x;
        let from_y = y * self.count - self.y;
        let scale = 1.0 / (self.count * before.count);
        self.xx += from_x * from_x * scale;
        self.yy += from_y * from_y * scale;
        self.xy += from_x * from_y * scale;
        let sums = [self.x, self.xx, self.y, self.yy, self.xy];
        if !sums.iter().any(|sum| sum.is_infinite()) {
            return Ok(());
        }
        let known_x = before.x.is_infinite() || x.is_infinite();
        let known_y = before.y.is_infinite() || y.is_infinite();
        let overflow = (!known_x && (self.x.is_infinite() || self.xx.is_infinite()))
            || (!known_y && (self.y.is_infinite() || self.yy.is_infinite()))
            || (!known_x && !known_y && self.xy.is_infinite());
        if overflow {
            let message = "value out of range: overflow";
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }

    /// The result; NULL where there are too few pairs, or no deviation where there must be one.
    pub fn result(&self, wanted: Regression) -> Value {
        use Regression as R;
        let least = if wanted == R::CovarianceOfSample { 2.0 } else { 1.0 };
        if wanted == R::Count {
            return Value::BigInt(self.count as i64);
        }
        let undefined = match wanted {
            R::Slope | R::Intercept | R::Determination => self.xx == 0.0,
            R::Correlation => self.xx == 0.0 || self.yy == 0.0,
            _ => false,
        };
        if self.count < least || undefined {
            return Value::Null;
        }
        Value::Double(match wanted {
            R::Count => self.count,
            R::SquaresX => self.xx,
            R::SquaresY => self.yy,
            R::Products => self.xy,
            R::AverageX => self.x / self.count,
            R::AverageY => self.y / self.count,
            R::Determination if self.yy == 0.0 => 1.0,
            R::Determination => (self.xy * self.xy) / (self.xx * self.yy),
            R::Slope => self.xy / self.xx,
            R::Intercept => (self.y - self.x * self.xy / self.xx) / self.count,
            R::CovarianceOfAll => self.xy / self.count,
            R::CovarianceOfSample => self.xy / (self.count - 1.0),
            R::Correlation => self.xy / (self.xx * self.yy).sqrt(),
        })
    }
}
