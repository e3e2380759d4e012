//! A read buffer whose storage is lent only while bytes are in it.
//!
//! ```text
//!   storage  |....consumed....|======data======|....room....|
//!            0              start             end          len
//! ```
//!
//! An idle connection holds no storage: [`Buffer::poll_fill`] takes some from its thread's free list when the socket
//! has bytes, and gives it back when there were none; [`Buffer::consume`] gives it back with the last byte.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// How many free buffers a thread keeps.
const KEEP: usize = 64;

thread_local! {
    static FREE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes read and not yet consumed; storage is borrowed from the thread while there are any.
#[derive(Debug)]
pub struct Buffer {
    storage: Box<[u8]>,
    start: u32,
    end: u32,
    size: u32,
}

impl Buffer {
    /// An empty buffer that will borrow `size` bytes, at most 1 GiB.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self { storage: Box::default(), start: 0, end: 0, size: u32::try_from(size).unwrap_or(1 << 30) }
    }

    /// What was read and not yet consumed.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.storage.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The same, to patch it in place.
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.storage.get_mut(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// How many bytes were read and not yet consumed.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Is there nothing left to consume?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// How many bytes the buffer may hold at once, as it is now.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.storage.len().max(self.size as usize)
    }

    /// Is there no room for another byte?
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() >= self.capacity()
    }

    /// Forgets the first `n` bytes; the storage goes back with the last one.
    pub fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.len(), "consumed more than was read");
        self.start += u32::try_from(n).unwrap_or(u32::MAX).min(self.end - self.start);
        if self.is_empty() {
            self.give_back();
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.consume(self.len());
    }

    /// Replaces `old` bytes at `at` (both relative to [`Buffer::data`]) by `new`, which must not be longer.
    pub fn shrink(&mut self, at: usize, old: usize, new: &[u8]) {
        debug_assert!(new.len() <= old && at + old <= self.len(), "a replacement may only shrink");
        let data = self.data_mut();
        let tail = at + old;
        data[at..at + new.len()].copy_from_slice(new);
        data.copy_within(tail.., at + new.len());
        self.end -= u32::try_from(old - new.len()).unwrap_or(0);
    }

    /// The same, if `new` may be longer.
    pub fn replace(&mut self, at: usize, old: usize, new: &[u8]) {
        if let Some(more) = new.len().checked_sub(old).filter(|more| *more > 0) {
            let len = self.len();
            self.extend(&vec![0; more]);
            let data = self.data_mut();
            data.copy_within(at + old..len, at + new.len());
            data[at..at + new.len()].copy_from_slice(new);
        } else {
            self.shrink(at, old, new);
        }
    }

    /// Holds what there is in no more room than it needs, for as long as nothing else can be done with it.
    pub fn park(&mut self) {
        if self.len() * 2 < self.storage.len() {
            let parked: Box<[u8]> = self.data().into();
            let len = self.len();
            self.give_back();
            self.storage = parked;
            self.end = u32::try_from(len).unwrap_or(0);
        }
    }

    /// Makes sure that `n` bytes fit at once, moving or growing the storage if need be.
    pub fn reserve(&mut self, n: usize) {
        if n > self.capacity() {
            let mut larger = vec![0; n.next_power_of_two()].into_boxed_slice();
            let len = self.len();
            larger[..len].copy_from_slice(self.data());
            self.storage = larger;
            (self.start, self.end) = (0, u32::try_from(len).unwrap_or(0));
        }
    }

    /// Appends bytes; grows if they do not fit.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.reserve(self.len() + bytes.len());
        self.unpark();
        self.borrow();
        self.make_room(bytes.len());
        let end = self.end as usize;
        self.storage[end..end + bytes.len()].copy_from_slice(bytes);
        self.end += u32::try_from(bytes.len()).unwrap_or(0);
    }

    /// Reads once from `stream`; `Ready(Ok(0))` is the end of the stream.
    ///
    /// # Errors
    /// What the stream says. A full buffer is `InvalidInput`: the caller must consume or [`Buffer::reserve`] first.
    pub fn poll_fill<S: AsyncRead + Unpin>(&mut self, cx: &mut Context<'_>, stream: &mut S) -> Poll<io::Result<usize>> {
        if self.is_full() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidInput, "read into a full buffer")));
        }
        self.unpark();
        self.borrow();
        self.make_room(1);
        let end = self.end as usize;
        let mut room = ReadBuf::new(self.storage.get_mut(end..).unwrap_or_default());
        let read = Pin::new(stream).poll_read(cx, &mut room);
        let n = room.filled().len();
        if read.is_pending() || n == 0 {
            if self.is_empty() {
                self.give_back();
            }
            ready!(read)?;
            return Poll::Ready(Ok(0));
        }
        self.end += u32::try_from(n).unwrap_or(0);
        Poll::Ready(Ok(n))
    }

    /// [`Buffer::poll_fill`] as a future.
    ///
    /// # Errors
    /// As [`Buffer::poll_fill`].
    pub async fn fill<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> io::Result<usize> {
        std::future::poll_fn(|cx| self.poll_fill(cx, stream)).await
    }

    /// Back from [`Buffer::park`] into storage of the usual size.
    fn unpark(&mut self) {
        if !self.storage.is_empty() && self.storage.len() < self.size as usize {
            let len = self.len();
            let parked = std::mem::take(&mut self.storage);
            let data = parked.get(self.start as usize..self.end as usize).unwrap_or_default();
            self.borrow();
            self.storage[..len].copy_from_slice(data);
            (self.start, self.end) = (0, u32::try_from(len).unwrap_or(0));
        }
    }

    /// Storage for as long as there is something to hold.
    fn borrow(&mut self) {
        if self.storage.is_empty() {
            let size = self.size as usize;
            let free = FREE.with_borrow_mut(|free| {
                loop {
                    match free.pop() {
                        Some(storage) if storage.len() == size => break Some(storage),
                        Some(_) => {}
                        None => break None,
                    }
                }
            });
            self.storage = free.unwrap_or_else(|| vec![0; size].into_boxed_slice());
        }
    }

    /// Moves the data to the front if fewer than `n` bytes are free behind it.
    fn make_room(&mut self, n: usize) {
        if self.storage.len() - (self.end as usize) < n && self.start > 0 {
            self.storage.copy_within(self.start as usize..self.end as usize, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }

    fn give_back(&mut self) {
        (self.start, self.end) = (0, 0);
        let storage = std::mem::take(&mut self.storage);
        if storage.len() == self.size as usize {
            // The thread may be on its way out; then the storage is simply freed.
            let _ = FREE.try_with(|free| {
                let mut free = free.borrow_mut();
                if free.len() < KEEP {
                    free.push(storage);
                }
            });
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.storage.is_empty() {
            self.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn storage_is_held_only_while_there_are_bytes() {
        let mut buffer = Buffer::new(16);
        assert_eq!(buffer.storage.len(), 0);
        assert_eq!(buffer.fill(&mut &b"hello"[..]).await.unwrap(), 5);
        assert_eq!((buffer.data(), buffer.storage.len()), (&b"hello"[..], 16));
        buffer.consume(2);
        assert_eq!(buffer.data(), b"llo");
        buffer.consume(3);
        assert_eq!(buffer.storage.len(), 0);
        assert_eq!(buffer.fill(&mut &b""[..]).await.unwrap(), 0);
        assert_eq!(buffer.storage.len(), 0);
    }

    #[tokio::test]
    async fn data_moves_to_the_front_when_the_end_is_reached() {
        let mut buffer = Buffer::new(8);
        buffer.fill(&mut &b"abcdefgh"[..]).await.unwrap();
        assert!(buffer.is_full());
        assert!(buffer.fill(&mut &b"x"[..]).await.is_err());
        buffer.consume(5);
        buffer.fill(&mut &b"ijklm"[..]).await.unwrap();
        assert_eq!(buffer.data(), b"fghijklm");
    }

    #[test]
    fn shrinking_in_the_middle_keeps_the_tail() {
        let mut buffer = Buffer::new(8);
        buffer.extend(b"abcdef");
        buffer.shrink(1, 3, b"X");
        assert_eq!(buffer.data(), b"aXef");
        buffer.shrink(2, 2, b"");
        assert_eq!(buffer.data(), b"aX");
    }

    #[tokio::test]
    async fn what_is_parked_takes_its_own_size_and_can_be_read_on() {
        let mut buffer = Buffer::new(64);
        buffer.fill(&mut &b"xhello"[..]).await.unwrap();
        buffer.consume(1);
        buffer.park();
        assert_eq!((buffer.data(), buffer.storage.len()), (&b"hello"[..], 5));
        buffer.fill(&mut &b" world"[..]).await.unwrap();
        assert_eq!((buffer.data(), buffer.storage.len()), (&b"hello world"[..], 64));
        buffer.park();
        buffer.consume(11);
        assert_eq!(buffer.storage.len(), 0);
        buffer.park();
        assert!(buffer.is_empty());
    }

    #[test]
    fn reserving_grows_and_keeps_the_data() {
        let mut buffer = Buffer::new(8);
        buffer.extend(b"abcdefgh");
        buffer.consume(3);
        buffer.reserve(20);
        assert_eq!((buffer.data(), buffer.capacity()), (&b"defgh"[..], 32));
        buffer.extend(&[b'x'; 27]);
        assert_eq!(buffer.len(), 32);
        buffer.clear();
        assert_eq!(buffer.capacity(), 8);
    }
}
