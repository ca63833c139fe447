//! The file of users and roles, and how a running endpoint follows it.

use std::os::unix::fs::PermissionsExt as _;

use ring::rand::SystemRandom;

use super::*;
use crate::sessions::Sessions;
use crate::sigv4::Keys as _;

const POLICY: &str =
    r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"ec2:*","Resource":"*"}}"#;

fn store() -> (tempfile::TempDir, UserStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = UserStore::new(&dir.path().join("aws"));
    (dir, store)
}

fn ring_of(dir: &tempfile::TempDir, store: UserStore) -> KeyRing {
    KeyRing::new(store, Sessions::open(dir.path()).unwrap())
}

fn create(store: &UserStore, name: &str, policy: Option<&str>) -> Result<User, UserError> {
    store.create(name, policy, 1_795_309_323_000, &SystemRandom::new())
}

#[test]
fn a_user_has_keys_in_the_form_of_aws_and_is_there_when_read_again() {
    let (_dir, store) = store();
    let user = create(&store, "anna", Some(POLICY)).unwrap();
    assert_eq!((user.access_key.len(), user.secret.len(), user.user_id.len()), (20, 40, 20));
    assert!(user.access_key.starts_with("AKIA") && user.user_id.starts_with("AIDA"));
    assert_eq!(user.created, "2026-11-22T01:02:03Z");
    let listed = store.list().unwrap();
    assert_eq!((listed.len(), &listed[0].secret), (1, &user.secret));
    assert_ne!(create(&store, "bert", None).unwrap().secret, user.secret);
}

#[test]
fn only_the_owner_can_read_the_file_and_one_that_others_can_read_is_refused() {
    let (_dir, store) = store();
    create(&store, "anna", None).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&store.path(FILE)), mode(&store.folder)), (0o600, 0o700));
    fs::set_permissions(store.path(FILE), fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(store.list(), Err(UserError::Open(_))));
}

#[test]
fn names_and_policies_that_are_wrong_are_refused_and_change_nothing() {
    let (_dir, store) = store();
    create(&store, "anna", None).unwrap();
    assert!(matches!(create(&store, "Anna", None), Err(UserError::Exists { .. })));
    assert!(matches!(create(&store, "an na", None), Err(UserError::Name { .. })));
    assert!(matches!(create(&store, "", None), Err(UserError::Name { .. })));
    let error = create(&store, "bert", Some("{}")).unwrap_err();
    assert_eq!(error.to_string(), "the policy is wrong at Statement: it is missing");
    assert!(matches!(store.delete("bert"), Err(UserError::NotFound { .. })));
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn a_running_endpoint_sees_new_and_deleted_users() {
    let (dir, store) = store();
    let ring = ring_of(&dir, store.clone());
    assert_eq!(ring.find("AKIAANNA").unwrap(), None);
    let anna = create(&store, "anna", Some(POLICY)).unwrap();
    let found = ring.find(&anna.access_key).unwrap().unwrap();
    assert_eq!(found.caller.arn, "arn:aws:iam::000000000000:user/anna");
    assert_eq!(found.secret, anna.secret);
    assert!(ring.permissions(&anna.access_key).unwrap().unwrap().policy.is_some());
    create(&store, "bert", None).unwrap();
    store.delete("anna").unwrap();
    assert_eq!(ring.find(&anna.access_key).unwrap(), None);
    assert!(ring.permissions(&anna.access_key).unwrap().is_none(), "it is not one without a policy");
}

#[test]
fn a_damaged_file_lets_nobody_in() {
    let (dir, store) = store();
    let anna = create(&store, "anna", None).unwrap();
    fs::write(store.path(FILE), "{\"version\":1,\"users\":[{}]}").unwrap();
    assert_eq!(ring_of(&dir, store).find(&anna.access_key).unwrap_err().status, 500);
}

#[test]
fn secrets_are_in_no_debug_output() {
    let (dir, store) = store();
    let anna = create(&store, "anna", None).unwrap();
    let ring = ring_of(&dir, store);
    let credential = ring.find(&anna.access_key).unwrap();
    assert!(!format!("{anna:?} {ring:?} {credential:?}").contains(&anna.secret));
}

const TRUST: &str = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"000000000000"},"Action":"sts:AssumeRole"}}"#;

fn create_role(store: &UserStore, name: &str, trust: &str, max_session_s: u32) -> Result<IamRole, UserError> {
    let new = NewRole { name, trust, policy: Some(POLICY), max_session_s };
    store.create_role(new, 1_795_309_323_000, &SystemRandom::new())
}

#[test]
fn roles_are_in_the_file_of_users_with_names_of_their_own() {
    let (dir, store) = store();
    create(&store, "backup", None).unwrap();
    let role = create_role(&store, "backup", TRUST, 3_600).unwrap();
    assert!(role.role_id.starts_with("AROA") && role.role_id.len() == 20, "{}", role.role_id);
    assert_eq!(role.arn(), "arn:aws:iam::000000000000:role/backup");
    assert!(matches!(
        create_role(&store, "Backup", TRUST, 3_600),
        Err(UserError::Exists { kind: Kind::Role, .. })
    ));
    assert!(matches!(create_role(&store, "a/b", TRUST, 3_600), Err(UserError::Name { .. })));
    let wrong = create_role(&store, "other", POLICY, 3_600).unwrap_err().to_string();
    assert!(wrong.starts_with("the trust policy is wrong at Statement[0].Resource: "), "{wrong}");
    for seconds in [3_599, 43_201] {
        let wrong = create_role(&store, "other", TRUST, seconds).unwrap_err().to_string();
        assert_eq!(wrong, format!("a session of {seconds} s is out of the range of 3600 to 43200 s"));
    }
    let ring = ring_of(&dir, store.clone());
    assert_eq!(ring.role("backup").unwrap().unwrap().role, role);
    assert_eq!((store.roles().unwrap().len(), store.list().unwrap().len()), (1, 1));
    store.delete_role("backup").unwrap();
    assert!(ring.role("backup").unwrap().is_none());
    assert!(matches!(store.delete_role("backup"), Err(UserError::NotFound { kind: Kind::Role, .. })));
    let text = fs::read_to_string(store.path(FILE)).unwrap();
    assert!(!text.contains("roles"), "a program that knows no roles reads the file: {text}");
}
