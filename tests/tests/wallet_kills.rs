//! A server that is killed while many clients create and delete invoices and create users, and
//! while invoices expire.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_tests::wallet::{StoredWallet, Wish};
use bsv_tests::{Client, Reply, Server, Site, repetitions};
use serde_json::Value;

const CLIENTS: usize = 32;
/// The longest time between start and kill, in milliseconds. Most rounds have times up to this one.
const LONGEST: u64 = 150;
/// Once in so many rounds, the kill comes during the server's second sweep.
const ROUNDS_PER_SWEEP: usize = 3;
/// The time between two sweeps, in milliseconds.
const SWEEP: u64 = 1000;
/// The time until half of the invoices expire, so that the second sweep finds them.
const SHORT: Duration = Duration::from_millis(800);

/// A client of the wallet, and the answers that it got.
struct Caller {
    number: usize,
    /// How many requests it has made.
    count: usize,
    invoices: Vec<Known>,
    /// The bodies of the answers for the users that it created.
    users: Vec<String>,
    /// Its last request, if that got no answer.
    open: Option<Wish>,
}

/// An invoice that was acknowledged.
struct Known {
    wish: Wish,
    id: String,
    expires_at: Timestamp,
    /// The body of the answer.
    text: String,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    /// Its deletion was requested, and got no answer.
    Open,
    Deleted,
}

impl Known {
    fn new(wish: &Wish, text: String) -> Self {
        let invoice: Value = serde_json::from_str(&text).unwrap();
        let member = |name: &str| invoice[name].as_str().unwrap();
        let (id, expires_at) = (member("id").to_owned(), member("expiresAt").parse().unwrap());
        Self { wish: wish.clone(), id, expires_at, text, fate: Fate::Kept }
    }

    fn is_short(&self) -> bool {
        matches!(self.wish, Wish::Invoice { expires_at: Some(_), .. })
    }
}

impl Caller {
    fn new(number: usize) -> Self {
        Self { number, count: 0, invoices: Vec::new(), users: Vec::new(), open: None }
    }

    /// The next request: mostly for an invoice, and every second one expires soon.
    fn next_wish(&mut self) -> Wish {
        self.count += 1;
        let name = format!("{}-{}", self.number, self.count);
        let now = Timestamp::of_system();
        let is_kept = |known: &Known| known.fate == Fate::Kept;
        let deletable = match self.count % 8 {
            // The sweep may not have recorded the expiry of the last one yet.
            3 => self.invoices.iter().rposition(|known| is_kept(known) && known.expires_at <= now),
            6 => self.invoices.iter().rposition(is_kept),
            7 => return Wish::User { name },
            _ => None,
        };
        if let Some(index) = deletable {
            self.invoices[index].fate = Fate::Open;
            return Wish::Deletion { id: self.invoices[index].id.clone() };
        }
        let expires_at = self.count.is_multiple_of(2).then(|| now.after(SHORT));
        Wish::Invoice { reference: name, expires_at }
    }

    fn ask_until_killed(&mut self, client: &Client) {
        loop {
            let wish = self.next_wish();
            match wish.ask(client) {
                Ok(reply) => self.note(&wish, reply),
                Err(_) => return self.open = Some(wish),
            }
        }
    }

    fn note(&mut self, wish: &Wish, reply: Reply) {
        if reply.status == 400 && wish.is_too_late() {
            return;
        }
        assert_eq!(reply.status, wish.success(), "{wish:?}: {}", reply.body);
        match wish {
            Wish::Invoice { .. } => self.invoices.push(Known::new(wish, reply.body)),
            Wish::User { .. } => self.users.push(reply.body),
            Wish::Deletion { id } => {
                let known = self.invoices.iter_mut().rfind(|known| known.id == *id);
                known.unwrap().fate = Fate::Deleted;
            }
        }
    }

    /// Repeats the request that broke off.
    fn ask_again(&mut self, client: &Client, stored: &StoredWallet) {
        let Some(wish) = self.open.take() else { return };
        let mut reply = wish.ask(client).unwrap();
        if matches!(wish, Wish::Deletion { .. }) && wish.is_done(stored) {
            assert_eq!(reply.status, 404, "{wish:?}: {}", reply.body);
            reply.status = wish.success();
        }
        self.note(&wish, reply);
    }
}

#[test]
fn everything_acknowledged_before_a_kill_is_there_once_with_every_field() {
    let rounds = repetitions("kills of a wallet under load from 32 clients", 50, 8);
    let mut site = Site::new();
    site.keep_on_disk();
    site.set_env("BSV_LOG", "off");
    let mut server = site.server();
    let mut callers: Vec<_> = (0..CLIENTS).map(Caller::new).collect();
    let mut broken_off = 0;
    for round in 0..rounds {
        let spread = LONGEST * round as u64 / rounds as u64;
        let is_sweep_hit = round % ROUNDS_PER_SWEEP == 0;
        let delay = if is_sweep_hit { SWEEP - 50 + spread } else { 10 + spread };
        use_until_killed(server, &mut callers, Duration::from_millis(delay));
        broken_off += callers.iter().filter(|caller| caller.open.is_some()).count();
        let stored = StoredWallet::of(&site);
        check_disk(&stored, &callers);
        server = site.server();
        check_answers(&server, &callers);
        for caller in &mut callers {
            caller.ask_again(server.wallet(), &stored);
        }
    }
    thread::sleep(SHORT + Duration::from_millis(2 * SWEEP));
    assert_eq!(server.stop(), 0);
    let stored = StoredWallet::of(&site);
    check_disk(&stored, &callers);
    check_expiries(&stored, &callers);
    eprintln!(
        "{} invoices created, {} of them deleted, {} expired; {} users; {broken_off} requests \
         broken off",
        stored.lives.len(),
        stored.lives.values().filter(|life| life.deleted_at.is_some()).count(),
        stored.lives.values().filter(|life| life.expired_at.is_some()).count(),
        stored.users.len()
    );
    assert!(stored.lives.len() > rounds * CLIENTS, "the load was too low to tell anything");
}

fn use_until_killed(server: Server, callers: &mut [Caller], delay: Duration) {
    let client = server.wallet().clone();
    thread::scope(|scope| {
        for caller in callers {
            scope.spawn(|| caller.ask_until_killed(&client));
        }
        thread::sleep(delay);
        server.kill();
    });
}

/// Checks the store after the kill.
fn check_disk(stored: &StoredWallet, callers: &[Caller]) {
    let (mut invoice_count, mut user_count) = (0, 0);
    for caller in callers {
        for known in &caller.invoices {
            check_invoice(stored, known);
        }
        invoice_count += caller.invoices.len();
        user_count += caller.users.len();
        match &caller.open {
            Some(wish @ Wish::Invoice { .. }) => {
                invoice_count += usize::from(wish.is_done(stored));
            }
            Some(wish @ Wish::User { .. }) => user_count += usize::from(wish.is_done(stored)),
            _ => {}
        }
    }
    assert_eq!(stored.lives.len(), invoice_count, "something was created twice");
    assert_eq!(stored.users.len(), user_count, "something was created twice");
    let users: BTreeSet<_> = stored.users.iter().map(bsv_invoicing::User::to_json).collect();
    for text in callers.iter().flat_map(|caller| &caller.users) {
        assert!(users.contains(text), "{text} is lost");
    }
}

fn check_invoice(stored: &StoredWallet, known: &Known) {
    let Known { id, expires_at, text, fate, .. } = known;
    let life = stored.lives.get(id).unwrap_or_else(|| panic!("{text} is lost"));
    match (life.deleted_at, fate) {
        (None, Fate::Deleted) => panic!("{text} is not deleted any more"),
        (None, _) => {
            let invoice = stored.with_number(life.number);
            assert_eq!(invoice.to_json(invoice.created_at), *text);
        }
        (Some(_), Fate::Kept) => panic!("{text} is deleted"),
        (Some(at), _) => assert_eq!(life.expired_at.is_some(), *expires_at <= at, "{text}"),
    }
}

/// Checks that exactly the invoices that have expired by now have an expiry in the event log.
fn check_expiries(stored: &StoredWallet, callers: &[Caller]) {
    let now = Timestamp::of_system();
    for known in callers.iter().flat_map(|caller| &caller.invoices) {
        let life = &stored.lives[&known.id];
        let has_expired = known.expires_at <= life.deleted_at.unwrap_or(now);
        assert_eq!(life.expired_at.is_some(), has_expired, "{life:?}: {}", known.text);
    }
}

/// Checks some of a server's answers after the kill. [`check_disk`] checks everything in the store.
fn check_answers(server: &Server, callers: &[Caller]) {
    let client = server.wallet();
    for caller in callers {
        for known in caller.invoices.iter().rev().take(4) {
            assert_eq!(known.wish.ask(client).unwrap().body, known.text);
            let shown = client.get(&format!("/api/v1/invoices/{}", known.id));
            match known.fate {
                Fate::Open => {}
                Fate::Deleted => assert_eq!(shown.status, 404, "{}", shown.body),
                Fate::Kept if known.is_short() => assert_eq!(shown.status, 200, "{}", shown.body),
                Fate::Kept => assert_eq!(shown.body, known.text),
            }
        }
        if let Some(text) = caller.users.last() {
            let user: Value = serde_json::from_str(text).unwrap();
            assert_eq!(client.get(&format!("/api/v1/users/{}", user["id"])).body, *text);
        }
    }
}
