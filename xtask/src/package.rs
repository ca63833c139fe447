//! `cargo xtask package`, which `./dev package` calls after its set-up: builds a Debian package, or with `static` an archive for any
//! Linux, checks it, and prints its path.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::groups;
use crate::tools::{CARGO_CYCLONEDX, CARGO_DEB, Places, is_installed, succeeds, word};

/// Something that the package needs is missing.
const ENVIRONMENT: u8 = 3;

/// Builds the package that the words name.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    groups::end_with_signals()?;
    let places = Places::find()?;
    let package = match words {
        [] => debian(&places),
        ["static"] => archive(&places),
        _ => bail!("package takes no argument but 'static'"),
    };
    if let Some(code) = groups::exit_code() {
        return Ok(code);
    }
    match package {
        Ok(path) => {
            println!("{}", path.display());
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("dev: {error:#}");
            let is_faulty = error.downcast_ref::<Faulty>().is_some();
            Ok(if is_faulty { ExitCode::FAILURE } else { ExitCode::from(ENVIRONMENT) })
        }
    }
}

/// A package that is not as it should be.
#[derive(Debug)]
struct Faulty(PathBuf);

impl std::fmt::Display for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is not as it should be", self.0.display())
    }
}

impl std::error::Error for Faulty {}

fn debian(places: &Places) -> Result<PathBuf> {
    let tool = places.tool(&CARGO_DEB)?;
    ensure!(
        succeeds(&mut places.command(&["cargo", "build", "--release", "--locked"]))?,
        "the program does not build"
    );
    let program = places.target.join("release/ebbtide");
    write_files(places, &program, &places.target.join("release/package"))?;
    // --fast: the best compression takes cargo-deb, which is a debug build, minutes.
    let words = [word(&tool), "--no-build", "--locked", "--fast", "--package", "ebbtide"];
    let deb = PathBuf::from(places.output(&words)?.context("cargo-deb builds no package")?);
    let faults = faults_of_debian(&deb, &program)?;
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if !faults.is_empty() {
        return Err(Faulty(deb).into());
    }
    succeeds(Command::new("dpkg-deb").arg("--contents").arg(&deb).stdout(std::io::stderr()))?;
    Ok(deb)
}

/// A program that needs no library of the system, in an archive with its pages and completions.
fn archive(places: &Places) -> Result<PathBuf> {
    let machine = std::env::consts::ARCH;
    let target = format!("{machine}-unknown-linux-musl");
    ensure!(
        succeeds(places.command(&["rustup", "target", "add", &target]).stdout(std::io::stderr()))?,
        "no target {target}"
    );
    let build = ["cargo", "build", "--release", "--locked", "--package", "ebbtide", "--target", &target];
    ensure!(succeeds(&mut places.command(&build))?, "the program does not build");
    let program = places.target.join(&target).join("release/ebbtide");
    let version = places.output(&[word(&program), "--version"])?.context("the program does not run")?;
    let version = version.split_whitespace().nth(1).context("the program has no version")?;
    let name = format!("ebbtide-{version}-{machine}-linux-static");
    let parent = places.target.join(&target);
    let folder = parent.join(&name);
    write_files(places, &program, &folder)?;
    fs::copy(places.root.join("LICENSE"), folder.join("LICENSE")).context("cannot copy LICENSE")?;
    let stripped = folder.join("ebbtide");
    ensure!(
        succeeds(Command::new("strip").arg("-o").args([&stripped, &program]))?,
        "the program cannot be stripped"
    );
    let faults = faults_of_static(&stripped)?;
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if !faults.is_empty() {
        return Err(Faulty(folder).into());
    }
    let file = parent.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--owner=0", "--group=0", "--directory"]).arg(&parent);
    ensure!(succeeds(tar.arg("--file").arg(&file).arg(&name))?, "the archive cannot be written");
    Ok(file)
}

/// Writes the files that a package has beside the program: pages, completions, licences.
fn write_files(places: &Places, program: &Path, folder: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    let completions = folder.join("completions");
    fs::create_dir_all(&completions).with_context(|| format!("cannot make {}", completions.display()))?;
    let pages = folder.join("man");
    let written = succeeds(Command::new(program).arg("man-pages").arg(&pages).stdout(std::io::stderr()))?;
    ensure!(written, "the program writes no pages");
    let found = fs::read_dir(&pages).context("there are no pages")?.collect::<Result<Vec<_>, _>>()?;
    let mut pages: Vec<PathBuf> = found.iter().map(fs::DirEntry::path).collect();
    pages.retain(|page| page.extension().is_some_and(|section| section == "1"));
    ensure!(succeeds(Command::new("gzip").arg("-9n").args(pages))?, "the pages cannot be packed");
    for (shell, file) in [("bash", "ebbtide"), ("zsh", "_ebbtide"), ("fish", "ebbtide.fish")] {
        let text =
            places.output(&[word(program), "completions", shell, "--names"])?.context("no completions")?;
        fs::write(completions.join(file), text + "\n").context("cannot write completions")?;
    }
    fs::write(folder.join("third-party-licences.txt"), licences(places)?).context("cannot write licences")?;
    write_materials(places, &folder.join("ebbtide.cdx.json"))
        .context("cargo-cyclonedx cannot be built here, or does not list the dependencies")
}

/// All that is linked, with licences.
fn licences(places: &Places) -> Result<String> {
    let tree = ["cargo", "tree", "--locked", "--package", "ebbtide", "--edges", "normal", "--prefix", "none"];
    let tree = places.output(&[&tree[..], &["--format", "{p} | {l} | {r}"]].concat())?;
    let plot = fs::read_to_string(places.root.join("crates/report/assets/uplot/LICENSE"));
    Ok(format!(
        "Linked into ebbtide: package, version, licence, repository.\n\n{}\n\
         SQLite (inside libsqlite3-sys) | public domain | https://sqlite.org/copyright.html\n\n\
         uPlot, inside every report:\n\n{}",
        linked(&tree.context("cargo lists no dependencies")?),
        plot.context("uPlot has no licence")?
    ))
}

/// Each dependency once, of the lines that `cargo tree` prints.
fn linked(tree: &str) -> String {
    let mut lines: Vec<String> = tree
        .lines()
        .map(|line| line.strip_suffix(" (*)").unwrap_or(line).replacen(" (proc-macro)", "", 1))
        .filter(|line| !line.starts_with("ebbtide"))
        .collect();
    lines.sort();
    lines.dedup();
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Writes what the program is made of, as CycloneDX has it. The tool writes into the folder of each crate, so it gets a copy of the
/// tracked files.
fn write_materials(places: &Places, file: &Path) -> Result<()> {
    let tool = places.tool(&CARGO_CYCLONEDX)?;
    let copy = TempDir::new().context("cannot make a directory")?;
    let tree = word(copy.path());
    let mut list = places.command(&["git", "ls-files", "-z"]).stdout(Stdio::piped()).spawn()?;
    let files = list.stdout.take().context("git's output is piped")?;
    let mut pack = places.command(&["tar", "--create", "--null", "--files-from=-"]);
    let mut pack = pack.stdin(files).stdout(Stdio::piped()).spawn().context("cannot run tar")?;
    let archive = pack.stdout.take().context("tar's output is piped")?;
    let mut unpack = places.command(&["tar", "--extract", "--directory", tree]);
    let copied = succeeds(unpack.stdin(archive))? && pack.wait()?.success() && list.wait()?.success();
    ensure!(copied, "the tracked files cannot be copied");
    let manifest = copy.path().join("Cargo.toml");
    let words = ["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5", "--manifest-path"];
    let mut command = places.command(&[word(&tool)]);
    ensure!(succeeds(command.args(words).arg(manifest))?, "cargo-cyclonedx fails");
    let text = fs::read_to_string(copy.path().join("ebbtide.cdx.json")).context("it writes no file")?;
    fs::write(file, text.replace(tree, "/ebbtide"))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// Files of a Debian package that must not be empty.
const FILES: [&str; 12] = [
    "usr/share/bash-completion/completions/ebbtide",
    "usr/share/zsh/vendor-completions/_ebbtide",
    "usr/share/fish/vendor_completions.d/ebbtide.fish",
    "usr/share/doc/ebbtide/copyright",
    "usr/share/doc/ebbtide/third-party-licences.txt",
    "usr/share/doc/ebbtide/ebbtide.cdx.json",
    "usr/share/man/man1/ebbtide-volume-create.1.gz",
    "usr/lib/systemd/system/ebbtide.service",
    "etc/default/ebbtide",
    "usr/share/doc/ebbtide/docs/size.md",
    "usr/share/doc/ebbtide/examples/metrics/shop-gp2.csv",
    "usr/share/doc/ebbtide/examples/server-on-ebbtide.conf",
];

/// What a Debian package lacks of what it should hold, and whether its program and pages do not run.
fn faults_of_debian(deb: &Path, built: &Path) -> Result<Vec<String>> {
    let root = TempDir::new().context("cannot make a directory")?;
    ensure!(
        succeeds(Command::new("dpkg-deb").arg("--extract").args([deb, root.path()]))?,
        "dpkg-deb cannot read it"
    );
    let mut faults = missing_files(root.path());
    let depends = printed(Command::new("dpkg-deb").arg("--field").arg(deb).arg("Depends"))?;
    faults.extend(fault_of_dependencies(&depends));
    let version = |program: &Path| printed(Command::new(program).arg("--version"));
    if version(&root.path().join("usr/bin/ebbtide")).ok() != Some(version(built)?) {
        faults.push("the program in the package does not run, or is another one".into());
    }
    if !is_installed("man") {
        eprintln!("man is not installed: no page was shown");
    } else if !printed(
        Command::new("man").arg("--local-file").arg(root.path().join("usr/share/man/man1/ebbtide.1.gz")),
    )?
    .contains("SYNOPSIS")
    {
        faults.push("man cannot show ebbtide.1".into());
    }
    Ok(faults)
}

fn missing_files(root: &Path) -> Vec<String> {
    let is_there = |file: &&str| fs::metadata(root.join(file)).is_ok_and(|metadata| metadata.len() > 0);
    FILES.iter().filter(|file| !is_there(file)).map(|file| format!("the package lacks {file}")).collect()
}

fn fault_of_dependencies(depends: &str) -> Option<String> {
    let libc = depends.find("libc6");
    let mount = depends.rfind("mount");
    let complete = libc.zip(mount).is_some_and(|(libc, mount)| libc < mount);
    (!complete).then(|| "the package depends on no libc6 or mount".into())
}

/// Whether a program needs a loader or a library, or does not simulate a volume without one.
fn faults_of_static(program: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut headers = Command::new("readelf");
    let headers = printed(headers.args(["--wide", "--program-headers", "--dynamic"]).arg(program))?;
    if headers.contains("INTERP") || headers.contains("NEEDED") {
        faults.push("the program needs a loader or libraries".into());
    }
    // An empty root directory has no library that could help out.
    if rustix::process::geteuid().is_root() {
        let root = TempDir::new().context("cannot make a directory")?;
        fs::copy(program, root.path().join("ebbtide")).context("cannot copy the program")?;
        let mut simulate = Command::new("chroot");
        simulate.arg(root.path()).args(["/ebbtide", "simulate", "--volume", "gp3:size=100GiB"]);
        simulate.args(["--job", "rw=randread,iodepth=8,runtime=1s"]).stdout(std::io::stderr());
        if !succeeds(&mut simulate)? {
            faults.push("the program does not run in an empty root".into());
        }
    }
    Ok(faults)
}

/// What a command prints.
fn printed(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {}", command.get_program().display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dependency_is_listed_once_and_none_of_ours() {
        let tree = "ebbtide v0.1.0 | MIT | x\nserde v1.0 | MIT | s\nserde_derive v1.0 (proc-macro) | MIT | s\n\
                    ebbtide-text v0.1.0 | MIT | x\nserde v1.0 | MIT | s (*)\naes v0.8 | MIT | a\n";
        assert_eq!(linked(tree), "aes v0.8 | MIT | a\nserde v1.0 | MIT | s\nserde_derive v1.0 | MIT | s\n");
    }

    #[test]
    fn a_package_that_lacks_a_file_or_a_dependency_is_found() {
        let root = TempDir::new().unwrap();
        for file in FILES {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        assert_eq!(missing_files(root.path()), Vec::<String>::new());
        fs::write(root.path().join(FILES[1]), "").unwrap();
        fs::remove_file(root.path().join(FILES[6])).unwrap();
        let lacking = [1, 6].map(|number| format!("the package lacks {}", FILES[number]));
        assert_eq!(missing_files(root.path()), lacking);
        assert_eq!(fault_of_dependencies("fuse3, libc6 (>= 2.34), mount"), None);
        assert!(fault_of_dependencies("fuse3, mount").is_some() && fault_of_dependencies("libc6").is_some());
    }
}
