//! `docs/tutorial.md` as a reader would follow it: the test writes the page's files, runs its commands and compares what
//! they print with what the page quotes.
//!
//! Commands in `console` blocks are run, in their order, in one directory. Those that install are in `sh` blocks and are
//! not run: README.md has the same ones. [`SHORTER`] lists the options that are added so that the test ends in two minutes.

use std::path::Path;
use std::process::Command;

use crate::harness::{EBBTIDE, Home, Need, Ran, can};

/// What a command begins with, and the options that the test adds. None of them changes what is compared.
const SHORTER: [(&str, &str); 2] = [
    (
        "ebbtide run ",
        "--repeats 1 --measure 10s --set warmup.lead_in=1s --set warmup.settle=1s --set data.rows=20000",
    ),
    ("ebbtide crash ", "--set crash.cuts=3 --set crash.keep=0 --set warmup.settle=1s"),
];

/// The page, block by block.
struct Page {
    /// Files with their content: a `toml` block whose first line is a comment with the file's name.
    files: Vec<(String, String)>,
    commands: Vec<Quoted>,
    /// Lines of `sh` blocks.
    install: Vec<String>,
    /// Everything outside blocks.
    prose: String,
}

/// A command of the page, and the lines of its output that the page quotes.
struct Quoted {
    command: String,
    output: Vec<String>,
}

fn page() -> Page {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut page =
        Page { files: Vec::new(), commands: Vec::new(), install: Vec::new(), prose: String::new() };
    for (index, part) in text.split("```").enumerate() {
        if index % 2 == 0 {
            page.prose.push_str(part);
            continue;
        }
        let (kind, block) = part.split_once('\n').unwrap();
        match kind {
            "console" => page.commands.extend(quoted(block)),
            "sh" => page.install.extend(block.lines().map(str::to_owned)),
            "toml" => {
                let name = block.lines().next().unwrap().strip_prefix("# ").unwrap();
                page.files.push((name.to_owned(), block.to_owned()));
            }
            other => panic!("a block of '{other}', which the test does not know"),
        }
    }
    page
}

/// The commands of a block. A command goes on behind a backslash at the end of its line.
fn quoted(block: &str) -> Vec<Quoted> {
    let mut commands: Vec<Quoted> = Vec::new();
    let block = block.replace("\\\n", " ");
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push(Quoted { command: squeezed(command), output: Vec::new() });
        } else if line != "..." && !line.is_empty() {
            commands.last_mut().unwrap().output.push(line.to_owned());
        }
    }
    commands
}

/// A text with one blank wherever there is space.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of a line, with `#` for each that has a digit, and nouns in the singular: what stays the same from run to run.
fn form(line: &str) -> String {
    let word = |word: &str| {
        let has_digit = word.contains(|c: char| c.is_ascii_digit());
        if has_digit { "#".into() } else { word.strip_suffix('s').unwrap_or(word).to_owned() }
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// Whether a line has what an arm is worth against the baseline. What it finds is not the same in a short run.
fn is_verdict(line: &str) -> bool {
    [
        " times the transactions of ",
        " more transactions than ",
        " fewer transactions than ",
        "no difference seen between ",
    ]
    .iter()
    .any(|words| line.contains(words))
}

/// The first cell of a table's row, where the line is one.
fn first_cell(line: &str) -> Option<&str> {
    line.split_once("  ").map(|(cell, _)| cell).filter(|cell| !cell.is_empty())
}

/// Whether an output has this line of the page: a table's head to the letter, a row by its first cell, a verdict as any
/// verdict, all else with other figures.
fn is_quoted_rightly(line: &str, output: &str) -> bool {
    let is_head = !line.contains(|c: char| c.is_ascii_lowercase()) && first_cell(line).is_some();
    let mut lines = output.lines();
    if is_head {
        return lines.any(|real| squeezed(real) == squeezed(line));
    }
    if is_verdict(line) {
        return lines.any(is_verdict);
    }
    if let Some(cell) = first_cell(line) {
        return lines.any(|real| first_cell(real) == Some(cell));
    }
    lines.any(|real| form(real) == form(line))
}

/// Runs a command of the page in a directory, with the program under test as `ebbtide`.
fn shell(directory: &Path, home: &Home, command: &str) -> Ran {
    let bin = Path::new(EBBTIDE).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-c", command]).current_dir(directory).env("PATH", path).env("EBBTIDE_HOME", home.root());
    Ran::of(shell.output().unwrap())
}

#[test]
fn the_tutorial_installs_as_the_readme_does_and_shows_pictures_that_are_there() {
    let page = page();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    assert!(!page.install.is_empty());
    for line in &page.install {
        let command = line.split(" # ").next().unwrap().trim();
        assert!(readme.contains(command), "README.md does not have '{command}'");
    }
    let pictures: Vec<&str> =
        page.prose.split("](images/").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    assert_eq!(pictures.len(), 3, "{pictures:?}");
    let script = std::fs::read_to_string(root.join("scripts/tutorial-pictures.sh")).unwrap();
    for picture in pictures {
        let bytes = std::fs::read(root.join("docs/images").join(picture)).unwrap();
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() < 80_000, "{picture}: {} bytes", bytes.len());
        assert!(script.contains(&format!("picture {} ", picture.trim_end_matches(".png"))), "{picture}");
    }
}

#[test]
fn the_commands_of_the_tutorial_run_and_print_what_it_quotes() {
    let needs = [Need::BlockDevices, Need::Tool("mariadbd"), Need::Tool("mkfs.xfs"), Need::Tool("mkfs.ext4")];
    if !can(&needs) {
        return;
    }
    let page = page();
    let home = Home::new();
    let directory = home.sibling("work");
    std::fs::create_dir(&directory).unwrap();
    for (name, content) in &page.files {
        std::fs::write(directory.join(name), content).unwrap();
    }
    let starts = |with: &str| page.commands.iter().filter(|one| one.command.starts_with(with)).count();
    let kinds = ["ebbtide simulate ", "ebbtide run ", "ebbtide crash "];
    assert!(kinds.iter().all(|kind| starts(kind) > 0), "a step of the page is gone");
    let mut all = String::new();
    for Quoted { command, output } in &page.commands {
        let shorter =
            SHORTER.iter().find(|(begin, _)| command.starts_with(begin) && !command.contains("--check"));
        let ran =
            shell(&directory, &home, &format!("{command} {}", shorter.map_or("", |(_, options)| options)));
        // 1: cuts that lost commits, or trials too short to count on a busy machine.
        let most = i32::from(shorter.is_some());
        assert!((0..=most).contains(&ran.code), "{command}: {}\n{}\n{}", ran.code, ran.stdout, ran.stderr);
        assert!(!output.is_empty(), "the page quotes nothing of '{command}'");
        let printed = format!("{}\n{}", ran.stdout, ran.stderr);
        for line in output {
            assert!(is_quoted_rightly(line, &printed), "{command} does not print '{line}' but:\n{printed}");
        }
        // Virtual time has no chance in it: the same seed, the same figures.
        if command.starts_with("ebbtide simulate ") {
            let real: Vec<String> = printed.lines().map(squeezed).collect();
            for line in output {
                assert!(real.contains(&squeezed(line)), "not to the letter: '{line}' in\n{printed}");
            }
        }
        all.push_str(&printed);
    }
    for report in ["trials/report.html", "cuts/report.html"] {
        all.push_str(&std::fs::read_to_string(directory.join(report)).unwrap());
    }
    // What the text calls a heading, a column or a verdict is in bold there.
    for word in page.prose.split("**").skip(1).step_by(2) {
        assert!(all.contains(word), "neither a command nor a report says '{word}'");
    }
}

#[test]
fn a_line_that_no_command_prints_is_noticed() {
    let output = "ARM  TPS  95%\nnow  45.2  40 to 50\ngp3 carries 8.01 times the transactions of now (7 to 9, 95%)\n\
                  4 arms, 2 trials of each, 10 s measured\n";
    for good in [
        "ARM        TPS  95%",
        "now   9.9  9 to 10",
        "no difference seen between gp3 and now (0.9 to 1.1, 95%)",
        "4 arms, 3 trials of each, 15 s measured",
        "4 arms, 1 trial of each, 15 s measured",
    ] {
        assert!(is_quoted_rightly(good, output), "{good}");
    }
    for bad in ["ARM  TPS  P95", "then  9.9  9 to 10", "4 arms, 3 rounds of each, 15 s measured"] {
        assert!(!is_quoted_rightly(bad, output), "{bad}");
    }
    assert!(!is_quoted_rightly("gp3 carries 8.01 times the transactions of now", "ARM  TPS\n"));
}
