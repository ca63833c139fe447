//! The servers that are watched: from options and the file of names to connections.

use anyhow::Result;
use ebbtide_catalog::{Catalog, Resolved, Spec};
use ebbtide_load::{Endpoint, Target};
use ebbtide_observe::Role;
use ebbtide_volume::RateLimit;
use ebbtide_watch::live::NamedVolume;
use ebbtide_watch::reading::VolumeLimits;

use super::args::WatchArgs;
use crate::exit::Refusal;
use crate::password::password;
use crate::refusal::refuse;

/// A server that is watched.
#[derive(Debug, Clone)]
pub(super) struct WatchedServer {
    pub(super) name: String,
    /// It has one endpoint.
    pub(super) target: Target,
}

impl WatchedServer {
    /// Where it is.
    pub(super) fn address(&self) -> String {
        self.target.endpoints.first().map(Endpoint::to_string).unwrap_or_default()
    }
}

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
            plan.add(Some(&named.name), options.client_target(password.clone())?)?;
            for (role, spec) in &named.volumes {
                plan.volumes.push(volume(catalog, &named.name, *role, spec)?);
            }
        }
        // An account alone, beside named servers, is for these.
        if args.server.names_place() || args.server.names_one() && args.named.is_empty() {
            plan.add(None, args.server.client_target(password)?)?;
        } else if args.named.is_empty() {
            let target = args.server.client_target(password)?;
            let is_there = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Unix(path) if path.exists());
            if target.endpoints.iter().any(is_there) {
                plan.add(None, target)?;
            }
        }
        plan.add_volumes(args, catalog)?;
        Ok(plan)
    }

    /// Adds each endpoint of a target as a server: under a name, or under its address.
    fn add(&mut self, name: Option<&str>, target: Target) -> Result<()> {
        let is_single = target.endpoints.len() == 1;
        for endpoint in &target.endpoints {
            let name = match name {
                Some(name) if is_single => name.to_owned(),
                Some(name) => format!("{name} {endpoint}"),
                None => self.name_of(endpoint),
            };
            if self.servers.iter().any(|server| server.name == name) {
                return Err(Refusal::usage(format!("the server {name} is named twice")).into());
            }
            self.servers.push(WatchedServer {
                name,
                target: Target { endpoints: vec![endpoint.clone()], ..target.clone() },
            });
        }
        Ok(())
    }

    /// The name of a server that the user gave none: its address. Of a socket it is the last two parts of the path, where no other
    /// server has these: the whole path is most of a screen.
    fn name_of(&self, endpoint: &Endpoint) -> String {
        let address = endpoint.to_string();
        let Some(name) = end_of_socket(endpoint) else { return address };
        let is_another = |server: &WatchedServer| server.name == name && server.address() != address;
        if self.servers.iter().any(is_another) { address } else { name }
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

/// The last two parts of the path of a socket; None where there are not more, and of a host.
fn end_of_socket(endpoint: &Endpoint) -> Option<String> {
    let Endpoint::Unix(path) = endpoint else { return None };
    let path = path.display().to_string();
    let mut parts = path.rsplitn(3, '/');
    let (file, directory, _) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{directory}/{file}"))
}

fn volume(catalog: &Catalog, server: &str, role: Role, spec: &str) -> Result<NamedVolume> {
    let (spec, limits) = member_limits(catalog, spec)?;
    Ok(NamedVolume { server: server.to_owned(), role, spec, limits })
}

fn resolved(catalog: &Catalog, spec: &str) -> Result<Resolved> {
    let spec = Spec::parse(spec).map_err(|error| refuse(error.into()))?;
    catalog.resolve(&spec).map_err(|error| refuse(error.into()))
}

/// A spec as it was read, and what one of its members may do: each device of an array is one.
fn member_limits(catalog: &Catalog, spec: &str) -> Result<(String, VolumeLimits)> {
    let resolved = resolved(catalog, spec)?;
    let limits = resolved.members.first().map(VolumeLimits::of_model).unwrap_or_default();
    Ok((resolved.spec.to_string(), limits))
}

/// What a volume of Ebbtide's own may do, all members together; nothing is known of a spec that the catalogue no longer has.
pub(super) fn volume_limits(catalog: &Catalog, spec: &str) -> VolumeLimits {
    let Ok(resolved) = resolved(catalog, spec) else { return VolumeLimits::default() };
    let members = u64::try_from(resolved.members.len()).unwrap_or(1);
    let together = |limit: RateLimit| RateLimit {
        rate: limit.rate.saturating_mul(members),
        ceiling: limit.ceiling.saturating_mul(members),
        allowance: limit.allowance.saturating_mul(members),
        credits: limit.credits.saturating_mul(members),
    };
    let member = resolved.members.first().map(VolumeLimits::of_model).unwrap_or_default();
    VolumeLimits {
        iops: member.iops.map(together),
        throughput: member.throughput.map(together),
        floor: member.floor,
    }
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
        for twice in ["--mysql-socket=/a,/a", "--mysql-socket=/run/a/s,/run/a/s"] {
            assert!(plan(&[twice]).unwrap_err().to_string().contains("named twice"), "{twice}");
        }
    }

    #[test]
    fn a_socket_is_named_by_the_end_of_its_path_that_no_other_has() {
        let paths = "--mysql-socket=/run/mysqld/mysqld.sock,/srv/b/mysqld.sock,/srv/c/b/mysqld.sock";
        let servers = plan(&[paths, "--mysql-user=m"]).unwrap().servers;
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["mysqld/mysqld.sock", "b/mysqld.sock", "/srv/c/b/mysqld.sock"]);
        assert_eq!(servers[0].address(), "/run/mysqld/mysqld.sock");
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

    #[test]
    fn an_array_has_the_limits_of_its_members_together() {
        let catalog = Catalog::builtin();
        let single = volume_limits(&catalog, "gp3:size=250GiB").iops.unwrap();
        let pair = volume_limits(&catalog, "raid0(2x gp3:size=250GiB)").iops.unwrap();
        assert_eq!(pair.rate, 2 * single.rate);
        assert_eq!(volume_limits(&catalog, "gone"), VolumeLimits::default());
    }
}
