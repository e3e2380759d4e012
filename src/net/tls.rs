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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicU32, Ordering};

    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use rustls::{ClientConnection, ProtocolVersion, ServerConnection};

    use super::*;
    use crate::config::{BackendTls, ServerTls};

    /// A folder with a CA, and certificates that it signed.
    struct Folder(PathBuf, CertifiedIssuer<'static, KeyPair>);

    impl Folder {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let name = format!("myriad-tls-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
            let folder = Self(path, ca);
            folder.file("ca.pem", &folder.1.pem());
            folder
        }

        fn file(&self, name: &str, content: &str) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, content).unwrap();
            path
        }

        /// Certificate and key for a name, as PEM.
        fn signed(&self, name: &str) -> (String, String) {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            (params.signed_by(&key, &self.1).unwrap().pem(), key.serialize_pem())
        }

        fn server(&self, name: &str) -> ServerTls {
            let (certificate, key) = self.signed(name);
            let certificate = Some(self.file(&format!("{name}.pem"), &certificate));
            ServerTls { certificate, key: Some(self.file(&format!("{name}.key"), &key)), ..ServerTls::default() }
        }

        fn ca(&self) -> Option<PathBuf> {
            Some(self.0.join("ca.pem"))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A handshake in memory; the versions agreed on, or the first error of either end.
    fn shake(
        client: Arc<ClientConfig>,
        name: ServerName<'static>,
        server: Arc<ServerConfig>,
    ) -> Result<Option<ProtocolVersion>, rustls::Error> {
        let mut client = ClientConnection::new(client, name)?;
        let mut server = ServerConnection::new(server)?;
        for _ in 0..6 {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            server.read_tls(&mut bytes.as_slice()).unwrap();
            server.process_new_packets()?;
            bytes.clear();
            server.write_tls(&mut bytes).unwrap();
            client.read_tls(&mut bytes.as_slice()).unwrap();
            client.process_new_packets()?;
        }
        assert!(!client.is_handshaking() && !server.is_handshaking());
        Ok(client.protocol_version())
    }

    fn localhost() -> ServerName<'static> {
        ServerName::try_from("localhost").unwrap()
    }

    #[test]
    fn without_files_both_ends_encrypt() {
        let server = server_config(&ServerTls::default()).unwrap();
        let client = client_config(&BackendTls::default()).unwrap();
        let name = server_name(&BackendTls::default(), "127.0.0.1").unwrap();
        assert_eq!(shake(client, name, server), Ok(Some(ProtocolVersion::TLSv1_3)));
    }

    #[test]
    fn old_clients_may_speak_tls_1_2() {
        let server = server_config(&ServerTls::default()).unwrap();
        let client = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS12])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified { provider: provider() }))
            .with_no_client_auth();
        assert_eq!(shake(Arc::new(client), localhost(), server), Ok(Some(ProtocolVersion::TLSv1_2)));
    }

    #[test]
    fn with_a_ca_chain_and_name_are_verified() {
        let folder = Folder::new();
        let server = server_config(&folder.server("db.example")).unwrap();
        let settings = BackendTls { ca: folder.ca(), ..BackendTls::default() };
        let go = |settings: &BackendTls, host| {
            shake(client_config(settings).unwrap(), server_name(settings, host).unwrap(), Arc::clone(&server))
        };
        assert!(go(&settings, "db.example").is_ok());
        assert!(matches!(go(&settings, "other.example"), Err(rustls::Error::InvalidCertificate(_))));
        let named = BackendTls { server_name: Some("db.example".into()), ..settings.clone() };
        assert!(go(&named, "10.0.0.1").is_ok());
        let stranger = BackendTls { ca: Folder::new().ca(), ..BackendTls::default() };
        assert!(client_config(&stranger).is_err(), "its folder is gone");
        let other = Folder::new();
        let stranger = BackendTls { ca: other.ca(), ..BackendTls::default() };
        assert!(matches!(go(&stranger, "db.example"), Err(rustls::Error::InvalidCertificate(_))));
    }

    #[test]
    fn with_a_client_ca_clients_need_a_certificate() {
        let folder = Folder::new();
        let settings = ServerTls { client_ca: folder.ca(), ..folder.server("localhost") };
        let server = server_config(&settings).unwrap();
        let anonymous = client_config(&BackendTls::default()).unwrap();
        assert_eq!(shake(anonymous, localhost(), Arc::clone(&server)), Err(rustls::Error::NoCertificatesPresented));
        let certified = |folder: &Folder| {
            let (certificate, key) = folder.signed("app");
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
            ClientConfig::builder_with_provider(provider())
                .with_safe_default_protocol_versions()
                .unwrap()
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unverified { provider: provider() }))
                .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
                .unwrap()
        };
        assert!(shake(Arc::new(certified(&folder)), localhost(), Arc::clone(&server)).is_ok());
        assert!(shake(Arc::new(certified(&Folder::new())), localhost(), server).is_err());
    }

    /// Every message names the setting and the file.
    #[test]
    fn mistakes_are_named() {
        let folder = Folder::new();
        let good = folder.server("localhost");
        let (other, empty) = (folder.server("other"), folder.file("empty.pem", "nothing here"));
        let missing = folder.0.join("missing.pem");
        let some = |path: &Path| Some(path.to_owned());
        let server = |settings: ServerTls| server_config(&settings).unwrap_err().to_string();
        let messages = [
            (
                server(ServerTls { certificate: some(&missing), ..good.clone() }),
                "server.tls.certificate",
                "missing.pem",
            ),
            (server(ServerTls { certificate: some(&empty), ..good.clone() }), "server.tls.certificate", "empty.pem"),
            (server(ServerTls { key: some(&empty), ..good.clone() }), "server.tls.key", "empty.pem"),
            (server(ServerTls { key: good.certificate.clone(), ..good.clone() }), "server.tls.key", "localhost.pem"),
            (server(ServerTls { key: other.key, ..good.clone() }), "work together", "other.key"),
            (server(ServerTls { key: None, ..good.clone() }), "server.tls.key", "both"),
            (server(ServerTls { client_ca: some(&empty), ..good.clone() }), "server.tls.client_ca", "empty.pem"),
            (
                client_config(&BackendTls { ca: some(&missing), ..BackendTls::default() }).unwrap_err().to_string(),
                "backend.tls.ca",
                "missing.pem",
            ),
            (
                server_name(&BackendTls::default(), "not a name").unwrap_err().to_string(),
                "backend.tls.server_name",
                "not a name",
            ),
        ];
        for (message, setting, file) in messages {
            assert!(message.contains(setting) && message.contains(file), "{message}");
        }
    }
}
