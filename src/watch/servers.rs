//! The servers that are watched: from options and the file of names to places and accounts.

use anyhow::Result;
use ebbtide_catalog::Catalog;
use ebbtide_load::{Endpoint, Target};
use ebbtide_observe::Role;
use ebbtide_watch::live::NamedVolume;
use ebbtide_watch::run::{WatchedServer, add_servers, named_volume};

use super::args::WatchArgs;
use crate::exit::Refusal;
use crate::password::password;
use crate::refusal::{refuse, refused};

/// The servers of a command line, in their order, and the volumes that are named below them.
#[derive(Debug, Default)]
pub(super) struct ServerPlan {
    pub(super) servers: Vec<WatchedServer>,
    pub(super) volumes: Vec<NamedVolume>,
}

impl ServerPlan {
    /// Reads the options. Without any server, the local one is watched where its socket is there.
    ///
    /// # Errors
    /// An option file or a password that cannot be read, a volume that there is not, and volumes of more than one server: exit code 2.
    pub(super) fn read(args: &WatchArgs, catalog: &Catalog) -> Result<Self> {
        let password = password(args.ask_password, args.mysql_password_file.as_deref())?;
        let mut plan = Self::default();
        for named in &args.named {
            let options = args.server.for_named(&named.server);
            plan.add(Some(&named.name), &options.client_target(password.clone())?)?;
            for (role, spec) in &named.volumes {
                plan.volumes.push(volume(catalog, &named.name, *role, spec)?);
            }
        }
        // An account alone, beside named servers, is for these.
        if args.server.names_place() || args.server.names_one() && args.named.is_empty() {
            plan.add(None, &args.server.client_target(password)?)?;
        } else if args.named.is_empty() {
            let target = args.server.client_target(password)?;
            let is_there = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Unix(path) if path.exists());
            if target.endpoints.iter().any(is_there) {
                plan.add(None, &target)?;
            }
        }
        plan.add_volumes(args, catalog)?;
        Ok(plan)
    }

    fn add(&mut self, name: Option<&str>, target: &Target) -> Result<()> {
        add_servers(&mut self.servers, name, target).map_err(refused)
    }

    /// Takes the volumes of the options, which are those of the only server.
    fn add_volumes(&mut self, args: &WatchArgs, catalog: &Catalog) -> Result<()> {
        if args.volume.is_empty() {
            return Ok(());
        }
        let [server] = &self.servers[..] else {
            let message = format!("--volume is for one server, and {} are watched", self.servers.len());
            let hint = "give the file of names the volumes of each server: ebbtide config show --help";
            return Err(Refusal::usage(message).hint(hint).into());
        };
        let name = server.name.clone();
        for (role, spec) in &args.volume {
            // An option goes before what the file says.
            self.volumes.retain(|volume| volume.server != name || volume.role != *role);
            self.volumes.push(volume(catalog, &name, *role, spec)?);
        }
        Ok(())
    }
}

fn volume(catalog: &Catalog, server: &str, role: Role, spec: &str) -> Result<NamedVolume> {
    named_volume(catalog, server, role, spec).map_err(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: WatchArgs,
    }

    fn plan(words: &[&str]) -> Result<ServerPlan> {
        let line = <Line as clap::Parser>::try_parse_from([&["x"], words].concat()).unwrap();
        ServerPlan::read(&line.args, &Catalog::builtin())
    }

    #[test]
    fn each_place_is_a_server_and_one_place_is_none_twice() {
        let two = plan(&["--mysql-socket=/a,/b", "--mysql-user=m"]).unwrap();
        let names: Vec<&str> = two.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["/a", "/b"]);
        assert_eq!(two.servers[1].address(), "/b");
        assert!(plan(&["--mysql-socket=/a,/a"]).unwrap_err().to_string().contains("named twice"));
    }

    #[test]
    fn volumes_are_those_of_the_only_server() {
        let single = plan(&[
            "--mysql-socket=/a",
            "--volume",
            "gp2:size=100GiB",
            "--volume",
            "redo=io2:size=20GiB,iops=1000",
        ]);
        let single = single.unwrap();
        assert_eq!(single.volumes.len(), 2);
        assert_eq!((single.volumes[0].server.as_str(), single.volumes[0].role), ("/a", Role::Data));
        assert!(single.volumes[0].limits.iops.unwrap().has_credits());
        let two = plan(&["--mysql-socket=/a,/b", "--volume", "gp2:size=100GiB"]).unwrap_err().to_string();
        assert!(two.contains("one server, and 2 are watched"), "{two}");
        assert!(plan(&["--mysql-socket=/a", "--volume", "gp9:size=1GiB"]).is_err());
    }
}
