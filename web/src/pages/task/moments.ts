import type { Moment } from '../../../../src/dashboard/views/activity.ts';

type Phrase = readonly [pattern: RegExp, text: (...values: string[]) => string];

/** Sentences of the service about a task, and the same in the language of the dashboard. */
const phrases: readonly Phrase[] = [
  [/^Created$/, () => 'Created'],
  [/^Held (.+)$/, (amount) => `Held ${amount}`],
  [/^Released (.+): it costs nothing$/, (amount) => `Released ${amount}: it costs nothing`],
  [/^Released (.+) of the hold$/, (amount) => `Released ${amount} of the hold`],
  [/^Charged (.+)$/, (amount) => `Charged ${amount}`],
  [/^Route (.+) was tried$/, (route) => `Route ${route} was tried`],
  [/^Route (.+) finished$/, (route) => `Route ${route} finished`],
  [/^Route (.+) failed$/, (route) => `Route ${route} failed`],
  [
    /^Route (.+) did not start: the next one is tried$/,
    (route) => `Route ${route} did not start: the next one is tried`,
  ],
  [
    /^Route (.+) may have accepted it, but its response was lost$/,
    (route) => `Route ${route} may have accepted it, but its response was lost`,
  ],
  [/^Route (.+) was stopped$/, (route) => `Route ${route} was stopped`],
  [/^Route (.+) goes on without its task$/, (route) => `Route ${route} goes on without its task`],
  [/^Queued: position (\d+)$/, (place) => `Queued: position ${place}`],
  [/^The run started$/, () => 'The run started'],
  [/^Succeeded$/, () => 'Succeeded'],
  [/^Failed: (.+)$/, (reason) => `Failed: ${reason}`],
  [/^Webhook delivered$/, () => 'Webhook delivered'],
  [/^Webhook attempt (\d+) failed$/, (number) => `Webhook attempt ${number} failed`],
];

/** Says what happened to a task; what has no phrase here in the words of the service. */
export function momentTitle({ title }: Pick<Moment, 'title'>): string {
  for (const [pattern, text] of phrases) {
    const match = pattern.exec(title);
    if (match) return text(...match.slice(1));
  }
  return title;
}
