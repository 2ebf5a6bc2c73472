//! Keeping keys and money: passphrases, checks, backups, and what is restored of them.

mod audit;
mod backup;
mod books;
mod damage;
mod disk;
mod keystore;
mod prompts;
mod revocation_keys;
mod scene;
mod soak;
mod words;
