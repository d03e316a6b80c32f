import { afterEach, beforeEach, describe } from 'vitest';
import { closeBench, openBench, type Bench } from './conformance/bench.ts';
import type { Conformance } from './conformance/case.ts';
import { describeCancel, describeLinks, describePace, describePolls } from './conformance/polls.ts';
import { describeRefusals, describeRequest, describeSockets } from './conformance/submits.ts';

export { bytesOf, runOf, runToEnd } from './conformance/bench.ts';
export { expectOutcome } from './conformance/outcome.ts';
export type { Conformance } from './conformance/case.ts';

/** The tests of one adapter: see `Conformance`. */
export function conformance(wanted: Conformance): void {
  describe(`${wanted.name} keeps to what every adapter promises:`, () => {
    let bench: Bench;
    const here = () => bench;
    beforeEach(async () => {
      bench = await openBench(wanted);
    });
    afterEach(() => closeBench(bench));
    describeRequest(wanted, here);
    describeRefusals(wanted, here);
    describeSockets(wanted, here);
    if (wanted.synchronous === true) return;
    describePolls(wanted, here);
    describeLinks(wanted, here);
    describePace(wanted, here);
    describeCancel(wanted, here);
  });
}
