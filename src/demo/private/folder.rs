//! A folder for one run, removed when dropped.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use rand::Rng;

/// A folder that only its owner can enter, removed with all that is in it when dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A new one among the temporary files, given to `owner` if there is one.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn new(owner: Option<(u32, u32)>) -> io::Result<Self> {
        let name = format!("myriad-demo-{:08x}", rand::rng().random::<u32>());
        let path = std::env::temp_dir().join(name);
        // Fails if somebody else was faster: the name was random, so that is no accident.
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Self { path };
        if let Some((uid, gid)) = owner {
            chown(folder.path(), Some(uid), Some(gid))?;
        }
        Ok(folder)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A file that is still being written may make the first attempt fail; what remains is in the temporary files.
        for _ in 0..3 {
            if fs::remove_dir_all(&self.path).is_ok() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn comes_and_goes() {
        let folder = Folder::new(None).unwrap();
        let path = folder.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(path.join("x"), "y").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
