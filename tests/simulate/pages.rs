//! The samples of pages: what a page quotes of a command is what the command prints at 80 columns.

use std::process::Command;

use ebbtide_text::shell_words::unquoted;

/// The commands of a page's blocks of a console, each with what the page quotes of its output.
fn samples(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```\n").next());
    blocks.filter_map(|block| block.strip_prefix("$ ")?.split_once('\n')).collect()
}

/// The first part of a quotation that the output does not have in its place; `...` stands for any lines.
fn missing<'q>(quoted: &'q str, output: &str) -> Option<&'q str> {
    let mut rest = output;
    quoted.split("...\n").find(|part| match rest.find(part) {
        Some(place) => {
            rest = &rest[place + part.len()..];
            false
        }
        None => true,
    })
}

#[test]
fn the_pages_of_simulate_predict_and_size_quote_what_the_commands_print() {
    let root = env!("CARGO_MANIFEST_DIR");
    for (name, samples_at_least) in
        [("docs/predict.md", 3), ("docs/size.md", 1), ("docs/simulate.md", 1), ("README.md", 1)]
    {
        let page = std::fs::read_to_string(format!("{root}/{name}")).unwrap();
        let samples = samples(&page);
        let of_command = ["ebbtide predict ", "ebbtide size ", "ebbtide simulate "];
        let samples =
            samples.into_iter().filter(|(line, _)| of_command.iter().any(|begin| line.starts_with(begin)));
        let mut seen = 0;
        for (line, quoted) in samples {
            let words = unquoted(line).unwrap();
            let output = Command::new(env!("CARGO_BIN_EXE_ebbtide"))
                .env("EBBTIDE_HOME", "/nonexistent/home")
                .env("COLUMNS", "80")
                .current_dir(root)
                .args(&words[1..])
                .output()
                .unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let missing = missing(quoted, &printed);
            assert!(
                missing.is_none(),
                "{name}: {line} does not print\n{}\nbut\n{printed}",
                missing.unwrap_or_default()
            );
            seen += 1;
        }
        assert!(seen >= samples_at_least, "{name} has {seen} samples");
    }
}

#[test]
fn a_figure_that_a_command_does_not_print_is_noticed() {
    let printed = "a 1\nb 2\nc 3\n";
    for right in ["a 1\nb 2\nc 3\n", "a 1\n...\nc 3\n", "...\nb 2\n...\n"] {
        assert_eq!(missing(right, printed), None, "{right}");
    }
    for wrong in ["a 2\n", "c 3\n...\na 1\n", "a 1\nc 3\n"] {
        assert!(missing(wrong, printed).is_some(), "{wrong}");
    }
}
