/** Recent speeds of routes, measured on this node: for callers who want the fastest route first. */

export const speed_measures = ['latency', 'throughput'] as const;

export type SpeedMeasure = (typeof speed_measures)[number];

/** One answer: the time to its first content (streams only), and the tokens that came in a second. */
export type Speed = { first_content_ms?: number; tokens_per_s?: number };

/** Speeds of routes, by their names. */
export type RouteSpeeds = {
  /** Adds the speed of one answer to the average of its route. */
  note(route: string, speed: Speed): void;
  /** Sorts items, the fastest first; those without a recent speed come after the others, in their order. */
  fastestFirst<Item>(items: readonly Item[], nameOf: (item: Item) => string, by: SpeedMeasure): Item[];
};

/** Weight of the newest answer in an average; all earlier ones together have the rest. */
const newest_share = 0.2;

/** Age at which the average of a route is out of date. */
const age_max_ms = 600_000;

/** Bound of routes: beyond it, the one that was measured the longest ago is dropped. */
const routes_max = 10_000;

type Average = Speed & { noted_at_ms: number };

/** Returns the speeds of this node; it has none yet. */
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
      const latency = weightedMean(before?.first_content_ms, first_content_ms);
      const throughput = weightedMean(before?.tokens_per_s, tokens_per_s);
      averages.delete(route); // so that the newest comes last
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
      return items.toSorted((a, b) => compare(slownessOf(a), slownessOf(b)));
    },
  };
}

function weightedMean(before: number | undefined, newest: number | undefined): number | undefined {
  if (before === undefined || newest === undefined) return newest ?? before;
  return before + (newest - before) * newest_share;
}

function slowness(average: Average | undefined, by: SpeedMeasure): number {
  const { first_content_ms, tokens_per_s } = average ?? {};
  if (by === 'latency') return first_content_ms ?? Number.POSITIVE_INFINITY;
  return tokens_per_s === undefined ? Number.POSITIVE_INFINITY : -tokens_per_s;
}

/** Compares without a subtraction, since infinity minus infinity is not a number. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
