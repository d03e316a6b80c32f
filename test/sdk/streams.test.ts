import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import { onWire, type Piece } from '../styles/wire.ts';
import { cells, setSdkStage, type SdkStage } from './stage.ts';

let sdk: SdkStage;

beforeAll(async () => {
  sdk = await setSdkStage();
});
afterAll(async () => {
  await expectExactBooks(sdk.stage.test.app);
  await sdk.stop();
});

const framing = { end: '\n', space: ' ', comments: false, spread: false };
const call = (index: number, name: string): Piece => ({ say: 'call', index, name });
const args = (index: number, text: string): Piece => ({ say: 'arguments', index, text });
const thought: Piece[] = [
  { say: 'thinking', text: 'Größe' },
  { say: 'thinking', text: ' 😀' },
  { say: 'signature', text: 'c2lnbmF0dXJl' },
];

/** Only completions style can interleave calls; the other gets them one after the other. */
const streams: [name: string, script: { completions: Piece[]; messages: Piece[] }][] = [
  [
    'text in every script',
    both([
      { say: 'text', text: 'Grüße, ' },
      { say: 'text', text: '水は😀\n' },
      { say: 'text', text: 'עם"\\' },
    ]),
  ],
  ['thinking, then text', both([...thought, { say: 'text', text: 'So it is.' }])],
  ['a call in pieces', both([call(0, 'look'), args(0, '{"ci'), args(0, 'ty":"Łó'), args(0, 'dź 😀"}')])],
  ['a call without arguments', both([call(0, 'wait')])],
  [
    'text, then a call without arguments and one with',
    both([{ say: 'text', text: 'Let me see.' }, call(0, 'wait'), call(1, 'look'), args(1, '{"city":"x"}')]),
  ],
  [
    'thinking, text and a call',
    both([...thought, { say: 'text', text: 'Hm.' }, call(0, 'look'), args(0, '{"city":"水"}')]),
  ],
  [
    'parallel calls, interleaved',
    {
      completions: [
        call(0, 'look'),
        call(1, 'wait'),
        call(2, 'search'),
        args(0, '{"city"'),
        args(1, '{'),
        args(2, '{"city":"c'),
        args(0, ':"a"}'),
        args(1, '}'),
        args(2, '"}'),
      ],
      messages: [
        call(0, 'look'),
        args(0, '{"city"'),
        args(0, ':"a"}'),
        call(1, 'wait'),
        args(1, '{}'),
        call(2, 'search'),
        args(2, '{"city":"c'),
        args(2, '"}'),
      ],
    },
  ],
];

function both(script: Piece[]): { completions: Piece[]; messages: Piece[] } {
  return { completions: script, messages: script };
}

/** In pieces of a few bytes, so that characters are cut. */
function pieces(text: string): Buffer[] {
  const bytes = Buffer.from(text);
  return Array.from({ length: Math.ceil(bytes.length / 37) }, (_, index) =>
    bytes.subarray(index * 37, index * 37 + 37),
  );
}

const textOf = (script: readonly Piece[], say: Piece['say']) =>
  script.map((piece) => (piece.say === say && 'text' in piece ? piece.text : '')).join('');
const callsOf = (script: readonly Piece[]) =>
  script.flatMap((piece) => {
    if (piece.say !== 'call') return [];
    const mine = script.map((each) => (each.say === 'arguments' && each.index === piece.index ? each.text : ''));
    return [{ name: piece.name, input: JSON.parse(mine.join('') || '{}') }];
  });

describe.each(cells)('T33: the SDK %s with %s', (name, model, { behind, upstream }) => {
  test.each(streams)('assembles the stream: %s', async (_, scripts) => {
    const script = scripts[upstream === 'completions' ? 'completions' : 'messages'];
    sdk.upstream.script(behind, { stream: pieces(onWire(upstream, script, framing)) });
    const got = await sdk.caller(name).ask({ model, stream: true, tools: callsOf(script).length > 0 });
    expect(got.text).toBe(textOf(script, 'text'));
    expect(got.calls).toEqual(callsOf(script));
    expect(got.finish).toMatch(got.calls.length > 0 ? /^tool.(calls|use)$/ : /^(stop|end_turn)$/);
    // One SDK of completions style has no place for what is thought.
    expect(name === '@ai-sdk/openai' ? textOf(script, 'thinking') : got.thinking).toBe(textOf(script, 'thinking'));
  });

  test('assembles a refusal', async () => {
    const wire = {
      completions: onWire('completions', [{ say: 'text', text: 'No.' }], framing).replace(
        '"content":"No."',
        '"refusal":"No."',
      ),
      messages: onWire('messages', [{ say: 'text', text: 'No.' }], framing).replace('"end_turn"', '"refusal"'),
      gemini: onWire('gemini', [{ say: 'text', text: 'No.' }], framing).replace('"STOP"', '"SAFETY"'),
    };
    sdk.upstream.script(behind, { stream: [wire[upstream]] });
    const got = await sdk.caller(name).ask({ model, stream: true });
    // Completions style tells a refusal beside an ordinary end; the Vercel AI SDK makes the end of it.
    const is_ordinary_end =
      upstream === 'completions' && !name.startsWith('@ai-sdk/') && sdk.caller(name).style === 'completions';
    expect(got.finish).toMatch(is_ordinary_end ? /^stop$/ : /^(refusal|content.filter)$/);
  });

  test('T43: ignores pings before the first content and between two pieces', async () => {
    const wire = onWire(
      upstream,
      [
        { say: 'text', text: 'Hi' },
        { say: 'text', text: ' there' },
      ],
      { ...framing, comments: true },
    );
    sdk.upstream.script(behind, { stream: [`: ping\n\n${wire}`] });
    expect((await sdk.caller(name).ask({ model, stream: true })).text).toBe('Hi there');
  });

  test('T26: throws for a stream that breaks off and returns no response', async () => {
    const wire = onWire(
      upstream,
      [
        { say: 'text', text: 'Half' },
        { say: 'text', text: ' of it' },
      ],
      framing,
    );
    const half = wire.slice(0, wire.indexOf(' of it'));
    sdk.upstream.script(behind, { stream: [half], then: 'cut' });
    await expect(sdk.caller(name).ask({ model, stream: true })).rejects.toThrow(/cut its answer off/);
    await sdk.stage.test.app.db.query('delete from route_health');
  });
});
