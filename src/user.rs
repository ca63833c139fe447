//! `ebbtide user`: who may call the AWS endpoint of a home.

pub(crate) mod role;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use ebbtide_cloud::users::{Kind, User, UserError, UserStore};
use ebbtide_text::closest;
use ring::rand::SystemRandom;

use crate::answers::{self, Deleted, UserCreated, UserListed};
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::text::{self, TextTable};

/// Who may call the AWS endpoint.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Create a user with an access key; its secret is shown this once
    #[command(
        after_help = "Examples:\n  ebbtide user create anna\n  ebbtide user create reader --policy reader.json\n\n\
        Policies: docs/aws.md"
    )]
    Create(UserCreate),
    /// List the users
    #[command(after_help = "Example: ebbtide user list --json")]
    List,
    /// Delete a user; a running server refuses its access key from then on
    #[command(after_help = "Example: ebbtide user delete anna")]
    Delete(UserName),
}

/// `user create`
#[derive(Debug, Args)]
pub(crate) struct UserCreate {
    /// Name of the new user: A-Z, a-z, 0-9 and _+=,.@-, at most 64
    name: String,
    /// What the user may do, a policy of IAM as JSON; without one, everything
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

/// `user delete`
#[derive(Debug, Args)]
pub(crate) struct UserName {
    /// Name of the user
    name: String,
}

/// Runs a user command. It needs no server; one that runs notices the change.
///
/// # Errors
/// A bad name or policy; a user that exists, or does not; a home that cannot be written.
pub(crate) fn run(command: &UserCommand, place: &HomePath, json: bool) -> anyhow::Result<Exit> {
    match command {
        UserCommand::Create(args) => {
            let store = UserStore::new(&place.made()?.aws_dir());
            let policy = args.policy.as_deref().map(read).transpose()?;
            let user = store.create(&args.name, policy.as_deref(), now_ms(), &SystemRandom::new());
            created(&user.map_err(refuse)?, json);
        }
        UserCommand::List => {
            let home = place.existing()?;
            let users = home.map_or(Ok(Vec::new()), |home| UserStore::new(&home.aws_dir()).list());
            listed(&users.map_err(refuse)?, json);
        }
        UserCommand::Delete(UserName { name }) => {
            let missing = || UserError::NotFound { kind: Kind::User, name: name.clone() };
            let home = place.existing()?.ok_or_else(|| refuse(missing()))?;
            let store = UserStore::new(&home.aws_dir());
            store.delete(name).map_err(|error| {
                let known = store.list().unwrap_or_default();
                refuse_among(error, known.iter().map(|user| user.name.as_str()))
            })?;
            if json {
                answers::print(&Deleted { deleted: name });
            } else {
                text::line(&format!("deleted user {name}"));
            }
        }
    }
    Ok(Exit::Clean)
}

/// The present time, in milliseconds since 1970.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(now).unwrap_or_default()
}

/// Reads a policy.
fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).map_err(|error| {
        let refusal = Refusal::usage(format!("cannot read the policy {}", file.display()));
        anyhow::Error::new(error).context(refusal)
    })
}

fn created(user: &User, json: bool) {
    if json {
        answers::print(&UserCreated { user: shown(user), secret_access_key: &user.secret });
        return;
    }
    text::line(&format!("AWS_ACCESS_KEY_ID={}", user.access_key));
    text::line(&format!("AWS_SECRET_ACCESS_KEY={}", user.secret));
    let may = if user.policy.is_some() { "what its policy allows" } else { "everything" };
    text::note(&format!("user {} may do {may}; the secret is not shown again", user.name));
}

fn listed(users: &[User], json: bool) {
    if json {
        answers::print(&users.iter().map(shown).collect::<Vec<_>>());
        return;
    }
    let mut table = TextTable::new(&["NAME", "ACCESS KEY", "MAY DO", "CREATED"]);
    for user in users {
        let may = if user.policy.is_some() { "its policy" } else { "everything" };
        table.row([user.name.clone(), user.access_key.clone(), may.to_owned(), user.created.clone()]);
    }
    table.print("no users");
}

fn shown(user: &User) -> UserListed<'_> {
    UserListed {
        name: &user.name,
        arn: user.arn(),
        user_id: &user.user_id,
        access_key_id: &user.access_key,
        created: &user.created,
        has_policy: user.policy.is_some(),
    }
}

/// What the command line says of an error; of a name that does not exist, which one of the known was meant.
fn refuse_among<'a>(error: UserError, known: impl Iterator<Item = &'a str>) -> anyhow::Error {
    let UserError::NotFound { kind, name } = &error else { return refuse(error) };
    let Some(nearest) = closest(name, known) else { return refuse(error) };
    let hint = format!("did you mean '{nearest}'? 'ebbtide {kind} list' shows what there is");
    let refusal = Refusal::usage(error.to_string()).hint(hint);
    anyhow::Error::new(error).context(refusal)
}

/// What the command line says of an error.
fn refuse(error: UserError) -> anyhow::Error {
    let refusal = match &error {
        UserError::Name { .. }
        | UserError::Exists { .. }
        | UserError::Policy(_)
        | UserError::Trust(_)
        | UserError::SessionDuration(_) => Refusal::usage(error.to_string()),
        UserError::NotFound { kind, .. } => {
            Refusal::usage(error.to_string()).hint(format!("'ebbtide {kind} list' shows what there is"))
        }
        UserError::Open(path) => Refusal::environment(error.to_string())
            .hint(format!("'chmod 600 {}'; delete users whose keys may be known", path.display())),
        UserError::Damaged { path, .. } => Refusal::environment(error.to_string())
            .hint(format!("mend or remove {}; without it there are no users", path.display())),
        UserError::Stored { kind, .. } => Refusal::environment(error.to_string())
            .hint(format!("delete that {kind}, and create it with a policy that is right")),
        UserError::Io { .. } | UserError::Random => Refusal::environment("users cannot be read or changed"),
    };
    anyhow::Error::new(error).context(refusal)
}
