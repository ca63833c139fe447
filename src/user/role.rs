//! `ebbtide role`: what users of the AWS endpoint may assume.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ebbtide_cloud::users::{IamRole, Kind, MAX_SESSION_S, NewRole, UserError, UserStore};
use ring::rand::SystemRandom;

use super::{now_ms, read, refuse, refuse_among};
use crate::answers::{self, Deleted, RoleListed};
use crate::exit::Exit;
use crate::home::HomePath;
use crate::text::{self, TextTable};

/// Roles that users of the AWS endpoint may assume.
#[derive(Debug, Subcommand)]
pub(crate) enum RoleCommand {
    /// Create a role, which AssumeRole of STS gives temporary keys of
    #[command(after_help = "Example: ebbtide role create backup --trust trust.json --policy backup.json\n\n\
        Policies: docs/aws.md")]
    Create(RoleCreate),
    /// List the roles
    #[command(after_help = "Example: ebbtide role list --json")]
    List,
    /// Delete a role; a running server refuses the keys of its sessions from then on
    #[command(after_help = "Example: ebbtide role delete backup")]
    Delete(RoleName),
}

/// `role create`
#[derive(Debug, Args)]
pub(crate) struct RoleCreate {
    /// Name of the new role: A-Z, a-z, 0-9 and _+=,.@-, at most 64
    name: String,
    /// Who may assume the role, a trust policy of IAM as JSON
    #[arg(long, value_name = "FILE")]
    trust: PathBuf,
    /// What sessions of the role may do, a policy of IAM as JSON; without one, everything
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// How long a session may last, 3600 to 43200 seconds
    #[arg(long, value_name = "SECONDS", default_value_t = *MAX_SESSION_S.start(),
        value_parser = clap::value_parser!(u32).range(i64::from(*MAX_SESSION_S.start())..=i64::from(*MAX_SESSION_S.end())))]
    max_session: u32,
}

/// `role delete`
#[derive(Debug, Args)]
pub(crate) struct RoleName {
    /// Name of the role
    name: String,
}

/// Runs a role command. It needs no server; one that runs notices the change.
///
/// # Errors
/// A bad name or policy; a role that exists, or does not; a home that cannot be written.
pub(crate) fn run(command: &RoleCommand, place: &HomePath, json: bool) -> anyhow::Result<Exit> {
    match command {
        RoleCommand::Create(args) => {
            let store = UserStore::new(&place.made()?.aws_dir());
            let trust = read(&args.trust)?;
            let policy = args.policy.as_deref().map(read).transpose()?;
            let new = NewRole {
                name: &args.name,
                trust: &trust,
                policy: policy.as_deref(),
                max_session_s: args.max_session,
            };
            created(&store.create_role(new, now_ms(), &SystemRandom::new()).map_err(refuse)?, json);
        }
        RoleCommand::List => {
            let home = place.existing()?;
            let roles = home.map_or(Ok(Vec::new()), |home| UserStore::new(&home.aws_dir()).roles());
            listed(&roles.map_err(refuse)?, json);
        }
        RoleCommand::Delete(RoleName { name }) => {
            let missing = || UserError::NotFound { kind: Kind::Role, name: name.clone() };
            let home = place.existing()?.ok_or_else(|| refuse(missing()))?;
            let store = UserStore::new(&home.aws_dir());
            store.delete_role(name).map_err(|error| {
                let known = store.roles().unwrap_or_default();
                refuse_among(error, known.iter().map(|role| role.name.as_str()))
            })?;
            if json {
                answers::print(&Deleted { deleted: name });
            } else {
                text::line(&format!("deleted role {name}"));
            }
        }
    }
    Ok(Exit::Clean)
}

fn created(role: &IamRole, json: bool) {
    if json {
        answers::print(&shown(role));
        return;
    }
    text::line(&role.arn());
    text::note(&format!("sessions of role {} may do {}", role.name, may(role)));
}

fn listed(roles: &[IamRole], json: bool) {
    if json {
        answers::print(&roles.iter().map(shown).collect::<Vec<_>>());
        return;
    }
    let mut table = TextTable::new(&["NAME", "SESSIONS MAY DO", "LONGEST SESSION", "CREATED"]);
    for role in roles {
        let longest = format!("{} s", role.max_session_s);
        table.row([role.name.clone(), may(role).to_owned(), longest, role.created.clone()]);
    }
    table.print("no roles");
}

const fn may(role: &IamRole) -> &'static str {
    if role.policy.is_some() { "what its policy allows" } else { "everything" }
}

fn shown(role: &IamRole) -> RoleListed<'_> {
    RoleListed {
        name: &role.name,
        arn: role.arn(),
        role_id: &role.role_id,
        created: &role.created,
        max_session_s: role.max_session_s,
        has_policy: role.policy.is_some(),
    }
}
