import { randomUUID } from 'node:crypto';
import { makeBatcher } from '../db/batcher.ts';
import type { Db } from '../db/database.ts';
import { retryWhileUnavailable } from '../db/retry-while-unavailable.ts';
import type { Clock } from '../lib/clock.ts';
import {
  traceparentOf,
  type DeliveryAttempt,
  type DeliveryRef,
  type DeliveryState,
  type DueAttempt,
} from './delivery.ts';
import { secretsAt, type Secrets } from './sign.ts';

/** An attempt that has its slot: what to send, and the claim under which it may be ended. */
export type Begun = DeliveryRef & {
  claim: string;
  number: number;
  event: string;
  url: string;
  body: Buffer;
  secrets: Secrets;
};

/** The end of an attempt. Without a status there was no response, and `error` has the reason. */
export type AttemptEnd = Omit<DeliveryAttempt, 'number'> & { delivered: boolean; timed_out: boolean };

/** `lost`: the claim holds no slot any more, and nothing was written. */
export type AfterAttempt = { state: DeliveryState | 'lost'; next_at: Date | null };

/** The limits on attempts in flight, kept by the database for all nodes (sql/functions/webhooks). */
export type DeliverySlots = {
  /**
   * Takes a slot for an attempt that is due. Undefined: there is none, and whoever gives one up sends
   * a new job; or there is a newer job already, or nothing left to send.
   */
  begin(due: DueAttempt): Promise<Begun | undefined>;
  /** Writes down how it ended, plans the next attempt, and hands the slot on. */
  end(begun: Begun, ended: AttemptEnd): Promise<AfterAttempt>;
  /** Returns the place in a trace of what is delivered; null where it is in none. */
  traceparent(begun: DeliveryRef): Promise<string | null>;
};

/** Larger batches hold the locks of their hosts longer. */
const batch_max = 128;

type DeliverySlotsOptions = { db: Db; clock: Clock; retry_delays_ms: () => readonly number[] };

/** An attempt costs two calls of the database, which it shares with those that are ready at the same time. */
export function makeDeliverySlots({ db, clock, retry_delays_ms }: DeliverySlotsOptions): DeliverySlots {
  const now = () => new Date(clock.now());
  const begin = makeBatcher<DueAttempt & { claim: string }, BeginRow>({
    batch_max,
    together: (dues) => db.query<BeginRow>('select * from begin_deliveries($1, $2)', [now(), JSON.stringify(dues)]),
  });
  const end = makeBatcher<DeliveryRef & { claim: string } & AttemptEnd, EndRow>({
    batch_max,
    together: (ends) => {
      const values = [now(), JSON.stringify(ends), [...retry_delays_ms()]];
      return retryWhileUnavailable(() => db.query<EndRow>('select * from end_deliveries($1, $2, $3)', values));
    },
  });
  return {
    begin: async (due) => {
      const claim = randomUUID();
      const row = await begin({ ...due, claim });
      return row.answer === 'send' ? asBegun(row, claim, clock.now()) : undefined;
    },
    traceparent: (begun) => traceparentOf(db, begun),
    end: ({ account_id, id, claim }, ended) => end({ account_id, id, claim, ...ended }),
  };
}

type BeginRow = DeliveryRef & { answer: 'send' | 'throttled' | 'stale'; number: number } & {
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
