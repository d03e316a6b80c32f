import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { openJournal, type Account, type CallNote, type Journal, type TaskRequest, type Place } from './place.ts';
import type { Random } from './random.ts';

const way_weights = {
  'at once': 30,
  run: 46,
  fail: 6,
  refuse: 8,
  'refuse all': 1,
  cut: 4,
  reject: 3,
  broken: 2,
} as const;
const model_weights = { 'chaos/one': 40, 'chaos/two': 30, 'chaos/failover': 15, 'chaos/again': 15 } as const;

/** Receivers per account; the last digit decides how one behaves. */
const receivers = 20;

const call_timeout_ms = 8_000;
const tries_max = 300;
const looks_max = 100;

/** Creates `tasks` tasks, spread over `duration_ms`, until each has been acknowledged. */
export class Clients {
  acknowledged = 0;
  unknown = 0;
  refused = 0;
  readonly #place: Place;
  readonly #rich: Account[];
  readonly #random: Random;
  readonly #journal: Journal<CallNote>;
  readonly #pools: Pool[];

  constructor(place: Place, random: Random) {
    this.#place = place;
    this.#rich = place.accounts.filter(({ is_poor }) => !is_poor);
    this.#random = random;
    this.#journal = openJournal(place.folder, 'calls');
    this.#pools = place.api_ports.map((port) => new Pool(`http://127.0.0.1:${port}`, { connections: 32 }));
  }

  /**
   * No faster than `duration_ms` says, nor than things break: `share` tells how much of that is done. No new
   * ones after `until_ms`; those that were refused try again until then.
   */
  async run(tasks: number, pace: { duration_ms: number; share: () => number; until_ms: number }): Promise<void> {
    const { duration_ms, share, until_ms } = pace;
    const begun_at_ms = performance.now();
    const under_way = new Set<Promise<void>>();
    for (let i = 0; i < tasks && performance.now() < until_ms; i++) {
      const wait_ms = begun_at_ms + (i * duration_ms) / tasks - performance.now();
      if (wait_ms > 0) await sleep(wait_ms);
      while (i > tasks * share() && performance.now() < until_ms) await sleep(50);
      const one: Promise<void> = this.#create(until_ms).finally(() => under_way.delete(one));
      under_way.add(one);
      if (under_way.size >= 60) await Promise.race(under_way);
    }
    await Promise.all(under_way);
  }

  async close(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.destroy()));
  }

  async #create(until_ms: number): Promise<void> {
    const random = this.#random;
    const account = this.#rich[random.whole(0, this.#rich.length - 1)];
    if (!account) throw new Error('there are accounts');
    const order: TaskRequest = { way: random.weighted(way_weights), run_ms: random.whole(50, 1_500) };
    const model = random.weighted(model_weights);
    const idempotent = random.chance(0.5);
    const cancel = random.chance(0.05);
    const webhook_url =
      random.chance(0.95) &&
      `http://127.0.0.1:${this.#place.receivers_port}/${account.id}/${random.whole(0, receivers - 1)}`;
    let call: string = randomUUID();
    for (let tries = 1; tries <= tries_max; tries++) {
      const body = {
        model,
        input: { prompt: JSON.stringify(order) },
        metadata: { call },
        ...(webhook_url && { webhook_url }),
      };
      const note = await this.#call(account, call, idempotent, order, body);
      if (note.outcome === 'ok') {
        if (cancel) await this.#cancel(account, note.task_id);
        return;
      }
      // Without a key of its own, an unknown one may be there: the next is another.
      if (note.outcome === 'refused' || !idempotent) call = randomUUID();
      if (performance.now() > until_ms) return;
      await sleep(random.whole(100, 700) * Math.min(tries, 6));
    }
    throw new Error('a client was refused for minutes');
  }

  async #call(
    account: Account,
    call: string,
    idempotent: boolean,
    order: TaskRequest,
    body: object,
  ): Promise<CallNote> {
    const at_ms = Date.now();
    const pool = this.#pools[this.#random.whole(0, this.#pools.length - 1)];
    const key = account.keys[this.#random.whole(0, account.keys.length - 1)]?.text;
    let status = 0;
    let task_id = '';
    try {
      const answer = await pool?.request({
        path: '/v1/generate',
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(idempotent && { 'idempotency-key': call }),
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(call_timeout_ms),
      });
      const json = (await answer?.body.json()) as { id?: string };
      status = answer?.statusCode ?? 0;
      task_id = json.id ?? '';
    } catch (error) {
      // Nobody listened: certainly nothing happened. Anything else leaves it open.
      status = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED' ? -1 : 0;
    }
    const outcome = status === 202 ? 'ok' : status === 0 || status === 500 || status === 503 ? 'unknown' : 'refused';
    if (outcome === 'ok') this.acknowledged += 1;
    else this[outcome] += 1;
    const note: CallNote = {
      at_ms,
      ended_at_ms: Date.now(),
      call,
      account_id: account.id,
      idempotent,
      outcome,
      status,
      task_id,
      order,
    };
    this.#journal.add(note);
    return note;
  }

  /** At once, or when the task has ended: it works or comes too late, either is right. */
  async #cancel(account: Account, task_id: string): Promise<void> {
    const late = this.#random.chance(0.5);
    await sleep(this.#random.whole(0, 400));
    for (let looks = 1; late && looks <= looks_max && !(await this.#isFinal(account, task_id)); looks++)
      await sleep(500);
    await this.#send(account, 'POST', `/v1/tasks/${task_id}/cancel`);
  }

  async #isFinal(account: Account, task_id: string): Promise<boolean> {
    const task = (await this.#send(account, 'GET', `/v1/tasks/${task_id}`)) as { completed_at?: string } | undefined;
    return typeof task?.completed_at === 'string';
  }

  /** The answer's JSON; nothing if there is none. */
  async #send(account: Account, method: 'GET' | 'POST', path: string): Promise<unknown> {
    const headers = { authorization: `Bearer ${account.keys[0]?.text}` };
    const signal = AbortSignal.timeout(call_timeout_ms);
    const answer = await this.#pools[0]?.request({ path, method, headers, signal }).catch(() => undefined);
    return answer?.body.json().catch(() => undefined);
  }
}
