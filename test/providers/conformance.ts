import { afterEach, beforeEach, describe } from 'vitest';
import { closeBench, openBench, type Bench } from './conformance/bench.ts';
import type { Conformance } from './conformance/case.ts';
import { describeCancel, describeLinks, describePace, describePolls } from './conformance/polls.ts';
import { describeRefusals, describeRequest, describeSockets } from './conformance/submits.ts';

export { bytesOf, runOf, runToEnd } from './conformance/bench.ts';
export { expectOutcome } from './conformance/outcome.ts';
export type { Conformance } from './conformance/case.ts';

/** The tests of one adapter: see `Conformance`. */
export function conformance(provider_case: Conformance): void {
  describe(`${provider_case.name} keeps to what every adapter promises:`, () => {
    let bench: Bench;
    const here = () => bench;
    beforeEach(async () => {
      bench = await openBench(provider_case);
    });
    afterEach(() => closeBench(bench));
    describeRequest(provider_case, here);
    describeRefusals(provider_case, here);
    describeSockets(provider_case, here);
    if (provider_case.synchronous === true) return;
    describePolls(provider_case, here);
    describeLinks(provider_case, here);
    describePace(provider_case, here);
    describeCancel(provider_case, here);
  });
}
