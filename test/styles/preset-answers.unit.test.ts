import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../src/catalog/model.ts';
import { knownPresets } from '../../src/catalog/presets.ts';
import { openRelay, readAsk, renderAnswer, upstreamNamed, type Style } from './by-name.ts';

/** An answer and a stream of every preset of OpenAI's style, in the form of its documentation, are read right. */

type Recorded = {
  source: string;
  answer: JsonObject;
  stream: JsonObject[];
  /** Its streams end without [DONE]. */
  has_no_done?: true;
  expected: {
    text: string;
    thinking: string;
    finish: string;
    calls?: { name: string; arguments: string }[];
    usage: Record<string, number | { web_search: number }>;
  };
};

const recorded: Record<string, Recorded> = parse(
  readFileSync(join(import.meta.dirname, 'preset-answers.yaml'), 'utf8'),
);
const options = {
  model: 'acme/x',
  request_id: 'req_1',
  created: 1,
  input_tokens_estimated: 333, // of which nothing is seen where the upstream's usage is read
  line_bytes_max: 1_000_000,
};
const costs = /cost|is_byok/;
const chat_body = { model: 'acme/x', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] };
const response_body = { model: 'acme/x', max_output_tokens: 100, input: 'Hi' };
const readers = { completions: chunksRead, messages: eventsRead, responses: responseRead };

it('every preset of this style has an answer, with its source and date', () => {
  const names = Object.entries(knownPresets()).flatMap(([name, { provider }]) =>
    provider.adapter === 'openai' ? [name] : [],
  );
  expect(Object.keys(recorded).toSorted()).toEqual(names.toSorted());
  for (const { source } of Object.values(recorded)) expect(source).toMatch(/, 2026-1[12]$/);
});

/** The style in which the routes of a preset ask its upstream. */
function styleOf(name: string): Style | 'responses' {
  return knownPresets()[name]?.options?.['responses'] === 'always' ? 'responses' : 'completions';
}

describe.each(Object.entries(recorded))('%s', (name, { answer, stream, has_no_done, expected }) => {
  const { text, thinking, finish, calls = [], usage } = expected;
  const upstream = styleOf(name);
  const callers = [...new Set(['completions', 'messages', upstream] as const)];

  it('a whole answer has its text, thinking, calls, usage and reason', () => {
    const [read] = upstreamNamed(upstream).upstream.parseResponse(answer, 'req_1');
    const joined = (type: 'text' | 'thinking') =>
      read?.parts.map((part) => (part.type === type ? part.text : '')).join('');
    expect({
      text: joined('text'),
      thinking: joined('thinking'),
      finish: read?.finish.reason,
      calls: read?.parts.flatMap((part) =>
        part.type === 'tool_call' ? [{ name: part.name, arguments: part.arguments }] : [],
      ),
    }).toEqual({ text, thinking, finish, calls });
    expect(read?.usage).toEqual(usage);
  });

  it.each(callers)('a whole answer shows callers of %s no cost of ours', (style) => {
    const ask = readAsk(style, style === 'responses' ? response_body : chat_body);
    const { bytes } = renderAnswer(ask, upstream, Buffer.from(JSON.stringify(answer)), options);
    expect(String(bytes)).not.toMatch(costs);
    expect(String(bytes)).not.toContain('333');
  });

  it.each(callers)('its stream is the same for callers of %s', (caller) => {
    const relay = openRelay({ ...options, caller, upstream, wants_usage: true });
    const frames = stream.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');
    const pieces = [relay.push(Buffer.from(`${frames}${has_no_done ? '' : 'data: [DONE]\n\n'}`)), relay.end()];
    const sent = pieces.map((piece) => piece?.toString() ?? '').join('');
    expect(relay.failure).toBeUndefined();
    expect(relay.is_complete).toBe(true);
    expect(relay.usage).toEqual(usage);
    expect(sent).not.toMatch(costs);
    expect(caller === 'completions' && sent.includes('333')).toBe(false); // messages begin with what was counted
    const events = [...sent.matchAll(/^data: (\{.*)$/gm)].map((match): JsonObject => JSON.parse(match[1] ?? ''));
    expect(readers[caller](events)).toEqual({
      text,
      thinking,
      arguments: calls.map((call) => call.arguments).join(''),
      output_tokens: usage['output_tokens'],
    });
  });
});

type Chunk = {
  choices: {
    delta: {
      content?: string | null;
      reasoning_content?: string | null;
      reasoning?: string | null;
      tool_calls?: { function: { arguments: string } }[] | null;
    };
  }[];
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null;
};

/** Returns the content that a caller of chat completions reads; reasoning in either of its fields. */
function chunksRead(events: JsonObject[]) {
  const chunks: Chunk[] = JSON.parse(JSON.stringify(events));
  const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  const usage = chunks.findLast((chunk) => chunk.usage)?.usage;
  return {
    text: deltas.map(({ content }) => content ?? '').join(''),
    thinking: deltas.map(({ reasoning_content, reasoning }) => reasoning_content ?? reasoning ?? '').join(''),
    arguments: deltas
      .flatMap(({ tool_calls }) => tool_calls ?? [])
      .map((call) => call.function.arguments)
      .join(''),
    output_tokens: (usage?.total_tokens ?? 0) - (usage?.prompt_tokens ?? 0),
  };
}

type Event = {
  delta?: { text?: string; thinking?: string; partial_json?: string };
  usage?: { output_tokens: number };
};

/** Returns the content that a caller of messages reads. */
function eventsRead(events: JsonObject[]) {
  const read: Event[] = JSON.parse(JSON.stringify(events));
  return {
    text: read.map(({ delta }) => delta?.text ?? '').join(''),
    thinking: read.map(({ delta }) => delta?.thinking ?? '').join(''),
    arguments: read.map(({ delta }) => delta?.partial_json ?? '').join(''),
    output_tokens: read.findLast((event) => event.usage)?.usage?.output_tokens,
  };
}

type ResponseEvent = { type: string; delta?: string; response?: { usage?: { output_tokens: number } | null } };

/** Returns the content that a caller of responses reads. */
function responseRead(events: JsonObject[]) {
  const read: ResponseEvent[] = JSON.parse(JSON.stringify(events));
  const joined = (type: string) => read.map((event) => (event.type === type ? (event.delta ?? '') : '')).join('');
  return {
    text: joined('response.output_text.delta'),
    thinking: joined('response.reasoning_text.delta'),
    arguments: joined('response.function_call_arguments.delta'),
    output_tokens: read.findLast(({ response }) => response?.usage)?.response?.usage?.output_tokens,
  };
}
