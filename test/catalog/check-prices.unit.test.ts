import { describe, expect, it } from 'vitest';
import { cases, errorsIn, problemLines, video, withModels } from './problem-lines.ts';

const wrong_unit = 'is not a unit of video models';

describe('an invalid price or estimate is reported', () => {
  it.each(
    cases([
      [
        video('price: [{ unit: ▸image, amount: "1" }]', 'price', 'estimate'),
        `price[0].unit: image ${wrong_unit}. Their units: request, second, minute, character, input_token, output_token.`,
      ],
      [
        video('price: [{ unit: second, amount: "1", when: { ▸resolutoin: 720p } }]', 'price'),
        'price[0].when.resolutoin: the input_schema has no field "resolutoin". Did you mean "resolution"?',
      ],
      [
        video('price: [{ unit: second, amount: "1", when: { resolution: ▸720 } }]', 'price'),
        'price[0].when.resolution: 720 is not a value of resolution. Did you mean "720p"?',
      ],
      [
        video('price: [{ unit: second, amount: "1", when: { resolution: ▸[480p, 4k] } }]', 'price'),
        'price[0].when.resolution: "4k" is not a value of resolution. It may be: "480p", "720p".',
      ],
      [
        video('', 'estimate').replace('id:', '▸id:'),
        'estimate.second: is required, since the price counts seconds: $input.FIELD, a number, or a list of these.',
      ],
      [
        video('estimate: { second: ▸$input.lenght }', 'estimate'),
        'estimate.second: the input_schema has no field "lenght". Did you mean "length"?',
      ],
      [
        video('estimate: { second: ▸$input.prompt }', 'estimate'),
        'estimate.second: prompt has no value that can be counted as seconds: its type is string.',
      ],
      [
        video('estimate: { second: ▸$input.resolution }', 'estimate'),
        'estimate.second: resolution has no value that can be counted as seconds: its type is a list of texts.',
      ],
      [video('estimate: { second: 1, ▸image: 1 }', 'estimate'), `estimate.image: image ${wrong_unit}.`],
      [
        video('estimate: { second: ▸0.0000001 }', 'estimate'),
        'estimate.second: 1e-7 must be written as a plain decimal in quotes.',
      ],
      [
        video('estimate: { second: 1, character: ▸$input.duration }', 'estimate')
          .replace('type: number, default', 'type: boolean, default')
          .replace('default: 5', 'default: true'),
        'estimate.character: duration has no value that can be counted as characters: its type is boolean.',
      ],
    ]),
  )('as models[0].$expected', ({ marked, expected }) => {
    expect(errorsIn(marked)).toEqual([`error: ▸models[0].${expected}`]);
  });

  it('with a request for the characters when no field is the text', () => {
    const schema = 'input_schema: { type: object, properties: { words: { type: string, default: x } } }';
    const text = withModels(
      `  - { id: a, kind: audio, ${schema}, price: [{ unit: character, amount: "1" }], estimate: ▸{ request: 1 }, routes: [{ provider: p }] }`,
    );
    const asks = 'is required, since the price counts characters: $input.FIELD, a number, or a list of these.';
    expect(problemLines(text)).toEqual([`error: ▸models[0].estimate.character: ${asks}`]);
    expect(problemLines(text.replace('request: 1', 'character: $input.words'))).toEqual([]);
  });
});

it('config check warns of an estimate that holds for fewer tokens than the text of the input may have', () => {
  const model = (estimate: string, max = ', maxLength: 8000') =>
    withModels(
      `  - { id: a, kind: image, input_schema: { type: object, required: [prompt], properties: { prompt: { type: string${max} } } }, price: [{ unit: image, amount: "1" }, { unit: input_token, amount: "1" }], estimate: { input_token: ▸${estimate} }, routes: [{ provider: p }] }`,
    );
  const warning = (tokens: string) => [
    `warning: ▸models[0].estimate.input_token: holds for 2000 tokens, but prompt may have ${tokens}: the excess is your loss. Write $bytes.prompt.`,
  ];
  expect(problemLines(model('2000'))).toEqual(warning('32000 tokens'));
  expect(problemLines(model('2000', ''))).toEqual(warning('any number of tokens'));
  expect(problemLines(model('32000').replace('▸', ''))).toEqual([]);
  expect(problemLines(model('$bytes.prompt').replace('▸', ''))).toEqual([]);
  expect(errorsIn(model('$bytes.promt'))).toEqual([
    'error: ▸models[0].estimate.input_token: the input_schema has no field "promt". Did you mean "prompt"?',
  ]);
});

describe('a price or an estimate is valid', () => {
  it.each([
    ['digits as texts', video('estimate: { second: $input.steps }', 'estimate')],
    ['a product', video('estimate: { second: [$input.duration, $input.steps, 2, "0.5"] }', 'estimate')],
    ['minutes from seconds', video('price: [{ unit: minute, amount: "1" }]', 'price')],
    ['seconds from minutes', video('estimate: { minute: 2 }', 'estimate')],
    ['one per run', video('price: [{ unit: request, amount: "1" }]', 'price', 'estimate')],
    [
      'a condition for every value',
      video(
        'price: [{ unit: second, amount: "1", when: { resolution: 480p } }, { unit: second, amount: "2", when: { resolution: [720p] } }]',
        'price',
      ),
    ],
  ])('with %s', (_, text) => {
    expect(problemLines(text)).toEqual([]);
  });
});

describe('a surprising price or estimate is reported', () => {
  const fits_every = 'is never used: an earlier row for second fits every input.';
  const fits_none = 'inputs that fit no row for second are free: add one without `when`.';
  it.each(
    cases([
      [video('', 'price', 'estimate').replace('id:', '▸id:'), ': has no price: every run is free.'],
      [
        video(
          'price: [{ unit: second, amount: "1" }, ▸{ unit: second, amount: "2", when: { resolution: 720p } }]',
          'price',
        ),
        `.price[1]: ${fits_every}`,
      ],
      [
        video('price: [▸{ unit: second, amount: "2", when: { resolution: 720p } }]', 'price'),
        `.price[0]: ${fits_none}`,
      ],
      [
        video('price: [▸{ unit: second, amount: "2", when: { resolution: [480p, 720p], steps: "1" } }]', 'price'),
        `.price[0]: ${fits_none}`,
      ],
      [video('price: [▸{ unit: second, amount: "2", when: { mode: [a, b] } }]', 'price'), `.price[0]: ${fits_none}`],
      [video('price: [▸{ unit: second, amount: "2", when: { length: 5 } }]', 'price'), `.price[0]: ${fits_none}`],
      [
        video('estimate: { second: ▸$input.length }', 'estimate'),
        '.estimate.second: length is neither required nor has a default: inputs without it are refused.',
      ],
      [
        video('price: [{ unit: character, amount: "1" }]', 'price', 'estimate').replace('id:', '▸id:'),
        '.estimate.character: text is neither required nor has a default: inputs without it are refused.',
      ],
      [
        video('routes: [{ provider: p, cost: [▸{ unit: minute, amount: "1" }] }]', 'routes'),
        ".routes[0].cost[0]: the upstream charges for minute, but the model's price has no row for it.",
      ],
    ]),
  )('as models[0]$expected', ({ marked, expected }) => {
    expect(problemLines(marked)).toEqual([`warning: ▸models[0]${expected}`]);
  });

  it('for free tokens', () => {
    const text = withModels(
      '  - { id: a, kind: chat, price: ▸[{ unit: input_token, amount: "1" }], routes: [{ provider: p }] }',
    );
    expect(problemLines(text)).toContain('warning: ▸models[0].price: has no row for output_token: they are free.');
  });
});

describe('price steps by the length of the input', () => {
  const chat = (rows: string) =>
    withModels(
      `  - { id: a, kind: chat, price: [{ unit: output_token, amount: "1" }, ${rows}], routes: [{ provider: p }] }`,
    );
  const step = 'unit: input_token, amount: "2", above_input_tokens:';
  const linesOf = (rows: string) => problemLines(chat(rows)).filter((line) => line.includes('▸'));

  it('are valid beside a row for other inputs', () => {
    const rows = `{ unit: input_token, amount: "1" }, { ${step} 1000 }, { ${step} 2000 }`;
    expect(problemLines(chat(rows)).filter((line) => line.includes('price'))).toEqual([]);
  });

  it('leave shorter inputs free without such a row, and may not be repeated', () => {
    expect(linesOf(`{ ${step} ▸1000 }`)).toEqual([
      'warning: ▸models[0].price[1].above_input_tokens: shorter inputs are free of input_token: add a row without it.',
    ]);
    expect(linesOf(`{ unit: input_token, amount: "1" }, { ${step} 1000 }, { ${step} ▸1000 }`)).toEqual([
      'warning: ▸models[0].price[3].above_input_tokens: is never used: an earlier row for input_token has the same.',
    ]);
  });

  it('have no effect on media', () => {
    const text = video('price: [{ unit: second, amount: "1", ▸above_input_tokens: 5 }]', 'price');
    expect(errorsIn(text)).toEqual(['error: ▸models[0].price[0].above_input_tokens: has no meaning for video models.']);
  });
});

it('minutes that follow from the seconds of a file need no estimate of their own', () => {
  const audio = (estimate: string) =>
    withModels(
      `  - { id: a, kind: audio, input_schema: { type: object, required: [file], properties: { file: { type: string, x-media: audio } } }, price: [{ unit: minute, amount: "1" }], estimate: ${estimate}, routes: [{ provider: p }] }`,
    );
  const linesOf = (estimate: string) => errorsIn(audio(estimate)).filter((line) => line.includes('estimate'));
  expect(linesOf('{ second: $media.file.duration }')).toEqual([]);
  expect(linesOf('▸{ request: 1 }')).toEqual([
    'error: ▸models[0].estimate.minute: is required, since the price counts minutes: $input.FIELD, a number, or a list of these.',
  ]);
});
