import { setTimeout as sleep } from 'node:timers/promises';

/** The channel on which recall_leases names an account and what of it is recalled: `<account_id> <resource>`. */
export const leases_channel = 'leases_recalled';

/**
 * A node that died or is cut off counts for 8 s. One that lives and hears nothing has its listener back by then, and
 * hears the next recall: there is one with every attempt.
 */
const longest_ms = 9_000;
const first_wait_ms = 4;
const longest_wait_ms = 250;

/**
 * Attempts again while the answer is `leased`: the nodes that have leased what it takes are asked for it, and give back
 * what they do not use within milliseconds; the leases of a node that died or sleeps end with its session.
 * Resolves to the last answer: `leased` only if somebody who is alive holds on for longer.
 */
export async function whileLeased<Answer extends { outcome: string }>(attempt: () => Promise<Answer>): Promise<Answer> {
  const begun_ms = performance.now();
  for (let wait_ms = first_wait_ms; ; wait_ms = Math.min(2 * wait_ms, longest_wait_ms)) {
    const answer = await attempt();
    if (answer.outcome !== 'leased' || performance.now() - begun_ms > longest_ms) return answer;
    await sleep(wait_ms);
  }
}
