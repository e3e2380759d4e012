//! Packing and unpacking of compressed frames. What that needs in memory belongs to the thread, so that a connection
//! holds some only while it is in the middle of a frame.

use std::cell::RefCell;
use std::io;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::bulk::Compressor;
use zstd::stream::raw::{DParameter, Decoder, Operation};

use crate::protocol::compression::{Algorithm, MIN_LENGTH};

/// How many unpackers of a kind a thread keeps.
const KEEP: usize = 4;

/// What an unpacker of longer frames has allocated is not worth keeping.
const KEEP_UP_TO: usize = 256 << 10;

/// The logarithm of the longest frame: how far back zstd may have to look.
const WINDOW_LOG: u32 = 24;

thread_local! {
    static PACKER: RefCell<Packer> = RefCell::default();
    static INFLATERS: RefCell<Vec<Decompress>> = const { RefCell::new(Vec::new()) };
    static ZSTDS: RefCell<Vec<Decoder<'static>>> = const { RefCell::new(Vec::new()) };
}

#[derive(Default)]
struct Packer {
    deflate: Option<Compress>,
    zstd: Option<Compressor<'static>>,
    packed: Vec<u8>,
}

impl Packer {
    /// How many bytes it becomes; none if they are not fewer.
    fn pack(&mut self, algorithm: Algorithm, plain: &[u8]) -> Option<usize> {
        self.packed.resize(plain.len() - 1, 0);
        match algorithm {
            Algorithm::Zlib => {
                let deflate = self.deflate.get_or_insert_with(|| Compress::new(Compression::default(), true));
                deflate.reset();
                let status = deflate.compress(plain, &mut self.packed, FlushCompress::Finish);
                matches!(status, Ok(Status::StreamEnd)).then(|| deflate.total_out() as usize)
            }
            Algorithm::Zstd { level } => {
                if self.zstd.is_none() {
                    self.zstd = Compressor::new(0).ok();
                }
                let zstd = self.zstd.as_mut()?;
                zstd.set_compression_level(level.into()).ok()?;
                zstd.compress_to_buffer(plain, self.packed.as_mut_slice()).ok()
            }
        }
    }
}

/// Packs these bytes for `use_it`; nothing, if they are better sent as they are.
pub(super) fn pack<T>(algorithm: Algorithm, plain: &[u8], use_it: impl FnOnce(Option<&[u8]>) -> T) -> T {
    if plain.len() < MIN_LENGTH {
        return use_it(None);
    }
    PACKER.with_borrow_mut(|packer| {
        let len = packer.pack(algorithm, plain);
        use_it(len.and_then(|len| packer.packed.get(..len)))
    })
}

/// What unpacks one frame.
enum Unpacker {
    /// The bytes are as they are.
    Stored,
    Inflate(Decompress),
    Zstd(Decoder<'static>),
    /// All is unpacked; what follows is skipped.
    Ended,
}

/// A frame under way.
pub(super) struct Frame {
    /// How many of its bytes are still to come.
    left: usize,
    /// How many bytes it may still become.
    room: usize,
    /// As much as it may become as a whole.
    plain: usize,
    unpacker: Unpacker,
}

/// One step of unpacking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Bytes of the frame that were used.
    pub(super) read: usize,
    /// Bytes that they became.
    pub(super) written: usize,
    /// This was the last of the frame.
    pub(super) done: bool,
}

impl Frame {
    /// A frame of `len` bytes that become `plain` ones; 0: they are as they are.
    pub(super) fn new(algorithm: Algorithm, len: usize, plain: usize) -> io::Result<Self> {
        let unpacker = match algorithm {
            _ if plain == 0 => Unpacker::Stored,
            Algorithm::Zlib => Unpacker::Inflate(inflater()),
            Algorithm::Zstd { .. } => Unpacker::Zstd(zstd()?),
        };
        Ok(Self { left: len, room: plain, plain, unpacker })
    }

    /// Goes on with the bytes of `input`, as far as they belong to this frame, and as far as `out` has room.
    ///
    /// # Errors
    /// If they make no sense, or become more than was said.
    pub(super) fn step(&mut self, input: &[u8], out: &mut [u8]) -> io::Result<Step> {
        let input = input.get(..self.left).unwrap_or(input);
        let mut too_much = [0; 1];
        let stored = matches!(self.unpacker, Unpacker::Stored);
        let out = match self.room {
            _ if stored => out,
            0 => &mut too_much[..],
            room => {
                let room = room.min(out.len());
                &mut out[..room]
            }
        };
        let (read, written, ended) = self.unpacker.step(input, out)?;
        self.left -= read;
        if !stored {
            self.room = self.room.checked_sub(written).ok_or_else(|| broken("it is longer than it says"))?;
        }
        if ended {
            self.end();
        } else if self.left == 0 && written == 0 && !matches!(self.unpacker, Unpacker::Stored | Unpacker::Ended) {
            return Err(broken("it is cut short"));
        }
        let done = self.left == 0 && matches!(self.unpacker, Unpacker::Stored | Unpacker::Ended);
        Ok(Step { read, written, done })
    }

    /// Gives back what unpacked it.
    fn end(&mut self) {
        let unpacker = std::mem::replace(&mut self.unpacker, Unpacker::Ended);
        if self.plain > KEEP_UP_TO {
            return;
        }
        // The thread may be on its way out; then it is simply freed.
        match unpacker {
            Unpacker::Inflate(inflate) => drop(INFLATERS.try_with(|free| keep(free, inflate))),
            Unpacker::Zstd(zstd) => drop(ZSTDS.try_with(|free| keep(free, zstd))),
            Unpacker::Stored | Unpacker::Ended => {}
        }
    }
}

impl Unpacker {
    /// How much was read and written, and whether that was all.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> io::Result<(usize, usize, bool)> {
        Ok(match self {
            Self::Stored => {
                let n = input.len().min(out.len());
                out[..n].copy_from_slice(&input[..n]);
                (n, n, false)
            }
            Self::Inflate(inflate) => {
                let (read, written) = (inflate.total_in(), inflate.total_out());
                let status = inflate.decompress(input, out, FlushDecompress::None);
                let status = status.map_err(|_| broken("it is no zlib stream"))?;
                let (read, written) = (inflate.total_in() - read, inflate.total_out() - written);
                (read as usize, written as usize, status == Status::StreamEnd)
            }
            Self::Zstd(zstd) => {
                let status = zstd.run_on_buffers(input, out).map_err(|_| broken("it is no zstd frame"))?;
                (status.bytes_read, status.bytes_written, status.remaining == 0)
            }
            Self::Ended => (input.len(), 0, false),
        })
    }
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").field("left", &self.left).field("room", &self.room).finish_non_exhaustive()
    }
}

fn broken(why: &str) -> io::Error {
    io::Error::other(format!("a compressed frame makes no sense: {why}"))
}

fn keep<T>(free: &RefCell<Vec<T>>, one: T) {
    let mut free = free.borrow_mut();
    if free.len() < KEEP {
        free.push(one);
    }
}

fn inflater() -> Decompress {
    let kept = INFLATERS.with_borrow_mut(Vec::pop);
    let mut inflate = kept.unwrap_or_else(|| Decompress::new(true));
    inflate.reset(true);
    inflate
}

fn zstd() -> io::Result<Decoder<'static>> {
    let mut zstd = match ZSTDS.with_borrow_mut(Vec::pop) {
        Some(kept) => kept,
        None => {
            let mut new = Decoder::new()?;
            new.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
            new
        }
    };
    zstd.reinit()?;
    Ok(zstd)
}
