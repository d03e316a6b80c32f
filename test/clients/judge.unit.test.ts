import { describe, expect, it } from 'vitest';
import { documentOf } from './document.ts';
import { judge, modelOf, type Verdict } from './judge.ts';
import { clients } from './list.ts';
import { hello, results, words_of_image, type Line } from './programme.ts';
import type { ServedRequest } from './upstream.ts';

const model = modelOf('completions');
const style = 'completions';
const complete = { style, answer: 'complete' } as const;

const good_lines: Line[] = [
  { model, step: 'plain', text: hello, pieces: 1 },
  { model, step: 'stream', text: hello, pieces: 7 },
  { model, step: 'tools', text: `Done: ${results.join(', ')}.`, pieces: 1 },
  { model, step: 'image', text: words_of_image, pieces: 1 },
  { model, step: 'leave', text: 'and so on ', pieces: 3 },
  { model, step: 'overflow', error: { class: 'BadRequestError', message: 'too long' } },
];
const good_requests: ServedRequest[] = [
  { ...complete, step: 'plain' },
  { ...complete, step: 'stream' },
  ...[...results, 'the answer'].map((): ServedRequest => ({ ...complete, step: 'tools' })),
  { ...complete, step: 'image' },
  { style, step: 'leave', answer: 'left' },
  { style, step: 'overflow', answer: 'refused' },
];

function resultOf(
  step: Line['step'],
  line: Line,
  requests: readonly ServedRequest[] = good_requests,
): Verdict['result'] | undefined {
  const lines = good_lines.map((one) => (one.step === step ? line : one));
  return judge(lines, requests).find((one) => one.style === style && one.step === step)?.result;
}

describe('a client of the suite', () => {
  it('passes when each step came back whole', () => {
    const verdicts = judge(good_lines, good_requests).filter((one) => one.style === style);
    expect(verdicts.map(({ result }) => result)).toEqual(good_lines.map(() => 'ok'));
    expect(verdicts.at(-1)?.raised).toBe('BadRequestError');
  });

  it.each<[string, Line]>([
    ['a changed text', { model, step: 'plain', text: 'Grusse', pieces: 1 }],
    ['a stream in one piece', { model, step: 'stream', text: hello, pieces: 1 }],
    ['a lost result of a tool', { model, step: 'tools', text: 'Done: result-of-0.', pieces: 1 }],
    ['an image that did not arrive', { model, step: 'image', text: 'There is no image.', pieces: 1 }],
    ['an overflow that nobody notices', { model, step: 'overflow', text: hello, pieces: 1 }],
    ['an error', { model, step: 'stream', error: { class: 'APIError', message: 'broken' } }],
  ])('fails by %s', (_, line) => {
    expect(resultOf(line.step, line)).toEqual({ failed: expect.any(String) });
  });

  it('fails when the upstream goes on after the client has left', () => {
    const requests = good_requests.map((one) =>
      one.step === 'leave' ? ({ ...one, answer: 'complete' } as const) : one,
    );
    expect(resultOf('leave', { model, step: 'leave', text: 'and', pieces: 1 }, requests)).toEqual({
      failed: 'the upstream went on after the client had left',
    });
  });

  it('passes when the upstream goes on after an agent, which asks for thinking', () => {
    const requests = good_requests.map((one) => {
      return one.step === 'leave' ? ({ ...one, answer: 'complete' } as const) : one;
    });
    const verdicts = judge(good_lines, requests, true).filter((one) => one.style === style);
    expect(verdicts.map(({ result }) => result)).toEqual(good_lines.map(() => 'ok'));
  });

  it('lets an agent ask more than a loop of tools needs, but not less', () => {
    const asks = (count: number): ServedRequest[] =>
      Array.from({ length: count }, () => ({ ...complete, step: 'tools' }));
    const verdict = (requests: ServedRequest[], is_agent: boolean) =>
      judge(good_lines, requests, is_agent).find((one) => one.style === style && one.step === 'tools')?.result;
    expect([verdict(asks(6), true), verdict(asks(4), true)]).toEqual(['ok', 'ok']);
    expect([verdict(asks(6), false), verdict(asks(3), true)]).toEqual([
      { failed: '6 requests instead of 4' },
      { failed: '3 requests instead of 4' },
    ]);
  });

  it('is a row of the page, with the reason of what fails below the table', () => {
    const [client] = clients;
    if (!client) throw new Error('the list is empty');
    const page = documentOf([{ client, verdicts: judge(good_lines, good_requests), books: 'right' }], '2026-11-25');
    expect(page).toContain('✓ 6 of 6');
    expect(page).toContain('`BadRequestError`');
    expect(page).toContain(
      `- **${client.name}**, plain, stream, tools, image, leave, overflow: the driver ended before (messages, responses, gemini)`,
    );
  });

  it('has a name of its own and exact versions', () => {
    expect(new Set(clients.map(({ name }) => name)).size).toBe(clients.length);
    for (const one of clients.flatMap(({ packages }) => packages)) expect(one).toMatch(/(?:@|==)\d+\.\d+\.\d+$/);
  });
});
