//! TLS settings for both directions: from the configuration to what a handshake needs.
//!
//! TLS 1.2 and 1.3, by aws-lc. The provider is handed over explicitly, so that nothing in the process is global.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use thiserror::Error;

use crate::config;

/// What is wrong with the TLS settings, and what to change.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The file cannot be read as PEM.
    #[error("{setting} = {file:?}: {reason}; give a PEM file that this user may read")]
    Read {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// What the reader says.
        reason: rustls::pki_types::pem::Error,
    },
    /// The file has no certificate in it.
    #[error("{setting} = {file:?} holds no certificate; give a PEM file with BEGIN CERTIFICATE")]
    Empty {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        file: PathBuf,
    },
    /// A certificate that cannot sign others.
    #[error("{setting} = {file:?} cannot be used as a CA: {reason}")]
    BadCa {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// What rustls says.
        reason: String,
    },
    /// Certificate and key do not belong together, or the key is of a kind that is not supported.
    #[error("server.tls.certificate = {certificate:?} and server.tls.key = {key:?} do not work together: {reason}")]
    BadPair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What rustls says.
        reason: rustls::Error,
    },
    /// One without the other.
    #[error("server.tls.certificate and server.tls.key go together: set both or neither")]
    HalfPair,
    /// Neither a DNS name nor an address.
    #[error("{0:?} cannot be a server's name in TLS; set backend.tls.server_name to the name in its certificate")]
    BadName(String),
    /// The machine failed us.
    #[error("a self-signed certificate could not be made: {0}; set server.tls.certificate and server.tls.key")]
    SelfSigned(#[from] rcgen::Error),
    /// rustls itself does not like the settings.
    #[error("TLS cannot be set up: {0}")]
    Rustls(#[from] rustls::Error),
}

/// TLS towards clients.
///
/// # Errors
/// If a file is not what it should be.
pub fn server_config(settings: &config::ServerTls) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = provider();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = match &settings.client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let setting = "server.tls.client_ca";
            let roots = Arc::new(roots(setting, file)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            let bad = |error: rustls::server::VerifierBuilderError| bad_ca(setting, file, &error);
            builder.with_client_cert_verifier(verifier.map_err(bad)?)
        }
    };
    let config = match (&settings.certificate, &settings.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates("server.tls.certificate", certificate)?;
            let reason = |reason| TlsError::Read { setting: "server.tls.key", file: key.clone(), reason };
            let private = PrivateKeyDer::from_pem_file(key).map_err(reason)?;
            builder.with_single_cert(chain, private).map_err(|reason| TlsError::BadPair {
                certificate: certificate.clone(),
                key: key.clone(),
                reason,
            })?
        }
        (None, None) => {
            let (chain, private) = self_signed()?;
            builder.with_single_cert(chain, private)?
        }
        _ => return Err(TlsError::HalfPair),
    };
    Ok(Arc::new(config))
}

/// TLS towards servers. Without a CA the connection is encrypted and the server not verified, as with MySQL's
/// PREFERRED; with one, its certificate must lead to that CA and carry its name.
///
/// # Errors
/// If the CA's file is not what it should be.
pub fn client_config(settings: &config::BackendTls) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let config = match &settings.ca {
        Some(file) => {
            let setting = "backend.tls.ca";
            let roots = Arc::new(roots(setting, file)?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
            builder.with_webpki_verifier(verifier.map_err(|error| bad_ca(setting, file, &error))?)
        }
        None => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified { provider })),
    };
    Ok(Arc::new(config.with_no_client_auth()))
}

/// The name that a server's certificate must carry.
///
/// # Errors
/// If it can be no server's name.
pub fn server_name(settings: &config::BackendTls, host: &str) -> Result<ServerName<'static>, TlsError> {
    let name = settings.server_name.as_deref().unwrap_or(host);
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::BadName(name.to_owned()))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// What MySQL does at its first start too. Nobody can verify it; it keeps listeners out.
fn self_signed() -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.into()], key.into()))
}

fn certificates(setting: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = |reason| TlsError::Read { setting, file: file.to_owned(), reason };
    let chain: Vec<_> = CertificateDer::pem_file_iter(file).map_err(read)?.collect::<Result<_, _>>().map_err(read)?;
    if chain.is_empty() {
        return Err(TlsError::Empty { setting, file: file.to_owned() });
    }
    Ok(chain)
}

fn roots(setting: &'static str, file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(setting, file)? {
        roots.add(certificate).map_err(|error| bad_ca(setting, file, &error))?;
    }
    Ok(roots)
}

fn bad_ca(setting: &'static str, file: &Path, reason: &dyn ToString) -> TlsError {
    TlsError::BadCa { setting, file: file.to_owned(), reason: reason.to_string() }
}

/// Takes any certificate, but still makes sure that the server holds its key.
#[derive(Debug)]
struct Unverified {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
