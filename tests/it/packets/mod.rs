//! Packets of every size and in every portion: frames at their limits, slow readers, files, character sets, pipelines.

mod attributes;
mod charset;
mod infile;
mod large;
mod pipeline;
mod slow;

use myriad::protocol::wire::put_lenenc_bytes;

/// The payload of a COM_STMT_EXECUTE with one parameter of this type (0xfc: BLOB, 0xfd: STRING, 0x03: LONG).
fn execute_one(statement: u32, kind: u8, value: &[u8]) -> Vec<u8> {
    let mut payload = bytes::BytesMut::new();
    payload.extend_from_slice(&statement.to_le_bytes());
    // No cursor, one iteration, no NULLs, types follow.
    payload.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1, kind, 0]);
    match kind {
        0x03 => payload.extend_from_slice(value),
        _ => put_lenenc_bytes(&mut payload, value),
    }
    payload.to_vec()
}
