import type pg from 'pg';
import { assert } from '../lib/assert.ts';
import { openConnection, type Db } from './database.ts';
import type { Connection } from './servers.ts';

/** Sends NOTIFY messages from a connection of its own, never from inside a caller's transaction. */
export type Notifier = {
  /**
   * Tells every listener of `channel`, soon and at most once per distinct payload: what is waiting
   * goes out as one statement every few milliseconds. Call it after COMMIT. A message is a hint: it
   * may be lost with the connection, so each receiver needs a slow poll as the net under it.
   */
  notify(channel: string, payload: string): void;
  /** Sends what is waiting (1 s at most) and closes the connection. */
  close(): Promise<void>;
};

export type Subscription = {
  /** Called once per payload. */
  onPayload(payload: string): void;
  /** Messages may have been missed: the connection was lost and is back. Look for yourself once. */
  onGap?(): void;
};

/** Receives NOTIFY messages over one connection, which reconnects by itself. */
export type Listener = {
  /**
   * Answers once the server listens, with the function that ends the subscription. Never throws:
   * while the database is away it goes on trying, and calls `onError`.
   */
  subscribe(channel: string, subscription: Subscription): Promise<() => void>;
  close(): Promise<void>;
};

export type NotifyOptions = { onError?: (error: Error) => void };

/** PostgreSQL refuses payloads of 8,000 bytes or more; payloads of one message are joined by `,`. */
const message_bytes_max = 7_999;

/** A node that cannot reach the database keeps this many payloads per channel; the polls catch the rest. */
const waiting_max = 10_000;

/** Between two statements: at 5 ms a node sends at most 200 NOTIFY transactions per second. */
const notify_every_ms = 5;

const notify_retry_ms = 250;

/** A server that has not answered after this long is gone. */
const answer_limit_ms = 5_000;
const close_ms = 1_000;

/** Opens a Notifier on the database of `db`; it connects at the first message. */
export function openNotifier(db: Db, options: NotifyOptions = {}): Notifier {
  return new CoalescingNotifier(db.connection, options.onError ?? ignore);
}

/** Opens a Listener on the database of `db`; it connects at the first subscription. */
export function openListener(db: Db, options: NotifyOptions = {}): Listener {
  return new ReconnectingListener(db.connection, options.onError ?? ignore);
}

function ignore(): void {}

class CoalescingNotifier implements Notifier {
  readonly #connection: Connection;
  readonly #onError: (error: Error) => void;
  #client: pg.Client | undefined;
  #waiting = new Map<string, Set<string>>();
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #next_send_at = 0;
  #closed = false;

  constructor(connection: Connection, onError: (error: Error) => void) {
    this.#connection = connection;
    this.#onError = onError;
  }

  notify(channel: string, payload: string): void {
    assert(payload !== '' && !payload.includes(','), 'a payload must not be empty or contain a comma');
    assert(Buffer.byteLength(payload) <= message_bytes_max, 'a payload must have at most 7,999 bytes');
    if (this.#closed) return;
    this.#add(channel, [payload]);
    this.#arm();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await endsWithin(close_ms, this.#sendRest());
    const client = this.#client;
    this.#client = undefined;
    if (client) await endsWithin(close_ms, client.end());
  }

  async #sendRest(): Promise<void> {
    await this.#sending;
    if (this.#waiting.size > 0) await this.#send();
  }

  #add(channel: string, payloads: Iterable<string>): void {
    const set = this.#waiting.get(channel) ?? new Set();
    this.#waiting.set(channel, set);
    for (const payload of payloads) if (set.size < waiting_max) set.add(payload);
  }

  #arm(): void {
    if (this.#timer || this.#sending || this.#closed || this.#waiting.size === 0) return;
    const delay_ms = Math.max(0, this.#next_send_at - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#sending = this.#send().finally(() => {
        this.#sending = undefined;
        this.#arm();
      });
    }, delay_ms);
  }

  async #send(): Promise<void> {
    const batch = this.#waiting;
    this.#waiting = new Map();
    this.#next_send_at = performance.now() + notify_every_ms;
    try {
      this.#client ??= await this.#connect();
      const messages = [...batch].flatMap(([channel, payloads]) => pack(payloads).map((text) => ({ channel, text })));
      await this.#client.query(
        'select pg_notify(channel, message) from unnest($1::text[], $2::text[]) as m (channel, message)',
        [messages.map((message) => message.channel), messages.map((message) => message.text)],
      );
    } catch (error) {
      this.#drop();
      this.#onError(asError(error));
      for (const [channel, payloads] of batch) this.#add(channel, payloads);
      this.#next_send_at = performance.now() + notify_retry_ms;
    }
  }

  async #connect(): Promise<pg.Client> {
    const client = await openConnection({ connection: this.#connection }, 'medley notify', {
      limit_ms: answer_limit_ms,
    });
    client.on('error', () => {
      if (this.#client === client) this.#drop();
    });
    // A NOTIFY takes a transaction id, so its COMMIT would wait for the disk: 0.1 ms instead of 1 ms.
    await client.query('set synchronous_commit = off');
    return client;
  }

  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    client?.end().catch(ignore);
  }
}

/** Joins payloads by `,` into as few messages as the size limit allows. */
function pack(payloads: Iterable<string>): string[] {
  const messages: string[] = [];
  let message = '';
  let size_bytes = 0;
  for (const payload of payloads) {
    const payload_bytes = Buffer.byteLength(payload);
    if (message !== '' && size_bytes + 1 + payload_bytes > message_bytes_max) {
      messages.push(message);
      message = '';
    }
    size_bytes = message === '' ? payload_bytes : size_bytes + 1 + payload_bytes;
    message = message === '' ? payload : `${message},${payload}`;
  }
  if (message !== '') messages.push(message);
  return messages;
}

/** A lost connection is tried again after 100 ms, then after twice as long each time up to 1 s. */
const reconnect_min_ms = 100;
const reconnect_max_ms = 1_000;

/** A connection that died without a word (a firewall, a host gone) is found by this check. */
const check_every_ms = 3_000;
const check_limit_ms = 5_000;

class ReconnectingListener implements Listener {
  readonly #connection: Connection;
  readonly #onError: (error: Error) => void;
  readonly #subscriptions = new Map<string, Set<Subscription>>();
  #client: pg.Client | undefined;
  #connecting: Promise<void> | undefined;
  #retry: { timer: NodeJS.Timeout; go: () => void } | undefined;
  #check: NodeJS.Timeout | undefined;
  #was_connected = false;
  #closed = false;

  constructor(connection: Connection, onError: (error: Error) => void) {
    this.#connection = connection;
    this.#onError = onError;
  }

  async subscribe(channel: string, subscription: Subscription): Promise<() => void> {
    const set = this.#subscriptions.get(channel) ?? new Set();
    set.add(subscription);
    this.#subscriptions.set(channel, set);
    await this.#connected();
    await this.#listen(channel);
    return () => set.delete(subscription);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#check);
    clearTimeout(this.#retry?.timer);
    this.#retry?.go();
    await this.#connecting;
    const client = this.#client;
    this.#client = undefined;
    if (client) await endsWithin(close_ms, client.end());
  }

  #connected(): Promise<void> {
    if (this.#client) return Promise.resolve();
    this.#connecting ??= this.#keepConnecting().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #keepConnecting(): Promise<void> {
    for (
      let wait_ms = reconnect_min_ms;
      !this.#closed && !this.#client;
      wait_ms = Math.min(2 * wait_ms, reconnect_max_ms)
    ) {
      try {
        await this.#connectOnce();
      } catch (error) {
        if (this.#closed) return;
        this.#onError(asError(error));
        await this.#pause(wait_ms);
      }
    }
  }

  async #connectOnce(): Promise<void> {
    const client = await openConnection({ connection: this.#connection }, 'medley listen', {
      limit_ms: answer_limit_ms,
    });
    client.on('notification', (message) => this.#deliver(message.channel, message.payload ?? ''));
    try {
      for (const channel of this.#subscriptions.keys()) await listen(client, channel);
    } catch (error) {
      client.end().catch(ignore);
      throw error;
    }
    if (this.#closed) return await client.end();
    this.#client = client;
    client.on('error', (error) => this.#lost(client, error));
    client.on('end', () => this.#lost(client, new Error('the LISTEN connection ended')));
    this.#check = setInterval(() => void this.#verify(client), check_every_ms);
    if (this.#was_connected) this.#tellGap();
    this.#was_connected = true;
  }

  async #listen(channel: string): Promise<void> {
    const client = this.#client;
    if (!client) return; // closed, or lost again: the next connection listens to all channels
    await listen(client, channel).catch((error: Error) => this.#lost(client, error));
    if (!this.#client) await this.#connected();
  }

  #deliver(channel: string, message: string): void {
    for (const subscription of this.#subscriptions.get(channel) ?? []) {
      for (const payload of message.split(',')) subscription.onPayload(payload);
    }
  }

  #tellGap(): void {
    for (const set of this.#subscriptions.values()) for (const subscription of set) subscription.onGap?.();
  }

  #lost(client: pg.Client, error: Error): void {
    if (this.#client !== client || this.#closed) return;
    this.#client = undefined;
    clearInterval(this.#check);
    client.end().catch(ignore);
    this.#onError(error);
    void this.#connected();
  }

  async #verify(client: pg.Client): Promise<void> {
    const answered = await endsWithin(check_limit_ms, client.query('select 1')).catch(() => false);
    if (!answered) this.#lost(client, new Error('the LISTEN connection does not answer'));
  }

  #pause(wait_ms: number): Promise<void> {
    return new Promise((resolve) => {
      const go = () => resolve();
      this.#retry = { timer: setTimeout(go, wait_ms), go };
    });
  }
}

async function listen(client: pg.Client, channel: string): Promise<void> {
  await client.query(`listen ${client.escapeIdentifier(channel)}`);
}

/** Returns true if `work` ended within the limit; its own failure is thrown. */
async function endsWithin(limit_ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), limit_ms);
  });
  work.catch(ignore);
  try {
    return await Promise.race([work.then(() => true), limit]);
  } finally {
    clearTimeout(timer);
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
