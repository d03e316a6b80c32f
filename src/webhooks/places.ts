import { randomUUID } from 'node:crypto';
import type { Db } from '../db/database.ts';
import { whileAway } from '../db/while-away.ts';
import type { Clock } from '../lib/clock.ts';
import type { DeliveryRef, DeliveryState, Due } from './delivery.ts';
import { secretsAt, type Secrets } from './sign.ts';

/** An attempt that has its place: what to send, and the claim under which it may be ended. */
export type Begun = DeliveryRef & {
  claim: string;
  number: number;
  event: string;
  url: string;
  body: Buffer;
  secrets: Secrets;
};

/** How an attempt ended. Without a status there was no answer, and `error` says why. */
export type Ended = {
  started_at: Date;
  ended_at: Date;
  duration_ms: number;
  status: number | null;
  error: string | null;
  answer: string | null;
  delivered: boolean;
  timed_out: boolean;
};

/** `lost`: another worker has taken the attempt over, and nothing was written. */
export type AfterAttempt = { state: DeliveryState | 'lost'; next_at: Date | null };

/** The limits on attempts in flight, kept by the database for all nodes (migrations/0006_webhooks.sql). */
export type Places = {
  /**
   * Takes a place for an attempt that is due. Undefined: there is none, and whoever gives one up sends
   * a new job; or the attempt was made already.
   */
  begin(due: Due): Promise<Begun | undefined>;
  /** Writes down how it ended, plans the next attempt, and hands the place on. */
  end(begun: Begun, ended: Ended): Promise<AfterAttempt>;
};

const batch_max = 128;

type PlacesOptions = { db: Db; clock: Clock; retry_delays_ms: () => readonly number[] };

/** What is ready while a call is under way goes along with the next one: a delivery costs two calls in 128 parts. */
export function makePlaces({ db, clock, retry_delays_ms }: PlacesOptions): Places {
  const now = () => new Date(clock.now());
  const begin = batched<Due & { claim: string }, BeginRow>((items) =>
    db.query<BeginRow>('select * from begin_deliveries($1, $2)', [now(), JSON.stringify(items)]),
  );
  const end = batched<DeliveryRef & { claim: string } & Ended, EndRow>((items) =>
    whileAway(() =>
      db.query<EndRow>('select * from end_deliveries($1, $2, $3)', [
        now(),
        JSON.stringify(items),
        [...retry_delays_ms()],
      ]),
    ),
  );
  return {
    begin: async (due) => {
      const claim = randomUUID();
      const row = await begin({ ...due, claim });
      return row.answer === 'send' ? asBegun(row, claim, clock.now()) : undefined;
    },
    end: ({ account_id, id, claim }, ended) => end({ account_id, id, claim, ...ended }),
  };
}

type BeginRow = DeliveryRef & { answer: 'send' | 'parked' | 'stale'; number: number } & {
  event: string;
  url: string;
  body: string;
  webhook_secret: string;
  webhook_secret_before: string | null;
  webhook_secret_rotated_at: Date | null;
};

type EndRow = DeliveryRef & AfterAttempt;

function asBegun(row: BeginRow, claim: string, now_ms: number): Begun {
  const { account_id, id, number, event, url, body } = row;
  return { account_id, id, claim, number, event, url, body: Buffer.from(body), secrets: secretsAt(row, now_ms) };
}

type Member<T, R> = { item: T; resolve: (row: R) => void; reject: (error: unknown) => void };

/** One call at a time for all that wait; rows come back in the order of the items. */
function batched<T, R>(call: (items: T[]) => Promise<R[]>): (item: T) => Promise<R> {
  let waiting: Member<T, R>[] = [];
  let under_way = false;
  const pump = async () => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batch_max);
      waiting = waiting.slice(batch_max);
      try {
        const rows = await call(batch.map((member) => member.item));
        for (const [i, member] of batch.entries()) {
          const row = rows[i];
          if (row === undefined) member.reject(new Error('a batch answered too few rows'));
          else member.resolve(row);
        }
      } catch (error) {
        for (const member of batch) member.reject(error);
      }
    }
    under_way = false;
  };
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (under_way) return;
      under_way = true;
      setImmediate(() => void pump());
    });
}
