import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { isOpenToLimited } from '../../src/accounts/limited-keys.ts';
import { listBatches } from '../../src/batches/batches.ts';
import type { NewKeyView } from '../../src/dashboard/views/keys.ts';
import { listFiles } from '../../src/files/files.ts';
import { newId } from '../../src/lib/ids.ts';
import { listEndpoints } from '../../src/server.ts';
import { listVideos } from '../../src/tasks/videos.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { memberOf, okBody, ownerOfNew, type Someone } from './people.ts';

/** Files, videos and batches for keys of members of some projects: those that keys of their project made. */
const marker = 'zanzibar';

let test: TestApp;
let owner: Someone;
let own: Things;
let other: Things;
/** The limited key, which is of the first project. */
let limited: string;

/** Ids of what the key of a project has made, by the name of the thing. `name`: of a file in Gemini's style. */
type Things = {
  project: string;
  secret: string;
  file: string;
  name: string;
  named: string;
  session: string;
  part: string;
  video: string;
  input: string;
  batch: string;
  output: string;
};

const patience = { timeout: 120_000, interval: 100 };

beforeAll(async () => {
  const limits = 'limits: { other_per_minute: 20000 }'; // each id is tried everywhere
  test = await startTestApp({ yaml: `version: 1\nnet: { allow: ["127.0.0.0/8"] }\n${limits}\n` });
  owner = await ownerOfNew(test, 'Agency', 90_000_000n);
  own = await makeThings('shop');
  other = await makeThings(marker);
  limited = await limitedKeyOf(owner, own.project);
}, 240_000);

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function limitedKeyOf(of_account: Someone, project: string): Promise<string> {
  const developer = await memberOf(test, of_account, 'developer');
  okBody(await of_account.send('PATCH', `${of_account.base}/team/${developer.user_id}`, { projects: [project] }));
  return okBody<NewKeyView>(await developer.post(`${developer.base}/keys`, { name: 'Theirs', project })).secret;
}

async function projectOf(of_account: Someone, name: string): Promise<string> {
  return okBody<{ id: string }>(await of_account.post(`${of_account.base}/projects`, { name })).id;
}

type Seen = { status: number; text: string; headers: Headers };
type Sent = { method?: string; body?: object | string | FormData; headers?: Record<string, string> };

async function call(key: string, path: string, { method, body, headers = {} }: Sent = {}): Promise<Seen> {
  const is_json = typeof body === 'object' && !(body instanceof FormData);
  const response = await fetch(new URL(path, test.url), {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { authorization: `Bearer ${key}`, ...(is_json && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: is_json ? JSON.stringify(body) : body }),
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

async function answerOf<T = { id: string }>(key: string, path: string, sent: Sent = {}): Promise<T> {
  const { status, text } = await call(key, path, sent);
  expect(status, `${path} answered ${text.slice(0, 300)}`).toBe(200);
  return JSON.parse(text) as T;
}

function formOf(field: string, content: string, filename: string, purpose?: string): FormData {
  const form = new FormData();
  if (purpose !== undefined) form.set('purpose', purpose);
  form.set(field, new Blob([content], { type: 'text/plain' }), filename);
  return form;
}

const upload = async (key: string, name: string, content = `${name} in a file`, purpose = 'user_data') =>
  (await answerOf(key, '/v1/files', { body: formOf('file', content, `${name}.txt`, purpose) })).id;

/** Begins an upload in Gemini's style; without a name the service chooses one. */
const begin = (key: string, file: object) =>
  call(key, '/upload/v1beta/files', {
    body: { file },
    headers: { 'x-goog-upload-protocol': 'resumable', 'x-goog-upload-command': 'start' },
  });

async function uploadChunk(key: string, file: object, content: string): Promise<string> {
  const begun = await begin(key, file);
  expect(begun.status, begun.text).toBe(200);
  const at = new URL(begun.headers.get('x-goog-upload-url') ?? '');
  const headers = { 'x-goog-upload-command': 'upload, finalize', 'x-goog-upload-offset': '0' };
  const path = at.pathname + at.search;
  return (
    (await answerOf<{ file: { uri: string } }>(key, path, { body: content, headers })).file.uri.split('/').at(-1) ?? ''
  );
}

async function makeBatch(key: string, name: string): Promise<{ input: string; batch: string; output: string }> {
  const body = { model: 'sandbox/chat', messages: [{ role: 'user', content: `Tell me of ${name}` }] };
  const line = { custom_id: name, method: 'POST', url: '/v1/chat/completions', body };
  const input = await upload(key, name, JSON.stringify(line), 'batch');
  const fields = { input_file_id: input, endpoint: line.url, completion_window: '24h', metadata: { name } };
  const { id: batch } = await answerOf(key, '/v1/batches', { body: fields });
  const read = () => answerOf<{ status: string; output_file_id: string }>(key, `/v1/batches/${batch}`);
  await vi.waitUntil(async () => (await read()).status === 'completed', patience);
  return { input, batch, output: (await read()).output_file_id };
}

async function makeVideo(key: string, name: string): Promise<string> {
  const { id } = await answerOf(key, '/v1/videos', { body: { model: 'sandbox/video', prompt: name, seconds: '1' } });
  const read = () => answerOf<{ status: string }>(key, `/v1/videos/${id}`);
  await vi.waitUntil(async () => (await read()).status === 'completed', patience);
  return id;
}

const session_of = (name: string) => ({ bytes: 5, filename: `${name}.txt`, purpose: 'user_data' });

async function beginSession(key: string, name: string): Promise<{ session: string; part: string }> {
  const { id: session } = await answerOf(key, '/v1/uploads', { body: session_of(name) });
  const part = await answerOf(key, `/v1/uploads/${session}/parts`, { body: formOf('data', 'Hello', 'part') });
  return { session, part: part.id };
}

/** A project with a key that has made one of each. */
async function makeThings(name: string): Promise<Things> {
  const project = await projectOf(owner, name);
  const { secret } = okBody<NewKeyView>(await owner.post(`${owner.base}/keys`, { name: `Key of ${name}`, project }));
  const file_name = `${name}-notes`;
  return {
    project,
    secret,
    file: await upload(secret, name),
    name: file_name,
    named: await uploadChunk(secret, { name: `files/${file_name}`, displayName: name }, `${name} in chunks`),
    ...(await beginSession(secret, name)),
    video: await makeVideo(secret, `Waves of ${name}`),
    ...(await makeBatch(secret, name)),
  };
}

/** Nothing of the other project is in an answer. */
function expectClean({ text }: { text: string }, name: string): void {
  const { secret: _, ...ids } = other;
  const leaks = [marker, ...Object.values(ids)].filter((each) => text.toLowerCase().includes(each));
  expect(leaks, `${name} answered ${text.slice(0, 400)}`).toEqual([]);
}

const in_messages = { 'anthropic-version': '2023-06-01' };
const filesOf = ({ file, named, input, output }: Things) => [file, named, input, output];

describe('lists for a limited key', () => {
  const idsIn = (text: string) => {
    const { data, files } = JSON.parse(text) as { data?: { id: string }[]; files?: { uri: string }[] };
    return (data?.map(({ id }) => id) ?? files?.map(({ uri }) => uri.split('/').at(-1)) ?? []).toSorted();
  };
  const lists: readonly [path: string, of: (things: Things) => string[], headers?: Record<string, string>][] = [
    ['/v1/files', filesOf],
    ['/v1/files?order=asc', filesOf],
    ['/v1/files', filesOf, in_messages],
    ['/v1/files?purpose=batch', ({ input }) => [input]],
    ['/v1beta/files?pageSize=100', filesOf],
    ['/v1/videos', ({ video }) => [video]],
    ['/v1/videos?order=asc', ({ video }) => [video]],
    ['/v1/batches', ({ batch }) => [batch]],
  ];

  it.each(lists)('%s has what keys of its project made, and no other', async (path, of, headers = {}) => {
    const seen = await call(limited, path, { headers });
    expect(seen.status, seen.text).toBe(200);
    expect(idsIn(seen.text)).toEqual(of(own).toSorted());
    expectClean(seen, path);
    const wide = await call(own.secret, path, { headers });
    expect(idsIn(wide.text)).toEqual([...of(own), ...of(other)].toSorted());
  });

  it('is the same in the style of Gemini at version v1', async () => {
    const response = await fetch(`${test.url}/v1/files?pageSize=100`, { headers: { 'x-goog-api-key': limited } });
    expect(idsIn(await response.text())).toEqual(filesOf(own).toSorted());
  });

  it.each([
    ['/v1/files', () => filesOf(own).length],
    ['/v1/videos', () => 1],
    ['/v1/batches', () => 1],
  ])('%s does not say that there is more where that is of another project', async (path, count) => {
    const page = JSON.parse((await call(limited, `${path}?limit=${count()}`)).text) as { has_more: boolean };
    expect(page.has_more).toBe(false);
  });

  it('take the id of another project as a place alone', async () => {
    for (const [path, id] of [
      ['/v1/files?after=', other.file],
      ['/v1/files?before_id=', other.file],
      ['/v1beta/files?pageToken=', other.file],
      ['/v1/videos?after=', other.video],
      ['/v1/batches?after=', other.batch],
    ] as const) {
      const seen = await call(limited, path + id);
      expect([path, seen.status]).toEqual([path, 200]);
      expectClean(seen, path);
    }
  });

  it('are narrowed by the project where that has too many keys to name', async () => {
    const { db } = test.app;
    const filter = { account_id: owner.account_id, project_ids: [own.project], limit: 100, after: undefined } as const;
    const files = await listFiles(db, { ...filter, order: 'desc', purpose: undefined }, new Date());
    expect(files.files.map(({ id }) => id).toSorted()).toEqual(filesOf(own).toSorted());
    const { videos } = await listVideos(db, { ...filter, order: 'asc' });
    expect(videos.map(({ id }) => id)).toEqual([own.video]);
    expect((await listBatches(db, filter)).batches.map(({ id }) => id)).toEqual([own.batch]);
  });
});

/** Every call that names a thing. */
const doors: readonly [name: string, path: (things: Things) => string, sent?: (things: Things) => Sent][] = [
  ['a file', ({ file }) => `/v1/files/${file}`],
  ['a file in the messages style', ({ file }) => `/v1/files/${file}`, () => ({ headers: in_messages })],
  ['the bytes of a file', ({ file }) => `/v1/files/${file}/content`],
  ['the removal of a file', ({ file }) => `/v1/files/${file}`, () => ({ method: 'DELETE' })],
  ['the answers of a batch', ({ output }) => `/v1/files/${output}/content`],
  ["a file in Gemini's style", ({ file }) => `/v1beta/files/${file}`],
  ['a file by its name', ({ name }) => `/v1beta/files/${name}`],
  ['the bytes of a file by its name', ({ name }) => `/v1beta/files/${name}:download`],
  ['the removal of a file by its name', ({ name }) => `/v1beta/files/${name}`, () => ({ method: 'DELETE' })],
  ['a video', ({ video }) => `/v1/videos/${video}`],
  ['the bytes of a video', ({ video }) => `/v1/videos/${video}/content`],
  ['the removal of a video', ({ video }) => `/v1/videos/${video}`, () => ({ method: 'DELETE' })],
  ['a batch', ({ batch }) => `/v1/batches/${batch}`],
  ['the end of a batch', ({ batch }) => `/v1/batches/${batch}/cancel`, () => ({ method: 'POST' })],
  [
    'another part of an upload',
    ({ session }) => `/v1/uploads/${session}/parts`,
    () => ({ body: formOf('data', 'Hello', 'part') }),
  ],
  [
    'the last call of an upload',
    ({ session }) => `/v1/uploads/${session}/complete`,
    ({ part }) => ({ body: { part_ids: [part] } }),
  ],
  ['the end of an upload', ({ session }) => `/v1/uploads/${session}/cancel`, () => ({ method: 'POST' })],
];

describe('an id of another project', () => {
  it.each(doors)('is answered like one that there never was (%s)', async (_, path, sent = () => ({})) => {
    const none: Things = {
      ...other,
      file: newId('file'),
      output: newId('file'),
      name: 'nobody-has-it',
      video: newId('task'),
      batch: newId('batch'),
      session: newId('upload'),
    };
    const bare = ({ status, text }: Seen) => [
      status,
      text.replaceAll(/(?:file|task|batch|upload|req)_\w+|nobody-has-it|zanzibar-notes/g, 'ID'),
    ];
    const refused = await call(limited, path(other), sent(other));
    expect(refused.status, refused.text).toBe(404);
    expect(bare(refused)).toEqual(bare(await call(limited, path(none), sent(none))));
  });

  const open_reads = listEndpoints().filter(
    (endpoint) =>
      !endpoint.public && endpoint.session === undefined && isOpenToLimited(endpoint) && endpoint.method !== 'POST',
  );

  it.each(open_reads.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint] as const))(
    'opens nothing at %s, as a part of the path or in the query',
    async (_, { method, path, docs }) => {
      const { secret: __, ...things } = other;
      const ids = [marker, ...Object.values(things)];
      const paths = path.includes('{') ? ids.map((id) => path.replace(/\{\+?\w+\}/, id)) : [path];
      const queries = Object.keys(docs.query ?? {}).map((name) => (name === 'metadata' ? 'metadata[name]' : name));
      const addresses = paths.flatMap((at) => [
        at,
        ...queries.flatMap((name) => ids.map((id) => `${at}?${name}=${id}`)),
      ]);
      for (const at of addresses) {
        const seen = await call(limited, at, { method });
        const leaks = ids.filter((id) => seen.text.toLowerCase().includes(id) && !at.includes(id));
        const fits = seen.status < 500 && seen.status !== 429 && (seen.status >= 400 || !path.includes('{'));
        expect([at, fits, leaks], seen.text.slice(0, 400)).toEqual([at, true, []]);
      }
    },
  );

  it('changes nothing there', async () => {
    for (const path of [
      `/v1/files/${other.file}`,
      `/v1beta/files/${other.name}`,
      `/v1/videos/${other.video}/content`,
      `/v1/files/${other.output}/content`,
    ])
      expect([path, (await call(other.secret, path)).status]).toEqual([path, 200]);
    const upload_end = { body: { part_ids: [other.part] } };
    expect((await call(other.secret, `/v1/uploads/${other.session}/complete`, upload_end)).status).toBe(200);
  });

  it('is no input of a batch, and no name is taken', async () => {
    const batchOf = (input_file_id: string) => ({
      body: { input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' },
    });
    const [of_other, of_none] = [
      await call(limited, '/v1/batches', batchOf(other.input)),
      await call(limited, '/v1/batches', batchOf(newId('file'))),
    ];
    const bare = ({ status, text }: Seen) => [status, text.replaceAll(/req_\w+/g, 'ID')];
    expect(of_other).toMatchObject({ status: 400, text: expect.stringContaining('file_not_found') });
    expect(bare(of_other)).toEqual(bare(of_none));
    const [taken, free] = [
      await begin(limited, { name: `files/${other.name}` }),
      await begin(limited, { name: 'files/free' }),
    ];
    expect(taken).toMatchObject({ status: 400, text: expect.stringContaining('file.name') });
    expect(bare(taken)).toEqual(bare(free));
  });
});

describe('a limited key', () => {
  it('reads what its project has, bytes included', async () => {
    for (const [path, words] of [
      [`/v1/files/${own.file}`, 'shop.txt'],
      [`/v1/files/${own.file}/content`, 'shop in a file'],
      [`/v1beta/files/${own.name}`, own.name],
      [`/v1beta/files/${own.name}:download`, 'shop in chunks'],
      [`/v1/videos/${own.video}`, '"completed"'],
      [`/v1/videos/${own.video}/content`, 'ftyp'],
      [`/v1/batches/${own.batch}`, own.output],
      [`/v1/files/${own.output}/content`, '"status_code":200'],
    ] as const) {
      const seen = await call(limited, path);
      expect([path, seen.status], seen.text.slice(0, 300)).toEqual([path, 200]);
      expect(seen.text, path).toContain(words);
    }
    const ended = await call(limited, `/v1/batches/${own.batch}/cancel`, { method: 'POST' });
    expect(ended).toMatchObject({ status: 400, text: expect.stringContaining('batch_ended') });
  });

  it('makes files, videos and batches that its project has', async () => {
    const file = await uploadChunk(limited, { displayName: 'Mine' }, 'Mine in chunks');
    const { session, part } = await beginSession(limited, 'mine');
    const body = { part_ids: [part] };
    const joined = await answerOf<{ file: { id: string } }>(limited, `/v1/uploads/${session}/complete`, { body });
    const { batch, output } = await makeBatch(limited, 'mine');
    const video = await makeVideo(limited, 'My waves');
    for (const path of [
      `/v1/files/${file}/content`,
      `/v1/files/${joined.file.id}/content`,
      `/v1/batches/${batch}`,
      `/v1/files/${output}/content`,
      `/v1/videos/${video}/content`,
    ])
      expect([path, (await call(own.secret, path)).status]).toEqual([path, 200]);
  });

  it('removes what its project has', async () => {
    for (const path of [`/v1/files/${own.file}`, `/v1beta/files/${own.name}`, `/v1/videos/${own.video}`]) {
      expect([path, (await call(limited, path, { method: 'DELETE' })).status]).toEqual([path, 200]);
      expect([path, (await call(own.secret, path)).status]).toEqual([path, 404]);
    }
    const ended = await call(limited, `/v1/uploads/${own.session}/cancel`, { method: 'POST' });
    expect(ended).toMatchObject({ status: 200, text: expect.stringContaining('"cancelled"') });
  });

  it('estimates what a task costs, without a word about the balance', async () => {
    const body = { model: 'sandbox/image', input: { prompt: 'A boat', width: 16, height: 16 } };
    type Estimate = { estimated_cost: { exact: string }; available: object | null; allowed: boolean };
    const estimate = (key: string) => answerOf<Estimate>(key, '/v1/estimate', { body });
    const whole = await estimate(own.secret);
    expect(whole).toMatchObject({ available: { currency: 'USD' }, allowed: true });
    expect(await estimate(limited)).toEqual({ ...whole, available: null });
    const poor = await ownerOfNew(test, 'Poor', 0n);
    const of_poor = await limitedKeyOf(poor, await projectOf(poor, 'Shop'));
    expect(await estimate(of_poor)).toEqual({ ...whole, available: null, allowed: false });
  });
});
