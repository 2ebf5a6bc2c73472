//! Changes of a wallet over HTTP, and the contents of its store. The library reads the contents
//! from a copy of the data directory.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bsv_invoicing::events::{Event, EventData, EventKind};
use bsv_invoicing::invoices::InvoiceQuery;
use bsv_invoicing::{
    Error, Invoice, InvoiceId, RedbWalletStore, Timestamp, User, Wallet, WalletSettings,
};
use bsv_store::{DatabaseOptions, DirLock, Keystore, PlainKeys};
use bsv_tx::Network;
use serde_json::{Value, json};

use crate::http::{Client, Reply};
use crate::site::Site;

/// A change that is requested over HTTP. The request can be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// An invoice.
    Invoice {
        /// The reference, which is also the idempotency key.
        reference: String,
        /// Until when it can be paid.
        expires_at: Option<Timestamp>,
    },
    /// Deleting an invoice.
    Deletion {
        /// The id of the invoice.
        id: String,
    },
    /// A user.
    User {
        /// The name, which is also the idempotency key.
        name: String,
    },
}

impl Wish {
    /// An invoice that expires when the settings say.
    pub fn invoice(reference: &str) -> Self {
        Self::Invoice { reference: reference.to_owned(), expires_at: None }
    }

    /// A user.
    pub fn user(name: &str) -> Self {
        Self::User { name: name.to_owned() }
    }

    /// Sends the request. There may be no answer if the server is killed meanwhile.
    pub fn ask(&self, client: &Client) -> io::Result<Reply> {
        let post = |path: &str, key: &str, body: Value| {
            let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
            client.try_send("POST", path, &headers, body.to_string().as_bytes())
        };
        match self {
            Self::Invoice { reference, expires_at } => {
                let body = json!({
                    "satoshis": 1 + reference.len(),
                    "description": format!("of {reference}"),
                    "reference": reference,
                    "expiresAt": expires_at.map(|time| time.to_string()),
                });
                post("/api/v1/invoices", reference, body)
            }
            Self::Deletion { id } => {
                client.try_send("DELETE", &format!("/api/v1/invoices/{id}"), &[], b"")
            }
            Self::User { name } => {
                let body = json!({ "name": name, "email": format!("{name}@example.com") });
                post("/api/v1/users", name, body)
            }
        }
    }

    /// Whether it is an invoice whose expiry has passed.
    pub fn is_too_late(&self) -> bool {
        matches!(self, Self::Invoice { expires_at: Some(at), .. } if *at <= Timestamp::of_system())
    }

    /// The status of a successful answer.
    pub fn success(&self) -> u16 {
        if matches!(self, Self::Deletion { .. }) { 204 } else { 201 }
    }

    /// Whether the answer is successful.
    pub fn is_done(&self, stored: &StoredWallet) -> bool {
        match self {
            Self::Invoice { reference, .. } => stored.with_reference(reference).is_some(),
            Self::Deletion { id } => stored.lives[id].deleted_at.is_some(),
            Self::User { name } => stored.with_name(name).is_some(),
        }
    }
}

/// The contents on the disk, as a start after a crash finds them.
#[derive(Debug)]
pub struct StoredWallet {
    /// The invoices that are not deleted, in the order of their numbers.
    pub invoices: Vec<Invoice>,
    /// The users, in the order of their numbers.
    pub users: Vec<User>,
    /// The facts in the event log about every invoice, including deleted ones, by id.
    pub lives: HashMap<String, Life>,
}

/// The facts in the event log about an invoice.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// Its number.
    pub number: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its expiry was recorded.
    pub expired_at: Option<Timestamp>,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
}

impl StoredWallet {
    /// Reads a copy of the site's wallet, and checks that it is sound. The event log must have no
    /// gap and go forward in time. It must tell of each change once and in the right order, and its
    /// subjects must exist.
    ///
    /// # Panics
    /// If the wallet is not sound.
    pub fn of(site: &Site) -> Self {
        let copy = site.copy();
        let dir = copy.network_dir();
        let keystore = Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, "test");
        let lock = DirLock::acquire(&dir, "test").unwrap();
        let store = RedbWalletStore::open(lock, DatabaseOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        runtime.block_on(async {
            let settings = WalletSettings::new(Network::Regtest);
            let wallet = Wallet::open(Arc::new(store), keystore.unwrap(), settings).await.unwrap();
            let stored = Self {
                invoices: invoices(&wallet).await,
                users: users(&wallet).await,
                lives: HashMap::new(),
            };
            stored.replay(&wallet.events(0, usize::MAX).await.unwrap())
        })
    }

    /// Goes through the event log, and checks the events and their subjects.
    fn replay(mut self, events: &[Event]) -> Self {
        assert!(events.iter().map(|event| event.number).eq(1..=events.len() as u64), "a gap");
        assert!(events.is_sorted_by_key(|event| event.at), "events went back in time");
        let mut last_user = 0;
        for Event { at, kind, data, .. } in events {
            match data {
                EventData::Created { invoice, .. } => self.begin(&invoice.invoice_id, *at),
                EventData::Standing { invoice, .. } if *kind == EventKind::InvoiceExpired => {
                    let id = &invoice.invoice_id;
                    let life = self.life(id);
                    assert!(life.expired_at.replace(*at).is_none(), "{id} expired twice");
                    assert!(life.deleted_at.is_none(), "{id} expired after it was deleted");
                }
                EventData::Deleted { invoice, .. } => {
                    let id = &invoice.invoice_id;
                    let is_first = self.life(id).deleted_at.replace(*at).is_none();
                    assert!(is_first, "{id} was deleted twice");
                }
                EventData::User { user_id } => {
                    last_user += 1;
                    assert_eq!(*user_id, last_user);
                }
                _ => {}
            }
        }
        assert!(self.users.iter().map(|user| user.id).eq(1..=last_user), "a user is missing");
        self.check_invoices();
        self
    }

    fn begin(&mut self, id: &InvoiceId, created_at: Timestamp) {
        let number = self.lives.len() as u64 + 1;
        let life = Life { number, created_at, expired_at: None, deleted_at: None };
        assert!(self.lives.insert(id.to_string(), life).is_none(), "{id} was created twice");
    }

    fn life(&mut self, id: &InvoiceId) -> &mut Life {
        self.lives.get_mut(id.as_str()).unwrap_or_else(|| panic!("{id} was not created before"))
    }

    fn check_invoices(&self) {
        for invoice in &self.invoices {
            let life = &self.lives[invoice.id.as_str()];
            assert_eq!((life.number, life.created_at), (invoice.number, invoice.created_at));
            assert_eq!(life.deleted_at, None, "{} is shown, and was deleted", invoice.id);
            assert!(life.expired_at.is_none_or(|at| at >= invoice.expires_at), "{invoice:?}");
        }
        let kept = self.lives.values().filter(|life| life.deleted_at.is_none()).count();
        assert_eq!(self.invoices.len(), kept, "an invoice is missing");
        assert!(self.invoices.is_sorted_by_key(|invoice| invoice.number));
    }

    /// The invoice with this number, if it is not deleted.
    ///
    /// # Panics
    /// If there is none.
    pub fn with_number(&self, number: u64) -> &Invoice {
        let found = self.invoices.binary_search_by_key(&number, |invoice| invoice.number);
        &self.invoices[found.unwrap_or_else(|_| panic!("invoice {number} is missing"))]
    }

    /// The invoice that has this reference, if there is one.
    ///
    /// # Panics
    /// If there are several.
    pub fn with_reference(&self, reference: &str) -> Option<&Invoice> {
        only(self.invoices.iter().filter(|of| of.reference.as_deref() == Some(reference)))
    }

    /// The user that has this name, if there is one.
    ///
    /// # Panics
    /// If there are several.
    pub fn with_name(&self, name: &str) -> Option<&User> {
        only(self.users.iter().filter(|user| user.details.name == name))
    }
}

fn only<T: std::fmt::Debug>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next();
    assert!(found.next().is_none(), "there is another one like {first:?}");
    first
}

async fn invoices(wallet: &Wallet) -> Vec<Invoice> {
    let query = InvoiceQuery { limit: usize::MAX, ..InvoiceQuery::default() };
    let mut invoices = Vec::new();
    let mut next = Some(query);
    while let Some(query) = next {
        let page = wallet.invoices(query).await.unwrap();
        invoices.extend(page.invoices);
        next = page.next.map(|(number, _)| InvoiceQuery { after: Some(number), ..query });
    }
    invoices
}

async fn users(wallet: &Wallet) -> Vec<User> {
    let mut users = Vec::new();
    loop {
        match wallet.user(users.len() as u64 + 1).await {
            Ok(user) => users.push(user),
            Err(Error::UnknownUser(_)) => return users,
            Err(error) => panic!("{error}"),
        }
    }
}
