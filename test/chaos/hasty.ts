import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { openJournal, type HastyNote, type Journal, type Place } from './place.ts';
import { chat_per_minute } from './settings.ts';

/** Far more than the key may send. */
const every_ms = 35;
const at_once_max = 200;
const call_timeout_ms = 20_000;

/** The first ones go to one node, which thereby has a share of the window; then the others need more than is left. */
export const first_for_one = 10;

/**
 * A caller with one key that sends more than its window allows, to all nodes in turn. Its requests lack a body: their
 * window counts them before they are refused for that, and nothing else comes of them.
 */
export class Hasty {
  readonly #place: Place;
  readonly #journal: Journal<HastyNote>;
  readonly #pools: Pool[];
  readonly #running: Promise<void>;
  #accepted = 0;
  #has_to_use_up = true;
  #is_over = false;

  constructor(place: Place) {
    this.#place = place;
    this.#journal = openJournal(place.folder, 'hasty');
    this.#pools = place.api_ports.map((port) => new Pool(`http://127.0.0.1:${port}`, { connections: 64 }));
    this.#running = this.#run();
  }

  /**
   * Resolves when its window is used up, after `least_ms` at the earliest and `most_ms` at the latest: a busy machine needs
   * longer for what other nodes give back. From then on it asks all nodes.
   */
  async useUp({ least_ms, most_ms }: { least_ms: number; most_ms: number }): Promise<void> {
    const until_ms = performance.now() + most_ms;
    await sleep(least_ms);
    while (this.#accepted < chat_per_minute && performance.now() < until_ms) await sleep(every_ms);
    this.#has_to_use_up = false;
  }

  async stop(): Promise<void> {
    this.#is_over = true;
    await this.#running;
    await Promise.all(this.#pools.map((pool) => pool.destroy()));
  }

  async #run(): Promise<void> {
    const under_way = new Set<Promise<void>>();
    for (let i = 0; !this.#is_over; i++) {
      const one: Promise<void> = this.#ask(this.#nodeOf(i)).finally(() => under_way.delete(one));
      under_way.add(one);
      if (under_way.size >= at_once_max) await Promise.race(under_way);
      await sleep(every_ms);
    }
    await Promise.all(under_way);
  }

  #nodeOf(i: number): number {
    const count = this.#pools.length;
    if (count === 1 || i < first_for_one) return 0;
    return this.#has_to_use_up ? 1 + (i % (count - 1)) : i % count;
  }

  async #ask(api: number): Promise<void> {
    const at_ms = Date.now();
    const headers = { authorization: `Bearer ${this.#place.hasty.keys[0]?.text}`, 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(call_timeout_ms);
    try {
      const call = { path: '/v1/chat/completions', method: 'POST', headers, body: '{}', signal } as const;
      const answer = await this.#pools[api]?.request(call);
      await answer?.body.dump();
      if (answer?.statusCode === 400) this.#accepted += 1;
      this.#journal.add({ at_ms, ended_at_ms: Date.now(), api, status: answer?.statusCode ?? 0 });
    } catch {
      return; // whether it was counted is not known
    }
  }
}
