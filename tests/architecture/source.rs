//! Rust source as far as the rules need it: words without comments and strings, test code told apart, paths spelled out.

/// One word or one character of punctuation, and the line it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
    /// Whether it belongs to a module or an item under `#[cfg(test)]`.
    pub(crate) test: bool,
}

/// A path as written, with every group of a `use` spelled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// `["crate", "net", "tcp"]`; a glob ends in `*`.
    pub(crate) segments: Vec<String>,
    /// The inline modules around it.
    pub(crate) modules: Vec<String>,
    pub(crate) line: usize,
    pub(crate) test: bool,
}

/// One file, taken apart.
pub(crate) struct Source {
    /// From the root of the repository: `src/net/tcp.rs`.
    pub(crate) name: String,
    pub(crate) tokens: Vec<Token>,
    pub(crate) paths: Vec<Path>,
    /// How many lines there are in front of the tests at the end.
    pub(crate) lines: usize,
    /// Whether it opens with `//!`.
    pub(crate) has_opening: bool,
}

impl Source {
    pub(crate) fn parse(name: &str, text: &str) -> Self {
        let mut tokens = tokens(text);
        mark_tests(&mut tokens);
        if is_tests(name) {
            tokens.iter_mut().for_each(|token| token.test = true);
        }
        let paths = paths(&tokens);
        let lines = match tokens.last() {
            Some(last) if last.test && !is_tests(name) => first_of_the_last_tests(&tokens),
            _ => text.lines().count(),
        };
        Self { name: name.into(), tokens, paths, lines, has_opening: text.starts_with("//!") }
    }

    /// The folder below `src/`; `None` for `lib.rs`, `main.rs` and everything outside of `src/`.
    pub(crate) fn room(&self) -> Option<&str> {
        self.name.strip_prefix("src/")?.split_once('/').map(|(room, _)| room)
    }

    /// The module that this file is: `["net", "tcp"]`.
    pub(crate) fn module(&self) -> Vec<String> {
        let path = self.name.trim_start_matches("src/").trim_end_matches(".rs");
        let path = path.strip_suffix("/mod").unwrap_or(path);
        let segments = path.split('/').filter(|segment| !matches!(*segment, "lib" | "main"));
        segments.map(Into::into).collect()
    }

    /// A path from the root of the crate, if it begins with `crate`, `self`, `super` or (in main.rs) `myriad`.
    pub(crate) fn resolve(&self, path: &Path) -> Option<Vec<String>> {
        let mut rest = path.segments.as_slice();
        let mut base = self.module();
        base.extend(path.modules.iter().cloned());
        match rest.first()?.as_str() {
            "crate" | "myriad" => {
                base.clear();
                rest = rest.get(1..)?;
            }
            "self" | "super" => {}
            _ => return None,
        }
        while let Some(first) = rest.first() {
            match first.as_str() {
                "super" => drop(base.pop()),
                "self" => {}
                _ => break,
            }
            rest = rest.get(1..)?;
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }
}

/// Whether a file is nothing but tests.
pub(crate) fn is_tests(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/") || name.starts_with("tests/")
}

/// Where the block of tests begins that the file ends with.
fn first_of_the_last_tests(tokens: &[Token]) -> usize {
    let before = tokens.iter().rposition(|token| !token.test);
    let first = before.map_or(0, |before| before + 1);
    tokens.get(first).map_or(0, |token| token.line - 1)
}

/// Words and punctuation; comments, strings, characters, lifetimes and numbers are left out.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut tokens = Vec::new();
    let (mut i, mut line) = (0, 1);
    while i < chars.len() {
        let start = i;
        let c = at(i);
        if c == '/' && at(i + 1) == '/' {
            while i < chars.len() && at(i) != '\n' {
                i += 1;
            }
        } else if c == '/' && at(i + 1) == '*' {
            i = end_of_comment(&chars, i);
        } else if let Some(end) = end_of_string(&chars, i) {
            i = end;
        } else if c == '\'' {
            i = end_of_quote(&chars, i);
        } else if c.is_alphabetic() || c == '_' {
            while at(i).is_alphanumeric() || at(i) == '_' {
                i += 1;
            }
            let word: String = chars[start..i].iter().collect();
            tokens.push(Token { text: word, line, test: false });
        } else if c.is_ascii_digit() {
            while at(i).is_alphanumeric() || at(i) == '_' {
                i += 1;
            }
        } else {
            if !c.is_whitespace() {
                tokens.push(Token { text: c.into(), line, test: false });
            }
            i += 1;
        }
        line += chars[start..i].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

/// The end of a `/* */` comment; they nest.
fn end_of_comment(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut i = start;
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

/// The end of the string that begins here, if one does: `""`, `b""`, `c""`, `r#""#`, `br""`.
fn end_of_string(chars: &[char], start: usize) -> Option<usize> {
    let mut i = start;
    while i < start + 2 && matches!(chars.get(i), Some('b' | 'c' | 'r')) {
        i += 1;
    }
    let raw = i > start && chars.get(i - 1) == Some(&'r');
    let hashes = if raw { chars[i..].iter().take_while(|c| **c == '#').count() } else { 0 };
    i += hashes;
    if chars.get(i) != Some(&'"') {
        return None;
    }
    i += 1;
    while i < chars.len() {
        if chars[i] == '\\' && !raw {
            i += 2;
        } else if chars[i] == '"' && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
            return Some(i + 1 + hashes);
        } else {
            i += 1;
        }
    }
    Some(chars.len())
}

/// The end of a character (`'x'`, `'\n'`, `'\u{e9}'`) or of a lifetime (`'a`).
fn end_of_quote(chars: &[char], start: usize) -> usize {
    if chars.get(start + 1) == Some(&'\\') {
        let close = chars.iter().skip(start + 3).position(|c| *c == '\'');
        return close.map_or(chars.len(), |close| start + 4 + close);
    }
    if chars.get(start + 2) == Some(&'\'') {
        return start + 3;
    }
    let name = chars.iter().skip(start + 1).take_while(|c| c.is_alphanumeric() || **c == '_').count();
    start + 1 + name
}

/// Marks what stands under `#[cfg(test)]`, up to the end of its block or its semicolon.
fn mark_tests(tokens: &mut [Token]) {
    let mut i = 0;
    while i < tokens.len() {
        if !is_cfg_test(tokens, i) {
            i += 1;
            continue;
        }
        let attribute_end = matching(tokens, i + 1) + 1;
        let mut end = attribute_end;
        while end < tokens.len() && !matches!(tokens[end].text.as_str(), "{" | ";") {
            end += 1;
        }
        if tokens.get(end).is_some_and(|token| token.text == "{") {
            end = matching(tokens, end);
        }
        let end = (end + 1).min(tokens.len());
        tokens[i..end].iter_mut().for_each(|token| token.test = true);
        i = end;
    }
}

/// Whether `#[cfg(test)]` or `#[cfg(all(test, ...))]` begins here.
fn is_cfg_test(tokens: &[Token], i: usize) -> bool {
    let text = |n: usize| tokens.get(i + n).map_or("", |token| token.text.as_str());
    let cfg = text(0) == "#" && text(1) == "[" && text(2) == "cfg" && text(3) == "(";
    cfg && (text(4) == "test" || (text(4) == "all" && text(6) == "test"))
}

/// The index of the bracket that closes the one here (or the last token).
pub(crate) fn matching(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return i;
                }
            }
            _ => {}
        }
    }
    tokens.len().saturating_sub(1)
}

/// Every path of more than one segment, and every single word of a `use`.
fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut paths = Vec::new();
    // Open brackets; those of an inline module carry its name.
    let mut open: Vec<Option<String>> = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let token = &tokens[i];
        let modules = || open.iter().flatten().cloned().collect::<Vec<_>>();
        match token.text.as_str() {
            "{" => {
                let is_module = i >= 2 && tokens[i - 2].text == "mod";
                open.push(is_module.then(|| tokens[i - 1].text.clone()));
                i += 1;
            }
            "}" => {
                open.pop();
                i += 1;
            }
            "use" => i = tree(tokens, i + 1, &[], &modules(), &mut paths),
            word if is_word(word) => {
                let before = paths.len();
                i = tree(tokens, i, &[], &modules(), &mut paths);
                // A word alone is no path.
                paths.truncate(if paths[before..].iter().all(|path| path.segments.len() < 2) {
                    before
                } else {
                    paths.len()
                });
            }
            _ => i += 1,
        }
    }
    paths
}

/// Reads one path or tree of paths that begins at `i`; returns where it ends.
fn tree(tokens: &[Token], mut i: usize, prefix: &[String], modules: &[String], paths: &mut Vec<Path>) -> usize {
    let text = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
    let mut segments = prefix.to_vec();
    while text(i) == ":" {
        i += 1;
    }
    let (line, test) = tokens.get(i).map_or((0, false), |token| (token.line, token.test));
    loop {
        match text(i) {
            "{" => {
                let end = matching(tokens, i);
                i += 1;
                while i < end {
                    let next = tree(tokens, i, &segments, modules, paths).max(i + 1);
                    i = if text(next) == "," { next + 1 } else { next };
                }
                return end + 1;
            }
            "*" => segments.push("*".into()),
            word if is_word(word) => segments.push(word.into()),
            _ => break,
        }
        i += 1;
        if text(i) != ":" || text(i + 1) != ":" {
            break;
        }
        i += 2;
        // A turbofish ends the path.
        if text(i) == "<" {
            break;
        }
    }
    if segments.len() > prefix.len() {
        paths.push(Path { segments, modules: modules.to_vec(), line, test });
    }
    // `as name` belongs to the tree.
    if text(i) == "as" { i + 2 } else { i }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    fn spelled(text: &str) -> Vec<String> {
        Source::parse("src/x/y.rs", text).paths.iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn comments_strings_and_characters_are_left_out() {
        for (text, expected) in [
            ("a // b\nc", "a c"),
            ("a /* b /* c */ d */ e", "a e"),
            (r#"a "b \" c" d"#, "a d"),
            (r###"a r#"b " c"# d b"e" br"\" c"f" g"###, "a d g"),
            (r"a '\'' b '\u{e9}' c 'x' d '{' e", "a b c d e"),
            ("fn f<'a>(x: &'a str, y: &'static T) {}", "fn f < > ( x : & str , y : & T ) { }"),
            ("r#type 1_000u32 0xff", "r # type"),
            ("'", ""),
            ("\"", ""),
            ("/*", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn lines_are_counted_through_everything() {
        let tokens = tokens("/* 1\n2 */ \"\n\" a\n// x\nb");
        assert_eq!(tokens.iter().map(|t| (t.text.as_str(), t.line)).collect::<Vec<_>>(), [("a", 3), ("b", 5)]);
    }

    #[test]
    fn groups_are_spelled_out() {
        for (text, expected) in [
            ("use crate::net::tcp;", "crate::net::tcp"),
            ("use crate::{a, b::{c, self}, d::*};", "crate::a crate::b::c crate::b::self crate::d::*"),
            ("use {crate::a::b, super::c};", "crate::a::b super::c"),
            ("use ::std::net::IpAddr as Ip;", "std::net::IpAddr"),
            ("pub(in crate::pool) use tokio;", "crate::pool tokio"),
            ("let x = crate::pool::Pool::<T>::new(super::super::net::f());", "crate::pool::Pool super::super::net::f"),
            ("fn f(x: a::B, y: C) {}", "a::B"),
        ] {
            assert_eq!(spelled(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn paths_are_resolved_from_where_they_stand() {
        let source = Source::parse(
            "src/net/tls/key.rs",
            "use super::a; mod m { use super::super::super::super::pool::P; use self::x::Y; }",
        );
        let resolved: Vec<_> = source.paths.iter().map(|path| source.resolve(path).unwrap().join("::")).collect();
        assert_eq!(resolved, ["net::tls::a", "pool::P", "net::tls::key::m::x::Y"]);
        let door = Source::parse("src/net/mod.rs", "use super::pool::P; use std::io;");
        assert_eq!(door.resolve(&door.paths[0]).unwrap(), ["pool", "P"]);
        assert_eq!(door.resolve(&door.paths[1]), None);
    }

    #[test]
    fn tests_are_told_apart() {
        let text = "//! x\nfn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { {} }\n}\nfn c() {}\n#[cfg(test)]\nuse d::e;\n\n#[cfg(test)]\nmod t {}\n";
        let source = Source::parse("src/x/y.rs", text);
        let live: Vec<_> = source.tokens.iter().filter(|t| !t.test).map(|t| t.text.as_str()).collect();
        assert_eq!(live.join(""), "fna(){}fnc(){}");
        assert_eq!(source.lines, 7);
        assert!(Source::parse("src/x/tests.rs", "fn f() {}").tokens.iter().all(|token| token.test));
    }
}
