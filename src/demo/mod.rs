//! `myriad demo`: an embedded server, a proxy and the load generator in one command.
