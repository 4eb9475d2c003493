//! Exact decimal numbers, as far as quantities need them.

use super::UnitError;

/// `digits × 10^exponent`, zero or above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u128,
    exponent: i32,
}

/// More significant digits than any quantity has; keeps every product below within 128 bits or checked.
const MAX_DIGITS: usize = 24;
const MAX_EXPONENT: i32 = 30;

impl Decimal {
    /// A number and the unit that ends the text: `250m` → 250, `m`.
    pub(super) fn split(text: &str) -> Result<(Self, &str), UnitError> {
        let (number, rest) = Self::prefix(text)?;
        Ok((number, rest.trim_start()))
    }

    /// The number at the start of a text, and what follows it.
    ///
    /// An exponent is read only where digits follow the `e`, so that `1E` stays one exabyte.
    pub(super) fn prefix(text: &str) -> Result<(Self, &str), UnitError> {
        let unsigned = text.strip_prefix('+').unwrap_or(text);
        if let Some(positive) = unsigned.strip_prefix('-') {
            return match Self::prefix(positive) {
                Ok((number, rest)) if number.digits == 0 => Ok((number, rest)),
                Ok(_) => Err(UnitError::Negative),
                Err(error) => Err(error),
            };
        }
        let (whole, rest) = digits(unsigned);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(UnitError::NotAQuantity);
        }
        let (exponent, rest) = exponent(rest)?;
        let fraction = fraction.trim_end_matches('0');
        let significant = format!("{whole}{fraction}");
        let significant = significant.trim_start_matches('0');
        if significant.len() > MAX_DIGITS {
            return Err(UnitError::TooLarge);
        }
        let digits: u128 = significant.parse().unwrap_or(0);
        let places = i32::try_from(fraction.len()).map_err(|_| UnitError::TooLarge)?;
        let exponent = exponent.saturating_sub(places);
        Ok((Self { digits, exponent }, rest))
    }

    /// Times `10^places`.
    pub(super) fn shifted(self, places: i32) -> Self {
        Self {
            exponent: self.exponent.saturating_add(places),
            ..self
        }
    }

    /// Times `unit`, which must come out whole; `finest` names the smallest unit for the error.
    pub(super) fn times(self, unit: u64, finest: &'static str) -> Result<u64, UnitError> {
        if self.digits == 0 {
            return Ok(0);
        }
        if self.exponent > MAX_EXPONENT {
            return Err(UnitError::TooLarge);
        }
        if self.exponent < -MAX_EXPONENT {
            return Err(UnitError::TooFine(finest));
        }
        let power = 10u128.pow(self.exponent.unsigned_abs());
        let scaled = self
            .digits
            .checked_mul(u128::from(unit))
            .ok_or(UnitError::TooLarge)?;
        let whole = if self.exponent >= 0 {
            scaled.checked_mul(power).ok_or(UnitError::TooLarge)?
        } else if scaled.is_multiple_of(power) {
            scaled / power
        } else {
            return Err(UnitError::TooFine(finest));
        };
        // Engines and kernels count in signed 64 bits.
        u64::try_from(whole)
            .ok()
            .filter(|value| i64::try_from(*value).is_ok())
            .ok_or(UnitError::TooLarge)
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn exponent(text: &str) -> Result<(i32, &str), UnitError> {
    let Some(after) = text.strip_prefix(['e', 'E']) else {
        return Ok((0, text));
    };
    let (negative, unsigned) = match after.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, after.strip_prefix('+').unwrap_or(after)),
    };
    let (power, rest) = digits(unsigned);
    if power.is_empty() {
        return Ok((0, text));
    }
    let power: i32 = power.parse().map_err(|_| UnitError::TooLarge)?;
    Ok((if negative { -power } else { power }, rest))
}
