import { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { Readable } from 'node:stream';
import type pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';

/**
 * Settings that COPY depends on. With them on both connections, the text of a value is the same everywhere,
 * and no server limit ends a long copy.
 */
export const copy_settings = `set timezone = 'UTC'; set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres';
  set bytea_output = 'hex'; set extra_float_digits = 1; set statement_timeout = 0; set lock_timeout = 0;
  set idle_in_transaction_session_timeout = 0; set search_path = public`;

/** Hands what `copy … to stdout` sends to `take`, at its pace. Answers the number of rows. */
export async function copyOut(
  client: pg.Client,
  statement: string,
  take: (rows: Readable) => Promise<void>,
): Promise<number> {
  const rows = client.query(copyTo(statement));
  await unlessMute(client, async () => {
    await take(rows);
    await client.query('select'); // after it the end of the copy has been read, and its count
  });
  return rows.rowCount;
}

/** Feeds `copy … from stdin`. Answers the number of rows; throws the error of either side. */
export async function copyIn(client: pg.Client, statement: string, source: AsyncIterable<Buffer>): Promise<number> {
  const rows = client.query(copyFrom(statement));
  await unlessMute(client, () => pipeline(source, rows));
  return rows.rowCount;
}

/** A copy may take hours, but moves on: a connection over which nothing has come or gone for so long is dead. */
const silence_max_ms = 600_000;

async function unlessMute(client: pg.Client, copy: () => Promise<unknown>): Promise<void> {
  const socket = client.connection.stream;
  if (!(socket instanceof Socket)) return void (await copy());
  const give_up = () => void socket.destroy(new Error('Connection terminated: nothing has come for ten minutes'));
  socket.setTimeout(silence_max_ms, give_up);
  try {
    await copy();
  } finally {
    socket.setTimeout(0, give_up);
  }
}
