import { readFileSync } from 'node:fs';
import type { JsonObject } from '../../src/catalog/model.ts';
import type { CallerStyle } from '../styles/by-name.ts';
import type { Comparison } from './compared.ts';
import {
  compareTexts,
  meaningOfAnswer,
  meaningOfRequest,
  meaningOfStream,
  translateAnswer,
  translateRequest,
  translateStream,
} from './meaning.ts';

/**
 * A translation of another gateway's: what it was sent, and what it made of it. `request` is the caller's, of which an
 * answer is.
 */
type Sample<Text> = {
  name: string;
  caller: CallerStyle;
  upstream: CallerStyle;
  request?: JsonObject;
  sent: Text;
  theirs: Text;
};

function read<Text>(folder: string, name: string): Sample<Text>[] {
  return JSON.parse(readFileSync(new URL(`${folder}/${name}.json`, import.meta.url), 'utf8')) as Sample<Text>[];
}

/** The translations of requests in a folder, each beside ours. */
export function requestsIn(folder: string): Comparison[] {
  return read<JsonObject>(folder, 'requests').map(({ name, caller, upstream, sent, theirs }): Comparison => {
    const meaning = (body: JsonObject) => meaningOfRequest(upstream, body);
    const ours = () => translateRequest(caller, upstream, sent);
    return { name: `request ${name}`, differences: () => compareTexts(ours, meaning, () => meaning(theirs)) };
  });
}

/** The translations of requests, answers and streams in a folder, each beside ours. */
export function samplesIn(folder: string): Comparison[] {
  const answers = read<JsonObject>(folder, 'answers').map(
    ({ name, caller, upstream, request, sent, theirs }): Comparison => {
      const meaning = (body: JsonObject) => meaningOfAnswer(caller, body);
      const ours = () => translateAnswer(upstream, caller, sent, request);
      return { name: `answer ${name}`, differences: () => compareTexts(ours, meaning, () => meaning(theirs)) };
    },
  );
  const streams = read<string>(folder, 'streams').map(
    ({ name, caller, upstream, request, sent, theirs }): Comparison => {
      const meaning = (text: string) => meaningOfStream(caller, text);
      const ours = () => translateStream(upstream, caller, sent, request);
      return { name: `stream ${name}`, differences: () => compareTexts(ours, meaning, () => meaning(theirs)) };
    },
  );
  return [...requestsIn(folder), ...answers, ...streams];
}
