import { setTimeout as sleep } from 'node:timers/promises';

/** The channel of recalls: recall_leases sends `<account_id> <resource>`. */
export const leases_channel = 'leases_recalled';

/**
 * Longest time of the attempts. The leases of a node that died or is cut off end after 8 s. A living node that lost its
 * listener has it back by then, and hears the next recall: each attempt sends one.
 */
const longest_ms = 9_000;
const first_wait_ms = 4;
const longest_wait_ms = 250;

/**
 * Repeats an attempt while its answer is `leased`: each recalls the leases that it needs, and nodes return what they do not
 * use within milliseconds; the leases of a node that died or sleeps end with its session. Resolves to the last answer:
 * `leased` only if a living node keeps a lease for longer.
 */
export async function whileLeased<Answer extends { outcome: string }>(attempt: () => Promise<Answer>): Promise<Answer> {
  const begun_ms = performance.now();
  for (let wait_ms = first_wait_ms; ; wait_ms = Math.min(2 * wait_ms, longest_wait_ms)) {
    const answer = await attempt();
    if (answer.outcome !== 'leased' || performance.now() - begun_ms > longest_ms) return answer;
    await sleep(wait_ms);
  }
}
