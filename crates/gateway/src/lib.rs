//! Where clients connect: the Postgres wire protocol and HTTP
