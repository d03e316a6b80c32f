import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { ApiError } from '../../src/errors.ts';
import { allowedRequest, readAllowance } from '../../src/styles/allowed.ts';
import type { UpstreamBody } from '../../src/styles/codec.ts';
import type { Quirks } from '../../src/styles/quirks.ts';
import { callers } from './lost/callers.ts';
import { Author, textsOf, type Mark } from './lost/marks.ts';
import { readAsk, upstreamBody, type CallerStyle, type UpstreamStyle } from './by-name.ts';

const styles: readonly CallerStyle[] = ['completions', 'messages', 'responses', 'gemini'];
const pairs = styles.flatMap((caller) => styles.map((upstream): [CallerStyle, UpstreamStyle] => [caller, upstream]));

const throws = fc.uint8Array({ minLength: 50, maxLength: 600 });

const quirks = fc.record<Quirks>(
  {
    structured_output: fc.constantFrom('native', 'tool', 'prompt'),
    system_turns: fc.boolean(),
    forced_tools: fc.boolean(),
    format_with_tools: fc.boolean(),
    result_media: fc.boolean(),
    developer_role: fc.boolean(),
    document_parts: fc.boolean(),
  },
  { requiredKeys: [] },
);

/** Values that may be missing upstream, with the row of docs/chat-translation.md that says so. */
const listed: Readonly<Record<string, string>> = {
  'message name': '| name of a message | dropped |',
  'image file name': '| file: image | carried | `image`; its name is left out |',
  thinking: '| thinking, redacted\\_thinking | changed | not asked for by upstreams |',
};

/** Values that each pair has to carry in at least one of its requests: a refusal of everything proves nothing. */
const carried = ['system', 'user text', 'assistant text', 'tool name', 'tool description', 'tool call', 'tool result'];
const carried_too = ['schema description', 'schema enum', 'image'];

function sent(
  body: JsonObject,
  caller: CallerStyle,
  upstream: UpstreamStyle,
  quirks_used: Quirks,
): UpstreamBody | undefined {
  try {
    const ask = readAsk(caller, body);
    const { allowance } = readAllowance({});
    const target = { style: upstream, model: 'upstream', max_tokens: 4000, quirks: quirks_used };
    return upstreamBody(caller === upstream ? allowedRequest(ask, allowance) : ask, target);
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return undefined;
    throw error;
  }
}

/** Returns the values that are in the caller's body and not in the upstream's. */
function missing(marks: readonly Mark[], message: JsonObject, { body, links = [] }: UpstreamBody): Mark[] {
  const before = textsOf(message);
  const after = textsOf([body, ...links.map(({ url }) => url)]);
  const holds = (texts: string, text: string) =>
    texts.includes(text) || texts.includes(JSON.stringify(text).slice(1, -1));
  return marks.filter(({ text }) => holds(before, text) && !holds(after, text));
}

describe('the contents of a request reach the upstream, are refused, or are listed in docs/chat-translation.md', () => {
  it.each(pairs)('from %s to %s', (caller, upstream) => {
    const reached = new Set<string>();
    const property = fc.property(throws, quirks, (thrown, quirks_drawn) => {
      const author = new Author(thrown);
      const body = callers[caller](author);
      const written = sent(body, caller, upstream, quirks_drawn);
      if (!written) return;
      const lost = missing(author.marks, body, written).filter(({ place }) => !Object.hasOwn(listed, place));
      if (lost.length === 0) for (const { place } of author.marks) reached.add(place);
      expect({ lost, ...(lost.length > 0 && { body, sent: written.body }) }).toEqual({ lost: [] });
    });
    fc.assert(property, { numRuns: 400 });
    expect([...carried, ...carried_too].filter((place) => !reached.has(place))).toEqual([]);
  });

  it('as contents that may be missing', () => {
    const document = readFileSync(new URL('../../docs/chat-translation.md', import.meta.url), 'utf8');
    expect(Object.values(listed).filter((row) => !document.includes(row))).toEqual([]);
  });
});
