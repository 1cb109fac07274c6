// SPDX-License-Identifier: BSD-3-Clause
//! The WireGuard protocol (Donenfeld 2017), as boringtun speaks it: keys, and a session with each peer.
//!
//! Packets are sealed when they leave, so that waiting ones can still be dropped or overtaken. A session without keys gets
//! no packets: boringtun would queue them in its own order.

use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use boringtun::noise::handshake::parse_handshake_anon;
use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Packet, Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};

use zeroize::Zeroizing;

use crate::tunnel::admission::Admission;
use crate::tunnel::attempts::Attempts;
pub use crate::tunnel::attempts::TICK_NS;

/// Bytes by which sealing lengthens a packet.
pub const OVERHEAD_BYTES: u32 = 32;
/// Length of the beginning of a handshake, bytes, and its first byte.
pub const INITIATION_BYTES: usize = 148;
const INITIATION: u8 = 1;
/// First byte of the answer to a handshake.
const RESPONSE: u8 = 2;
/// First byte of a cookie, which asks a sender to prove its address. Anyone who saw the handshake can make one.
const COOKIE: u8 = 3;
/// First byte of a datagram of a session, which names that behind it.
const DATA: u8 = 4;
/// Handshakes a second beyond which senders must prove their addresses. Each handshake is counted twice.
const HANDSHAKES: u64 = 200;
/// How far the system's clock may run ahead of the time that handshakes are stamped with.
const CLOCK_AHEAD: Duration = Duration::from_millis(500);
/// Room for what the timers of a session send, bytes.
const TIMERS_BYTES: usize = 256;
/// Ticks in a second.
const SECOND_TICKS: u32 = (1_000_000_000 / TICK_NS) as u32;
/// Largest file of a key, bytes.
const KEY_FILE_BYTES: u64 = 4096;

/// A key of 32 bytes.
pub type Key = [u8; 32];

/// A secret key, which is overwritten when it is no longer needed.
pub type Secret = Zeroizing<Key>;

/// Room for a key as it is decoded: what 44 characters of base64 may hold.
const DECODED_BYTES: usize = 33;

/// Reads a key as people write it: 32 bytes in base64.
#[must_use]
pub fn key(text: &str) -> Option<Key> {
    secret(text).map(|secret| *secret)
}

/// The same for a secret key: nothing else in memory holds it afterwards but `text`.
fn secret(text: &str) -> Option<Secret> {
    let mut decoded = Zeroizing::new([0; DECODED_BYTES]);
    let bytes = STANDARD.decode_slice(text, &mut decoded[..]).ok()?;
    let mut secret = Secret::default();
    if bytes != secret.len() {
        return None;
    }
    secret.copy_from_slice(&decoded[..bytes]);
    Some(secret)
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
pub fn read_key(file: &Path) -> io::Result<Secret> {
    let fault = |what: String| io::Error::other(format!("{}: {what}", file.display()));
    let unread = |error: io::Error| {
        let cure = match error.kind() {
            io::ErrorKind::NotFound => "; make a key with `linkweir-gateway keygen FILE`",
            io::ErrorKind::PermissionDenied => "; run as the owner of the key, mostly root",
            _ => "; name the file of a key",
        };
        let what = format!("{}: cannot be read: {error}{cure}", file.display());
        io::Error::new(error.kind(), what)
    };
    let meta = fs::metadata(file).map_err(unread)?;
    if meta.permissions().mode() & 0o077 != 0 {
        return Err(fault("may be read by others; run chmod 600".to_string()));
    }
    if !meta.is_file() || meta.len() > KEY_FILE_BYTES {
        return Err(fault(
            "is not a key file; make one with `linkweir-gateway keygen FILE`".to_string(),
        ));
    }
    // Room for all of it from the start: text that moves would leave a copy behind.
    let mut text = Zeroizing::new(String::with_capacity(KEY_FILE_BYTES as usize + 1));
    let opened = fs::File::open(file).map_err(unread)?;
    let read = opened.take(KEY_FILE_BYTES + 1).read_to_string(&mut text);
    read.map_err(unread)?;
    secret(text.trim()).ok_or_else(|| {
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
    let mut secret = Secret::default();
    getrandom::fill(&mut secret[..]).map_err(|error| io::Error::other(error.to_string()))?;
    let own = StaticSecret::from(*secret);
    write_key(file, &secret)?;
    Ok(*PublicKey::from(&own).as_bytes())
}

/// Writes a secret key into a new file that only its owner may read.
///
/// # Errors
/// When the file exists or cannot be written.
pub fn write_key(file: &Path, secret: &Secret) -> io::Result<()> {
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
    let text = Zeroizing::new(show_key(secret));
    writeln!(opened, "{}", *text)
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
    /// The peer that [`Identity::initiator`] tells, which wants a new session.
    Initiation,
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
    pub fn new(secret: impl Into<Secret>) -> Identity {
        let secret = StaticSecret::from(*secret.into());
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

    /// Finds what a datagram claims to belong to, without opening it and at little cost.
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
            Packet::HandshakeInit(_) => Ok(Claim::Initiation),
            Packet::HandshakeResponse(response) => Ok(Claim::Session(response.receiver_idx >> 8)),
            Packet::PacketCookieReply(reply) => Ok(Claim::Session(reply.receiver_idx >> 8)),
            Packet::PacketData(data) => Ok(Claim::Session(data.receiver_idx >> 8)),
        }
    }

    /// The public key of the peer that claims to begin a handshake; none: it is forged. This costs multiplications on an
    /// elliptic curve.
    #[must_use]
    pub fn initiator(&self, datagram: &[u8]) -> Option<Key> {
        let Ok(Packet::HandshakeInit(init)) = Tunn::parse_incoming_packet(datagram) else {
            return None;
        };
        parse_handshake_anon(&self.secret, &self.public, &init)
            .ok()
            .map(|half| half.peer_static_public)
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
    /// When the tunnel was made, on both clocks: its stamps count from there.
    made: (SystemTime, Instant),
    peer: PublicKey,
    preshared: Option<Secret>,
    keepalive_s: Option<u16>,
    index: u32,
    attempts: Attempts,
    /// When attempts begin again although nothing waits, ns.
    again_ns: Option<u64>,
    /// When the timers of an open session run next, ns.
    tick_ns: u64,
    /// When the last keepalive was sent, ns. boringtun's own cannot change while a session lasts.
    kept_alive_ns: u64,
    /// Whether new keys are asked for although there are some.
    asks_anew: bool,
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
        preshared: Option<&Secret>,
        keepalive_s: Option<u16>,
        index: u32,
    ) -> Session {
        let peer = PublicKey::from(peer);
        let (tunnel, made) = tunnel(identity, peer, preshared, index);
        Session {
            tunnel,
            made,
            peer,
            preshared: preshared.cloned(),
            keepalive_s,
            index,
            attempts: Attempts::default(),
            again_ns: None,
            tick_ns: 0,
            kept_alive_ns: 0,
            asks_anew: false,
        }
    }

    /// Sets the longest time between keepalives.
    pub fn set_keepalive(&mut self, keepalive_s: Option<u16>) {
        self.keepalive_s = keepalive_s;
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

    /// How long ago its keys were agreed on, s; none: it has none.
    #[must_use]
    pub fn age_s(&self) -> Option<f64> {
        let age = self.tunnel.time_since_last_handshake();
        age.map(|age| age.as_secs_f64())
    }

    /// Something is to be sent to the peer: unless there is a session, attempts to open one begin.
    pub fn want(&mut self, now_ns: u64) {
        if !self.is_open() {
            self.attempts.want(now_ns);
        }
    }

    /// The peer may be elsewhere, where it has other keys or none: an open session asks for new ones with its next tick.
    pub fn ask_anew(&mut self) {
        self.asks_anew = self.is_open();
    }

    /// Whether attempts to open it are under way, or made with each keepalive.
    #[must_use]
    pub fn is_tried(&self) -> bool {
        self.attempts.due_ns().or(self.again_ns).is_some()
    }

    /// When it needs to be served next, ns: by [`Session::tick`] if it is open, by [`Session::attempt`] otherwise.
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        if self.is_open() {
            return Some(self.tick_ns);
        }
        self.attempts.due_ns().or(self.again_ns)
    }

    /// Tries to open it; `away` peers do not answer at present. Returns the datagram to send. It costs multiplications on an
    /// elliptic curve.
    pub fn attempt<'b>(
        &mut self,
        identity: &Identity,
        now_ns: u64,
        away: usize,
        buffer: &'b mut [u8],
    ) -> Option<&'b [u8]> {
        if self.is_open() {
            return None;
        }
        // A keepalive that cannot be sent asks for a session again. Where many peers are away it asks once, as nothing waits
        // for the answer.
        let keepalive = self.keepalive_s.filter(|s| *s > 0);
        let period_ns = keepalive.map(|s| u64::from(s) * 1_000_000_000);
        let mut is_alone = false;
        if self.again_ns.is_some_and(|ns| ns <= now_ns) {
            self.again_ns = None;
            is_alone = !self.is_tried() && Attempts::are_many(away);
            self.attempts.want(now_ns);
        }
        if !self.attempts.attempt(now_ns, away) {
            self.again_ns = period_ns.map(|ns| now_ns + ns);
            return None;
        }
        if is_alone {
            let next_ns = self.attempts.due_ns().unwrap_or_default();
            self.attempts.end();
            self.again_ns =
                period_ns.map(|ns| next_ns.max((now_ns + ns).next_multiple_of(TICK_NS)));
        }
        if self.is_stamped_behind() {
            self.renew(identity);
        }
        // The tunnel's timers may be about to repeat the handshake themselves.
        let repeated = match self.tunnel.update_timers(buffer) {
            TunnResult::WriteToNetwork(datagram) => Some(datagram.len()),
            _ => None,
        };
        if let Some(bytes) = repeated {
            return Some(&buffer[..bytes]);
        }
        let bytes = self.initiation(buffer)?;
        Some(&buffer[..bytes])
    }

    /// Whether the system's clock is ahead of what handshakes are stamped with: it was set since. A peer takes a handshake only
    /// if its stamp is later than the last one's, so a clock that was behind at the start would lock this end out.
    fn is_stamped_behind(&self) -> bool {
        let (system, steady) = self.made;
        SystemTime::now()
            .duration_since(system)
            .is_ok_and(|since| since > steady.elapsed() + CLOCK_AHEAD)
    }

    /// Begins anew, with stamps of the system's clock as it is now. Only for a session that is not open.
    fn renew(&mut self, identity: &Identity) {
        let preshared = self.preshared.as_ref();
        (self.tunnel, self.made) = tunnel(identity, self.peer, preshared, self.index);
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
        if datagram[0] == INITIATION && !self.is_open() {
            // While it was not open its timers did not run, and a session that begins now would be taken for an old one.
            let _ = self.tunnel.update_timers(&mut [0; TIMERS_BYTES]);
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
                if datagram[0] == RESPONSE && !self.is_open() {
                    self.attempts.too_late();
                }
                Opened::Refused
            }
        }
    }

    /// Runs the timers of an open session: renews keys, and sends keepalives. Returns the datagram to send.
    pub fn tick<'b>(&mut self, now_ns: u64, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.attempts.end();
        self.again_ns = None;
        self.tick_ns = now_ns + TICK_NS;
        let asks_anew = std::mem::take(&mut self.asks_anew);
        let bytes = match self.tunnel.update_timers(&mut *buffer) {
            TunnResult::WriteToNetwork(datagram) => datagram.len(),
            TunnResult::Done if asks_anew => self.initiation(&mut *buffer)?,
            TunnResult::Done => self.keepalive(now_ns, &mut *buffer)?,
            _ => return None,
        };
        Some(&buffer[..bytes])
    }

    /// Writes the beginning of a handshake; returns its length.
    fn initiation(&mut self, buffer: &mut [u8]) -> Option<usize> {
        match self.tunnel.format_handshake_initiation(buffer, true) {
            TunnResult::WriteToNetwork(datagram) => Some(datagram.len()),
            _ => None,
        }
    }

    /// Writes a keepalive if one is due; returns its length.
    fn keepalive(&mut self, now_ns: u64, buffer: &mut [u8]) -> Option<usize> {
        let period_ns = u64::from(self.keepalive_s?) * 1_000_000_000;
        if now_ns < self.kept_alive_ns + period_ns || !self.is_open() {
            return None;
        }
        self.kept_alive_ns = now_ns;
        match self.tunnel.encapsulate(&[], buffer) {
            TunnResult::WriteToNetwork(datagram) => Some(datagram.len()),
            _ => None,
        }
    }
}

/// The tunnel of a session, and when it was made.
fn tunnel(
    identity: &Identity,
    peer: PublicKey,
    preshared: Option<&Secret>,
    index: u32,
) -> (Box<Tunn>, (SystemTime, Instant)) {
    let tunnel = Tunn::new(
        identity.secret.clone(),
        peer,
        preshared.map(|secret| **secret),
        None,
        index,
        Some(Arc::clone(&identity.limiter)),
    );
    (Box::new(tunnel), (SystemTime::now(), Instant::now()))
}

/// Whether a datagram of [`Session::tick`] begins a handshake, which costs multiplications on an elliptic curve.
#[must_use]
pub fn begins_handshake(datagram: &[u8]) -> bool {
    datagram.first() == Some(&INITIATION)
}

/// Whether a datagram is one of a session, which its receiver's index names.
#[inline]
#[must_use]
pub fn is_of_session(datagram: &[u8]) -> bool {
    datagram.first() == Some(&DATA)
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
            let preshared = preshared[at].map(Secret::new);
            let session = Session::new(
                &identity,
                publics[at],
                preshared.as_ref(),
                None,
                7 + at as u32,
            );
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
        asked(end, 0).unwrap()
    }

    fn seal(end: &mut End, packet: &[u8]) -> Option<Vec<u8>> {
        let mut buffer = [0; 2048];
        end.session.seal(packet, &mut buffer).map(<[u8]>::to_vec)
    }

    fn shake_hands([one, two]: &mut [End; 2]) {
        let init = initiation(one);
        assert_eq!(
            two.identity.claim(&init, FROM.parse().unwrap()),
            Ok(Claim::Initiation)
        );
        assert_eq!(two.identity.initiator(&init), Some(one.identity.public()));
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

    /// The beginning of a handshake that it sends at a time, if it sends one.
    fn asked(end: &mut End, now_ns: u64) -> Option<Vec<u8>> {
        let mut buffer = [0; 2048];
        end.session.want(now_ns);
        let due = end.session.due_ns().is_some_and(|ns| ns <= now_ns);
        let asked = due.then(|| {
            end.session
                .attempt(&end.identity, now_ns, 1, &mut buffer)
                .map(<[u8]>::to_vec)
        });
        asked.flatten()
    }

    #[test]
    fn an_unanswered_handshake_is_repeated() {
        let mut both = ends([None, None]);
        let ms = |number: u64| number * 50_000_000;
        let repeated: Vec<Vec<u8>> = (0..40)
            .filter_map(|at| asked(&mut both[0], ms(at)))
            .collect();
        assert_eq!(repeated.len(), 3, "at once, and every 750 ms");
        // The answer to the last but one is good, one to an older one says that the peer is far.
        let (_, late) = open(&mut both[1], &repeated[0]);
        assert_eq!(open(&mut both[0], &late).0, "refused");
        let again = (41..150)
            .filter_map(|at| asked(&mut both[0], ms(at)))
            .count();
        assert_eq!(again, 1, "every 5 s");
        let (_, answer) = open(&mut both[1], &repeated[2]);
        assert_eq!(open(&mut both[0], &answer).0, "answer");
        assert!(both[0].session.is_open());
        assert_eq!(asked(&mut both[0], ms(1000)), None);
    }

    #[test]
    fn a_clock_that_was_set_counts_from_then_on() {
        let mut both = ends([None, None]);
        let first = asked(&mut both[0], 0).unwrap();
        assert_eq!(open(&mut both[1], &first).0, "answer");
        let [one, two] = &mut both;
        assert!(!one.session.is_stamped_behind());
        // As if it had been made with a clock that was a day behind and was set since.
        one.session.made.0 -= Duration::from_secs(86_400);
        assert!(one.session.is_stamped_behind());
        let second = asked(one, 1_000_000_000).unwrap();
        assert!(!one.session.is_stamped_behind());
        assert_eq!(open(two, &second).0, "answer");
        // A clock that was set back does not set the stamps back.
        one.session.made.0 += Duration::from_secs(86_400);
        assert!(!one.session.is_stamped_behind());
    }

    #[test]
    fn a_peer_with_keepalives_is_tried_again_and_again() {
        let identity = Identity::new([1; 32]);
        for (keepalive_s, again_ns) in [
            (None, None),
            (Some(0), None),
            (Some(25), Some(115_000_000_000)),
        ] {
            let mut session = Session::new(&identity, identity.public(), None, keepalive_s, 7);
            let mut buffer = [0; 2048];
            session.want(0);
            assert!(session.attempt(&identity, 0, 1, &mut buffer).is_some());
            let given_up_ns = 90_000_000_000;
            assert!(session
                .attempt(&identity, given_up_ns, 1, &mut buffer)
                .is_none());
            assert_eq!(session.due_ns(), again_ns);
            let Some(ns) = again_ns else { continue };
            assert!(session.is_tried());
            assert!(session.attempt(&identity, ns, 1, &mut buffer).is_some());
            assert!(session.due_ns() < Some(ns + 1_000_000_000));
        }
    }

    /// A thousand are two hundred a second when each is asked every 5 s, and forty when every 25 s.
    #[test]
    fn where_many_are_away_a_keepalive_asks_once() {
        const S: u64 = 1_000_000_000;
        let identity = Identity::new([1; 32]);
        for (keepalive_s, period_ns) in [(25, 25 * S), (1, 5 * S)] {
            let keepalive_s = Some(keepalive_s);
            let mut session = Session::new(&identity, identity.public(), None, keepalive_s, 7);
            let mut buffer = [0; 2048];
            let mut asked = |session: &mut Session, ns| {
                session.attempt(&identity, ns, 1000, &mut buffer).is_some()
            };
            session.want(0);
            assert!(asked(&mut session, 0));
            assert!(!asked(&mut session, 90 * S));
            for _ in 0..3 {
                let ns = session.due_ns().unwrap();
                assert!(asked(&mut session, ns) && session.is_tried());
                let wait_ns = session.due_ns().unwrap() - ns;
                let period_ns = period_ns..period_ns + 700_000_000;
                assert!(period_ns.contains(&wait_ns), "{wait_ns}");
            }
            // A packet is not kept waiting.
            let ns = session.due_ns().unwrap() - S;
            session.want(ns);
            assert_eq!(session.due_ns(), Some(ns));
            assert!(asked(&mut session, ns));
            assert!(session.due_ns().unwrap() < ns + 6 * S);
        }
    }

    #[test]
    fn keepalives_begin_and_end_while_a_session_lasts() {
        let mut both = ends([None, None]);
        shake_hands(&mut both);
        let [one, two] = &mut both;
        let mut now_ns = 1_000_000_000_000;
        let mut sent = |keepalive_s, ticks: u32| {
            one.session.set_keepalive(keepalive_s);
            let mut buffer = [0; 2048];
            let ticked = (0..ticks).filter_map(|_| {
                now_ns += TICK_NS;
                let datagram = one.session.tick(now_ns, &mut buffer)?.to_vec();
                Some(open(two, &datagram).0)
            });
            ticked.collect::<Vec<_>>()
        };
        assert_eq!(sent(None, 40), [""; 0]);
        // The first at once, as the last one is long ago.
        assert_eq!(sent(Some(2), 17), ["nothing"; 3]);
        assert_eq!(sent(Some(1), 8), ["nothing"; 2]);
        assert_eq!(sent(None, 40), [""; 0]);
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
