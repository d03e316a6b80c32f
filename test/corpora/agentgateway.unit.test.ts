import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import type { CallerStyle, UpstreamStyle } from '../styles/by-name.ts';
import { disagreements } from './disagreements.ts';
import {
  differences,
  isRefused,
  meaningOfAnswer,
  meaningOfRequest,
  meaningOfStream,
  translateAnswer,
  translateRequest,
  translateStream,
} from './meaning.ts';

/** A translation of that gateway's: what it was sent, and what it made of it. */
type Sample<Text> = { name: string; caller: CallerStyle; upstream: UpstreamStyle; sent: Text; theirs: Text };

function read<Text>(name: string): Sample<Text>[] {
  return JSON.parse(readFileSync(new URL(`agentgateway/${name}.json`, import.meta.url), 'utf8')) as Sample<Text>[];
}

const requests = read<JsonObject>('requests').map((sample) => ({
  name: `request ${sample.name}`,
  compare() {
    const ours = translateRequest(sample.caller, sample.upstream, sample.sent);
    if (isRefused(ours)) return [`refused, ${ours.refused}`];
    const [mine, theirs] = [ours, sample.theirs].map((body) => meaningOfRequest(sample.upstream, body));
    return differences(mine ?? new Map(), theirs ?? new Map());
  },
}));

const answers = read<JsonObject>('answers').map((sample) => ({
  name: `answer ${sample.name}`,
  compare() {
    const ours = translateAnswer(sample.upstream, sample.caller, sample.sent);
    if (isRefused(ours)) return [`refused, ${ours.refused}`];
    return differences(meaningOfAnswer(sample.caller, ours), meaningOfAnswer(sample.caller, sample.theirs));
  },
}));

const streams = read<string>('streams').map((sample) => ({
  name: `stream ${sample.name}`,
  compare() {
    const ours = translateStream(sample.upstream, sample.caller, sample.sent);
    return differences(meaningOfStream(sample.caller, ours), meaningOfStream(sample.caller, sample.theirs));
  },
}));

const all = [...requests, ...answers, ...streams];
const isExplained = (difference: string) => disagreements.some(({ where }) => where.test(difference));

test.each(all)('agrees with another gateway, but where a reason is stated: $name', ({ name, compare }) => {
  expect(compare().filter((difference) => !isExplained(`${name}: ${difference}`))).toEqual([]);
});

test('no reason is stated without need', () => {
  const found = all.flatMap(({ name, compare }) => compare().map((difference) => `${name}: ${difference}`));
  expect(disagreements.filter(({ where }) => !found.some((each) => where.test(each)))).toEqual([]);
});
