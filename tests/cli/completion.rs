//! Completion of names, asked by the shells themselves.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{EBBTIDE, Home, Need, Ran, can};

/// A home with a volume, a snapshot and a user.
fn home() -> Home {
    let home = Home::served();
    home.run_line("volume create shop gp3:size=1GiB").ok();
    home.run_line("volume create shop-logs gp3:size=1GiB").ok();
    home.run_line("snapshot create monday --volume shop").ok();
    home.run_line("user create anna").ok();
    home
}

fn script(home: &Home, shell: &str) -> String {
    let file = home.sibling(&format!("names.{shell}"));
    fs::write(&file, home.run(&["completions", shell, "--names"]).ok().stdout).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A shell that finds this program, and this home.
fn shell(home: &Home, name: &str, commands: &str) -> Vec<String> {
    let folder = Path::new(EBBTIDE).parent().unwrap().to_str().unwrap();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let flags: &[&str] = if name == "bash" { &["--norc", "-c"] } else { &["-c"] };
    let mut command = Command::new(name);
    command.args(flags).arg(commands).env("PATH", path).env("EBBTIDE_HOME", home.root());
    let ran = Ran::of(command.env("HOME", home.sibling("nobody")).output().unwrap()).ok();
    ran.stdout.lines().map(str::to_owned).collect()
}

/// What bash completes at the end of a line, as its function answers.
fn in_bash(home: &Home, script: &str, line: &str) -> Vec<String> {
    // bash breaks words at these signs.
    let command = &line[line.find("ebbtide").unwrap()..];
    let broken = command.replace(':', " : ").replace('=', " = ");
    let commands = format!(
        ". {script}; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({broken}); compopt() {{ echo nospace; }}
        _ebbtide_names; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    shell(home, "bash", &commands)
}

#[test]
fn bash_completes_names_of_the_home_and_specs_behind_its_breaks() {
    let home = home();
    let script = script(&home, "bash");
    let completed = |line: &str| in_bash(&home, &script, line);
    assert_eq!(completed("ebbtide volume attach sh"), ["shop", "shop-logs"]);
    assert_eq!(completed("ebbtide volume detach shop-"), ["shop-logs"]);
    assert_eq!(completed("ebbtide volume create copy gp3 --snapshot mo"), ["monday"]);
    assert_eq!(completed("ebbtide snapshot delete "), ["monday"]);
    assert_eq!(completed("ebbtide user delete a"), ["anna"]);
    assert_eq!(completed("ebbtide run same"), ["same-twice"]);
    assert_eq!(completed("ebbtide volume create db gp3:size=500GiB,io"), ["nospace", "500GiB,iops="]);
    assert_eq!(completed("ebbtide size x --volume=gp3:th"), ["nospace", "throughput="]);
    assert_eq!(completed("X=1 ebbtide volume show shop-"), ["shop-logs"]);
    // Another home in the line, in which there is nothing.
    let other = home.sibling("other");
    let line = format!("ebbtide --home {} volume show sh", other.display());
    assert_eq!(completed(&line), [""]);
    assert!(!other.exists(), "nothing is made for a question");
}

#[test]
fn fish_completes_names_of_the_home_and_specs() {
    if !can(&[Need::Tool("fish")]) {
        return;
    }
    let home = home();
    let script = script(&home, "fish");
    let completed = |line: &str| {
        let lines = shell(&home, "fish", &format!("source {script}; complete --do-complete '{line}'"));
        lines.iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(completed("ebbtide volume attach sh"), ["shop", "shop-logs"]);
    assert_eq!(completed("ebbtide snapshot delete mo"), ["monday"]);
    assert_eq!(completed("ebbtide volume create db gp3:size=500GiB,io"), ["gp3:size=500GiB,iops="]);
}

#[test]
fn zsh_completes_names_of_the_home_and_specs() {
    if !can(&[Need::Tool("zsh")]) {
        return;
    }
    let home = home();
    let script = script(&home, "zsh");
    let completed = |line: &str| {
        let words = line.split(' ').map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        // `_describe` gets the name of a list, and behind it options for what is put behind a word.
        let commands = format!(
            "compdef() {{ :; }}; _describe() {{ print -rl -- \"${{(@P)3}}\"; [[ $4 != -S ]] || print 'no blank'; }}
            . {script}; words=({words}); CURRENT=$#words; _ebbtide_names; true"
        );
        shell(&home, "zsh", &commands)
    };
    assert_eq!(completed("ebbtide volume attach sh"), ["shop", "shop-logs"]);
    assert_eq!(completed("ebbtide snapshot delete mo"), ["monday"]);
    let spec = completed("ebbtide volume create db gp3:size=500GiB,io");
    assert_eq!(spec, ["gp3\\:size=500GiB,iops=", "no blank"]);
}

#[test]
fn the_scripts_are_read_by_their_shells_and_ask_for_nothing_else() {
    let home = Home::new();
    for shell in ["bash", "fish", "zsh"] {
        let file = script(&home, shell);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("EBBTIDE_COMPLETE") && !text.contains(EBBTIDE), "{text}");
        let json = home.run(&["completions", shell, "--names", "--json"]).ok().json();
        assert_eq!(json["script"], text);
        if can(&[Need::Tool(shell)]) {
            Ran::of(Command::new(shell).arg("-n").arg(&file).output().unwrap()).ok();
        }
    }
    // A variable that others use changes nothing.
    let mut command = home.command(&["--version"]);
    Ran::of(command.env("COMPLETE", "bash").output().unwrap()).ok();
    let mut command = home.command(&["--version"]);
    Ran::of(command.env("EBBTIDE_COMPLETE", "csh").output().unwrap()).refused(2, &["csh"]);
}
