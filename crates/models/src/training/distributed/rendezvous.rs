//! Where ranks meet: each has connections to the first one, which gathers and answers.
//!
//! A connection starts with a greeting: eight bytes that name the protocol, then world, rank and channel (u32 each). A
//! message is a label and a length (u64 each), then its bytes; all little-endian.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use super::environment::Environment;
use super::other_sum;
use crate::error::{Error, Result};

const GREETING: &[u8; 8] = b"rvlarun1";
const PAUSE: Duration = Duration::from_millis(20);

/// How long ranks wait for each other.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For all to come.
    pub meeting: Duration,
    /// For a rank that is there but says nothing: longer than an evaluation, which the first rank does alone. One that
    /// dies is noticed at once.
    pub silence: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { meeting: Duration::from_secs(60), silence: Duration::from_secs(1800) }
    }
}

/// One channel between the first rank and all others.
#[derive(Debug)]
pub(super) struct Star {
    rank: usize,
    world: usize,
    /// On the first rank those to all others, in their order; elsewhere the one to the first.
    links: Vec<TcpStream>,
}

impl Star {
    /// Meets all ranks and opens as many channels.
    pub(super) fn connect(environment: &Environment, channels: usize, patience: Patience) -> Result<Vec<Star>> {
        let Environment { rank, world, .. } = *environment;
        let deadline = Instant::now() + patience.meeting;
        let links = if rank == 0 {
            accept(environment, channels, patience, deadline)?
        } else {
            let link = |channel| Ok(vec![reach(environment, channel, patience, deadline)?]);
            (0..channels).map(link).collect::<Result<_>>()?
        };
        Ok(links.into_iter().map(|links| Star { rank, world, links }).collect())
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn world(&self) -> usize {
        self.world
    }

    /// On the first rank: what each other rank says, in their order, handed to `take` with the rank.
    pub(super) fn gather(&mut self, label: u64, mut take: impl FnMut(usize, Vec<u8>) -> Result<()>) -> Result<()> {
        let rank = self.rank;
        for (peer, link) in (1..).zip(&mut self.links) {
            let (found, bytes) = receive(link).map_err(|error| lost(rank, peer, &error))?;
            if found != label {
                return Err(other_sum(rank, peer));
            }
            take(peer, bytes)?;
        }
        Ok(())
    }

    /// To all the ranks that this one is linked to.
    pub(super) fn send(&mut self, label: u64, bytes: &[u8]) -> Result<()> {
        let rank = self.rank;
        let first_peer = usize::from(rank == 0);
        for (peer, link) in (first_peer..).zip(&mut self.links) {
            send(link, label, bytes).map_err(|error| lost(rank, peer, &error))?;
        }
        Ok(())
    }

    /// On other ranks: what the first one says.
    pub(super) fn hear(&mut self, label: u64) -> Result<Vec<u8>> {
        let rank = self.rank;
        let link = self.links.first_mut().ok_or_else(|| transport(rank, "there is no other rank".into()))?;
        let (found, bytes) = receive(link).map_err(|error| lost(rank, 0, &error))?;
        if found == label { Ok(bytes) } else { Err(other_sum(rank, 0)) }
    }

    /// The first rank's bytes.
    pub(super) fn broadcast(&mut self, label: u64, bytes: Vec<u8>) -> Result<Vec<u8>> {
        if self.rank == 0 {
            self.send(label, &bytes)?;
            Ok(bytes)
        } else {
            self.hear(label)
        }
    }

    /// What each rank says, in their order.
    pub(super) fn exchange(&mut self, label: u64, said: &[f64]) -> Result<Vec<Vec<f64>>> {
        let mut all = vec![said.to_vec()];
        if self.rank == 0 {
            self.gather(label, |_, bytes| {
                all.push(doubles(&bytes));
                Ok(())
            })?;
            let mut bytes = Vec::new();
            for one in &all {
                bytes.extend_from_slice(&(one.len() as u64).to_le_bytes());
                bytes.extend(one.iter().flat_map(|value| value.to_le_bytes()));
            }
            self.send(label, &bytes)?;
            return Ok(all);
        }
        self.send(label, &said.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())?;
        let bytes = self.hear(label)?;
        let (mut rest, mut all) = (bytes.as_slice(), Vec::new());
        while let Some((count, after)) = rest.split_first_chunk::<8>() {
            let bytes = (u64::from_le_bytes(*count) as usize).saturating_mul(8).min(after.len());
            all.push(doubles(&after[..bytes]));
            rest = &after[bytes..];
        }
        Ok(all)
    }
}

fn doubles(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect()
}

/// The first rank waits for the others: the links of each channel, in the order of ranks.
fn accept(
    environment: &Environment,
    channels: usize,
    patience: Patience,
    deadline: Instant,
) -> Result<Vec<Vec<TcpStream>>> {
    let Environment { world, ref address, port, .. } = *environment;
    let failed = |error: &dyn std::fmt::Display| transport(0, format!("could not listen at port {port}: {error}"));
    // A name of this machine may mean its loopback device, where nobody else gets through; only what is surely local
    // stays so.
    let local = ["127.0.0.1", "localhost"].contains(&address.as_str());
    let listener = TcpListener::bind((if local { "127.0.0.1" } else { "0.0.0.0" }, port)).map_err(|e| failed(&e))?;
    listener.set_nonblocking(true).map_err(|error| failed(&error))?;
    let mut links: Vec<Vec<Option<TcpStream>>> = (0..channels).map(|_| (1..world).map(|_| None).collect()).collect();
    loop {
        let missing: Vec<String> = (1..world)
            .filter(|rank| links.iter().any(|channel| channel[rank - 1].is_none()))
            .map(|rank| rank.to_string())
            .collect();
        if missing.is_empty() {
            return Ok(links.into_iter().map(|channel| channel.into_iter().flatten().collect()).collect());
        }
        if Instant::now() >= deadline {
            let ranks = if missing.len() == 1 { "rank" } else { "ranks" };
            return Err(transport(
                0,
                format!(
                    "{ranks} {} did not connect to port {port} within {} s; were all {world} processes started, and can they \
                     reach `{address}`?",
                    missing.join(", "),
                    patience.meeting.as_secs()
                ),
            ));
        }
        let mut link = match listener.accept() {
            Ok((link, _)) => link,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(PAUSE);
                continue;
            }
            Err(error) => return Err(failed(&error)),
        };
        // Whoever does not greet is none of ours.
        let Ok([found, rank, channel]) = greeted(&mut link) else { continue };
        if found != world {
            return Err(transport(
                0,
                format!("rank {rank} was started as one of {found} processes, this one as one of {world}"),
            ));
        }
        match links.get_mut(channel).and_then(|channel| channel.get_mut(rank.checked_sub(1)?)) {
            Some(place @ None) => {
                settle(&link, patience).map_err(|error| lost(0, rank, &error))?;
                *place = Some(link);
            }
            Some(Some(_)) => return Err(transport(0, format!("two processes were started as rank {rank}"))),
            None => return Err(transport(0, format!("there is no rank {rank} among {world} processes"))),
        }
    }
}

fn greeted(link: &mut TcpStream) -> std::io::Result<[usize; 3]> {
    link.set_nonblocking(false)?;
    link.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut greeting = [0; 20];
    link.read_exact(&mut greeting)?;
    if &greeting[..8] != GREETING {
        return Err(ErrorKind::InvalidData.into());
    }
    let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| greeting[at + byte])) as usize;
    Ok([number(8), number(12), number(16)])
}

/// Another rank reaches the first one, which may not listen yet.
fn reach(environment: &Environment, channel: usize, patience: Patience, deadline: Instant) -> Result<TcpStream> {
    let Environment { rank, world, ref address, port, .. } = *environment;
    let attempt = || -> std::io::Result<TcpStream> {
        let places = (address.as_str(), port).to_socket_addrs()?;
        let mut last = std::io::Error::from(ErrorKind::AddrNotAvailable);
        for place in places {
            match TcpStream::connect_timeout(&place, Duration::from_secs(5)) {
                Ok(mut link) => {
                    link.write_all(GREETING)?;
                    for number in [world, rank, channel] {
                        link.write_all(&(number as u32).to_le_bytes())?;
                    }
                    settle(&link, patience)?;
                    return Ok(link);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    };
    loop {
        match attempt() {
            Ok(link) => return Ok(link),
            Err(error) if Instant::now() >= deadline => {
                let waited = patience.meeting.as_secs();
                let hint = "does rank 0 run there, and is the port open?";
                return Err(transport(
                    rank,
                    format!("no rank 0 at `{address}:{port}` within {waited} s: {error}; {hint}"),
                ));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn settle(link: &TcpStream, patience: Patience) -> std::io::Result<()> {
    link.set_nodelay(true)?;
    link.set_read_timeout(Some(patience.silence))?;
    link.set_write_timeout(Some(patience.silence))
}

fn send(link: &mut TcpStream, label: u64, bytes: &[u8]) -> std::io::Result<()> {
    let mut head = [0; 16];
    head[..8].copy_from_slice(&label.to_le_bytes());
    head[8..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    link.write_all(&head)?;
    link.write_all(bytes)
}

fn receive(link: &mut TcpStream) -> std::io::Result<(u64, Vec<u8>)> {
    let mut words = [[0; 8]; 2];
    for word in &mut words {
        link.read_exact(word)?;
    }
    let [label, length] = words.map(u64::from_le_bytes);
    // What is announced is believed only as it arrives.
    let mut bytes = Vec::with_capacity(length.min(1 << 26) as usize);
    link.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok((label, bytes)) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

fn lost(rank: usize, peer: usize, error: &std::io::Error) -> Error {
    let reason = match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("rank {peer} is connected but says nothing"),
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::BrokenPipe
        | ErrorKind::ConnectionAborted => {
            format!("rank {peer} has gone; its own message says why. `--resume` goes on from the last checkpoint")
        }
        _ => format!("rank {peer}: {error}"),
    };
    transport(rank, reason)
}

fn transport(rank: usize, reason: String) -> Error {
    Error::Transport { rank, reason }
}
