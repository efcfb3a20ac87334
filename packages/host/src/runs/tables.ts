/**
 * Tables of a server, beside those of threads and made when a server first opens the file: a release that knows nothing of them reads
 * the rest. Names are JSON texts, as there.
 */
export const CREATE = `
  create table if not exists run (
    n integer primary key autoincrement,
    id text not null unique,
    owner text not null,
    thread text not null,
    entry text not null,
    before text,             -- its thread as it was before
    ending text,
    ended integer,
    holder text,             -- who does it; null: nobody, or it has ended
    until integer,
    epoch integer not null,  -- raised by whoever takes it over
    cancelled integer
  );
  create index if not exists run_of_thread on run (owner, thread, n);
  create index if not exists run_under_way on run (n) where ending is null;
  create index if not exists run_ended on run (ended, n) where ending is not null;
  -- The key is n * SPAN + seq.
  create table if not exists run_event (id integer primary key, body text not null);
  create table if not exists run_ask (
    n integer primary key autoincrement,
    id text not null unique,
    run text not null,
    owner text not null,
    thread text not null,
    branch text not null,
    entry text not null,
    closed text,
    closer text              -- the run that closed it
  );
  create index if not exists run_ask_open on run_ask (owner, thread, n) where closed is null;
  create index if not exists run_ask_closed on run_ask (closer) where closed is not null;
  create table if not exists run_thread (
    n integer primary key autoincrement,
    owner text not null,
    thread text not null,
    entry text not null,
    unique (owner, thread)
  );
`
