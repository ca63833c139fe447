//! Expressions as text.

use super::error::ParseError;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::monitoring) enum Expression {
    Number(f64),
    Text(String),
    /// The id of a metric or of an expression.
    Id(String),
    Negated(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    Call(String, Vec<Expression>),
    List(Vec<Expression>),
}

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::monitoring) enum Operator {
    Or,
    And,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Unequal,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

/// Signs by how weakly they bind. A longer sign stands before its beginning.
const LEVELS: [&[(&str, Operator)]; 6] = [
    &[("||", Operator::Or), ("OR", Operator::Or)],
    &[("&&", Operator::And), ("AND", Operator::And)],
    &[
        ("<=", Operator::AtMost),
        (">=", Operator::AtLeast),
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide)],
    &[("^", Operator::Power)],
];

/// How deep parentheses and calls may lie in each other.
const DEEPEST: usize = 50;

/// Reads an expression.
pub(in crate::monitoring) fn parse(text: &str) -> Result<Expression, ParseError> {
    let mut parser = Parser { rest: text.trim_start(), depth: 0 };
    let expression = parser.level(0)?;
    if parser.rest.is_empty() { Ok(expression) } else { Err(ParseError::Unexpected(parser.rest.to_owned())) }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn accept(&mut self, sign: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(sign) else { return false };
        let is_word = sign.starts_with(|letter: char| letter.is_ascii_alphabetic());
        if is_word && rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_') {
            return false;
        }
        self.rest = rest.trim_start();
        true
    }

    fn demand(&mut self, sign: &'static str) -> Result<(), ParseError> {
        if self.accept(sign) { Ok(()) } else { Err(ParseError::Missing { sign, at: self.rest.to_owned() }) }
    }

    fn level(&mut self, level: usize) -> Result<Expression, ParseError> {
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some((_, operator)) = signs.iter().find(|(sign, _)| self.accept(sign)) {
            let right = self.level(level + 1)?;
            left = Expression::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(ParseError::TooDeep);
        }
        let found =
            if self.accept("-") { Ok(Expression::Negated(Box::new(self.unary()?))) } else { self.atom() };
        self.depth -= 1;
        found
    }

    fn atom(&mut self) -> Result<Expression, ParseError> {
        if self.accept("(") {
            let inner = self.level(0)?;
            self.demand(")")?;
            return Ok(inner);
        }
        if self.accept("[") {
            return Ok(Expression::List(self.items("]")?));
        }
        for quote in ["\"", "'"] {
            if let Some(rest) = self.rest.strip_prefix(quote) {
                let (text, rest) = rest.split_once(quote).ok_or(ParseError::OpenText)?;
                self.rest = rest.trim_start();
                return Ok(Expression::Text(text.to_owned()));
            }
        }
        let number = self.take(|letter| letter.is_ascii_digit() || letter == '.');
        if !number.is_empty() {
            let number: f64 = number.parse().map_err(|_| ParseError::Number(number.to_owned()))?;
            return Ok(Expression::Number(number));
        }
        let word = self.take(|letter| letter.is_ascii_alphanumeric() || letter == '_').to_owned();
        if word.is_empty() {
            let at = if self.rest.is_empty() { "the end" } else { self.rest };
            return Err(ParseError::NoValue(at.to_owned()));
        }
        if self.accept("(") { Ok(Expression::Call(word, self.items(")")?)) } else { Ok(Expression::Id(word)) }
    }

    fn items(&mut self, end: &'static str) -> Result<Vec<Expression>, ParseError> {
        let mut items = Vec::new();
        if self.accept(end) {
            return Ok(items);
        }
        loop {
            items.push(self.level(0)?);
            if self.accept(end) {
                return Ok(items);
            }
            self.demand(",")?;
        }
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &str {
        let rest = self.rest;
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        self.rest = rest[end..].trim_start();
        &rest[..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_bind_as_in_arithmetic() {
        let plain = |text: &str| format!("{:?}", parse(text).unwrap());
        assert_eq!(plain("a+b*c"), plain("a + (b * c)"));
        assert_eq!(plain("a-b-c"), plain("(a-b)-c"));
        assert_eq!(plain("a/b/c"), plain("(a/b)/c"));
        assert_eq!(plain("-a*b"), plain("(-a)*b"));
        assert_eq!(plain("a>1 AND b<2 OR c==3"), plain("((a>1) AND (b<2)) OR (c==3)"));
        assert_eq!(plain("ORDER+1"), plain("(ORDER)+(1)"), "a word that begins with OR");
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for wrong in ["", "a+", "(a", "a b", "SUM(a", "SUM(a,)", "1.2.3", "\"a", "a ? b", &"(".repeat(10_000)]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let missing = |sign, at: &str| ParseError::Missing { sign, at: at.to_owned() };
        for (wrong, error, text) in [
            ("a b", ParseError::Unexpected("b".to_owned()), "unexpected 'b'"),
            ("SUM(a b", missing(",", "b"), "',' is missing at 'b'"),
            ("(a", missing(")", ""), "')' is missing at ''"),
            (&"(".repeat(10_000), ParseError::TooDeep, "it is nested too deep"),
            ("'a", ParseError::OpenText, "a text has no end"),
            ("1.2.3", ParseError::Number("1.2.3".to_owned()), "'1.2.3' is no number"),
            (
                "a+",
                ParseError::NoValue("the end".to_owned()),
                "a metric, number or function is missing at 'the end'",
            ),
        ] {
            assert_eq!((parse(wrong), error.to_string().as_str()), (Err(error), text));
        }
    }
}
