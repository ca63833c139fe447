//! Texts with `*`, `?` and variables such as `${aws:username}`.

use super::Context;

/// Patterns of which one must match, or none may.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Patterns {
    pub(super) patterns: Vec<Pattern>,
    /// As in `NotAction` and `NotResource`.
    pub(super) is_negated: bool,
}

impl Patterns {
    pub(super) fn hold(&self, matches: impl Fn(&Pattern) -> bool) -> bool {
        self.patterns.iter().any(matches) != self.is_negated
    }
}

/// A text with wildcards and variables.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pattern {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    /// `*`
    Any,
    /// `?`
    One,
    /// `${key}` or `${key, 'default'}`
    Variable {
        key: String,
        default: Option<String>,
    },
}

/// A pattern whose variables have their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Letter(char),
    Any,
    One,
}

impl Pattern {
    /// Reads a pattern; variables are texts where the version of the policy has none.
    ///
    /// # Errors
    /// A variable that does not end, or is empty.
    pub(super) fn parse(text: &str, has_variables: bool) -> Result<Self, &'static str> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let special = match c {
                '*' => Some((Part::Any, &rest[1..])),
                '?' => Some((Part::One, &rest[1..])),
                '$' if has_variables && rest.starts_with("${") => Some(variable(rest)?),
                _ => None,
            };
            if let Some((part, after)) = special {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(part);
                rest = after;
            } else {
                plain.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self { parts })
    }

    /// Whether it has the form of an action: `*`, or a service and an action.
    pub(super) fn is_action(text: &str) -> bool {
        let is_name = |name: &str, more: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        text == "*"
            || text
                .split_once(':')
                .is_some_and(|(service, action)| is_name(service, "-") && is_name(action, "*?"))
    }

    /// Whether a text matches; none does where a variable has no value.
    pub(super) fn matches(&self, text: &str, context: &Context) -> bool {
        self.tokens(Some(context)).is_some_and(|tokens| glob(&tokens, &text.chars().collect::<Vec<_>>()))
    }

    /// Whether an action matches, which has no variables and no case.
    pub(super) fn matches_ignoring_case(&self, text: &str) -> bool {
        let lower = |c: &mut Token| {
            if let Token::Letter(c) = c {
                *c = c.to_ascii_lowercase();
            }
        };
        self.tokens(None).is_some_and(|mut tokens| {
            tokens.iter_mut().for_each(lower);
            glob(&tokens, &text.to_ascii_lowercase().chars().collect::<Vec<_>>())
        })
    }

    /// Whether an ARN matches part by part: a wildcard does not reach over a colon.
    pub(super) fn matches_arn(&self, arn: &str, context: &Context) -> bool {
        let Some(tokens) = self.tokens(Some(context)) else { return false };
        let mut patterns = tokens.splitn(6, |token| *token == Token::Letter(':'));
        let mut parts = arn.splitn(6, ':');
        loop {
            match (patterns.next(), parts.next()) {
                (None, None) => return true,
                (Some(pattern), Some(part)) if glob(pattern, &part.chars().collect::<Vec<_>>()) => {}
                _ => return false,
            }
        }
    }

    /// The text with the values of its variables, where wildcards are letters.
    pub(super) fn text(&self, context: &Context) -> Option<String> {
        let letter = |token| match token {
            Token::Letter(c) => c,
            Token::Any => '*',
            Token::One => '?',
        };
        self.tokens(Some(context)).map(|tokens| tokens.into_iter().map(letter).collect())
    }

    /// Wildcards in the values of variables are letters.
    fn tokens(&self, context: Option<&Context>) -> Option<Vec<Token>> {
        let mut tokens = Vec::new();
        for part in &self.parts {
            match part {
                Part::Any => tokens.push(Token::Any),
                Part::One => tokens.push(Token::One),
                Part::Text(text) => tokens.extend(text.chars().map(Token::Letter)),
                Part::Variable { key, default } => {
                    let value = context.and_then(|context| context.one(key)).or(default.as_deref())?;
                    tokens.extend(value.chars().map(Token::Letter));
                }
            }
        }
        Some(tokens)
    }
}

/// A variable at the beginning of a text, and what follows it.
fn variable(text: &str) -> Result<(Part, &str), &'static str> {
    let end = text.find('}').ok_or("the variable has no '}'")?;
    let (inside, rest) = (&text[2..end], &text[end + 1..]);
    let part = match inside {
        // Letters that would mean something else.
        "*" | "?" | "$" => Part::Text(inside.to_owned()),
        _ => {
            let (key, default) = match inside.split_once(',') {
                None => (inside.trim(), None),
                Some((key, default)) => {
                    let default = default.trim();
                    let text = default.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
                    (
                        key.trim(),
                        Some(text.ok_or("the default of a variable is not in single quotes")?.to_owned()),
                    )
                }
            };
            if key.is_empty() {
                return Err("the variable has no name");
            }
            Part::Variable { key: key.to_owned(), default }
        }
    };
    Ok((part, rest))
}

/// Whether a text matches, in a time of at most the product of both lengths: after a mismatch, the last `*` takes one
/// letter more.
fn glob(pattern: &[Token], text: &[char]) -> bool {
    let (mut at, mut letter) = (0, 0);
    let mut star = None;
    while letter < text.len() {
        match pattern.get(at) {
            Some(Token::Any) => {
                star = Some((at, letter));
                at += 1;
            }
            Some(Token::One) => (at, letter) = (at + 1, letter + 1),
            Some(Token::Letter(c)) if *c == text[letter] => (at, letter) = (at + 1, letter + 1),
            _ => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                (at, letter) = (star_at + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|token| *token == Token::Any)
}
