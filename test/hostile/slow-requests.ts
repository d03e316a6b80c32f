import { setTimeout as sleep } from 'node:timers/promises';
import { turn_limit_ms, type Turn, type LoopTurns } from './turns.ts';

export type SlowRequest = { number: number; cpu_ms: number };

type Sent = { number: number; sent_ms: number; ended_ms: number };

/** Work that a request leaves behind it may come so much later. */
const aftermath_ms = 1_000;
const quiet_ms = 300;

const recent_max = 256;
const suspects_max = 40;
const repeats = 3;

/**
 * Finds the requests to which long turns of the service's event loop belong: whatever was on its way in one is a
 * suspect, and one that takes as long each time it is sent alone is guilty.
 */
export class SlowRequests {
  readonly #recent: Sent[] = [];
  readonly #suspects = new Map<number, number>();
  /** Beyond the limit, whosever they are. */
  readonly turns: Turn[] = [];
  #is_confirming = false;
  /** Since a repetition began. */
  #longest_ms = 0;

  constructor(turns: LoopTurns) {
    turns.onTurn((turn) => this.#take(turn));
  }

  /** Answers what to call when the answer is there. */
  begin(number: number): () => void {
    const sent = { number, sent_ms: Date.now(), ended_ms: Infinity };
    this.#recent.push(sent);
    if (this.#recent.length > recent_max) this.#recent.shift();
    return () => void (sent.ended_ms = Date.now());
  }

  /** Repeats the suspects, one after another. */
  async confirm(repeat: (number: number) => Promise<void>): Promise<SlowRequest[]> {
    const guilty: SlowRequest[] = [];
    await sleep(aftermath_ms);
    this.#is_confirming = true;
    const suspects = [...this.#suspects].toSorted(([, a], [, b]) => b - a).slice(0, suspects_max);
    for (const [number] of suspects) {
      let least_ms = Infinity;
      for (let i = 0; i < repeats && least_ms > turn_limit_ms; i++) {
        this.#longest_ms = 0;
        await repeat(number);
        await sleep(quiet_ms);
        least_ms = Math.min(least_ms, this.#longest_ms);
      }
      if (least_ms > turn_limit_ms) guilty.push({ number, cpu_ms: least_ms });
    }
    this.#is_confirming = false;
    this.#suspects.clear();
    this.#recent.length = 0;
    return guilty;
  }

  #take({ from_ms, to_ms, cpu_ms }: Turn): void {
    this.#longest_ms = Math.max(this.#longest_ms, cpu_ms);
    if (cpu_ms <= turn_limit_ms || this.#is_confirming) return;
    this.turns.push({ from_ms, to_ms, cpu_ms });
    for (const { number, sent_ms, ended_ms } of this.#recent) {
      const was_on_its_way = sent_ms <= to_ms && ended_ms >= from_ms - aftermath_ms;
      if (was_on_its_way) this.#suspects.set(number, Math.max(cpu_ms, this.#suspects.get(number) ?? 0));
    }
  }
}
