//! Each fix of settings is carried out, the server is started again, and the finding must be gone.
//!
//! A statement alone shows nothing of the next start: an option of the file may undo it. With `--plant-void` the last line of
//! each fix is left out of the option file, so that fixes that need it are void: the bench must say so.

use serde_json::Value;

use crate::judge::{Loading, doctor};
use crate::servers::{Options, Program, Running};
use crate::situations::Situation;

/// What came of a fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// The finding is gone after the restart.
    Kept,
    /// A statement was refused, or the finding is there again.
    Void(String),
}

/// Whether fixes are to be made void, to see that this is noticed.
pub(crate) fn is_planted() -> bool {
    std::env::args().any(|word| word == "--plant-void")
}

/// Carries out the fixes of the planted findings and looks again after a restart; None where no fix is one of settings.
pub(crate) fn try_fixes(
    running: &mut Running,
    program: &Program,
    situation: &Situation,
    options: &Options,
    answer: &Value,
    load: Option<Loading>,
) -> Option<Fixed> {
    let fixes: Vec<(&str, &Value)> = findings(answer)
        .filter(|(code, finding)| situation.must.contains(code) && !list(&finding["fix"]["set"]).is_empty())
        .map(|(code, finding)| (code, &finding["fix"]))
        .collect();
    if fixes.is_empty() || situation.edit.is_some() {
        return None;
    }
    let mut options = options.clone();
    for (_, fix) in &fixes {
        if let Err(why) = carry_out(running, fix, &mut options) {
            return Some(Fixed::Void(why));
        }
    }
    let had_load = load.is_some();
    drop(load);
    if let Err(why) = running.restart(program, &options) {
        return Some(Fixed::Void(why));
    }
    let again = situation.load.filter(|_| had_load).map(|load| Loading::again(running, load));
    let after = match doctor(running, situation) {
        Ok(after) => after,
        Err(why) => return Some(Fixed::Void(why)),
    };
    drop(again);
    let back: Vec<&str> = findings(&after).map(|(code, _)| code).filter(|code| has(&fixes, code)).collect();
    Some(if back.is_empty() {
        Fixed::Kept
    } else {
        Fixed::Void(format!("{} is there again after the restart", back.join(" ")))
    })
}

fn has(fixes: &[(&str, &Value)], code: &str) -> bool {
    fixes.iter().any(|(own, _)| *own == code)
}

/// Executes the statements of a fix, and writes its lines into the options.
fn carry_out(running: &Running, fix: &Value, options: &mut Options) -> Result<(), String> {
    let mut session = running.session();
    for statement in list(&fix["statements"]) {
        if statement.starts_with("SELECT ") {
            session.rows(statement).map_err(|error| format!("{statement}: {error}"))?;
        } else if !(is_planted() && statement.starts_with("SET PERSIST ")) {
            session.execute(statement).map_err(|error| format!("{statement}: {error}"))?;
        }
    }
    let lines = list(&fix["my_cnf"]);
    let kept = lines.len() - usize::from(is_planted() && !lines.is_empty());
    for line in &lines[..kept] {
        let (name, value) =
            line.split_once(" = ").ok_or_else(|| format!("{line} is no option with a value"))?;
        let name = name.replace('_', "-");
        options.remove(&format!("{name}#2"));
        // The option that undoes it is deleted where the fix says so.
        let undoes = format!("skip-{name}");
        if fix["text"].as_str().is_some_and(|text| text.contains(&undoes)) {
            options.remove(&undoes);
        }
        options.insert(name, value.to_owned());
    }
    Ok(())
}

fn findings(answer: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let all = answer["findings"].as_array().into_iter().flatten();
    all.map(|finding| (finding["code"].as_str().unwrap_or_default(), finding))
}

/// The texts of a list; the names of variables where it has changes.
fn list(texts: &Value) -> Vec<&str> {
    let all = texts.as_array().into_iter().flatten();
    all.filter_map(|one| one.as_str().or_else(|| one["variable"].as_str())).collect()
}
