//! The servers that are watched, their names, and the limits of volumes by their specs.

use ebbtide_catalog::{Catalog, Resolved, Spec};
use ebbtide_control::ControlError;
use ebbtide_load::{Endpoint, Target};
use ebbtide_observe::Role;
use ebbtide_volume::RateLimit;

use super::error::RunError;
use crate::live::NamedVolume;
use crate::reading::VolumeLimits;

/// A server that is watched.
#[derive(Debug, Clone)]
pub struct WatchedServer {
    /// Its name, which no other has.
    pub name: String,
    /// Where it is, and the account. It has one endpoint.
    pub target: Target,
}

impl WatchedServer {
    /// Where it is: host and port, or the socket.
    #[must_use]
    pub fn address(&self) -> String {
        self.target.endpoints.first().map(Endpoint::to_string).unwrap_or_default()
    }
}

/// Adds each endpoint of a target as a server: under a name, or under its address. Of a socket that has no name it is the last two
/// parts of the path, where no other server has these: the whole path is most of a screen.
///
/// # Errors
/// The server is there already.
pub fn add_servers(
    servers: &mut Vec<WatchedServer>,
    name: Option<&str>,
    target: &Target,
) -> Result<(), RunError> {
    let is_single = target.endpoints.len() == 1;
    for endpoint in &target.endpoints {
        let name = match name {
            Some(name) if is_single => name.to_owned(),
            Some(name) => format!("{name} {endpoint}"),
            None => name_of(servers, endpoint),
        };
        if servers.iter().any(|server| server.name == name) {
            return Err(RunError::NamedTwice { name });
        }
        let target = Target { endpoints: vec![endpoint.clone()], ..target.clone() };
        servers.push(WatchedServer { name, target });
    }
    Ok(())
}

/// The name of a server that the user gave none.
fn name_of(servers: &[WatchedServer], endpoint: &Endpoint) -> String {
    let address = endpoint.to_string();
    let Some(name) = end_of_socket(endpoint) else { return address };
    let is_another = |server: &WatchedServer| server.name == name && server.address() != address;
    if servers.iter().any(is_another) { address } else { name }
}

/// The last two parts of the path of a socket; None where there are not more, and of a host.
fn end_of_socket(endpoint: &Endpoint) -> Option<String> {
    let Endpoint::Unix(path) = endpoint else { return None };
    let path = path.display().to_string();
    let mut parts = path.rsplitn(3, '/');
    let (file, directory, _) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{directory}/{file}"))
}

/// A volume that the user names below the files of a server, with what one of its members may do: each device of an array is one.
///
/// # Errors
/// A spec that means nothing, or that the catalogue does not have.
pub fn named_volume(
    catalog: &Catalog,
    server: &str,
    role: Role,
    spec: &str,
) -> Result<NamedVolume, ControlError> {
    let resolved = resolved(catalog, spec)?;
    let limits = resolved.members.first().map(VolumeLimits::of_model).unwrap_or_default();
    Ok(NamedVolume { server: server.to_owned(), role, spec: resolved.spec.to_string(), limits })
}

fn resolved(catalog: &Catalog, spec: &str) -> Result<Resolved, ControlError> {
    Ok(catalog.resolve(&Spec::parse(spec)?)?)
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

    fn target(sockets: &[&str]) -> Target {
        Target {
            endpoints: sockets.iter().map(|path| Endpoint::Unix(path.into())).collect(),
            user: String::new(),
            password: String::new(),
            database: String::new(),
            tls: None,
        }
    }

    #[test]
    fn a_socket_is_named_by_the_end_of_its_path_that_no_other_has() {
        let mut servers = Vec::new();
        let sockets = ["/run/mysqld/mysqld.sock", "/srv/b/mysqld.sock", "/srv/c/b/mysqld.sock", "/a"];
        add_servers(&mut servers, None, &target(&sockets)).unwrap();
        add_servers(&mut servers, Some("shop"), &target(&["/x/y/z"])).unwrap();
        add_servers(&mut servers, Some("app"), &target(&["/1", "/2"])).unwrap();
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let ends = ["mysqld/mysqld.sock", "b/mysqld.sock", "/srv/c/b/mysqld.sock", "/a"];
        assert_eq!(names[..4], ends);
        assert_eq!(names[4..], ["shop", "app /1", "app /2"]);
        assert_eq!(servers[0].address(), sockets[0]);
    }

    #[test]
    fn one_place_is_no_server_twice() {
        for socket in ["/a", "/run/mysqld/mysqld.sock"] {
            let error = add_servers(&mut Vec::new(), None, &target(&[socket, socket])).unwrap_err();
            assert!(error.to_string().contains("named twice"), "{error}");
        }
    }

    #[test]
    fn an_array_has_the_limits_of_its_members_together_and_a_named_device_those_of_one() {
        let (catalog, array) = (Catalog::builtin(), "raid0(2x gp3:size=250GiB)");
        let single = volume_limits(&catalog, "gp3:size=250GiB").iops.unwrap();
        let pair = volume_limits(&catalog, array).iops.unwrap();
        assert_eq!(pair.rate, 2 * single.rate);
        let device = named_volume(&catalog, "shop", Role::Data, array).unwrap();
        assert_eq!(device.limits.iops, Some(single));
        assert_eq!(volume_limits(&catalog, "gone"), VolumeLimits::default());
        assert!(named_volume(&catalog, "shop", Role::Data, "gp9:size=1GiB").is_err());
    }
}
