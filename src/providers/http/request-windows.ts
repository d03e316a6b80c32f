/** Windows of requests as upstreams tell of them in headers: `x-ratelimit-remaining`, `ratelimit-reset` and the like. */

type Headers = Record<string, string | undefined>;

const prefixes = ['x-ratelimit-', 'ratelimit-'];

/** OpenAI counts requests apart from tokens. */
const suffixes = ['', '-requests'];

const wait_max_ms = 60_000;

/** Returns the time until more requests are let through; undefined if some are now, or the headers say nothing of it. */
export function closedFor(headers: Headers, now_ms: number): number | undefined {
  for (const prefix of prefixes) {
    for (const suffix of suffixes) {
      if (headers[`${prefix}remaining${suffix}`]?.trim() !== '0') continue;
      const wait_ms = waitIn(headers[`${prefix}reset${suffix}`] ?? '', now_ms);
      if (wait_ms !== undefined && wait_ms > 0) return Math.min(wait_ms, wait_max_ms);
    }
  }
  return undefined;
}

/** Seconds since 1970 are more than any wait. */
const epoch_s = 1_000_000_000;

/** Reads `30`, `1.5`, `1764104400`, `6m0s` or `250ms`. */
function waitIn(text: string, now_ms: number): number | undefined {
  const trimmed = text.trim();
  if (/^\d+(?:\.\d+)?$/.test(trimmed)) {
    const seconds = Number(trimmed);
    return seconds >= epoch_s ? seconds * 1_000 - now_ms : seconds * 1_000;
  }
  const parts = /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?$/.exec(trimmed);
  if (!parts || trimmed === '') return undefined;
  const [h = 0, m = 0, s = 0, ms = 0] = parts.slice(1).map((part) => Number(part ?? 0));
  return h * 3_600_000 + m * 60_000 + s * 1_000 + ms;
}
