//! Who may use a key: its policy, the users' own, and grants, also for encrypted volumes.

use ebbtide_cloud::iam::{Environment, Policy, PolicyAuthorizer, Sealer};
use ebbtide_cloud::{ApiError, Call, Caller, Service};
use serde_json::{Value, json};

use crate::support::{ACCOUNT, OTHER, REGION, Rig, text};

/// A user with a policy, or without one.
pub(crate) struct User {
    caller: Caller,
    policy: Option<Policy>,
    sealer: Sealer,
}

fn arn(account: &str, name: &str) -> String {
    format!("arn:aws:iam::{account}:user/{name}")
}

impl User {
    pub(crate) fn of(account: &str, name: &str, policy: Option<Policy>) -> Self {
        let (account, arn) = (account.to_owned(), arn(account, name));
        let caller = Caller { account, arn, user_id: name.to_owned(), access_key: Some("AKIA".to_owned()) };
        Self { caller, policy, sealer: Sealer::new().unwrap() }
    }

    /// One whose policy has statements for actions, each allowed or denied.
    fn may(name: &str, statements: &[(&str, &str)]) -> Self {
        Self::of(ACCOUNT, name, Some(identity(statements)))
    }

    fn call(&self, rig: &Rig, service: &dyn Service, action: &str, input: &Value) -> Result<Value, ApiError> {
        self.call_with(rig, service, action, (input, &[]))
    }

    pub(crate) fn call_with(
        &self,
        rig: &Rig,
        service: &dyn Service,
        action: &str,
        (input, payload): (&Value, &[u8]),
    ) -> Result<Value, ApiError> {
        let environment = Environment {
            source: None,
            is_secure: true,
            user_agent: None,
            region: REGION.to_owned(),
            now_ms: rig.now(),
        };
        let authorizer = PolicyAuthorizer {
            policy: self.policy.as_ref(),
            session: None,
            service: service.name(),
            environment: &environment,
            sealer: &self.sealer,
        };
        let call = Call {
            action,
            input: input.as_object().unwrap(),
            payload,
            caller: &self.caller,
            region: REGION,
            request_id: "test",
            now_ms: rig.now(),
            authorizer: &authorizer,
        };
        service.call(&call).map(|answer| Value::Object(answer.output))
    }

    fn kms(&self, rig: &Rig, action: &str, input: &Value) -> Result<Value, ApiError> {
        self.call(rig, &*rig.kms, action, input)
    }

    fn encrypt(&self, rig: &Rig, key: &str) -> Result<(), String> {
        let input =
            json!({"KeyId": key, "Plaintext": "YQ==", "EncryptionContext": {"app": "db", "more": "x"}});
        let answered = self.kms(rig, "Encrypt", &input);
        answered.map(drop).map_err(|error| {
            assert_eq!((error.code.as_ref(), error.status), ("AccessDeniedException", 400));
            error.message
        })
    }

    /// The state of a new encrypted volume once it would be available; none where it is gone.
    fn volume(&self, rig: &Rig, key: &str) -> Option<String> {
        let input = json!({"AvailabilityZone": "us-east-1a", "Size": 1, "Encrypted": true, "KmsKeyId": key});
        let made = self.call(rig, &*rig.ec2, "CreateVolume", &input).unwrap();
        rig.pass(60_000);
        let shown = rig.attempt("DescribeVolumes", &json!({"VolumeIds": [made["VolumeId"]]})).ok()?;
        Some(text(&shown["Volumes"][0]["State"]))
    }
}

fn identity(statements: &[(&str, &str)]) -> Policy {
    let statement =
        |(effect, action): &(&str, &str)| json!({"Effect": effect, "Action": action, "Resource": "*"});
    let all: Vec<Value> = statements.iter().map(statement).collect();
    Policy::parse(&json!({"Version": "2012-10-17", "Statement": all}).to_string()).unwrap()
}

fn root(account: &str) -> String {
    format!("arn:aws:iam::{account}:root")
}

/// A key's policy of statements: effect, principal and action.
fn put_policy(rig: &Rig, key: &str, statements: &[(&str, &str, &str)]) {
    let statement = |(effect, principal, action): &(&str, &str, &str)| json!({"Sid": "Some words", "Effect": effect, "Principal": {"AWS": principal}, "Action": action, "Resource": "*"});
    let all: Vec<Value> = statements.iter().map(statement).collect();
    let policy = json!({"Version": "2012-10-17", "Statement": all}).to_string();
    let input = json!({"KeyId": key, "Policy": policy, "BypassPolicyLockoutSafetyCheck": true});
    // By a user of the rig's, whom no policy restricts.
    rig.kms("PutKeyPolicy", input);
}

#[test]
fn the_policies_of_a_key_and_of_a_user_decide_together() {
    let rig = Rig::new();
    let key = rig.key();
    let root = root(ACCOUNT);
    let anna = arn(ACCOUNT, "anna");
    let admin = arn(ACCOUNT, "test");
    let (own, none, denied) = (
        [("Allow", "kms:Encrypt")].as_slice(),
        [("Allow", "ec2:*")].as_slice(),
        [("Allow", "*"), ("Deny", "kms:Encrypt")].as_slice(),
    );
    let by_root = ("Allow", root.as_str(), "kms:*");
    let by_name = ("Allow", anna.as_str(), "kms:Encrypt");
    let stays = ("Allow", admin.as_str(), "kms:*");
    let (identity, explicit) = ("no identity-based policy allows", "explicit deny in an identity-based");
    let (silent, by_key) = ("no resource-based policy allows", "explicit deny in a resource-based");
    let rows: &[(&[_], &[_], Result<(), &str>)] = &[
        (&[by_root], own, Ok(())),
        (&[by_root], none, Err(identity)),
        (&[by_root], denied, Err(explicit)),
        (&[stays, by_name], none, Ok(())),
        (&[stays, by_name], denied, Err(explicit)),
        (&[stays], own, Err(silent)),
        (&[stays, ("Allow", anna.as_str(), "kms:Decrypt")], own, Err(silent)),
        (&[by_root, ("Deny", anna.as_str(), "kms:Enc*")], own, Err(by_key)),
        (&[by_root, by_name, ("Deny", root.as_str(), "kms:Encrypt")], own, Err(by_key)),
    ];
    for (number, (of_key, of_user, expected)) in rows.iter().enumerate() {
        put_policy(&rig, &key, of_key);
        let found = User::may("anna", of_user).encrypt(&rig, &key);
        match (found, expected) {
            (Ok(()), Ok(())) => {}
            (Err(found), Err(part)) => assert!(found.contains(part), "row {number}: {found}"),
            (found, expected) => panic!("row {number}: {found:?}, not {expected:?}"),
        }
    }
    // A user without a policy may do all that keys allow.
    put_policy(&rig, &key, &[stays]);
    assert!(User::of(ACCOUNT, "anna", None).encrypt(&rig, &key).unwrap_err().contains(silent));
}

#[test]
fn another_account_needs_the_keys_policy_and_its_own() {
    let rig = Rig::new();
    let key = rig.key();
    let other = arn(OTHER, "olga");
    for (principal, of_user, expected) in [
        (root(OTHER), Some(identity(&[("Allow", "kms:Encrypt")])), true),
        (root(OTHER), Some(identity(&[("Allow", "ec2:*")])), false),
        (other.clone(), Some(identity(&[("Allow", "ec2:*")])), false),
        (other, None, true),
        (arn(OTHER, "oscar"), None, false),
    ] {
        put_policy(&rig, &key, &[("Allow", &root(ACCOUNT), "kms:*"), ("Allow", &principal, "kms:Encrypt")]);
        let found = User::of(OTHER, "olga", of_user).encrypt(&rig, &key);
        assert_eq!(found.is_ok(), expected, "{principal}: {found:?}");
    }
}

#[test]
fn a_policy_and_a_grant_that_name_a_role_mean_its_sessions() {
    let rig = Rig::new();
    let (key, admin) = (rig.key(), User::of(ACCOUNT, "test", None));
    let role = format!("arn:aws:iam::{ACCOUNT}:role/backup");
    let mut nightly = User::may("nightly", &[("Allow", "ec2:*")]);
    nightly.caller.arn = format!("arn:aws:sts::{ACCOUNT}:assumed-role/backup/nightly");
    let other = format!("arn:aws:iam::{ACCOUNT}:role/other");
    let stays = ("Allow", admin.caller.arn.as_str(), "kms:*");
    for (principal, expected) in [(&role, true), (&nightly.caller.arn.clone(), true), (&other, false)] {
        put_policy(&rig, &key, &[stays, ("Allow", principal, "kms:Encrypt")]);
        assert_eq!(nightly.encrypt(&rig, &key).is_ok(), expected, "{principal}");
        put_policy(&rig, &key, &[stays]);
        let id = grant(&rig, &admin, &key, principal, &["Encrypt"], &json!({})).unwrap();
        assert_eq!(nightly.encrypt(&rig, &key).is_ok(), expected, "a grant of {principal}");
        admin.kms(&rig, "RevokeGrant", &json!({"KeyId": key, "GrantId": id})).unwrap();
    }
}

#[test]
fn a_policy_by_which_its_author_could_not_change_it_again_is_refused_unless_asked_for() {
    let rig = Rig::new();
    let anna = User::of(ACCOUNT, "anna", None);
    let key = text(&anna.kms(&rig, "CreateKey", &json!({})).unwrap()["KeyMetadata"]["Arn"]);
    let policy = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"AWS": arn(ACCOUNT, "bob")}, "Action": "kms:*", "Resource": "*"}]});
    let policy = policy.to_string();
    let mut input = json!({"KeyId": key, "Policy": policy});
    for (action, input) in [("PutKeyPolicy", input.clone()), ("CreateKey", json!({"Policy": policy}))] {
        let refused = anna.kms(&rig, action, &input).unwrap_err();
        assert_eq!(refused.code, "MalformedPolicyDocumentException", "{action}");
        assert!(refused.message.contains("will not allow you to update the key policy"), "{action}");
    }
    anna.encrypt(&rig, &key).unwrap();
    input["BypassPolicyLockoutSafetyCheck"] = true.into();
    anna.kms(&rig, "PutKeyPolicy", &input).unwrap();
    assert!(anna.encrypt(&rig, &key).is_err());
    User::may("bob", &[("Allow", "ec2:*")]).encrypt(&rig, &key).unwrap();
}

/// Gives a user a grant, and answers with its id.
fn grant(
    rig: &Rig,
    by: &User,
    key: &str,
    to: &str,
    operations: &[&str],
    more: &Value,
) -> Result<String, ApiError> {
    let mut input = json!({"KeyId": key, "GranteePrincipal": to, "Operations": operations});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    by.kms(rig, "CreateGrant", &input).map(|answer| text(&answer["GrantId"]))
}

#[test]
fn a_grant_allows_its_operations_until_it_is_revoked_or_retired() {
    let rig = Rig::new();
    let (key, admin) = (rig.key(), User::of(ACCOUNT, "test", None));
    let anna = User::may("anna", &[("Allow", "ec2:*")]);
    let to = anna.caller.arn.as_str();
    let context = |pairs: Value| json!({"Constraints": {"EncryptionContextSubset": pairs}});
    assert!(anna.encrypt(&rig, &key).is_err());
    for (operations, more, expected) in [
        (["Encrypt"], json!({}), true),
        (["Decrypt"], json!({}), false),
        (["Encrypt"], context(json!({"app": "db"})), true),
        (["Encrypt"], context(json!({"app": "web"})), false),
        (["Encrypt"], json!({"Constraints": {"EncryptionContextEquals": {"app": "db"}}}), false),
        (["Encrypt"], json!({"Constraints": {"EncryptionContextEquals": {"app": "db", "more": "x"}}}), true),
    ] {
        let id = grant(&rig, &admin, &key, to, &operations, &more).unwrap();
        let found = anna.encrypt(&rig, &key);
        assert_eq!(found.is_ok(), expected, "{operations:?} {more}: {found:?}");
        admin.kms(&rig, "RevokeGrant", &json!({"KeyId": key, "GrantId": id})).unwrap();
        assert!(anna.encrypt(&rig, &key).is_err(), "revoked");
    }
    // ReEncrypt has two contexts, one for each of its operations.
    let made = json!({"KeyId": key, "Plaintext": "aGVsbG8=", "EncryptionContext": {"app": "db"}});
    let blob = admin.kms(&rig, "Encrypt", &made).unwrap()["CiphertextBlob"].clone();
    let ids = [("ReEncryptFrom", "db"), ("ReEncryptTo", "web")].map(|(operation, app)| {
        grant(&rig, &admin, &key, to, &[operation], &context(json!({"app": app}))).unwrap()
    });
    let again = |to: &str| {
        let input = json!({"CiphertextBlob": blob, "SourceEncryptionContext": {"app": "db"},
            "DestinationKeyId": key, "DestinationEncryptionContext": {"app": to}});
        anna.kms(&rig, "ReEncrypt", &input).is_ok()
    };
    assert_eq!((again("web"), again("db")), (true, false));
    for id in ids {
        admin.kms(&rig, "RevokeGrant", &json!({"KeyId": key, "GrantId": id})).unwrap();
    }
    // Not of another user, nor against a deny.
    grant(&rig, &admin, &key, to, &["Encrypt"], &json!({})).unwrap();
    assert!(User::may("bob", &[("Allow", "ec2:*")]).encrypt(&rig, &key).is_err());
    assert!(User::may("anna", &[("Deny", "kms:*")]).encrypt(&rig, &key).is_err());
    put_policy(&rig, &key, &[("Allow", &root(ACCOUNT), "kms:*"), ("Deny", to, "kms:Encrypt")]);
    assert!(anna.encrypt(&rig, &key).unwrap_err().contains("explicit deny in a resource-based"));
}

#[test]
fn who_retires_a_grant_and_what_a_grantee_passes_on() {
    let rig = Rig::new();
    let (key, admin) = (rig.key(), User::of(ACCOUNT, "test", None));
    let [anna, bob, carl] = ["anna", "bob", "carl"].map(|name| User::may(name, &[("Allow", "ec2:*")]));
    let list = || rig.kms("ListGrants", json!({"KeyId": key}))["Grants"].as_array().unwrap().len();
    let retiring = json!({"RetiringPrincipal": bob.caller.arn});
    let retire = |user: &User, id: &str| user.kms(&rig, "RetireGrant", &json!({"KeyId": key, "GrantId": id}));
    let id = grant(&rig, &admin, &key, &anna.caller.arn, &["Encrypt"], &retiring).unwrap();
    assert_eq!(
        retire(&anna, &id).unwrap_err().code,
        "AccessDeniedException",
        "its operations have no RetireGrant"
    );
    assert_eq!(retire(&carl, &id).unwrap_err().code, "AccessDeniedException");
    retire(&bob, &id).unwrap();
    let id =
        grant(&rig, &admin, &key, &anna.caller.arn, &["RetireGrant", "CreateGrant", "Decrypt"], &json!({}));
    let id = id.unwrap();
    let passed = |operations: &[&str]| grant(&rig, &anna, &key, &carl.caller.arn, operations, &json!({}));
    assert_eq!(passed(&["Encrypt"]).unwrap_err().code, "AccessDeniedException", "anna has no Encrypt");
    passed(&["Decrypt"]).unwrap();
    // Who may by policies passes on what they like, whatever grants they have.
    let rights = User::may("anna", &[("Allow", "kms:*")]);
    grant(&rig, &rights, &key, &carl.caller.arn, &["Encrypt"], &json!({})).unwrap();
    retire(&anna, &id).unwrap();
    assert_eq!(passed(&["Decrypt"]).unwrap_err().code, "AccessDeniedException");
    assert_eq!(list(), 2, "carl's stay");
}

#[test]
fn an_encrypted_volume_needs_a_key_that_policies_or_a_grant_allow() {
    let rig = Rig::slow();
    let key = rig.key();
    let available = Some("available".to_owned());
    let anna = User::may("anna", &[("Allow", "ec2:*")]);
    let rights = User::may(
        "anna",
        &[("Allow", "ec2:*"), ("Allow", "kms:DescribeKey"), ("Allow", "kms:*Grant"), ("Allow", "kms:Gen*")],
    );
    assert_eq!(anna.volume(&rig, &key), None, "her policy does not allow it");
    assert_eq!(rights.volume(&rig, &key), available);
    // By a grant instead.
    let admin = User::of(ACCOUNT, "test", None);
    let most = ["CreateGrant", "GenerateDataKeyWithoutPlaintext"];
    grant(&rig, &admin, &key, &anna.caller.arn, &most, &json!({})).unwrap();
    assert_eq!(anna.volume(&rig, &key), None, "DescribeKey is missing");
    grant(&rig, &admin, &key, &anna.caller.arn, &["DescribeKey"], &json!({})).unwrap();
    assert_eq!(anna.volume(&rig, &key), available);
    // The key's policy is enough, and its deny wins.
    let (other, name) = (rig.key(), anna.caller.arn.clone());
    let root = root(ACCOUNT);
    put_policy(&rig, &other, &[("Allow", &root, "kms:*"), ("Allow", &name, "kms:*")]);
    assert_eq!(anna.volume(&rig, &other), available);
    put_policy(&rig, &other, &[("Allow", &root, "kms:*"), ("Deny", &name, "kms:GenerateDataKey*")]);
    assert_eq!(rights.volume(&rig, &other), None);
    // Only through EC2, as AWS's guide recommends it.
    let via = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"AWS": root}, "Action": "kms:*", "Resource": "*"},
        {"Effect": "Allow", "Principal": {"AWS": name}, "Resource": "*",
         "Action": ["kms:CreateGrant", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKeyWithoutPlaintext"],
         "Condition": {"StringEquals": {"kms:ViaService": "ec2.us-east-1.amazonaws.com"}}}]});
    rig.kms("PutKeyPolicy", json!({"KeyId": other, "Policy": via.to_string()}));
    assert_eq!(anna.volume(&rig, &other), available);
    assert!(anna.encrypt(&rig, &other).is_err());
}

#[test]
fn conditions_on_the_parameters_of_a_call_hold_also_where_it_leaves_them_out() {
    let rig = Rig::new();
    let key = rig.key();
    let may = |action: &str, operator: &str, name: &str, value: &str, input: Value| {
        let allow = |action: &str, condition: Value| json!({"Effect": "Allow", "Action": action, "Resource": "*", "Condition": condition});
        let policy = json!({"Version": "2012-10-17", "Statement": [allow(&format!("kms:{action}"), json!({operator: {name: value}}))]});
        let user = User::of(ACCOUNT, "anna", Some(Policy::parse(&policy.to_string()).unwrap()));
        let mut parameters = json!({"KeyId": key});
        parameters.as_object_mut().unwrap().extend(input.as_object().unwrap().clone());
        match user.kms(&rig, action, &parameters) {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.code, "AccessDeniedException", "{action} {parameters}: {error}");
                false
            }
        }
    };
    let rotates = |days: Value| {
        may("EnableKeyRotation", "NumericLessThanEquals", "kms:RotationPeriodInDays", "180", days)
    };
    assert!(rotates(json!({"RotationPeriodInDays": 180})));
    assert!(!rotates(json!({"RotationPeriodInDays": 181})));
    assert!(!rotates(json!({})), "365 days");
    let grants = |operations: Value| {
        let input = json!({"GranteePrincipal": arn(ACCOUNT, "bob"), "Operations": operations});
        may("CreateGrant", "ForAllValues:StringEquals", "kms:GrantOperations", "Decrypt", input)
    };
    assert!(grants(json!(["Decrypt"])) && !grants(json!(["Decrypt", "Encrypt"])));
    let grantee = |name: &str| {
        let input = json!({"GranteePrincipal": arn(ACCOUNT, name), "Operations": ["Decrypt"]});
        may("CreateGrant", "StringEquals", "kms:GranteePrincipal", &arn(ACCOUNT, "bob"), input)
    };
    assert!(grantee("bob") && !grantee("eve"));
    let deletes = |days: Value| {
        may(
            "ScheduleKeyDeletion",
            "NumericGreaterThanEquals",
            "kms:ScheduleKeyDeletionPendingWindowInDays",
            "14",
            days,
        )
    };
    assert!(!deletes(json!({"PendingWindowInDays": 7})) && deletes(json!({})), "30 days");
}

#[test]
fn data_of_an_encrypted_snapshot_need_the_rights_to_each_key_that_they_pass() {
    let rig = Rig::slow();
    let (first, second) = (rig.key(), rig.key());
    let volume = rig.volume_of(json!({"Size": 1, "Encrypted": true, "KmsKeyId": first}));
    rig.pass(60_000);
    let snapshot = rig.snapshot(&volume);
    rig.pass(60_000);
    // A user who may do everything but one action with one key.
    let without = |action: &str, key: &str| {
        let statement = |effect: &str, action: &str, resource: &str| json!({"Effect": effect, "Action": action, "Resource": resource});
        let policy = json!({"Version": "2012-10-17", "Statement": [statement("Allow", "*", "*"), statement("Deny", action, key)]});
        User::of(ACCOUNT, "anna", Some(Policy::parse(&policy.to_string()).unwrap()))
    };
    let state = |action: &str, list: &str, ids: &str, id: &Value| {
        rig.pass(60_000);
        let shown = rig.attempt(action, &json!({ids: [id]})).ok()?;
        Some(text(&shown[list][0]["State"]))
    };
    let volume = |user: &User, key: &str| {
        let input = json!({"AvailabilityZone": "us-east-1a", "SnapshotId": snapshot, "Encrypted": true, "KmsKeyId": key});
        let made = user.call(&rig, &*rig.ec2, "CreateVolume", &input).unwrap();
        state("DescribeVolumes", "Volumes", "VolumeIds", &made["VolumeId"]) == Some("available".to_owned())
    };
    // A refusal at once, or a copy that ends in an error.
    let copied = |user: &User, key: &str| {
        let input =
            json!({"SourceRegion": REGION, "SourceSnapshotId": snapshot, "Encrypted": true, "KmsKeyId": key});
        let Ok(made) = user.call(&rig, &*rig.ec2, "CopySnapshot", &input) else { return false };
        state("DescribeSnapshots", "Snapshots", "SnapshotIds", &made["SnapshotId"])
            == Some("completed".to_owned())
    };
    let new = ["DescribeKey", "GenerateDataKeyWithoutPlaintext", "CreateGrant"];
    let rights_of_other: Vec<_> = ["Decrypt", "ReEncryptFrom"]
        .map(|right| (right, &first))
        .into_iter()
        .chain(new.into_iter().chain(["ReEncryptTo"]).map(|right| (right, &second)))
        .collect();
    let rights_of_same: Vec<_> = new.into_iter().chain(["Decrypt"]).map(|right| (right, &first)).collect();
    for (to, rights) in [(&second, &rights_of_other), (&first, &rights_of_same)] {
        for (right, key) in rights {
            let user = without(&format!("kms:{right}"), key);
            assert!(!volume(&user, to) && !copied(&user, to), "without {right} on {key}, to {to}");
        }
        // Of another key nothing is needed, nor are other rights.
        let user = without("kms:Encrypt", to);
        assert!(volume(&user, to) && copied(&user, to), "to {to}");
    }
    let user = without("kms:ReEncrypt*", &first);
    assert!(volume(&user, &first) && copied(&user, &first), "the same key re-encrypts nothing");
}

#[test]
fn a_deny_of_the_users_own_holds_for_the_key_that_aws_manages_and_silence_does_not() {
    let rig = Rig::slow();
    let available = Some("available".to_owned());
    assert_eq!(User::may("anna", &[("Allow", "ec2:*")]).volume(&rig, "alias/aws/ebs"), available);
    let denied = User::may("anna", &[("Allow", "*"), ("Deny", "kms:GenerateDataKey*")]);
    assert_eq!(denied.volume(&rig, "alias/aws/ebs"), None);
}
