//! Differences, for people: both packets decoded.

use std::fmt::Write as _;

use bytes::Bytes;
use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::packet::column::text_row;
use myriad::protocol::packet::err::ErrPacket;
use myriad::protocol::packet::ok::OkPacket;
use myriad::protocol::packet::session_track::changes;
use myriad::protocol::response::Class;

use super::normal::Form;
use super::world::Outcome;

/// The packets of two outcomes that are not the same, at most three.
pub(super) fn difference(direct: (&Form, &Outcome), proxied: (&Form, &Outcome), flags: CapabilityFlags) -> String {
    let (one, other) = (packets(direct, flags), packets(proxied, flags));
    let mut text = String::new();
    let differ = (0..one.len().max(other.len())).filter(|at| raw(direct.0, *at) != raw(proxied.0, *at));
    for at in differ.take(3) {
        let nothing = || "(no more packets)".to_owned();
        let _ = write!(
            text,
            "    direct:  {}\n    proxied: {}\n",
            one.get(at).cloned().unwrap_or_else(nothing),
            other.get(at).cloned().unwrap_or_else(nothing)
        );
    }
    text
}

fn raw(form: &Form, at: usize) -> Option<Form> {
    match form {
        Form::Packets(packets) => packets.get(at).map(|packet| Form::Packets(vec![packet.clone()])),
        words @ Form::Words(_) => (at == 0).then(|| words.clone()),
    }
}

fn packets((form, outcome): (&Form, &Outcome), flags: CapabilityFlags) -> Vec<String> {
    let classes: &[Class] = match outcome {
        Outcome::Reply(reply, _) => &reply.classes,
        Outcome::Welcome(_) => &[Class::Ok],
        _ => &[],
    };
    match form {
        Form::Words(words) => vec![words.clone()],
        Form::Packets(packets) => packets
            .iter()
            .zip(classes)
            .enumerate()
            .map(|(at, ((seq, payload), class))| {
                format!("packet {at} (seq {seq}): {}", decoded(*class, payload, flags))
            })
            .collect(),
    }
}

fn decoded(class: Class, payload: &Bytes, flags: CapabilityFlags) -> String {
    let bytes = payload[..payload.len().min(300)].escape_ascii().to_string();
    let meaning = match class {
        Class::Ok | Class::RowsEnd => {
            OkPacket::parse(payload, flags.contains(CapabilityFlags::CLIENT_SESSION_TRACK)).ok().map(|ok| {
                let tracked: Vec<_> = changes(ok.session_state)
                    .map(|change| {
                        change.map_or_else(|_| "unreadable".to_owned(), |change| readable(&format!("{change:?}")))
                    })
                    .collect();
                format!("{:?} tracked: {tracked:?}", OkPacket { session_state: b"", ..ok })
            })
        }
        Class::Err => ErrPacket::parse(payload).ok().map(|err| {
            let state = err.state.map(|state| state.escape_ascii().to_string()).unwrap_or_default();
            format!("{} {state} {}", err.code, String::from_utf8_lossy(err.message))
        }),
        Class::Row => {
            let fields = text_row(payload)
                .map(|field| field.map_or_else(|| "NULL".to_owned(), |it| it.escape_ascii().to_string()));
            Some(format!("as text: {}", fields.collect::<Vec<_>>().join(" | ")))
        }
        _ => None,
    };
    format!("{class:?} {} bytes: {bytes}\n        {}", payload.len(), meaning.unwrap_or_default())
}

/// Lists of bytes as text.
fn readable(debug: &str) -> String {
    let mut out = String::new();
    let mut rest = debug;
    while let Some((before, list)) = rest.split_once('[') {
        let Some((list, behind)) = list.split_once(']') else { break };
        let bytes: Result<Vec<u8>, _> = list.split(", ").map(str::parse).collect();
        let text = bytes.map_or_else(|_| format!("[{list}]"), |bytes| format!("'{}'", bytes.escape_ascii()));
        out += before;
        out += &text;
        rest = behind;
    }
    out + rest
}
