//! The `Condition` element of a statement: operators, keys and values.

use std::net::IpAddr;

use jiff::Timestamp;

use super::Context;
use super::pattern::Pattern;

/// An operator on a key with its values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    pub(super) operator: Operator,
    pub(super) key: String,
    pub(super) values: Vec<Wanted>,
}

/// How a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operator {
    test: Test,
    is_negated: bool,
    if_exists: bool,
    set: Set,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    StringEquals,
    StringEqualsIgnoreCase,
    StringLike,
    Number(Order),
    Date(Order),
    Bool,
    IpAddress,
    Arn,
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// How a key with several values is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    /// As a key with one value: one of its values must do.
    One,
    Any,
    All,
}

/// A value of a policy, read for its operator.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wanted {
    Text(Pattern),
    Number(f64),
    Time(Timestamp),
    Is(bool),
    Network(IpAddr, u32),
}

impl Operator {
    /// Reads an operator such as `ForAllValues:StringNotEqualsIfExists`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (set, rest) = match text.split_once(':') {
            None => (Set::One, text),
            Some(("ForAllValues", rest)) => (Set::All, rest),
            Some(("ForAnyValue", rest)) => (Set::Any, rest),
            Some(_) => return None,
        };
        let (name, if_exists) = rest.strip_suffix("IfExists").map_or((rest, false), |name| (name, true));
        let (test, is_negated) = test(name)?;
        if test == Test::Null && (if_exists || set != Set::One) {
            return None;
        }
        Some(Self { test, is_negated, if_exists, set })
    }

    /// Reads one of its values.
    ///
    /// # Errors
    /// Why the operator cannot have it.
    pub(super) fn value(self, text: &str, has_variables: bool) -> Result<Wanted, &'static str> {
        match self.test {
            Test::StringEquals | Test::StringEqualsIgnoreCase | Test::StringLike | Test::Arn => {
                Pattern::parse(text, has_variables).map(Wanted::Text)
            }
            Test::Number(_) => text.parse().map(Wanted::Number).map_err(|_| "is no number"),
            Test::Date(_) => {
                time(text).map(Wanted::Time).ok_or("is no date of ISO 8601, and no seconds since 1970")
            }
            Test::Bool | Test::Null => match &*text.to_ascii_lowercase() {
                "true" => Ok(Wanted::Is(true)),
                "false" => Ok(Wanted::Is(false)),
                _ => Err("is neither true nor false"),
            },
            Test::IpAddress => network(text)
                .map(|(ip, bits)| Wanted::Network(ip, bits))
                .ok_or("is no IP address or CIDR block"),
        }
    }
}

/// The test of an operator's name, and whether it is turned round.
fn test(name: &str) -> Option<(Test, bool)> {
    let order = |name: &str| {
        Some(match name {
            "Equals" => (Order::Equal, false),
            "NotEquals" => (Order::Equal, true),
            "LessThan" => (Order::Less, false),
            "LessThanEquals" => (Order::LessOrEqual, false),
            "GreaterThan" => (Order::Greater, false),
            "GreaterThanEquals" => (Order::GreaterOrEqual, false),
            _ => return None,
        })
    };
    if let Some(rest) = name.strip_prefix("Numeric") {
        return order(rest).map(|(order, is_negated)| (Test::Number(order), is_negated));
    }
    if let Some(rest) = name.strip_prefix("Date") {
        return order(rest).map(|(order, is_negated)| (Test::Date(order), is_negated));
    }
    Some(match name {
        "StringEquals" => (Test::StringEquals, false),
        "StringNotEquals" => (Test::StringEquals, true),
        "StringEqualsIgnoreCase" => (Test::StringEqualsIgnoreCase, false),
        "StringNotEqualsIgnoreCase" => (Test::StringEqualsIgnoreCase, true),
        "StringLike" => (Test::StringLike, false),
        "StringNotLike" => (Test::StringLike, true),
        "Bool" => (Test::Bool, false),
        "IpAddress" => (Test::IpAddress, false),
        "NotIpAddress" => (Test::IpAddress, true),
        "ArnEquals" | "ArnLike" => (Test::Arn, false),
        "ArnNotEquals" | "ArnNotLike" => (Test::Arn, true),
        "Null" => (Test::Null, false),
        _ => return None,
    })
}

impl Condition {
    /// Whether it holds. A key that the request lacks fails, but for negated operators, `IfExists` and `ForAllValues`.
    pub(super) fn holds(&self, context: &Context) -> bool {
        let Operator { test, is_negated, if_exists, set } = self.operator;
        let sent = context.get(&self.key).filter(|values| !values.is_empty());
        if test == Test::Null {
            return self.values.iter().any(|value| *value == Wanted::Is(sent.is_none()));
        }
        let Some(sent) = sent else {
            return if_exists || set == Set::All || (is_negated && set == Set::One);
        };
        let matches = |value: &String| self.values.iter().any(|wanted| compare(test, wanted, value, context));
        match set {
            // A negated operator wants a value that is none of the policy's.
            Set::All => sent.iter().all(|value| matches(value) != is_negated),
            Set::Any => sent.iter().any(|value| matches(value) != is_negated),
            Set::One => sent.iter().any(matches) != is_negated,
        }
    }
}

fn compare(test: Test, wanted: &Wanted, value: &str, context: &Context) -> bool {
    match (test, wanted) {
        (Test::StringEquals, Wanted::Text(pattern)) => {
            pattern.text(context).is_some_and(|text| text == value)
        }
        (Test::StringEqualsIgnoreCase, Wanted::Text(pattern)) => {
            pattern.text(context).is_some_and(|text| text.to_lowercase() == value.to_lowercase())
        }
        (Test::StringLike, Wanted::Text(pattern)) => pattern.matches(value, context),
        (Test::Arn, Wanted::Text(pattern)) => pattern.matches_arn(value, context),
        (Test::Number(order), Wanted::Number(wanted)) => {
            value.parse().is_ok_and(|value: f64| in_order(order, value.partial_cmp(wanted)))
        }
        (Test::Date(order), Wanted::Time(wanted)) => {
            time(value).is_some_and(|value| in_order(order, Some(value.cmp(wanted))))
        }
        (Test::Bool, Wanted::Is(wanted)) => {
            value.eq_ignore_ascii_case(if *wanted { "true" } else { "false" })
        }
        (Test::IpAddress, Wanted::Network(network, bits)) => {
            value.parse().is_ok_and(|address| is_in(address, *network, *bits))
        }
        _ => false,
    }
}

fn in_order(order: Order, found: Option<std::cmp::Ordering>) -> bool {
    found.is_some_and(|found| match order {
        Order::Equal => found.is_eq(),
        Order::Less => found.is_lt(),
        Order::LessOrEqual => found.is_le(),
        Order::Greater => found.is_gt(),
        Order::GreaterOrEqual => found.is_ge(),
    })
}

/// A date of ISO 8601, a day alone, or seconds since 1970.
fn time(text: &str) -> Option<Timestamp> {
    let day = || {
        text.parse::<jiff::civil::Date>()
            .ok()?
            .to_zoned(jiff::tz::TimeZone::UTC)
            .ok()
            .map(|day| day.timestamp())
    };
    let seconds = || Timestamp::from_second(text.parse().ok()?).ok();
    text.parse().ok().or_else(seconds).or_else(day)
}

/// An address, and how many of its first bits count.
fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    (bits <= most).then_some((address, bits))
}

fn is_in(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let differ = address.to_bits() ^ network.to_bits();
            differ.leading_zeros() >= bits
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let differ = address.to_bits() ^ network.to_bits();
            differ.leading_zeros() >= bits
        }
        _ => false,
    }
}
