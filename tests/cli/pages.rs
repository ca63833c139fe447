//! Pages of docs/ compared with the program: commands with their output, and lists of files.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::{EBBTIDE, Home, Ran};

/// The home of the pages.
const HOME: &str = "/srv/ebb";

fn page_text(page: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page)).unwrap()
}

/// The first block of a page that begins with a command.
fn opening(page: &str) -> String {
    let text = page_text(page);
    let block =
        text.split("```console\n").nth(1).unwrap_or_else(|| panic!("{page} has no block of commands"));
    assert!(text.find("```console\n").unwrap() < 80, "{page} opens with it");
    block.split("```").next().unwrap().to_owned()
}

/// What commands of a page print, each after its own line. Numbers of processes are replaced.
fn printed(page: &str, home: &Home) -> String {
    let (mut text, mut code) = (String::new(), 0);
    for line in page.lines().filter(|line| line.starts_with("$ ")) {
        text += &format!("{line}\n");
        let words = line.trim_start_matches("$ ");
        if words.starts_with("export ") {
            continue;
        }
        if words == "echo $?" {
            text += &format!("{code}\n");
            continue;
        }
        let words = words.strip_prefix("ebbtide ").unwrap_or_else(|| panic!("what is {line}?"));
        let shell = format!("exec \"$EBBTIDE\" {words}");
        let mut command = Command::new("sh");
        command
            .args(["-c", &shell])
            .env("EBBTIDE", EBBTIDE)
            .env("EBBTIDE_HOME", home.root())
            .stdin(Stdio::null());
        let ran = Ran::of(command.output().unwrap());
        text += &(ran.stdout + &ran.stderr).replace(home.root().to_str().unwrap(), HOME);
        code = ran.code;
    }
    without_process(&text)
}

fn without_process(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(" as process ") {
        Some((before, number)) if number.parse::<u32>().is_ok() => format!("{before} as process N"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_pages_open_with_commands_and_what_they_print() {
    for page in ["cli.md", "troubleshooting.md", "catalog.md"] {
        let block = opening(page);
        let home = Home::new();
        assert_eq!(printed(&block, &home), without_process(&block), "docs/{page}");
    }
}

/// The files of Rust below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_page_on_extending_names_every_file_that_knows_a_workload_by_name() {
    let (root, page) = (Path::new(env!("CARGO_MANIFEST_DIR")), page_text("extending.md"));
    let mut known = 0;
    for path in sources(&root.join("src")).into_iter().chain(sources(&root.join("crates/lab/src"))) {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        if code.contains("LoadKind::Tpcc") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            assert!(page.contains(&format!("`{name}`")), "docs/extending.md does not name {name}");
            known += 1;
        }
    }
    assert!(known > 5, "{known} files are too few: are they found?");
}

#[test]
fn the_page_on_the_load_has_a_row_for_each_workload_of_the_list() {
    let page = page_text("load.md").replace('`', "");
    for one in ebbtide_load::WORKLOADS {
        let row = format!("| {} | {} |", one.name, one.meaning);
        assert!(page.contains(&row), "docs/load.md lacks the row {row}");
    }
}
