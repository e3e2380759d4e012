//! Compressed frames, seen from the client's end, which is strict about their numbers.

use std::io::{self, Read, Write};

use bytes::BytesMut;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use myriad::net::Stream;
use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::compression::{Algorithm, HEADER, Header};
use tokio::io::AsyncReadExt;

/// What a client knows of its frames.
pub(crate) struct Packed {
    algorithm: Algorithm,
    /// The number of the next frame in either direction.
    pub(crate) seq: u8,
    /// The most that one frame of ours holds.
    pub(crate) most: usize,
    /// How many frames have come, and how many of them were packed.
    pub(crate) frames: (usize, usize),
    /// How many bytes have come.
    pub(crate) received: usize,
}

impl Packed {
    /// What these capabilities lead to.
    pub(super) fn agreed(capabilities: CapabilityFlags) -> Option<Self> {
        let algorithm = Algorithm::agreed(capabilities, 3).expect("a level that there is")?;
        Some(Self { algorithm, seq: 0, most: 0xff_ffff, frames: (0, 0), received: 0 })
    }

    /// A command begins.
    pub(super) fn begin(&mut self) {
        self.seq = 0;
    }

    /// Frames that hold these bytes.
    pub(crate) fn pack(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for plain in bytes.chunks(self.most) {
            let packed = (plain.len() >= 50).then(|| self.packed(plain));
            let content = packed.as_deref().unwrap_or(plain);
            let plain = if packed.is_some() { plain.len() } else { 0 };
            out.extend(Header { len: content.len(), seq: self.seq, plain }.encode());
            out.extend(content);
            self.seq = self.seq.wrapping_add(1);
        }
        out
    }

    fn packed(&self, plain: &[u8]) -> Vec<u8> {
        match self.algorithm {
            Algorithm::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(plain).expect("memory");
                encoder.finish().expect("memory")
            }
            Algorithm::Zstd { level } => zstd::bulk::compress(plain, level.into()).expect("memory"),
        }
    }

    /// Reads one frame, and appends what it holds.
    pub(super) async fn read(&mut self, stream: &mut Stream, into: &mut BytesMut) -> io::Result<()> {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header).await?;
        let header = Header::parse(&header).expect("a header");
        assert_eq!(header.seq, self.seq, "frames count on");
        self.seq = self.seq.wrapping_add(1);
        let mut content = vec![0; header.len];
        stream.read_exact(&mut content).await?;
        self.frames = (self.frames.0 + 1, self.frames.1 + usize::from(header.plain > 0));
        self.received += HEADER + header.len;
        if header.plain == 0 {
            into.extend_from_slice(&content);
            return Ok(());
        }
        let plain = match self.algorithm {
            Algorithm::Zlib => {
                let mut plain = Vec::new();
                ZlibDecoder::new(&*content).read_to_end(&mut plain)?;
                plain
            }
            Algorithm::Zstd { .. } => zstd::bulk::decompress(&content, header.plain)?,
        };
        assert_eq!(plain.len(), header.plain);
        into.extend_from_slice(&plain);
        Ok(())
    }
}
