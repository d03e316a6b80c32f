/** Speeds at which routes answered lately, as this node saw them: for callers who want the fastest first. */

export const speed_measures = ['latency', 'throughput'] as const;

export type SpeedMeasure = (typeof speed_measures)[number];

/** One answer: the time to its first content (streams only), and the tokens that came in a second. */
export type Speed = { first_content_ms?: number; tokens_per_s?: number };

/** Speeds of routes, by their names. */
export type RouteSpeeds = {
  note(route: string, speed: Speed): void;
  /** Sorts items, the fastest first; those that nobody measured lately stay behind the others, in their order. */
  fastestFirst<Item>(items: readonly Item[], nameOf: (item: Item) => string, by: SpeedMeasure): Item[];
};

/** The newest answer counts so much, all earlier ones together the rest. */
const newest_share = 0.2;

/** Speeds that are older say nothing of now. */
const age_max_ms = 600_000;

/** Routes of models that an operator removed go, the oldest first. */
const routes_max = 10_000;

type Average = Speed & { noted_at_ms: number };

/** Opens the speeds of a node; nothing is measured yet. */
export function makeRouteSpeeds(now: () => number): RouteSpeeds {
  const averages = new Map<string, Average>();
  const freshOf = (route: string): Average | undefined => {
    const average = averages.get(route);
    return average && now() - average.noted_at_ms <= age_max_ms ? average : undefined;
  };
  return {
    note(route, { first_content_ms, tokens_per_s }) {
      if (first_content_ms === undefined && tokens_per_s === undefined) return;
      const before = freshOf(route);
      const latency = mixed(before?.first_content_ms, first_content_ms);
      const throughput = mixed(before?.tokens_per_s, tokens_per_s);
      averages.delete(route); // the newest stands last
      averages.set(route, {
        noted_at_ms: now(),
        ...(latency !== undefined && { first_content_ms: latency }),
        ...(throughput !== undefined && { tokens_per_s: throughput }),
      });
      const [oldest] = averages.keys();
      if (averages.size > routes_max && oldest !== undefined) averages.delete(oldest);
    },
    fastestFirst(items, nameOf, by) {
      const slownessOf = (item: (typeof items)[number]) => slowness(freshOf(nameOf(item)), by);
      return items.toSorted((a, b) => compared(slownessOf(a), slownessOf(b)));
    },
  };
}

function mixed(before: number | undefined, newest: number | undefined): number | undefined {
  if (before === undefined || newest === undefined) return newest ?? before;
  return before + (newest - before) * newest_share;
}

function slowness(average: Average | undefined, by: SpeedMeasure): number {
  const { first_content_ms, tokens_per_s } = average ?? {};
  if (by === 'latency') return first_content_ms ?? Number.POSITIVE_INFINITY;
  return tokens_per_s === undefined ? Number.POSITIVE_INFINITY : -tokens_per_s;
}

/** Infinity from infinity is no number. */
function compared(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
