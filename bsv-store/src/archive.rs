//! Files of any length, sealed under their own passphrase, written and read piece by piece.
//!
//! | bytes | |
//! | --- | --- |
//! | 8 | `bsvbak`, and the version of the form: 0, 1 |
//! | 12 | Argon2id: memory in KiB, iterations, lanes, 4 bytes each, little-endian |
//! | 16 | the salt of Argon2id |
//! | 19 | the beginning of all nonces |
//! | the rest | pieces of up to 65,536 bytes, each with a tag of 16 bytes; only the last may be shorter or empty |
//!
//! XChaCha20-Poly1305 seals the pieces in the STREAM construction: a nonce ends with the number of
//! the piece and whether it is the last. So nobody can leave out, move or cut off a piece
//! unnoticed. The first 55 bytes are associated data of every piece.

use std::fmt;
use std::io::{self, Read, Write};

use aead_stream::{DecryptorBE32, EncryptorBE32, Nonce, StreamBE32};
use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{KeyInit, Payload};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::seal::{checked_params, params, random, stretch};

const MAGIC: &[u8; 6] = b"bsvbak";
/// The first bytes of archives of builds before the first release.
const UNRELEASED_MAGIC: &[u8; 6] = b"bsvarc";
const VERSION: [u8; 2] = [0, 1];
const SALT_LEN: usize = 16;
const NONCE_LEN: usize = 19;
const HEADER_LEN: usize = MAGIC.len() + VERSION.len() + 12 + SALT_LEN + NONCE_LEN;
const PIECE_LEN: usize = 1 << 16;
const TAG_LEN: usize = 16;

type Cipher = XChaCha20Poly1305;
type PieceNonce = Nonce<Cipher, StreamBE32<Cipher>>;

/// Why an archive cannot be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The file is something else.
    #[error("it is not a backup: its first bytes are not those of a backup")]
    NotAnArchive,
    /// A build before the first release wrote the archive.
    #[error("it was made by an unreleased build; make a new one")]
    Unreleased,
    /// A newer version of this software wrote the archive.
    #[error("a newer version of this software wrote it: its format has version {0}.{1}")]
    Newer(u8, u8),
    /// The Argon2id parameters would take too much memory or time.
    #[error("it is damaged: its Argon2id parameters are out of bounds")]
    BadParameters,
    /// The first piece does not open.
    #[error("the passphrase does not open it, or it is damaged")]
    WrongPassphrase,
    /// A later piece does not open.
    #[error("it is damaged or cut short after {0} bytes of contents")]
    Damaged(u64),
    /// The passphrase is empty.
    #[error("a passphrase must not be empty")]
    EmptyPassphrase,
    /// The operating system provides no random numbers.
    #[error("the operating system provides no random numbers: {0}")]
    NoRandomness(#[from] getrandom::Error),
    /// The archive cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Seals the bytes written to it. The archive is complete only after [`finish`](Self::finish).
pub struct ArchiveWriter<W: Write> {
    out: W,
    encryptor: EncryptorBE32<Cipher>,
    header: [u8; HEADER_LEN],
    /// The bytes of the piece that is not sealed yet.
    piece: Zeroizing<Vec<u8>>,
}

impl<W: Write> ArchiveWriter<W> {
    /// Begins an archive.
    pub fn new(mut out: W, passphrase: &SecretString) -> Result<Self, ArchiveError> {
        if passphrase.expose_secret().is_empty() {
            return Err(ArchiveError::EmptyPassphrase);
        }
        let params = params();
        let (salt, nonce) = (random::<SALT_LEN>()?, random::<NONCE_LEN>()?);
        let mut header = Vec::with_capacity(HEADER_LEN);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&VERSION);
        for number in [params.m_cost(), params.t_cost(), params.p_cost()] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header.extend_from_slice(&salt);
        header.extend_from_slice(&nonce);
        out.write_all(&header)?;
        let key = stretch(passphrase, &salt, &params);
        let cipher = Cipher::new((&*key).into());
        Ok(Self {
            out,
            encryptor: EncryptorBE32::from_aead(cipher, &PieceNonce::from(nonce)),
            header: header.try_into().expect("the parts of a header have fixed lengths"),
            piece: Zeroizing::new(Vec::with_capacity(PIECE_LEN)),
        })
    }

    /// Seals the last piece, and returns the output.
    pub fn finish(mut self) -> Result<W, ArchiveError> {
        let payload = Payload { msg: &self.piece, aad: &self.header };
        let sealed = self.encryptor.encrypt_last(payload).map_err(too_long)?;
        self.out.write_all(&sealed)?;
        Ok(self.out)
    }
}

impl<W: Write> Write for ArchiveWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full piece stays here until more bytes follow, because it may be the last one.
        if self.piece.len() == PIECE_LEN && !bytes.is_empty() {
            let payload = Payload { msg: &self.piece, aad: &self.header };
            let sealed = self.encryptor.encrypt_next(payload).map_err(too_long)?;
            self.out.write_all(&sealed)?;
            self.piece.clear();
        }
        let taken = bytes.len().min(PIECE_LEN - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Flushes the sealed pieces. The current piece stays in memory.
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Sealing fails only when all piece numbers are used up, after 256 TiB.
fn too_long(_: chacha20poly1305::Error) -> io::Error {
    io::Error::other("the archive is longer than its format allows")
}

/// Reads what an [`ArchiveWriter`] sealed, with one piece in memory at a time. The reader yields no
/// byte of an altered piece. When the reader reaches the end, no piece is missing.
pub struct ArchiveReader<R: Read> {
    input: R,
    /// `None` after the last piece.
    decryptor: Option<DecryptorBE32<Cipher>>,
    header: [u8; HEADER_LEN],
    /// Sealed bytes: a piece, and one byte more unless the piece is the last.
    sealed: Vec<u8>,
    /// The opened piece. The bytes from `given` on are not yet read.
    piece: Zeroizing<Vec<u8>>,
    given: usize,
    opened_len: u64,
}

impl<R: Read> ArchiveReader<R> {
    /// Opens an archive, and its first piece, which proves the passphrase.
    pub fn open(mut input: R, passphrase: &SecretString) -> Result<Self, ArchiveError> {
        let mut start = Vec::with_capacity(HEADER_LEN);
        input.by_ref().take(HEADER_LEN as u64).read_to_end(&mut start)?;
        if start.starts_with(UNRELEASED_MAGIC) {
            return Err(ArchiveError::Unreleased);
        }
        let rest = start.strip_prefix(MAGIC).ok_or(ArchiveError::NotAnArchive)?;
        let (version, rest) = rest.split_first_chunk::<2>().ok_or(ArchiveError::NotAnArchive)?;
        if *version != VERSION {
            return Err(ArchiveError::Newer(version[0], version[1]));
        }
        let header: [u8; HEADER_LEN] =
            start.as_slice().try_into().map_err(|_| ArchiveError::NotAnArchive)?;
        let (numbers, rest) = rest.split_at(12);
        let (salt, nonce) = rest.split_at(SALT_LEN);
        let number = |index: usize| {
            let bytes = numbers[index * 4..].first_chunk().expect("the header holds three numbers");
            u32::from_le_bytes(*bytes)
        };
        let params = checked_params(number(0), number(1), number(2));
        let params = params.ok_or(ArchiveError::BadParameters)?;
        let key = stretch(passphrase, salt, &params);
        let nonce: [u8; NONCE_LEN] = nonce.try_into().expect("the header ends with the nonce");
        let cipher = Cipher::new((&*key).into());
        let mut archive = Self {
            input,
            decryptor: Some(DecryptorBE32::from_aead(cipher, &PieceNonce::from(nonce))),
            header,
            sealed: Vec::with_capacity(PIECE_LEN + TAG_LEN + 1),
            piece: Zeroizing::default(),
            given: 0,
            opened_len: 0,
        };
        match archive.open_piece() {
            Err(ArchiveError::Damaged(_)) => Err(ArchiveError::WrongPassphrase),
            opened => opened.map(|()| archive),
        }
    }

    /// Opens the next piece, unless the last one is open already.
    fn open_piece(&mut self) -> Result<(), ArchiveError> {
        const SEALED_LEN: usize = PIECE_LEN + TAG_LEN;
        let Some(mut decryptor) = self.decryptor.take() else { return Ok(()) };
        let missing = SEALED_LEN + 1 - self.sealed.len();
        self.input.by_ref().take(missing as u64).read_to_end(&mut self.sealed)?;
        let damaged = |_| ArchiveError::Damaged(self.opened_len);
        let piece = if self.sealed.len() > SEALED_LEN {
            let payload = Payload { msg: &self.sealed[..SEALED_LEN], aad: &self.header };
            let piece = decryptor.decrypt_next(payload).map_err(damaged)?;
            self.sealed.drain(..SEALED_LEN);
            self.decryptor = Some(decryptor);
            piece
        } else {
            let payload = Payload { msg: &self.sealed, aad: &self.header };
            decryptor.decrypt_last(payload).map_err(damaged)?
        };
        self.opened_len += piece.len() as u64;
        self.piece = Zeroizing::new(piece);
        self.given = 0;
        Ok(())
    }
}

impl<R: Read> Read for ArchiveReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.given == self.piece.len() && self.decryptor.is_some() {
            self.open_piece().map_err(|error| match error {
                ArchiveError::Io(error) => error,
                error => io::Error::new(io::ErrorKind::InvalidData, error),
            })?;
        }
        let given = out.len().min(self.piece.len() - self.given);
        out[..given].copy_from_slice(&self.piece[self.given..self.given + given]);
        self.given += given;
        Ok(given)
    }
}

impl<W: Write> fmt::Debug for ArchiveWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveWriter").finish_non_exhaustive()
    }
}

impl<R: Read> fmt::Debug for ArchiveReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveReader")
            .field("opened_len", &self.opened_len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passphrase() -> SecretString {
        SecretString::from("correct horse")
    }

    fn contents(len: usize) -> Vec<u8> {
        (0..len).map(|n| (n % 251) as u8).collect()
    }

    fn seal(contents: &[u8]) -> Vec<u8> {
        let mut writer = ArchiveWriter::new(Vec::new(), &passphrase()).unwrap();
        writer.write_all(contents).unwrap();
        writer.finish().unwrap()
    }

    fn open(sealed: &[u8], passphrase: &SecretString) -> Result<Vec<u8>, String> {
        let mut reader =
            ArchiveReader::open(sealed, passphrase).map_err(|error| error.to_string())?;
        let mut contents = Vec::new();
        reader.read_to_end(&mut contents).map_err(|error| error.to_string())?;
        Ok(contents)
    }

    #[test]
    fn what_is_sealed_opens_again_at_any_length() {
        for len in [0, 1, PIECE_LEN - 1, PIECE_LEN, PIECE_LEN + 1, 3 * PIECE_LEN, 200_000] {
            let contents = contents(len);
            let sealed = seal(&contents);
            let pieces = len.div_ceil(PIECE_LEN).max(1);
            assert_eq!(sealed.len(), HEADER_LEN + len + pieces * TAG_LEN);
            assert_eq!(open(&sealed, &passphrase()), Ok(contents));
        }
        assert_ne!(seal(b"same"), seal(b"same"));
    }

    #[test]
    fn another_passphrase_does_not_open_it() {
        let error = open(&seal(b"secret"), &SecretString::from("wrong")).unwrap_err();
        assert_eq!(error, "the passphrase does not open it, or it is damaged");
        let empty = ArchiveWriter::new(Vec::new(), &SecretString::from(""));
        assert!(matches!(empty, Err(ArchiveError::EmptyPassphrase)));
    }

    #[test]
    fn flips_cuts_and_pieces_out_of_order_are_found() {
        let sealed = seal(&contents(3 * PIECE_LEN));
        let piece = |number: usize| HEADER_LEN + number * (PIECE_LEN + TAG_LEN);
        let flips = (0..HEADER_LEN).chain([piece(0), piece(1) + 7, piece(2) - 1, sealed.len() - 1]);
        for place in flips {
            let mut flipped = sealed.clone();
            flipped[place] ^= 1;
            assert!(open(&flipped, &passphrase()).is_err(), "flipped at {place}");
        }
        let cuts = [0, 1, 8, HEADER_LEN, piece(1), piece(2), piece(2) + 3, sealed.len() - 1];
        for len in cuts {
            assert!(open(&sealed[..len], &passphrase()).is_err(), "cut at {len}");
        }
        let [first, second, third] =
            [0, 1, 2].map(|number| &sealed[piece(number)..piece(number + 1)]);
        for pieces in [[second, first, third], [first, first, third], [first, third, second]]
            .map(|it| it.concat())
        {
            let mixed = [&sealed[..HEADER_LEN], &pieces].concat();
            assert!(open(&mixed, &passphrase()).is_err());
        }
        assert!(open(&[&sealed[..HEADER_LEN], first, third].concat(), &passphrase()).is_err());
        assert!(open(&[&sealed, &[0][..]].concat(), &passphrase()).is_err());
    }

    #[test]
    fn other_files_and_newer_forms_are_told_apart() {
        for (bytes, expected) in [
            (&b""[..], "it is not a backup"),
            (b"SQLite format 3", "it is not a backup"),
            (b"bsvbak\x00\x02 and what is to come", "newer version of this software"),
            (b"bsvbak\x00\x01", "it is not a backup"),
            (b"bsvarc\x00\x01 and the rest", "made by an unreleased build; make a new one"),
        ] {
            let error = open(bytes, &passphrase()).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let mut greedy = seal(b"x");
        greedy[8..12].fill(0xff);
        assert!(open(&greedy, &passphrase()).unwrap_err().contains("out of bounds"));
    }
}
