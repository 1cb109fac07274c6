// SPDX-License-Identifier: BSD-3-Clause
//! The WireGuard protocol (Donenfeld 2017), as boringtun speaks it: keys, and a session with each peer.
//!
//! Packets are sealed when they leave, so that waiting ones can still be dropped or overtaken. A session without keys gets
//! no packets: boringtun would queue them in its own order.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use boringtun::noise::handshake::parse_handshake_anon;
use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Packet, Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};

use crate::tunnel::admission::Admission;

/// Bytes by which sealing lengthens a packet.
pub const OVERHEAD_BYTES: u32 = 32;
/// Time between calls of [`Session::tick`], ns.
pub const TICK_NS: u64 = 250_000_000;
/// Ticks after which an unanswered handshake is repeated while packets wait, or soon after the start. The protocol's own 5
/// s would delay a peer that was restarted, or one that still uses its old session. An answer must come before the next
/// repetition but one, so this works for round trips up to 1.5 s.
const RETRY_TICKS: u32 = 3;
/// The same after an answer came too late: 5 s, for more distant peers.
const RETRY_FAR_TICKS: u32 = 20;
/// Handshakes that are repeated so soon after the start.
const EARLY_RETRIES: u32 = 20;
/// First byte of the answer to a handshake.
const RESPONSE: u8 = 2;
/// First byte of a cookie, which asks a sender to prove its address. Anyone who saw the handshake can make one.
const COOKIE: u8 = 3;
/// Handshakes a second beyond which senders must prove their addresses. Each handshake is counted twice.
const HANDSHAKES: u64 = 200;
/// Ticks in a second.
const SECOND_TICKS: u32 = (1_000_000_000 / TICK_NS) as u32;
/// Largest file of a key, bytes.
const KEY_FILE_BYTES: u64 = 4096;

/// A key of 32 bytes.
pub type Key = [u8; 32];

/// Reads a key as people write it: 32 bytes in base64.
#[must_use]
pub fn key(text: &str) -> Option<Key> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// Writes a key as people write it.
#[must_use]
pub fn show_key(key: &Key) -> String {
    STANDARD.encode(key)
}

/// Reads the file of a secret key.
///
/// # Errors
/// When it cannot be read, may be read by others, or holds no key.
pub fn read_key(file: &Path) -> io::Result<Key> {
    let fault = |what: String| io::Error::other(format!("{}: {what}", file.display()));
    let meta = fs::metadata(file).map_err(|error| fault(format!("cannot be read: {error}")))?;
    if meta.permissions().mode() & 0o077 != 0 {
        return Err(fault("may be read by others; run chmod 600".to_string()));
    }
    if !meta.is_file() || meta.len() > KEY_FILE_BYTES {
        return Err(fault("is not a key file".to_string()));
    }
    let text =
        fs::read_to_string(file).map_err(|error| fault(format!("cannot be read: {error}")))?;
    key(text.trim()).ok_or_else(|| {
        fault(
            "must hold one key of 32 bytes in base64; make one with `linkweir-gateway keygen FILE`"
                .to_string(),
        )
    })
}

/// Makes a secret key in a new file that only its owner may read; returns the public key.
///
/// # Errors
/// When the file exists or cannot be written.
pub fn generate(file: &Path) -> io::Result<Key> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| io::Error::other(error.to_string()))?;
    let secret = StaticSecret::from(secret);
    let opened = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file);
    let mut opened = opened.map_err(|error| {
        let cure = match error.kind() {
            io::ErrorKind::AlreadyExists => "; a key is never overwritten, name another file",
            _ => "",
        };
        io::Error::new(error.kind(), format!("{}: {error}{cure}", file.display()))
    })?;
    writeln!(opened, "{}", show_key(secret.as_bytes()))?;
    Ok(*PublicKey::from(&secret).as_bytes())
}

/// This end's keys.
pub struct Identity {
    secret: StaticSecret,
    public: PublicKey,
    limiter: Arc<RateLimiter>,
    admission: Admission,
    /// Ticks in this second.
    ticks: u32,
}

/// The session or peer to which a datagram claims to belong.
#[derive(Debug, PartialEq, Eq)]
pub enum Claim {
    /// The session of this index.
    Session(u32),
    /// The peer of this public key, which wants a new session.
    Peer(Key),
}

/// Why a datagram is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is not WireGuard, or was made without this end's public key.
    Forged,
    /// There are too many handshakes. This answer lets an honest sender prove its address.
    Cookie(Vec<u8>),
    /// There are too many handshakes from senders that proved their addresses.
    TooMany,
}

impl Identity {
    /// The identity with this secret key.
    #[must_use]
    pub fn new(secret: Key) -> Identity {
        let secret = StaticSecret::from(secret);
        let public = PublicKey::from(&secret);
        Identity {
            limiter: Arc::new(RateLimiter::new(&public, HANDSHAKES)),
            secret,
            public,
            admission: Admission::default(),
            ticks: 0,
        }
    }

    /// The public key.
    #[must_use]
    pub fn public(&self) -> Key {
        *self.public.as_bytes()
    }

    /// Finds what a datagram claims to belong to, without opening it.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn claim(&mut self, datagram: &[u8], from: SocketAddr) -> Result<Claim, Refused> {
        let mut answer = [0; 128];
        let packet = match self
            .limiter
            .verify_packet(Some(from.ip()), datagram, &mut answer)
        {
            Ok(packet) => packet,
            Err(TunnResult::WriteToNetwork(cookie)) => {
                return Err(Refused::Cookie(cookie.to_vec()))
            }
            Err(_) => return Err(Refused::Forged),
        };
        let handshake = matches!(
            packet,
            Packet::HandshakeInit(_) | Packet::HandshakeResponse(_)
        );
        if handshake && !self.admission.admit(from.ip()) {
            return Err(Refused::TooMany);
        }
        match packet {
            Packet::HandshakeInit(init) => parse_handshake_anon(&self.secret, &self.public, &init)
                .map(|half| Claim::Peer(half.peer_static_public))
                .map_err(|_| Refused::Forged),
            Packet::HandshakeResponse(response) => Ok(Claim::Session(response.receiver_idx >> 8)),
            Packet::PacketCookieReply(reply) => Ok(Claim::Session(reply.receiver_idx >> 8)),
            Packet::PacketData(data) => Ok(Claim::Session(data.receiver_idx >> 8)),
        }
    }

    /// Resets the limits of handshakes in time; must be called every [`TICK_NS`].
    pub fn tick(&mut self) {
        self.limiter.reset_count();
        self.ticks += 1;
        if self.ticks == SECOND_TICKS {
            self.ticks = 0;
            self.admission.begin_second();
        }
    }
}

/// A session with one peer.
pub struct Session {
    tunnel: Box<Tunn>,
    index: u32,
    /// Ticks since this end last sent a handshake.
    ticks_since_initiation: u32,
    /// Number of handshakes still to repeat soon although nothing waits.
    early_retries: u32,
    /// Whether an answer to a handshake came too late.
    far: bool,
}

/// The content of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Opened<'b> {
    /// A packet.
    Packet(&'b mut [u8]),
    /// A message that is answered with this.
    Answer(&'b [u8]),
    /// A message without an answer, such as a keepalive.
    Nothing,
    /// A message of a sender that has not proved to have a key; answered with this, if with anything.
    Unproven(Option<&'b [u8]>),
    /// It is forged or a replay.
    Refused,
}

impl Session {
    /// A session without keys yet; `index` has 24 bits and differs from every other session's.
    #[must_use]
    pub fn new(
        identity: &Identity,
        peer: Key,
        preshared: Option<Key>,
        keepalive_s: Option<u16>,
        index: u32,
    ) -> Session {
        let tunnel = Tunn::new(
            identity.secret.clone(),
            PublicKey::from(peer),
            preshared,
            keepalive_s,
            index,
            Some(Arc::clone(&identity.limiter)),
        );
        Session {
            tunnel: Box::new(tunnel),
            index,
            ticks_since_initiation: 0,
            early_retries: EARLY_RETRIES,
            far: false,
        }
    }

    /// Its index.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Whether packets can be sealed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.tunnel.time_since_last_handshake().is_some()
    }

    /// Starts a handshake unless one is under way; returns the datagram to send.
    pub fn start_handshake<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        match self.tunnel.format_handshake_initiation(buffer, false) {
            TunnResult::WriteToNetwork(datagram) => {
                self.ticks_since_initiation = 0;
                Some(datagram)
            }
            _ => None,
        }
    }

    /// Seals a packet; none when the session is not open.
    pub fn seal<'b>(&mut self, packet: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        if !self.is_open() {
            return None;
        }
        match self.tunnel.encapsulate(packet, buffer) {
            TunnResult::WriteToNetwork(datagram) => Some(datagram),
            _ => None,
        }
    }

    /// Opens a datagram.
    pub fn open<'b>(
        &mut self,
        datagram: &[u8],
        from: SocketAddr,
        buffer: &'b mut [u8],
    ) -> Opened<'b> {
        // boringtun takes an empty datagram as a request for packets queued in the session.
        if datagram.is_empty() {
            return Opened::Refused;
        }
        match self.tunnel.decapsulate(Some(from.ip()), datagram, buffer) {
            TunnResult::WriteToTunnelV4(packet, _) | TunnResult::WriteToTunnelV6(packet, _) => {
                Opened::Packet(packet)
            }
            TunnResult::WriteToNetwork(answer) if answer[0] == COOKIE => {
                Opened::Unproven(Some(answer))
            }
            TunnResult::WriteToNetwork(answer) => Opened::Answer(answer),
            TunnResult::Done if datagram[0] == COOKIE => Opened::Unproven(None),
            TunnResult::Done => Opened::Nothing,
            TunnResult::Err(_) => {
                self.far |=
                    datagram[0] == RESPONSE && self.tunnel.time_since_last_handshake().is_none();
                Opened::Refused
            }
        }
    }

    /// Runs the timers: repeats handshakes, sooner while packets are `waiting` and after the start, renews keys, and sends
    /// keepalives. Returns the datagram to send.
    pub fn tick<'b>(&mut self, waiting: bool, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.ticks_since_initiation = self.ticks_since_initiation.saturating_add(1);
        let again = if self.far {
            RETRY_FAR_TICKS
        } else {
            RETRY_TICKS
        };
        if self.is_open() {
            self.early_retries = 0;
        }
        let soon = (waiting || self.early_retries > 0) && !self.is_open();
        let result = if soon && self.ticks_since_initiation >= again {
            self.ticks_since_initiation = 0;
            self.early_retries = self.early_retries.saturating_sub(1);
            self.tunnel.format_handshake_initiation(buffer, true)
        } else {
            self.tunnel.update_timers(buffer)
        };
        match result {
            TunnResult::WriteToNetwork(datagram) => Some(datagram),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: &str = "192.0.2.1:51820";

    struct End {
        identity: Identity,
        session: Session,
    }

    /// Two ends; `preshared` is what each takes for the shared key.
    fn ends(preshared: [Option<Key>; 2]) -> [End; 2] {
        let identities = [Identity::new([1; 32]), Identity::new([2; 32])];
        let publics = [identities[1].public(), identities[0].public()];
        let mut at = 0;
        identities.map(|identity| {
            let session = Session::new(&identity, publics[at], preshared[at], None, 7 + at as u32);
            at += 1;
            End { identity, session }
        })
    }

    fn open(end: &mut End, datagram: &[u8]) -> (&'static str, Vec<u8>) {
        let mut buffer = [0; 2048];
        match end
            .session
            .open(datagram, FROM.parse().unwrap(), &mut buffer)
        {
            Opened::Packet(packet) => ("packet", packet.to_vec()),
            Opened::Answer(answer) => ("answer", answer.to_vec()),
            Opened::Nothing => ("nothing", Vec::new()),
            Opened::Unproven(answer) => ("unproven", answer.unwrap_or_default().to_vec()),
            Opened::Refused => ("refused", Vec::new()),
        }
    }

    fn initiation(end: &mut End) -> Vec<u8> {
        let mut buffer = [0; 2048];
        end.session.start_handshake(&mut buffer).unwrap().to_vec()
    }

    fn seal(end: &mut End, packet: &[u8]) -> Option<Vec<u8>> {
        let mut buffer = [0; 2048];
        end.session.seal(packet, &mut buffer).map(<[u8]>::to_vec)
    }

    fn shake_hands([one, two]: &mut [End; 2]) {
        let init = initiation(one);
        assert_eq!(
            two.identity.claim(&init, FROM.parse().unwrap()),
            Ok(Claim::Peer(one.identity.public()))
        );
        let (kind, response) = open(two, &init);
        assert_eq!(kind, "answer");
        assert_eq!(
            one.identity.claim(&response, FROM.parse().unwrap()),
            Ok(Claim::Session(7))
        );
        let (kind, keepalive) = open(one, &response);
        assert_eq!(kind, "answer");
        assert_eq!(open(two, &keepalive).0, "nothing");
    }

    fn packet() -> Vec<u8> {
        let header = [
            0x45, 0, 0, 120, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        [&header[..], &[9; 100]].concat()
    }

    #[test]
    fn packets_are_sealed_and_opened_once() {
        let mut both = ends([None, None]);
        assert_eq!(seal(&mut both[0], &packet()), None, "no session yet");
        shake_hands(&mut both);
        let [one, two] = &mut both;
        let sealed: Vec<Vec<u8>> = (0..3).map(|_| seal(one, &packet()).unwrap()).collect();
        assert_eq!(sealed[0].len(), packet().len() + OVERHEAD_BYTES as usize);
        for at in [2, 0, 1] {
            assert_eq!(open(two, &sealed[at]), ("packet", packet()), "in any order");
        }
        assert_eq!(open(two, &sealed[1]).0, "refused", "replayed");
        let mut changed = seal(one, &packet()).unwrap();
        let last = changed.len() - 1;
        changed[last] ^= 1;
        assert_eq!(open(two, &changed).0, "refused");
        let back = seal(two, &packet()).unwrap();
        assert_eq!(open(one, &back), ("packet", packet()));
        assert_eq!(seal(two, &[]).unwrap().len(), 32, "a keepalive");
    }

    #[test]
    fn the_wrong_key_opens_no_session() {
        let mut both = ends([Some([3; 32]), Some([4; 32])]);
        let init = initiation(&mut both[0]);
        let (_, response) = open(&mut both[1], &init);
        assert_eq!(
            open(&mut both[0], &response).0,
            "refused",
            "the shared keys differ"
        );
        let mut stranger = Identity::new([9; 32]);
        assert_eq!(
            stranger.claim(&init, FROM.parse().unwrap()),
            Err(Refused::Forged),
            "meant for another"
        );
        for datagram in [
            &[][..],
            &[1],
            &[1, 0, 0, 0],
            &[4; 40],
            &[0; 148],
            &init[..147],
        ] {
            assert_eq!(
                both[1].identity.claim(datagram, FROM.parse().unwrap()),
                Err(Refused::Forged)
            );
            assert_eq!(open(&mut both[1], datagram).0, "refused");
        }
    }

    #[test]
    fn too_many_handshakes_must_prove_their_address() {
        let mut both = ends([None, None]);
        let init = initiation(&mut both[0]);
        let claims: Vec<_> = (0..HANDSHAKES + 5)
            .map(|number| both[1].identity.claim(&init, elsewhere(number)))
            .collect();
        assert!(claims[..HANDSHAKES as usize].iter().all(Result::is_ok));
        assert!(claims[HANDSHAKES as usize..]
            .iter()
            .all(|claim| matches!(claim, Err(Refused::Cookie(_)))));
    }

    /// Addresses that differ.
    fn elsewhere(number: u64) -> SocketAddr {
        let address = std::net::Ipv4Addr::from_bits(0xc633_6400 + number as u32);
        SocketAddr::from((address, 51820))
    }

    #[test]
    fn a_proven_address_is_still_limited() {
        let mut both = ends([None, None]);
        let init = initiation(&mut both[0]);
        for number in 0..HANDSHAKES {
            assert!(both[1].identity.claim(&init, elsewhere(number)).is_ok());
        }
        let from = FROM.parse().unwrap();
        let Err(Refused::Cookie(cookie)) = both[1].identity.claim(&init, from) else {
            panic!("there were too many");
        };
        assert_eq!(open(&mut both[0], &cookie).0, "unproven");
        let mut buffer = [0; 2048];
        let again = both[0]
            .session
            .tunnel
            .format_handshake_initiation(&mut buffer, true);
        let TunnResult::WriteToNetwork(proven) = again else {
            panic!("it asks again");
        };
        for second in 0..2 {
            let admitted = (0..1000)
                .map(|_| both[1].identity.claim(proven, from))
                .take_while(Result::is_ok)
                .count();
            assert_eq!(admitted, 50, "second {second}");
            assert_eq!(both[1].identity.claim(proven, from), Err(Refused::TooMany));
            for _ in 0..SECOND_TICKS {
                both[1].identity.tick();
            }
        }
    }

    #[test]
    fn a_sender_asked_for_proof_is_unproven() {
        let mut both = ends([None, None]);
        let init = initiation(&mut both[0]);
        // The session looks at it once more, and is the one that finds too many.
        for number in 0..HANDSHAKES - 1 {
            assert!(both[1].identity.claim(&init, elsewhere(number)).is_ok());
        }
        let from = FROM.parse().unwrap();
        assert!(both[1].identity.claim(&init, from).is_ok());
        let (kind, cookie) = open(&mut both[1], &init);
        assert_eq!((kind, cookie[0]), ("unproven", COOKIE));
    }

    #[test]
    fn an_unanswered_handshake_is_repeated_while_packets_wait() {
        let mut both = ends([None, None]);
        let asked = |end: &mut End, waiting: bool| {
            let mut buffer = [0; 2048];
            end.session.tick(waiting, &mut buffer).map(<[u8]>::to_vec)
        };
        initiation(&mut both[0]);
        let early_retries = (0..200).filter_map(|_| asked(&mut both[0], false)).count();
        assert_eq!(early_retries, 20, "nothing waits, but it has just begun");
        handshake_is_under_way(&mut both[0]);
        let repeated: Vec<Vec<u8>> = (0..7).filter_map(|_| asked(&mut both[0], true)).collect();
        assert_eq!(repeated.len(), 3, "at once, and every 750 ms");
        // The answer to the last but one is good, one to an older one says that the peer is far.
        let (_, late) = open(&mut both[1], &repeated[0]);
        assert_eq!(open(&mut both[0], &late).0, "refused");
        let again = (0..20).filter_map(|_| asked(&mut both[0], true)).count();
        assert_eq!(again, 1, "every 5 s");
        let (_, answer) = open(&mut both[1], &repeated[2]);
        assert_eq!(open(&mut both[0], &answer).0, "answer");
        assert!(both[0].session.is_open());
        assert_eq!(asked(&mut both[0], true), None);
    }

    fn handshake_is_under_way(end: &mut End) {
        let mut buffer = [0; 2048];
        assert_eq!(end.session.start_handshake(&mut buffer), None);
    }

    #[test]
    fn keys_are_kept_in_files_of_their_own() {
        let file = std::env::temp_dir().join(format!("linkweir-key-{}", std::process::id()));
        let _ = fs::remove_file(&file);
        let public = generate(&file).unwrap();
        let secret = read_key(&file).unwrap();
        assert_eq!(Identity::new(secret).public(), public);
        assert!(generate(&file)
            .unwrap_err()
            .to_string()
            .contains("never overwritten"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read_key(&file)
            .unwrap_err()
            .to_string()
            .contains("chmod 600"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, "abc").unwrap();
        assert!(read_key(&file)
            .unwrap_err()
            .to_string()
            .contains("32 bytes in base64"));
        fs::remove_file(&file).unwrap();
        assert!(read_key(&file)
            .unwrap_err()
            .to_string()
            .contains("cannot be read"));
    }

    #[test]
    fn keys_are_those_of_curve25519() {
        // RFC 7748, section 6.1: Alice's keys.
        let secret = [
            0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1, 0x72, 0x51, 0xb2,
            0x66, 0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0, 0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5,
            0x1d, 0xb9, 0x2c, 0x2a,
        ];
        let public = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
        assert_eq!(show_key(&Identity::new(secret).public()), public);
        assert_eq!(key(public), Some(Identity::new(secret).public()));
        assert_eq!(key("hSDwCYkwp1R0i33ctD73Wg2"), None);
    }
}
