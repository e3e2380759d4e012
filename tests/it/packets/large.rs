//! C1: payloads around the largest that fits into one frame, and of several frames, both ways.

use bytes::{Bytes, BytesMut};
use myriad::protocol::command::Command;
use myriad::protocol::frame::MAX_PAYLOAD;
use myriad::protocol::packet::prepare::PrepareOk;
use myriad::protocol::response::Class;
use myriad::protocol::wire::put_lenenc_bytes;

use super::execute_one;
use crate::support::{Packets, Setup, Wire, on_both, one_backend};

/// Payloads in bytes: the largest of one frame, those that need an empty or a tiny second one, and three frames.
const SIZES: [usize; 4] = [MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1, 40_000_000];

/// Repeated, so that nothing can be lost, doubled or swapped without being noticed. Its length is a prime number.
const PATTERN: &str = "abcdefghijklmnopqrstuvwxyz+0123456789-ABCDEFGHIJKLMNOPQRSTUVWXYZ_.,:";

fn pattern(len: usize) -> Vec<u8> {
    let mut bytes = PATTERN.repeat(len / PATTERN.len() + 1).into_bytes();
    bytes.truncate(len);
    bytes
}

/// The same as an expression; always as long.
fn expression(len: usize) -> String {
    format!("LEFT(REPEAT('{PATTERN}', {:09}), {len:09})", len / PATTERN.len() + 1)
}

/// Bytes in front of a length-encoded string of this length.
fn prefix(len: usize) -> usize {
    if len < 1 << 24 { 4 } else { 9 }
}

/// How long a string is whose payload is `size`, `extra` bytes and the length of the string included.
fn string_in(size: usize, extra: usize) -> usize {
    [4, 9]
        .map(|prefix| size - extra - prefix)
        .into_iter()
        .find(|len| prefix(*len) + len + extra == size)
        .expect("a length")
}

/// The frames of the only row have the right lengths and numbers; their payload.
fn only_row(packets: &Packets, size: usize) -> Vec<u8> {
    let numbers: Vec<u8> = packets.raw.iter().map(|(seq, _)| *seq).collect();
    let wanted: Vec<u8> = (1..=u8::try_from(numbers.len()).expect("few packets")).collect();
    assert_eq!(numbers, wanted, "sequence numbers");
    let of_row = |class: &Class| matches!(class, Class::Row | Class::Continuation);
    let frames: Vec<&Bytes> =
        packets.raw.iter().zip(&packets.classes).filter(|(_, class)| of_row(class)).map(|((_, it), _)| it).collect();
    let lengths: Vec<usize> = frames.iter().map(|frame| frame.len()).collect();
    let mut expected = vec![MAX_PAYLOAD; size / MAX_PAYLOAD];
    expected.push(size % MAX_PAYLOAD);
    assert_eq!(lengths, expected, "frames of a row of {size} bytes");
    frames.into_iter().fold(Vec::with_capacity(size), |mut row, frame| {
        row.extend_from_slice(frame);
        row
    })
}

fn assert_same(got: &[u8], wanted: &[u8], what: &str) {
    // Not assert_eq!, which would print 40 MB.
    assert!(got == wanted, "{what} of {} bytes differs from what was wanted ({} bytes)", got.len(), wanted.len());
}

async fn text_results(client: &mut Wire) {
    for size in SIZES {
        let len = string_in(size, 0);
        let mut row = BytesMut::new();
        put_lenenc_bytes(&mut row, &pattern(len));
        let packets = client.query(&format!("SELECT {}", expression(len))).await;
        assert_same(&only_row(&packets, size), &row, "a row");
        assert_eq!(client.one("SELECT 'next'").await, "next");
    }
}

async fn binary_results(client: &mut Wire) {
    let id = client.prepare(&format!("SELECT LEFT(REPEAT('{PATTERN}', 600000), ?)")).await;
    for size in SIZES {
        let len = string_in(size, 2);
        let mut row = BytesMut::from(&[0, 0][..]);
        put_lenenc_bytes(&mut row, &pattern(len));
        let wanted = u32::try_from(len).expect("a length").to_le_bytes();
        let packets = client.command(Command::StmtExecute, &execute_one(id, 0x03, &wanted)).await;
        assert_same(&only_row(&packets, size), &row, "a row");
    }
}

on_both!(results_in_text, |t| async move { text_results(&mut t.client().await).await });
on_both!(results_in_text_for_an_old_client, |t| async move {
    text_results(&mut t.client_as(&t.app().old()).await).await;
});
on_both!(results_in_binary, |t| async move { binary_results(&mut t.client().await).await });
on_both!(results_in_binary_for_an_old_client, |t| async move {
    binary_results(&mut t.client_as(&t.app().old()).await).await;
});

/// The text of a statement whose payload is `size`, and which is true.
fn statement(size: usize) -> Vec<u8> {
    let text =
        |data: &[u8], len: usize| [b"SELECT BINARY '", data, b"' = BINARY ", expression(len).as_bytes()].concat();
    let len = size - 1 - text(b"", 0).len();
    let statement = text(&pattern(len), len);
    assert_eq!(1 + statement.len(), size);
    statement
}

// The other client's state must be put right first: that goes out in one write with the beginning of the statement.
on_both!(statements, one_backend, |t| async move {
    let mut other = t.client_as(&t.app().old()).await;
    other.query("SET NAMES latin1").await.expect_ok();
    let mut client = t.client().await;
    for size in SIZES {
        let packets = client.command(Command::Query, &statement(size)).await;
        assert_eq!(packets.rows(), [[Some("1".to_owned())]], "a statement of {size} bytes: {:?}", packets.error());
        assert_eq!(other.one("SELECT @@character_set_client").await, "latin1");
        assert_eq!(client.one("SELECT @@character_set_client").await, "utf8mb4");
    }
});

/// A prepared comparison of its only parameter with the pattern of this length.
async fn comparison(client: &mut Wire, len: usize) -> u32 {
    client.prepare(&format!("SELECT BINARY ? = BINARY {}", expression(len))).await
}

fn assert_true(packets: &Packets, what: &str) {
    let row = &packets.raw[packets.classes.iter().position(|class| *class == Class::Row).expect(what)].1;
    assert_eq!(row[..3], [0, 0, 1], "{what}: {row:?}");
}

on_both!(parameters, |t| async move {
    let mut client = t.client().await;
    for size in SIZES {
        let len = string_in(size, 14);
        let id = comparison(&mut client, len).await;
        let payload = execute_one(id, 0xfc, &pattern(len));
        assert_eq!(1 + payload.len(), size);
        let packets = client.command(Command::StmtExecute, &payload).await;
        assert_true(&packets, "a parameter");
        client.send(Command::StmtClose, &id.to_le_bytes()).await;
    }
});

on_both!(long_data, |t| async move {
    let mut client = t.client().await;
    for size in SIZES {
        let len = size - 7;
        let id = comparison(&mut client, len).await;
        let payload = [&id.to_le_bytes()[..], &[0, 0], &pattern(len)].concat();
        assert_eq!(1 + payload.len(), size);
        client.send(Command::StmtSendLongData, &payload).await;
        let packets = client.command(Command::StmtExecute, &execute_one(id, 0xfc, b"")[..13]).await;
        assert_true(&packets, "long data");
        client.send(Command::StmtClose, &id.to_le_bytes()).await;
    }
});

on_both!(prepared_texts, |t| async move {
    let mut client = t.client().await;
    for size in [MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1] {
        let packets = client.command(Command::StmtPrepare, &statement(size)).await;
        let id = PrepareOk::parse(&packets.raw[0].1).expect("a statement").statement_id;
        let packets = client.command(Command::StmtExecute, &[&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat()).await;
        assert_true(&packets, "a prepared text");
        client.send(Command::StmtClose, &id.to_le_bytes()).await;
    }
});

/// A command that is too large for the proxy is refused in words, a smaller one is not; one that is too large for the
/// server gets the server's words.
async fn limit(t: &Setup) {
    let mut client = t.client().await;
    let statement = |len: usize| [b"SELECT LENGTH('", &pattern(len)[..], b"')"].concat();
    let packets = client.command(Command::Query, &statement(90_000)).await;
    assert_eq!(packets.rows(), [[Some("90000".to_owned())]]);
    let packets = client.command(Command::Query, &statement(100_000)).await;
    let (code, message) = packets.error().expect("refused");
    assert_eq!(code, 1153, "{message}");
    assert!(message.contains("limits.max_packet is 100000"), "{message}");
    assert!(client.frame().await.is_err(), "the rest of the command was not read, so the connection must end");
    assert_eq!(t.metric("myriad_refusals_total", Some("max_packet")), 1.0);
    assert_eq!(t.client().await.one("SELECT 1").await, "1");
}

on_both!(more_than_the_proxy_takes, |config| config.limits.max_packet = 100_000, |t| async move { limit(&t).await });
