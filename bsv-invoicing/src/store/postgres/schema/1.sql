-- Version 1 of the schema of one wallet, which @ stands for. Times are microseconds since 1970. Texts are UTF-8 in `bytea`.

CREATE TABLE @meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  name text NOT NULL,
  version integer NOT NULL,
  incarnation bytea NOT NULL
);

-- Who writes holds the lock of its only row, which never changes.
CREATE TABLE @door (one boolean PRIMARY KEY DEFAULT true CHECK (one));
INSERT INTO @door DEFAULT VALUES;

-- Each batch of commands adds a row. The last one has the figures.
CREATE TABLE @step (
  number bigint PRIMARY KEY,
  writer bytea NOT NULL,
  writer_step bigint NOT NULL,
  made_at bigint NOT NULL,
  last_audit bigint NOT NULL,
  last_audit_at bigint NOT NULL,
  audit_head bytea NOT NULL,
  last_invoice bigint NOT NULL,
  last_user bigint NOT NULL,
  last_event bigint NOT NULL,
  last_event_at bigint NOT NULL,
  last_transaction bigint NOT NULL,
  last_payment bigint NOT NULL,
  last_change bigint NOT NULL,
  account bigint NOT NULL,
  last_invoice_before bigint NOT NULL,
  last_user_before bigint NOT NULL,
  confirmed bigint NOT NULL,
  unconfirmed bigint NOT NULL,
  waiting bigint NOT NULL,
  reserved bigint NOT NULL,
  contested bigint NOT NULL,
  immature bigint NOT NULL,
  coins bigint NOT NULL
);

-- What servers remember, one row for each data directory. The file there names the step `remembered`, or `remembering` if
-- it was written since.
CREATE TABLE @memory (
  id bytea PRIMARY KEY,
  name text NOT NULL,
  version text NOT NULL,
  seen_at bigint NOT NULL,
  remembered bigint NOT NULL,
  remembering bigint NOT NULL
) WITH (fillfactor = 50);

-- The processes that have the wallet open. Each raises its `beat` as long as it is alive.
CREATE TABLE @process (id bytea PRIMARY KEY, beat bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);

-- What a process alone does at the moment.
CREATE TABLE @claim (
  task bigint,
  subject bytea,
  holder bytea NOT NULL,
  number bigint NOT NULL,
  PRIMARY KEY (task, subject)
) WITH (fillfactor = 50);

-- Access tokens of the servers, in a form of their own.
CREATE TABLE @token (id text PRIMARY KEY, body bytea NOT NULL);

CREATE TABLE @audit (
  number bigint PRIMARY KEY,
  at bigint NOT NULL,
  event bytea NOT NULL,
  subject bytea NOT NULL,
  previous bytea NOT NULL
);

CREATE TABLE @invoice (
  number bigint PRIMARY KEY,
  id bytea NOT NULL,
  satoshis bigint NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  paid_at bigint,
  deleted_at bigint,
  reference bytea,
  description bytea
) WITH (fillfactor = 80);

CREATE TABLE @invoice_of_reference (
  reference bytea,
  number bigint,
  PRIMARY KEY (reference, number)
);

CREATE TABLE @expiry (
  at bigint,
  invoice bigint,
  PRIMARY KEY (at, invoice)
);

CREATE TABLE @wallet_user (
  id bigint PRIMARY KEY,
  name bytea NOT NULL,
  email bytea NOT NULL,
  avatar bytea NOT NULL,
  address bytea NOT NULL,
  phone_number bytea NOT NULL
);

-- What else is told, and the block, are lists of numbers in a form of their own.
CREATE TABLE @event (
  number bigint PRIMARY KEY,
  at bigint NOT NULL,
  kind bigint NOT NULL,
  subject bigint NOT NULL,
  details bytea NOT NULL,
  block bytea NOT NULL
);

CREATE TABLE @event_log (one boolean PRIMARY KEY CHECK (one), name bytea NOT NULL);

CREATE TABLE @webhook (
  id bigint PRIMARY KEY,
  url bytea NOT NULL,
  types bytea NOT NULL,
  description bytea NOT NULL,
  in_order boolean NOT NULL,
  state bigint NOT NULL,
  created_at bigint NOT NULL,
  cursor bigint NOT NULL,
  last_sent bigint NOT NULL,
  holding bigint,
  secret bytea NOT NULL,
  former_secret bytea,
  former_secret_until bigint,
  last_success_at bigint,
  failing_since bigint,
  failures bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE @webhook_changes (one boolean PRIMARY KEY CHECK (one), count bigint NOT NULL);

CREATE TABLE @delivery (
  webhook bigint,
  event bigint,
  previous bigint NOT NULL,
  state bigint NOT NULL,
  next_attempt_at bigint NOT NULL,
  tries bigint NOT NULL,
  attempts bytea NOT NULL,
  PRIMARY KEY (webhook, event)
) WITH (fillfactor = 80);

CREATE TABLE @delivery_by_time (
  webhook bigint,
  is_over boolean,
  at bigint,
  event bigint,
  PRIMARY KEY (webhook, is_over, at, event)
);

CREATE TABLE @idempotency (
  route bigint,
  key bytea,
  request_hash bytea NOT NULL,
  number bigint NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (route, key)
);

CREATE TABLE @idempotency_age (
  at bigint,
  route bigint,
  key bytea,
  PRIMARY KEY (at, route, key)
);

CREATE TABLE @owner (what bytea PRIMARY KEY, fingerprint bytea NOT NULL);

CREATE TABLE @followed_tip (
  one boolean PRIMARY KEY CHECK (one),
  height bigint NOT NULL,
  hash bytea NOT NULL
);

CREATE TABLE @reorganisation (one boolean PRIMARY KEY CHECK (one), count bigint NOT NULL);

CREATE TABLE @catch_up (one boolean PRIMARY KEY CHECK (one), height bigint);

CREATE TABLE @account (
  number bigint PRIMARY KEY,
  last_invoice_before bigint NOT NULL,
  last_user_before bigint NOT NULL
);

CREATE TABLE @rules (
  one boolean PRIMARY KEY CHECK (one),
  underpaid_tolerance bigint NOT NULL,
  accepts_late boolean NOT NULL,
  zero_conf_limit bigint
);

CREATE TABLE @watched (
  hash bytea PRIMARY KEY,
  account bigint NOT NULL,
  chain bigint NOT NULL,
  index bigint NOT NULL
);

CREATE TABLE @newly_watched (number bigint PRIMARY KEY, hash bytea NOT NULL);

CREATE TABLE @watch_backlog (
  account bigint,
  chain bigint,
  index bigint,
  until bigint NOT NULL,
  PRIMARY KEY (account, chain, index)
);

CREATE TABLE @rescan (
  one boolean PRIMARY KEY CHECK (one),
  is_height boolean NOT NULL,
  start bigint NOT NULL
);

CREATE TABLE @tx (
  number bigint PRIMARY KEY,
  txid bytea NOT NULL,
  purpose bigint NOT NULL,
  subject bigint NOT NULL,
  state bigint NOT NULL,
  satoshis bigint NOT NULL,
  at bigint NOT NULL,
  block_height bigint,
  block_hash bytea
) WITH (fillfactor = 80);

CREATE TABLE @tx_of_txid (
  txid bytea,
  number bigint,
  PRIMARY KEY (txid, number)
);

CREATE TABLE @raw_tx (number bigint PRIMARY KEY, bytes bytea STORAGE EXTERNAL NOT NULL);

CREATE TABLE @ancestor (tx bigint PRIMARY KEY, bytes bytea STORAGE EXTERNAL NOT NULL);

CREATE TABLE @receipt (
  maker bigint,
  vout bigint,
  satoshis bigint NOT NULL,
  account bigint NOT NULL,
  chain bigint NOT NULL,
  index bigint NOT NULL,
  spender bigint,
  PRIMARY KEY (maker, vout)
) WITH (fillfactor = 80);

CREATE TABLE @spendable (
  trust bigint,
  satoshis bigint,
  maker bigint,
  vout bigint,
  PRIMARY KEY (trust, satoshis, maker, vout)
);

CREATE TABLE @immature (
  height bigint,
  maker bigint,
  vout bigint,
  PRIMARY KEY (height, maker, vout)
);

CREATE TABLE @unassigned (
  maker bigint,
  vout bigint,
  PRIMARY KEY (maker, vout)
);

CREATE TABLE @unlisted (
  invoice bigint PRIMARY KEY,
  maker bigint NOT NULL,
  vout bigint NOT NULL
);

CREATE TABLE @spent (
  spender bigint,
  maker bigint,
  vout bigint,
  PRIMARY KEY (spender, maker, vout)
);

CREATE TABLE @incoming (
  invoice bigint,
  tx bigint,
  first bigint NOT NULL,
  satoshis bigint NOT NULL,
  PRIMARY KEY (invoice, tx)
);

CREATE TABLE @received_for (
  invoice bigint PRIMARY KEY,
  unconfirmed bigint NOT NULL,
  unmined bigint NOT NULL,
  mined bigint NOT NULL,
  late_unconfirmed bigint NOT NULL,
  late_unmined bigint NOT NULL,
  late_mined bigint NOT NULL,
  payments bigint NOT NULL,
  contested bigint NOT NULL,
  wishes bigint NOT NULL,
  changes bigint NOT NULL
) WITH (fillfactor = 80);

CREATE TABLE @counted (
  invoice bigint,
  height bigint,
  tx bigint,
  PRIMARY KEY (invoice, height, tx)
);

CREATE TABLE @wish (
  invoice bigint,
  tx bigint,
  PRIMARY KEY (invoice, tx)
);

CREATE TABLE @marked (invoice bigint PRIMARY KEY, at bigint NOT NULL);

CREATE TABLE @in_flight (invoice bigint PRIMARY KEY, tx bigint NOT NULL);

CREATE TABLE @refund_to (tx bigint PRIMARY KEY, address bytea NOT NULL);

CREATE TABLE @outgoing (
  number bigint PRIMARY KEY,
  tx bigint NOT NULL,
  cancellation bigint,
  previous bigint,
  purpose bigint NOT NULL,
  purpose_number bigint NOT NULL,
  purpose_text bytea NOT NULL,
  satoshis bigint NOT NULL,
  fee bigint NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  memo bytea NOT NULL,
  channel_host bytea,
  channel_path bytea,
  channel_id bytea,
  channel_token bytea
) WITH (fillfactor = 80);

CREATE TABLE @message (outgoing bigint PRIMARY KEY, bytes bytea NOT NULL);

CREATE TABLE @posting_url (outgoing bigint PRIMARY KEY, url bytea NOT NULL);

CREATE TABLE @outgoing_of_url (url_hash bytea PRIMARY KEY, outgoing bigint NOT NULL);

CREATE TABLE @last_refund (invoice bigint PRIMARY KEY, outgoing bigint NOT NULL);

CREATE TABLE @withdrawal (
  number bigint PRIMARY KEY,
  recipient bytea NOT NULL,
  reference bytea,
  first_payment bigint NOT NULL,
  payments bigint NOT NULL,
  created_at bigint NOT NULL
);

-- The coins are a list of makers and indexes, in a form of its own.
CREATE TABLE @reservation (tx bigint PRIMARY KEY, coins bytea NOT NULL);

CREATE TABLE @followed (tx bigint PRIMARY KEY, until bigint NOT NULL);

CREATE TABLE @proof (
  tx bigint,
  sequence bigint,
  height bigint NOT NULL,
  hash bytea NOT NULL,
  found_at bigint NOT NULL,
  is_read boolean NOT NULL,
  branch bytea NOT NULL,
  PRIMARY KEY (tx, sequence)
);

CREATE TABLE @mined (
  height bigint,
  tx bigint,
  PRIMARY KEY (height, tx)
);
