//! Names on a command line, and what the user's file says they are.

use std::cell::LazyCell;

use ebbtide_catalog::Catalog;
use ebbtide_names::{Kind, NamesFile, Place, is_name};

use crate::cli::{Cli, Command};
use crate::config::{self, Slot};
use crate::exit::Refusal;
use crate::home::HomePath;
use crate::refusal::refuse;
use crate::text;
use crate::volume::args::VolumeCommand;

/// Puts what the user's file says in place of names. The file is read only if a value may be a name.
///
/// # Errors
/// A server that the file does not have, a word that is almost one of its names (exit code 2); a file that is wrong, or that others
/// may write (exit code 3).
pub(crate) fn resolve(cli: &mut Cli) -> anyhow::Result<()> {
    let place = HomePath::of(cli);
    let (mut servers, file) = match &mut cli.command {
        Command::Doctor(args) => (args.server_name().into_iter().collect::<Vec<String>>(), None),
        Command::Watch(args) => (args.server_names().to_vec(), args.names_file()),
        _ => (Vec::new(), None),
    };
    // Most commands have no such value, and need no catalogue for it.
    let catalog = LazyCell::new(Catalog::builtin);
    let may_be = |slot: &Slot<'_>| is_name(slot.text) && !slot.kind.is_known(slot.text, &catalog);
    if servers.is_empty() && file.is_none() && !slots(&mut cli.command).iter().any(may_be) {
        return Ok(());
    }
    let file_place = file.clone().map_or_else(Place::find, |file| Some(Place::named(file)));
    let names = NamesFile::read_at(file_place, &mut text::note).map_err(config::refuse)?;
    if servers.is_empty() && file.is_some() {
        // A file that is named for it has the servers that are to be watched.
        servers = names.servers();
    }
    for wanted in &servers {
        // `ebbtide doctor captur` is a command that was mistyped.
        let taken = match &mut cli.command {
            Command::Doctor(args) => args.take(names.server(wanted, &["capture"]).map_err(config::refuse)?),
            Command::Watch(args) => {
                args.take(wanted, names.server(wanted, &["dashboards", "rules"]).map_err(config::refuse)?)
            }
            _ => Ok(()),
        };
        taken.map_err(|why| Refusal::usage(format!("server '{wanted}': {why}")))?;
    }
    // Only volumes that are attached share an instance by its ID: other commands take its type.
    let shares = matches!(cli.command, Command::Volume(_));
    // What the file says of a server may be names too.
    for slot in slots(&mut cli.command).into_iter().filter(may_be) {
        if let Some(value) = names.value(slot.kind, slot.text) {
            let id = value.find('/').filter(|_| slot.kind == Kind::Instance && !shares);
            value[..id.unwrap_or(value.len())].clone_into(slot.text);
        } else if let Some(refusal) = names.almost(slot.kind, slot.text)
            && !is_in_home(&slot, &place)?
        {
            return Err(config::refuse(refusal));
        }
    }
    Ok(())
}

/// Whether the catalogue of the home has a word. Regions may also be those of a price list, which is read later.
fn is_in_home(slot: &Slot<'_>, place: &anyhow::Result<HomePath>) -> anyhow::Result<bool> {
    if slot.kind == Kind::Region {
        return Ok(true);
    }
    let home = place.as_ref().map_or(Ok(None), HomePath::existing)?;
    let catalog = ebbtide_control::catalog(home.as_ref()).map_err(refuse)?;
    Ok(slot.kind.is_known(slot.text, &catalog))
}

/// The values of a command that may be names.
fn slots(command: &mut Command) -> Vec<Slot<'_>> {
    use Kind::{Instance, Region, Volume};
    let mut slots = Vec::new();
    match command {
        Command::Doctor(args) => slots.extend(args.slots()),
        Command::Watch(args) => slots.extend(args.slots()),
        Command::Size(args) => {
            slots.extend(Slot::all(Volume, &mut args.volume));
            slots.extend(Slot::all(Instance, &mut args.instance));
            slots.extend(Slot::all(Region, &mut args.region));
        }
        Command::Predict(args) => {
            slots.extend(Slot::all(Volume, &mut args.volume));
            slots.extend(Slot::all(Instance, &mut args.instance));
        }
        Command::Simulate(args) => {
            slots.extend(Slot::all(Volume, &mut args.volume));
            slots.extend(Slot::all(Instance, &mut args.instance));
            slots.extend(Slot::all(Region, &mut args.region));
        }
        Command::Run(args) => {
            slots.extend(Slot::all(Volume, &mut args.volume));
            slots.extend(Slot::all(Region, &mut args.region));
        }
        Command::Crash(args) => slots.extend(args.slots()),
        Command::Volume(command) => slots.extend(of_volume(command)),
        Command::Snapshot(_)
        | Command::Serve(_)
        | Command::User(_)
        | Command::Role(_)
        | Command::Load(_)
        | Command::ManPages(_)
        | Command::Completions(_)
        | Command::Config(_)
        | Command::Docs(_) => {}
    }
    slots
}

fn of_volume(command: &mut VolumeCommand) -> Vec<Slot<'_>> {
    use Kind::{Instance, Region, Volume};
    match command {
        VolumeCommand::Create(args) => {
            let mut slots = Slot::all(Volume, [&mut args.spec]);
            slots.extend(Slot::all(Region, &mut args.region));
            slots
        }
        VolumeCommand::Modify(args) => Slot::all(Volume, &mut args.spec),
        VolumeCommand::Attach(args) => {
            let mut slots = Slot::all(Instance, &mut args.instance);
            slots.extend(Slot::all(Volume, &mut args.shadow));
            slots
        }
        VolumeCommand::List(args) => Slot::all(Region, &mut args.region),
        VolumeCommand::Show(args) => Slot::all(Region, &mut args.region),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::completion::SPECS;

    #[test]
    fn a_name_of_a_volume_is_taken_wherever_completion_offers_one() {
        let lines: [(&[&str], &str); 10] = [
            (&["volume", "create"], "db shop-data"),
            (&["volume", "modify"], "db shop-data"),
            (&["volume", "attach"], "db --shadow shop-data"),
            (&["run"], "same-twice --volume shop-data"),
            (&["crash"], "--candidate --volume shop-data"),
            (&["doctor"], "--volume shop-data"),
            (&["watch"], "--volume shop-data"),
            (&["predict"], "shop.toml --volume shop-data"),
            (&["size"], "shop.csv --volume shop-data"),
            (&["simulate"], "--volume shop-data --job rw=read"),
        ];
        assert_eq!(lines.map(|(path, _)| path), SPECS.map(|(path, _)| path));
        for (path, rest) in lines {
            let words = ["ebbtide"].into_iter().chain(path.iter().copied()).chain(rest.split(' '));
            let mut cli = Cli::try_parse_from(words).unwrap();
            let slots = slots(&mut cli.command);
            let is_taken = slots.iter().any(|slot| slot.kind == Kind::Volume && slot.text == "shop-data");
            assert!(is_taken, "{path:?}: {slots:?}");
        }
    }
}
