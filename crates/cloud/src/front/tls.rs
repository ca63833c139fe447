//! Certificates: the user's own, or one that is made once and kept.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The file with the certificate that is made.
const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file of the user's cannot be read.
    #[error("cannot read {what} from {}", path.display())]
    Pem {
        /// What it should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: pem::Error,
    },
    /// Certificate and key do not fit each other, or are no good.
    #[error("the certificate cannot be used")]
    Unusable(#[from] rustls::Error),
    /// None can be made.
    #[error("no certificate can be made")]
    Generate(#[from] rcgen::Error),
    /// What was made cannot be stored.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// TLS with a certificate chain and its key, both PEM files.
///
/// # Errors
/// A file that cannot be read; a key that is not the certificate's.
pub fn from_files(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let wrong = |what, path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Pem { what, path, source }
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(wrong("a certificate", certificate))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(wrong("a private key", key))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(Arc::new(config))
}

/// TLS with a certificate that signs itself, for `localhost` and some more names or addresses. It is made once and
/// kept in a folder; clients must be told to trust it. Answers with its file, too.
///
/// # Errors
/// What the host refuses; files in the folder that are none of this function's.
pub fn generated(folder: &Path, more: &[String]) -> Result<(Arc<ServerConfig>, PathBuf), TlsError> {
    let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
    if !certificate.exists() || !key.exists() {
        let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        names.extend(more.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
        let made = rcgen::generate_simple_self_signed(names)?;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| TlsError::Io { path, source }
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
        replace(&key, &made.signing_key.serialize_pem()).map_err(failed(&key))?;
        replace(&certificate, &made.cert.pem()).map_err(failed(&certificate))?;
    }
    Ok((from_files(&certificate, &key)?, certificate))
}

/// Writes a file that only its owner can read.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}
