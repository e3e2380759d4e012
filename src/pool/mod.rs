//! Who may use which backend connection, and when.
