//! What the program prints as its version, and the build script that makes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::harness::{EBBTIDE, Need, Ran, can, tool};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn ebbtide(arguments: &[&str]) -> Ran {
    Ran::of(Command::new(EBBTIDE).args(arguments).output().unwrap()).with(arguments).ok()
}

#[test]
fn the_version_has_the_commit_and_the_build_date_in_text_and_in_json() {
    let json = ebbtide(&["--version", "--json"]).json();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    let day = json["built"].as_str().unwrap().split('T').next().unwrap().to_owned();
    let short = ebbtide(&["-V"]).stdout;
    let long = ebbtide(&["--version"]).stdout;
    assert!(long.starts_with(&short), "{long}");
    assert!(short.ends_with(&format!("{day})\n")) && short.lines().count() == 1, "{short}");
    assert!(long.contains(&format!("built: {}", json["built"].as_str().unwrap())), "{long}");
    assert_eq!(ebbtide(&["volume", "list", "-V"]).line().split(' ').nth(1), short.split(' ').nth(1));
    if !Path::new(ROOT).join(".git").exists() || !can(&[Need::Tool("git")]) {
        return;
    }
    let commit = tool("git", &["-C", ROOT, "rev-parse", "HEAD"]);
    assert_eq!(json["commit"], commit.trim());
    assert!(long.contains(&format!("commit: {}", commit.trim())), "{long}");
    assert!(short.contains(&commit[..12]), "{short}");
}

/// A package of the build script alone, whose program prints what the script found.
struct Package(TempDir);

impl Package {
    fn new() -> Self {
        let package = Self(TempDir::with_prefix("ebbtide-build-").unwrap());
        let dir = package.dir();
        fs::create_dir_all(dir.join("src")).unwrap();
        for file in ["build.rs", ".gitattributes", ".git-archive"] {
            fs::copy(Path::new(ROOT).join(file), dir.join(file)).unwrap();
        }
        fs::write(dir.join("Cargo.toml"), "[package]\nname = \"sample\"\nedition = \"2024\"\n[workspace]\n")
            .unwrap();
        fs::write(dir.join(".gitignore"), "/target\n/Cargo.lock\n").unwrap();
        package.write_source(0);
        package
    }

    fn dir(&self) -> PathBuf {
        self.0.path().join("sample")
    }

    fn write_source(&self, number: u32) {
        let print = r#"println!("{} {} {}", env!("EBBTIDE_COMMIT"), env!("EBBTIDE_MODIFIED"), env!("EBBTIDE_BUILT"))"#;
        fs::write(self.dir().join("src/main.rs"), format!("fn main() {{ {print} }} // {number}\n")).unwrap();
    }

    /// Runs git in a folder, as a user without a configuration.
    fn git(&self, folder: &Path, words: &[&str]) -> String {
        let who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"];
        let output = Command::new("git").args(who).args(words).current_dir(folder).output().unwrap();
        Ran::of(output).ok().line().to_owned()
    }

    fn commit(&self) -> String {
        self.git(&self.dir(), &["add", "--all"]);
        self.git(&self.dir(), &["commit", "--quiet", "--message", "x"]);
        self.git(&self.dir(), &["rev-parse", "HEAD"])
    }

    /// Builds in a folder; the commit, whether it is modified, the time, and whether cargo had work.
    fn built(&self, folder: &Path) -> (String, bool, u64, bool) {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--offline", "--color=never", "--target-dir"]).arg(folder.join("target"));
        let built = cargo.current_dir(folder).env("SOURCE_DATE_EPOCH", "86400").output().unwrap();
        let built = Ran::of(built).ok();
        let output = tool(folder.join("target/debug/sample").to_str().unwrap(), &[]);
        let words: Vec<&str> = output.trim_end().split(' ').collect();
        let worked = built.stderr.contains("Compiling");
        (words[0].to_owned(), words[1] == "true", words[2].parse().unwrap(), worked)
    }
}

#[test]
fn a_build_without_git_has_no_commit_and_a_fixed_date_and_is_not_repeated() {
    let package = Package::new();
    assert_eq!(package.built(&package.dir()), (String::new(), false, 86_400, true));
    assert_eq!(package.built(&package.dir()), (String::new(), false, 86_400, false), "nothing changed");
    package.write_source(1);
    assert_eq!(package.built(&package.dir()), (String::new(), false, 86_400, true));
}

#[test]
fn a_build_names_the_commit_of_its_own_repository_and_whether_sources_were_modified() {
    if !can(&[Need::Tool("git")]) {
        return;
    }
    let package = Package::new();
    let dir = package.dir();
    package.git(package.0.path(), &["init", "--quiet"]);
    package.git(package.0.path(), &["commit", "--quiet", "--allow-empty", "--message", "outer"]);
    assert_eq!(package.built(&dir).0, "", "the repository around it is another one");

    package.git(&dir, &["init", "--quiet"]);
    package.write_source(1);
    let first = package.commit();
    package.write_source(2);
    assert_eq!(package.built(&dir), (first, true, 86_400, true));
    let second = package.commit();
    assert_eq!(package.built(&dir), (second.clone(), false, 86_400, true), "only the commit changed");
    fs::write(dir.join("README.md"), "a text that is not built\n").unwrap();
    assert_eq!(package.built(&dir), (second.clone(), false, 86_400, false), "not a source");

    let archive = package.0.path().join("archive.tar");
    package.git(&dir, &["archive", "--prefix=archive/", "--output", archive.to_str().unwrap(), "HEAD"]);
    tool("tar", &["-C", package.0.path().to_str().unwrap(), "-xf", archive.to_str().unwrap()]);
    assert_eq!(package.built(&package.0.path().join("archive")), (second, false, 86_400, true));
}
