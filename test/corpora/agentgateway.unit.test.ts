import { readFileSync } from 'node:fs';
import type { JsonObject } from '../../src/catalog/model.ts';
import type { CallerStyle } from '../styles/by-name.ts';
import { testComparisons, type Comparison } from './compared.ts';
import { disagreements } from './disagreements.ts';
import {
  compareTexts,
  meaningOfAnswer,
  meaningOfRequest,
  meaningOfStream,
  translateAnswer,
  translateRequest,
  translateStream,
} from './meaning.ts';

/** A translation of that gateway's: what it was sent, and what it made of it. */
type Sample<Text> = { name: string; caller: CallerStyle; upstream: CallerStyle; sent: Text; theirs: Text };

function read<Text>(name: string): Sample<Text>[] {
  return JSON.parse(readFileSync(new URL(`agentgateway/${name}.json`, import.meta.url), 'utf8')) as Sample<Text>[];
}

const requests = read<JsonObject>('requests').map(({ name, caller, upstream, sent, theirs }): Comparison => {
  const meaning = (body: JsonObject) => meaningOfRequest(upstream, body);
  const ours = () => translateRequest(caller, upstream, sent);
  return { name: `request ${name}`, differences: () => compareTexts(ours, meaning, () => meaning(theirs)) };
});

const answers = read<JsonObject>('answers').map(({ name, caller, upstream, sent, theirs }): Comparison => {
  const meaning = (body: JsonObject) => meaningOfAnswer(caller, body);
  const ours = () => translateAnswer(upstream, caller, sent);
  return { name: `answer ${name}`, differences: () => compareTexts(ours, meaning, () => meaning(theirs)) };
});

const streams = read<string>('streams').map(({ name, caller, upstream, sent, theirs }): Comparison => {
  const meaning = (text: string) => meaningOfStream(caller, text);
  const ours = () => translateStream(upstream, caller, sent);
  return { name: `stream ${name}`, differences: () => compareTexts(ours, meaning, () => meaning(theirs)) };
});

testComparisons(
  'agrees with another gateway, but where a reason is stated',
  [...requests, ...answers, ...streams],
  disagreements,
);
