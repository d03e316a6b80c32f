-- A file may have a name of the caller's own choice, as files of Gemini's style have (`files/NAME`); and the SHA-256 of its
-- bytes, in hex. Both are set when the file is ready.
alter table files add column name text, add column sha256 text;
create unique index files_by_name on files (account_id, name) where name is not null;

-- A file that arrives in several requests (decision 97). Until it is whole, its parts lie in the storage below the id of the
-- session, and the session counts in the limits of its account with `size_bytes`, or what has arrived if that is more.
-- `chunks`: in order, each at the end of those before it (Gemini); `parts`: in any order, which the last call names
-- (OpenAI). `parts_begun` counts storage keys, of which every attempt has its own.
-- room: files
create table upload_sessions (
  account_id text not null references accounts,
  id text not null,
  key_id text not null references api_keys,
  kind text not null check (kind in ('chunks', 'parts')),
  filename text not null,
  name text,
  purpose text not null,
  size_bytes bigint check (size_bytes > 0), -- as announced; null: nothing was announced
  keep_s bigint not null check (keep_s > 0), -- lifetime of the file
  state text not null default 'pending' check (state in ('pending', 'completed', 'cancelled')),
  received_bytes bigint not null default 0 check (received_bytes >= 0),
  parts_begun int not null default 0 check (parts_begun between 0 and 10000),
  file_id text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (account_id, id),
  check ((state = 'completed') = (file_id is not null))
);
create index upload_sessions_by_expiry on upload_sessions (expires_at);
create index upload_sessions_pending on upload_sessions (account_id) where state = 'pending';

-- What has arrived of a session, and is stored. `start_bytes`: of a chunk, its place in the file.
-- room: files
create table upload_parts (
  account_id text not null,
  session_id text not null,
  id text not null,
  start_bytes bigint,
  size_bytes bigint not null check (size_bytes > 0),
  sha256 text not null,
  storage_key text not null,
  created_at timestamptz not null,
  primary key (account_id, session_id, id),
  foreign key (account_id, session_id) references upload_sessions (account_id, id) on delete cascade
);
