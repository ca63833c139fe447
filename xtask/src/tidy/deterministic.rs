//! The test programs that `cargo xtask flaky` leaves out must be deterministic: they exist, and neither their tests nor, for
//! a crate's own tests, the crate names a thread, a process, a socket or a clock. Every other program is repeated, so
//! that a new one is not forgotten.

use cargo_metadata::{Metadata, TargetKind};

use super::{Findings, Sources, rules::Repeat, sources::names};
use crate::programs;

const RULES: &str = "xtask/tidy.toml";

/// A test program: its name, and what the paths of its sources begin with.
struct Program {
    name: String,
    prefix: String,
}

/// Checks every deterministic program.
pub(super) fn check(metadata: &Metadata, sources: &Sources, rules: &Repeat, findings: &mut Findings) {
    check_programs(&programs(metadata), sources, rules, findings);
}

fn programs(metadata: &Metadata) -> Vec<Program> {
    let program = |package: &cargo_metadata::Package, target: &cargo_metadata::Target| {
        let path = target.src_path.strip_prefix(&metadata.workspace_root).ok()?;
        // A test in one file has no folder of its own.
        let own = !target.kind.contains(&TargetKind::Test) || path.file_name() == Some("main.rs");
        let prefix = if own { format!("{}/", path.parent()?) } else { path.to_string() };
        Some(Program { name: programs::name(package, target)?, prefix })
    };
    let of = |package| {
        let package: &cargo_metadata::Package = package;
        package.targets.iter().filter_map(move |target| program(package, target))
    };
    metadata.packages.iter().flat_map(of).collect()
}

fn check_programs(programs: &[Program], sources: &Sources, rules: &Repeat, findings: &mut Findings) {
    for deterministic in &rules.deterministic {
        let Some(program) = programs.iter().find(|program| program.name == *deterministic) else {
            findings.add(
                RULES,
                0,
                format!("repeat.deterministic names `{deterministic}`, and there is no such test program"),
            );
            continue;
        };
        for (path, source) in sources.iter().filter(|(path, _)| path.starts_with(&program.prefix)) {
            for named in source.named.iter().chain(&source.named_in_tests) {
                if rules.nondeterministic.iter().any(|nondeterministic| names(&named.path, nondeterministic))
                {
                    let message = format!(
                        "names {}, and `./dev flaky` leaves out `{deterministic}`: take it out of repeat.deterministic in {RULES}",
                        named.path
                    );
                    findings.add(path, named.line, message);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn found(deterministic: &str, path: &str, text: &str) -> Vec<String> {
        let programs = [
            Program { name: "ebbtide-volume".into(), prefix: "crates/volume/src/".into() },
            Program { name: "ebbtide-volume physics".into(), prefix: "crates/volume/tests/physics/".into() },
        ];
        let rules = Repeat {
            deterministic: vec![deterministic.into()],
            nondeterministic: vec!["std::thread".into()],
        };
        let source = Source::parse(text, path.contains("/tests/")).unwrap();
        let mut findings = Findings::default();
        check_programs(&programs, &Sources::from([(path.into(), source)]), &rules, &mut findings);
        findings.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_thread_in_a_program_that_is_not_repeated_is_caught() {
        let thread = "use std::thread;";
        let caught = found("ebbtide-volume physics", "crates/volume/tests/physics/main.rs", thread);
        assert!(
            caught[0].contains("main.rs:1: names std::thread, and `./dev flaky` leaves out"),
            "{caught:?}"
        );
        let caught = found("ebbtide-volume", "crates/volume/src/lib.rs", thread);
        assert!(caught[0].contains("lib.rs:1"), "{caught:?}");
        let in_tests = "#[cfg(test)]\nmod tests { use std::thread::spawn; }";
        let caught = found("ebbtide-volume", "crates/volume/src/lib.rs", in_tests);
        assert!(caught[0].contains("lib.rs:2: names std::thread::spawn"), "{caught:?}");
        assert_eq!(
            found("ebbtide-volume", "crates/volume/src/lib.rs", "use std::mem;"),
            Vec::<String>::new()
        );
        assert_eq!(found("ebbtide-volume", "crates/device/src/lib.rs", thread), Vec::<String>::new());
    }

    #[test]
    fn a_deterministic_program_that_does_not_exist_is_caught() {
        let caught = found("ebbtide-volume pysics", "crates/volume/src/lib.rs", "use std::mem;");
        assert!(caught[0].contains("names `ebbtide-volume pysics`, and there is no such test program"));
    }
}
