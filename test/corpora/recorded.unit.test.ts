import { readFileSync } from 'node:fs';
import type { JsonObject } from '../../src/catalog/model.ts';
import { testComparisons, type Comparison } from './compared.ts';
import type { Disagreement } from './disagreements.ts';
import {
  compareTexts,
  meaningOfAnswer,
  meaningOfRequest,
  meaningOfStream,
  translateAnswer,
  translateRequest,
  translateStream,
} from './meaning.ts';

/** A call of OpenAI's own service by chat completions, as it went over the wire. */
type Exchange = { name: string; request: JsonObject } & ({ answer: JsonObject } | { stream: string });

const exchanges = JSON.parse(
  readFileSync(new URL('recorded/exchanges.json', import.meta.url), 'utf8'),
) as readonly Exchange[];

const losses: readonly Disagreement[] = [
  {
    where: /^request .*: max_tokens: 4096, not nothing$/,
    what: 'A limit of the output is sent where the caller set none',
    why: 'the hold of the call covers that much',
  },
  {
    where: /: refused, (messages\[0\]\.content\[1\]: .* Audio|modalities:)/,
    what: 'Audio is refused',
    why: 'neither style has a place for it',
  },
  {
    where: /^request .*detailed-usage: messages: turns\.0\.role: "user"/,
    what: 'A system prompt without anything else becomes a user’s message',
    why: 'the style needs a message',
  },
  {
    where: /^request chat-json-mode: messages: (turns|format)\./,
    what: 'JSON of any form is asked for in words',
    why: 'the style knows schemas only',
  },
  {
    where: /^request .*: messages: (format\.(name|strict)|parallel_tool_calls): .*, not ("final_output"|true)$/,
    what: 'The name of a schema and what is so anyway are left out',
    why: 'the style has no words for them: schemas are strict and calls parallel',
  },
  {
    where:
      /^request .*: responses: (turns\.0\.parts\.1\.detail: "auto"|tools\.0\.strict: false|parallel_tool_calls: nothing)/,
    what: 'The default of one style is said in the other, or left out',
    why: 'the defaults differ, the meaning does not',
  },
  {
    where: /^answer chat-streaming(-web-search)?: \w+: usage\.output_tokens: \d+, not nothing$/,
    what: 'A stream without usage has a counted one',
    why: 'the caller sees what is charged',
  },
];

const comparisons = (['messages', 'responses'] as const).flatMap((style) =>
  exchanges.flatMap((exchange): Comparison[] => [
    {
      name: `request ${exchange.name}: ${style}`,
      differences: () =>
        compareTexts(
          () => translateRequest('completions', style, exchange.request),
          (body) => meaningOfRequest(style, body),
          () => meaningOfRequest('completions', exchange.request),
        ),
    },
    {
      name: `answer ${exchange.name}: ${style}`,
      differences: () =>
        'answer' in exchange
          ? compareTexts(
              () => translateAnswer('completions', style, exchange.answer),
              (body) => meaningOfAnswer(style, body),
              () => meaningOfAnswer('completions', exchange.answer),
            )
          : compareTexts(
              () => translateStream('completions', style, exchange.stream),
              (text) => meaningOfStream(style, text),
              () => meaningOfStream('completions', exchange.stream),
            ),
    },
  ]),
);

testComparisons('a recorded call means the same in another style, but where a reason is stated', comparisons, losses);
