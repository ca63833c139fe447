//! Manual pages and completions: one for each command, complete, and read by the programs they are for.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::harness::{EBBTIDE, Home, Need, Ran, can};

fn help(path: &[String]) -> String {
    Ran::of(Command::new(EBBTIDE).args(path).arg("--help").output().unwrap()).ok().stdout
}

/// Every command as the words that lead to it, with its help; found through the help alone.
fn commands() -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    let mut left = vec![Vec::new()];
    while let Some(path) = left.pop() {
        let text = help(&path);
        let names = text.lines().skip_while(|line| *line != "Commands:").skip(1);
        let names = names.take_while(|line| line.starts_with(' ')).filter(|line| !line.starts_with("   "));
        for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
            left.push([&path[..], &[name.to_owned()]].concat());
        }
        found.push((path, text));
    }
    assert!(found.len() > 20, "volume, snapshot and load have commands below them: {}", found.len());
    found
}

/// The long options at the beginning of the lines of a help text.
fn options(help: &str) -> BTreeSet<&str> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = lines.filter_map(|line| line.split([' ', ',', '=', '[']).find(|word| word.starts_with("--")));
    words.map(|word| word.trim_end_matches('.')).collect()
}

#[test]
fn every_command_has_a_manual_page_with_all_of_its_options() {
    let home = Home::new();
    let directory = home.sibling("man");
    let written = home.run(&["man-pages", directory.to_str().unwrap(), "--json"]).ok().json();
    let listed: BTreeSet<String> = serde_json::from_value(written["pages"].clone()).unwrap();
    let mut wanted = BTreeSet::new();
    for (path, help) in commands() {
        let name = format!("{}.1", [&["ebbtide".to_owned()], &path[..]].concat().join("-"));
        let page =
            fs::read_to_string(directory.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let page = page.replace('\\', "");
        let options = options(&help);
        assert!(options.contains("--help") && options.contains("--json"), "{name}: {options:?}");
        for option in options {
            assert!(page.contains(option), "{name} lacks {option}:\n{page}");
        }
        wanted.insert(name);
    }
    assert_eq!(listed, wanted, "no page of a command that does not exist");
    let files =
        fs::read_dir(&directory).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.collect::<BTreeSet<_>>(), wanted);
    if !can(&[Need::Tool("man")]) {
        return;
    }
    for name in wanted {
        let mut man = Command::new("man");
        man.args(["--warnings", "--local-file"]).arg(directory.join(&name));
        let shown = Ran::of(man.env("LC_ALL", "C.UTF-8").env("MANWIDTH", "100").output().unwrap()).ok();
        assert!(shown.stdout.contains("SYNOPSIS") && shown.stderr.is_empty(), "{name}: {}", shown.stderr);
    }
}

#[test]
fn a_place_where_no_page_can_be_written_is_named() {
    let home = Home::new();
    home.run(&["man-pages", "/proc/nobody/man1"]).refused(3, &["/proc/nobody/man1", "cannot be written"]);
}

#[test]
fn the_completions_of_every_shell_know_every_command_and_option() {
    let home = Home::new();
    let commands = commands();
    for shell in ["bash", "fish", "zsh"] {
        let script = home.run(&["completions", shell]).ok().stdout;
        assert_eq!(home.run(&["completions", shell, "--json"]).ok().json()["script"], script);
        for (path, help) in &commands {
            for word in path.iter().map(String::as_str).chain(options(help)) {
                // fish names an option without its dashes.
                let word = if shell == "fish" { word.trim_start_matches('-') } else { word };
                assert!(script.contains(word), "{shell}: {path:?} lacks {word}");
            }
        }
        let file = home.sibling(shell);
        fs::write(&file, script).unwrap();
        if can(&[Need::Tool(shell)]) {
            Ran::of(Command::new(shell).arg("-n").arg(&file).output().unwrap()).ok();
        }
    }
    home.run(&["completions", "csh"]).refused(2, &["csh", "bash, fish, zsh"]);
}

#[test]
fn bash_completes_a_command_an_option_and_its_values() {
    let home = Home::new();
    let script = home.sibling("script");
    fs::write(&script, home.run(&["completions", "bash"]).ok().stdout).unwrap();
    let completed = |words: &str| {
        let last = words.rsplit(' ').next().unwrap();
        let count = words.split(' ').count() - 1;
        let ask = format!(
            ". {}; COMP_WORDS=({words} ''); COMP_CWORD={count}; _ebbtide ebbtide {last:?} x; echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        Ran::of(Command::new("bash").args(["-c", &ask]).output().unwrap()).ok().line().to_owned()
    };
    assert_eq!(completed("ebbtide volume cr"), "create crash-image");
    assert_eq!(completed("ebbtide volume create --see"), "--seed");
    assert_eq!(completed("ebbtide completions z"), "zsh");
}
