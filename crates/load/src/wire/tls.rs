//! Setting TLS up.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::error::LoadError;
use crate::options::{Endpoint, Tls};

/// A TLS client for a server, not yet connected.
pub(super) fn client(tls: &Tls, endpoint: &Endpoint) -> Result<Box<ClientConnection>, LoadError> {
    let failed = |message: String| LoadError::Tls { endpoint: endpoint.to_string(), message };
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?;
    let config = match &tls.ca {
        None => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            let certificates = CertificateDer::pem_file_iter(path)
                .map_err(|error| failed(format!("{}: {error}", path.display())))?;
            for certificate in certificates {
                let certificate =
                    certificate.map_err(|error| failed(format!("{}: {error}", path.display())))?;
                roots.add(certificate).map_err(|error| failed(error.to_string()))?;
            }
            builder.with_root_certificates(roots)
        }
    };
    let name = match endpoint {
        Endpoint::Tcp { host, .. } => host.clone(),
        Endpoint::Unix(_) => "localhost".into(),
    };
    let name = ServerName::try_from(name).map_err(|error| failed(error.to_string()))?;
    let client = ClientConnection::new(Arc::new(config.with_no_client_auth()), name);
    let mut client = client.map_err(|error| failed(error.to_string()))?;
    // A statement is taken whole and sent as the socket allows; our statements bound it.
    client.set_buffer_limit(None);
    Ok(Box::new(client))
}

/// Encrypts without asking who the server is: what `--mysql-ssl=on` means without an authority.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
