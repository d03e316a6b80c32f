/**
 * An upstream's refusal as a log may hold it: what kind it was and its status, without the upstream's words, which
 * may quote what a caller sent. The words stand in the attempt, for whoever may see the task or the call.
 */
export function withoutWords(reason: string): string {
  return (/^[^:]*(?:: answered \d{3})?/.exec(reason)?.[0] ?? '').slice(0, 100);
}
