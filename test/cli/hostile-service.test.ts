import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { text as textOf } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { as_terminal, Person } from './caller.ts';

/** A service of somebody else, who wants more than to answer. */
let service: Server;
let thief: Server;
let person: Person;
let answer: RequestListener;
let stolen: IncomingMessage[];

const api_key = `mdl_${'a'.repeat(36)}`;
const model = { id: 'm/image', aliases: [], modality: 'image', input_schema: { properties: { prompt: {} } } };

beforeEach(async () => {
  stolen = [];
  thief = createServer((request, response) => {
    stolen.push(request);
    response.end('{}');
  }).listen(0, '127.0.0.1');
  service = createServer((request, response) => answer(request, response)).listen(0, '127.0.0.1');
  await Promise.all([once(thief, 'listening'), once(service, 'listening')]);
  person = new Person({ MEDLEY_URL: addressOf(service), MEDLEY_API_KEY: api_key });
});

afterEach(() => {
  for (const each of [service, thief]) {
    each.closeAllConnections();
    each.close();
  }
  person.remove();
});

function addressOf(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it listens on a port');
  return `http://127.0.0.1:${address.port}`;
}

const json = (value: object): string => JSON.stringify(value);

/** Text that moves the cursor, writes the clipboard, turns text around and begins a line anew. */
const controls = '\u001B[2J\u001B]52;c;ZXZpbA==\u0007\u009B31m\u202Etxt\rnew';
const drives = /[^\P{Cc}\n\t]|[\u202A-\u202E]/u;

const stream = (text: string) =>
  [{ choices: [{ delta: { content: text } }] }, { choices: [{ delta: {}, finish_reason: 'stop' }] }]
    .map((event) => `data: ${json(event)}\n\n`)
    .join('') + 'data: [DONE]\n\n';

it('an answer of a model does not drive the terminal, and reaches a pipe as it came', async () => {
  answer = (request, response) => {
    if (request.url?.startsWith('/v1/models')) response.end(json({ data: [], has_more: false }));
    else response.end(stream(controls));
  };
  const words = ['chat', '-m', 'm/chat', 'x', '-q'];
  const shown = await person.run(words, { env: as_terminal });
  expect([shown.code, drives.test(shown.out)]).toEqual([0, false]);
  expect(shown.out).toContain('new');
  expect((await person.run(words)).out).toBe(`${controls}\n`);
});

it('a replay asks again until the service has sent all events of the span', async () => {
  const requests: { from: string }[] = [];
  answer = async (request, response) => {
    requests.push(JSON.parse(await textOf(request)));
    const next_from = requests.length < 3 ? `2026-01-31T12:0${requests.length}:00.000Z` : null;
    response.end(json({ object: 'webhook_replay', events: requests.length < 3 ? 1000 : 7, next_from, dry_run: false }));
  };
  const words = ['webhooks', 'replay', 'whe_x', '--from', '2026-01-31T12:00:00Z', '--all', '--json'];
  const { out } = await person.run(words);
  expect(JSON.parse(out)).toEqual({ id: 'whe_x', events: 2007, has_more: false, dry_run: false });
  const minutes = requests.map(({ from }) => from.slice(14, 16));
  expect(minutes).toEqual(['00', '01', '02']);
  requests.length = 0;
  const counted = await person.run([...words.slice(0, -1), '--dry-run']);
  expect([counted.out, requests.length]).toEqual(['Events to send again: 1000, and more\n', 1]);
});

it('neither does the text of an error', async () => {
  answer = (_request, response) => {
    response.statusCode = 400;
    response.end(json({ error: { type: 'invalid_request', message: `no ${controls}`, request_id: controls } }));
  };
  for (const words of [['chat', '-m', 'm', 'x'], ['run', 'm', 'x'], ['tasks'], ['webhooks'], ['whoami']]) {
    const { code, error } = await person.run(words);
    expect([code, drives.test(error.replaceAll('\u001B[K', ''))], error).toEqual([1, false]);
  }
});

it.each(['/v1/key', '/v1/tasks', '/v1/chat/completions', '/v1/generate'])(
  'a redirect of %s takes the key nowhere else',
  async (path) => {
    answer = (request, response) => {
      if (request.url?.startsWith('/v1/models/')) return void response.end(json(model));
      if (!request.url?.startsWith(path)) return void response.end('{}');
      response.writeHead(307, { location: addressOf(thief) + path }).end();
    };
    const words = { '/v1/key': ['whoami'], '/v1/tasks': ['tasks'], '/v1/chat/completions': ['chat', '-m', 'm', 'x'] };
    const { code } = await person.run(words[path as keyof typeof words] ?? ['run', 'm/image', 'x']);
    expect([code, stolen.length]).toEqual([5, 0]);
  },
);

it('a link to a file elsewhere is fetched without the key, and no id leads out of the folder', async () => {
  const cost = { amount: '0.01', currency: 'USD', exact: '0.010000' };
  const output = [
    { type: 'image', url: `${addressOf(thief)}/../../evil`, content_type: 'image/../../x', size_bytes: 2 },
  ];
  const task = {
    id: '../../../evil',
    status: 'succeeded',
    output,
    cost,
    estimated_cost: cost,
    created_at: '2026-11-28T12:00:00Z',
    completed_at: null,
  };
  answer = (request, response) =>
    response.end(json(request.url?.startsWith('/v1/models/') ? model : { ...task, metadata: {}, error: null }));
  const { code, out, error } = await person.run(['run', 'm/image', 'x', '-o', './']);
  expect([code, out], error).toEqual([0, 'output.bin\n']);
  expect(readdirSync(person.folder)).toEqual(['output.bin']);
  expect(stolen.map(({ headers }) => headers.authorization)).toEqual([undefined]);
});

it('a sign-in that gives nonsense instead of a key stores nothing', async () => {
  const codes = { device_code: 'x', user_code: controls, verification_uri: controls, expires_in: 600, interval: 1 };
  answer = (request, response) => {
    response.end(json(request.url === '/oauth/token' ? { access_token: `a\n${controls}` } : codes));
  };
  const { code, error } = await person.run(['login', addressOf(service)]);
  expect([code, drives.test(error)], error).toEqual([3, false]);
  expect(readdirSync(person.folder)).toEqual([]);
});

it('a service that answers a page of something else is named', async () => {
  answer = (_request, response) => response.end('<html>');
  for (const words of [['whoami'], ['login', addressOf(service)], ['tasks']]) {
    const { code, error } = await person.run(words);
    expect(code).toBe(1);
    expect(error).toMatch(/Medley|no code|not JSON/);
  }
});
