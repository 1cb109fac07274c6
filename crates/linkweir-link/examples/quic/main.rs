// SPDX-License-Identifier: BSD-3-Clause
//! A QUIC connection of quinn over a modem in a moving car: 100 s of `scenarios/lte-drive.toml`, with its calls and downloads,
//! in a fraction of a second, and each time the same.
//!
//! `cargo run --release --example quic`
//!
//! The server sends as fast as it can. Its packets wait in the modem's queue of class cs0, with those of the scenario's four
//! downloads; voice and telemetry go first. What the client sends takes a link of its own.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use linkweir_link::{Link, Overrides, Packet};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, StreamEvent, StreamId,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{ring, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

/// How long the connection lasts, ns.
pub const DURATION_NS: u64 = 100_000_000_000;
/// How long an end takes to answer, ns. Without it, datagrams would often come to a queue at the very time of an event of the
/// link, and a run, which knows all of them before, has another order of such events.
const ANSWER_NS: u64 = 1_000;
/// Of IPv4 and UDP.
const HEADER_BYTES: u32 = 28;
/// The way back.
const UP: &str = r#"
duration = "100s"
[link]
rate = "2Mbit"
delay = "25ms"
[scheduler]
policy = "fifo"
[[class]]
name = "all"
"#;

/// What the server's link did with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When the server sent it, ns.
    pub sent_ns: u64,
    /// Its bytes with headers.
    pub bytes: u32,
    /// When it arrived at the client or was dropped, ns; none if neither happened before the end.
    pub ended_ns: Option<u64>,
    /// Whether it arrived.
    pub arrived: bool,
}

/// What a connection did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Bytes that the client's application got.
    pub received_bytes: u64,
    /// Each datagram of the server, in order.
    pub decisions: Vec<Decision>,
}

fn main() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/lte-drive.toml");
    let text = std::fs::read_to_string(&file).expect("the scenario is there");
    #[allow(clippy::disallowed_methods)] // only to say how long it took
    let began = Instant::now();
    let done = drive(&text, &file);
    let took_s = began.elapsed().as_secs_f64();
    let dropped = done
        .decisions
        .iter()
        .filter(|d| !d.arrived && d.ended_ns.is_some());
    println!(
        "QUIC got {:.2} Mbit/s in 100 s; of {} datagrams {} were dropped; decisions {:016x}; {took_s:.2} s",
        done.received_bytes as f64 * 8.0 / 100.0 / 1e6,
        done.decisions.len(),
        dropped.count(),
        digest(&done.decisions),
    );
}

/// FNV-1a of all decisions.
fn digest(decisions: &[Decision]) -> u64 {
    let text = format!("{decisions:?}");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A connection over the link of a scenario; `file` is where the scenario is from.
pub fn drive(scenario: &str, file: &Path) -> Done {
    let scenario = scenario.replace("duration = \"300s\"", "duration = \"100s\"");
    let mut down: Link<Datagram> =
        Link::parse(&scenario, Some(file), Overrides::default()).expect("a link");
    let mut up: Link<Datagram> = Link::from_toml(UP).expect("a link");
    let cs0 = down.class("cs0").expect("a class of the scenario");

    #[allow(clippy::disallowed_methods)] // quinn wants instants; only their differences count
    let start = Instant::now();
    let mut server = Peer::server();
    let mut client = Peer::client(start, server.address);
    let mut done = Done {
        received_bytes: 0,
        decisions: Vec::new(),
    };
    let mut now_ns = 0;
    loop {
        let now = start + Duration::from_nanos(now_ns);
        while let Some(packet) = up.receive(now_ns) {
            let ecn = ecn(packet.marked, packet.payload.ecn);
            server.take(now, client.address, ecn, &packet.payload.content);
        }
        while let Some(packet) = down.receive(now_ns) {
            let decision: &mut Decision = &mut done.decisions[packet.payload.number];
            (decision.ended_ns, decision.arrived) = (Some(packet.arrived_ns), true);
            let ecn = ecn(packet.marked, packet.payload.ecn);
            client.take(now, server.address, ecn, &packet.payload.content);
        }
        server.send_more();
        done.received_bytes += client.read_all();
        for peer in [&mut server, &mut client] {
            peer.run(now);
        }
        let sent_ns = now_ns + ANSWER_NS;
        for datagram in server.out.drain(..) {
            let bytes = datagram.bytes();
            let number = done.decisions.len();
            done.decisions.push(Decision {
                sent_ns,
                bytes,
                ended_ns: None,
                arrived: false,
            });
            let packet = Packet {
                ecn_capable: datagram.ecn.is_some(),
                ..Packet::new(cs0, bytes)
            };
            let datagram = Datagram { number, ..datagram };
            down.send_packet(sent_ns, packet, datagram)
                .expect("the link takes it");
        }
        for datagram in client.out.drain(..) {
            up.send(sent_ns, 0, datagram.bytes(), datagram)
                .expect("the link takes it");
        }
        while let Some(packet) = down.dropped(now_ns) {
            done.decisions[packet.payload.number].ended_ns = Some(packet.dropped_ns);
        }
        let timers = [&mut server, &mut client].map(|peer| peer.timeout_ns(start));
        let next = [down.next_ns(), up.next_ns()].into_iter().chain(timers);
        let Some(next_ns) = next
            .flatten()
            .min()
            .filter(|ns| *ns < DURATION_NS - ANSWER_NS)
        else {
            return done;
        };
        now_ns = next_ns.max(now_ns);
    }
}

fn ecn(marked: bool, sent: Option<EcnCodepoint>) -> Option<EcnCodepoint> {
    sent.map(|ecn| if marked { EcnCodepoint::Ce } else { ecn })
}

/// A UDP datagram on its way.
struct Datagram {
    number: usize,
    content: Vec<u8>,
    ecn: Option<EcnCodepoint>,
}

impl Datagram {
    fn bytes(&self) -> u32 {
        self.content.len() as u32 + HEADER_BYTES
    }
}

/// One end of the connection.
struct Peer {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
    streams: Vec<StreamId>,
    /// Datagrams that it wants to send.
    out: VecDeque<Datagram>,
}

impl Peer {
    fn new(number: u8, server: Option<Arc<quinn_proto::ServerConfig>>) -> Peer {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([number; 32]));
        Peer {
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            address: SocketAddr::from((Ipv4Addr::new(10, 0, 0, number), 4433)),
            connection: None,
            streams: Vec::new(),
            out: VecDeque::new(),
        }
    }

    fn server() -> Peer {
        let key = PrivatePkcs8KeyDer::from(key());
        let tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![certificate()], key.into())
            .expect("the key of the certificate");
        let crypto = QuicServerConfig::try_from(tls).expect("a cipher of QUIC");
        let config = quinn_proto::ServerConfig::with_crypto(Arc::new(crypto));
        Peer::new(1, Some(Arc::new(config)))
    }

    fn client(now: Instant, server: SocketAddr) -> Peer {
        let tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pinned))
            .with_no_client_auth();
        let crypto = QuicClientConfig::try_from(tls).expect("a cipher of QUIC");
        let config = ClientConfig::new(Arc::new(crypto));
        let mut client = Peer::new(2, None);
        let connection = client.endpoint.connect(now, config, server, "link.test");
        client.connection = Some(connection.expect("a connection"));
        client
    }

    /// A datagram has arrived.
    fn take(&mut self, now: Instant, from: SocketAddr, ecn: Option<EcnCodepoint>, content: &[u8]) {
        let mut answer = Vec::new();
        let content = BytesMut::from(content);
        let event = self
            .endpoint
            .handle(now, from, None, ecn, content, &mut answer);
        match event {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                self.connection = Some(accepted.expect("the connection is accepted"));
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// Lets timers fire and collects what is to be sent.
    fn run(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        loop {
            let mut content = Vec::new();
            let Some(transmit) = connection.poll_transmit(now, 1, &mut content) else {
                break;
            };
            self.out.push_back(Datagram {
                number: 0,
                content,
                ecn: transmit.ecn,
            });
        }
        while let Some(event) = connection.poll() {
            match event {
                // The server begins.
                Event::Connected if connection.side().is_server() => {
                    self.streams.extend(connection.streams().open(Dir::Uni));
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    self.streams.extend(connection.streams().accept(dir));
                }
                Event::ConnectionLost { reason } => panic!("the connection broke: {reason}"),
                _ => {}
            }
        }
    }

    /// Writes as much as the connection takes.
    fn send_more(&mut self) {
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        for stream in &self.streams {
            let chunk = Bytes::from_static(&[0; 1 << 16]);
            while connection
                .send_stream(*stream)
                .write_chunks(&mut [chunk.clone()])
                .is_ok()
            {}
        }
    }

    /// Reads what is there; returns how many bytes it was.
    fn read_all(&mut self) -> u64 {
        let Some((_, connection)) = &mut self.connection else {
            return 0;
        };
        let mut bytes = 0;
        for stream in &self.streams {
            let mut receiving = connection.recv_stream(*stream);
            let Ok(mut chunks) = receiving.read(true) else {
                continue;
            };
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                bytes += chunk.bytes.len() as u64;
            }
            let _ = chunks.finalize();
        }
        bytes
    }

    fn timeout_ns(&mut self, start: Instant) -> Option<u64> {
        let (_, connection) = self.connection.as_mut()?;
        let at = connection.poll_timeout()?;
        Some(at.duration_since(start).as_nanos() as u64)
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Its signatures have a fixed length, so that the handshake has the same length each time.
fn certificate() -> CertificateDer<'static> {
    CertificateDer::from(&include_bytes!("certificate.der")[..])
}

/// The key of the certificate: Ed25519 in PKCS #8, and no secret.
fn key() -> Vec<u8> {
    let mut key = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".to_vec();
    key.extend([7; 32]);
    key
}

/// Trusts the one certificate, at any time: it needs no clock.
#[derive(Debug)]
struct Pinned;

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if *end_entity == certificate() {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::Error::General("another certificate".to_owned()))
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC has TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = provider().signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, &known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}
