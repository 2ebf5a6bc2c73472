-- The tables of a wallet beside those of its rows, in version 1 of the schema, which @ stands for. Times are microseconds
-- since 1970. Texts are UTF-8 in `bytea`.

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
  figures bytea NOT NULL
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

-- Access tokens of the servers, in a form of their own.
CREATE TABLE @token (id text PRIMARY KEY, body bytea NOT NULL);

CREATE TABLE @audit (
  number bigint PRIMARY KEY,
  at bigint NOT NULL,
  event bytea NOT NULL,
  subject bytea NOT NULL,
  previous bytea NOT NULL
);
