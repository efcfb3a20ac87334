/** "Slui": what stands in the header of our files and of nobody else's. */
export const APPLICATION_ID = 0x536c7569

/** Of the tables below. Whoever changes them raises it, and brings older files up to it. */
export const VERSION = 1

/** A record's key is `line * SPAN + seq`: in order for each line, exact in a double, and no second index. */
export const SPAN = 2 ** 24

/**
 * Names are JSON texts, here and wherever they are looked for: a name may hold a zero or half of a surrogate pair, and no text of
 * SQLite's comes back with those from every driver.
 */
export const nameText = (name: string): string => JSON.stringify(name)

export const CREATE = `
  create table line (
    id integer primary key,
    thread text not null,
    branch text not null,
    origin integer,          -- of a fork: the line it was forked from,
    at integer,              -- and the last record it shares with it
    epoch integer not null,
    owner text,              -- who holds the lease; null: nobody
    until integer,
    graph text,
    status text,
    asks text,
    written integer,
    unique (thread, branch)
  );
  create table log (id integer primary key, body text not null);
  create table snapshot (line integer not null, seq integer not null, primary key (line, seq)) without rowid;
  create table beside (
    id integer primary key,
    line integer not null,
    key text not null,
    body text not null,
    unique (line, key)
  );
  -- One count for all lines: a thread that is removed and begins again never gives out an epoch twice.
  create table epoch (last integer not null);
  insert into epoch values (0);
  pragma application_id = ${APPLICATION_ID};
  pragma user_version = ${VERSION};
`
