import { connect } from 'node:net';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { ApiError } from '../../src/errors.ts';
import { parseRaw, startHarness, type Harness, type TestApp } from '../api/harness.ts';

/** Forms and bodies that nobody reads, on the wire. What uploads make of them: uploads.test.ts. */

const docs = { tag: 'T', summary: 'S', responses: { 200: { description: 'ok' } } };
const limits = { files_max: 2, file_bytes_max: 100_000 };

const lengthOf = async (stream: Readable): Promise<number> => {
  let length = 0;
  for await (const chunk of stream) length += Buffer.from(chunk).length;
  return length;
};

let taking: (stream: Readable) => Promise<number> = lengthOf;

const endpoints: Endpoint<TestApp>[] = [
  {
    method: 'POST',
    path: '/v1/form',
    form: true,
    docs,
    handle: async (_app, { readForm }) => {
      if (!readForm) throw new Error('no form');
      const { fields, files } = await readForm(limits, (stream) => taking(stream));
      return { status: 200, body: { fields: Object.fromEntries(fields), files } };
    },
  },
  {
    method: 'POST',
    path: '/v1/refusing',
    form: true,
    docs,
    handle: () => {
      throw new ApiError('conflict', 'not now');
    },
  },
  {
    method: 'POST',
    path: '/told',
    public: true,
    ignores_body: true,
    docs,
    handle: () => ({ status: 200, body: {} }),
  },
];

let harness: Harness;

beforeAll(async () => {
  harness = await startHarness(endpoints);
});
afterAll(() => harness.close());

const file = (name: string, bytes: Buffer | string, filename = 'a') =>
  Buffer.concat([
    Buffer.from(`--x\r\ncontent-disposition: form-data; name="${name}"; filename="${filename}"\r\n\r\n`),
    Buffer.from(bytes),
    Buffer.from('\r\n'),
  ]);
const field = (name: string, value: string) =>
  `--x\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const form = (...parts: (Buffer | string)[]) =>
  Buffer.concat([...parts.map((part) => Buffer.from(part)), Buffer.from('--x--\r\n')]);
const type = { 'content-type': 'multipart/form-data; boundary=x' };

const post = (body: Buffer, path = '/v1/form') => harness.send('POST', path, { headers: type, body });

describe('a form', () => {
  test('yields its fields, and its files while they arrive, in their order', async () => {
    const answer = await post(
      form(field('a', 'ä'), file('one', 'abc', 'x.png'), field('b', ''), file('two', Buffer.alloc(90_000))),
    );
    expect([answer.status, answer.json()]).toEqual([
      200,
      {
        fields: { a: 'ä', b: '' },
        files: [
          { name: 'one', filename: 'x.png', value: 3 },
          { name: 'two', filename: 'a', value: 90_000 },
        ],
      },
    ]);
  });

  test.each([
    ['../../etc/passwd', 'passwd'],
    ['C:\\\\a\\\\b.png', 'b.png'],
    ['', 'file'],
    ['..', 'file'],
    ['a\u0001b\u007f.png', 'ab.png'],
    [`${'n'.repeat(300)}.png`, 'n'.repeat(255)],
  ])('has file names without folders and control characters: %j', async (filename, expected) => {
    const answer = await post(form(file('a', 'abc', filename)));
    expect(answer.json()['files']).toMatchObject([{ filename: expected }]);
  });

  test('may have exactly as many bytes as a file may, and no more', async () => {
    expect((await post(form(file('a', Buffer.alloc(100_000))))).status).toBe(200);
    const more = await post(form(file('a', Buffer.alloc(100_001))));
    expect([more.status, more.error()['message']]).toEqual([413, 'A file may have at most 0.1 MB.']);
  });

  test('with too many files is refused', async () => {
    const answer = await post(form(file('a', 'a'), file('b', 'b'), file('c', 'c')));
    expect([answer.status, answer.error()['code']]).toEqual([400, 'invalid_form']);
  });

  test('whose file is not read is refused with the reason of the reader', async () => {
    taking = async (stream) => {
      stream.resume();
      throw new ApiError('invalid_input', 'not this one');
    };
    const answer = await post(form(file('a', Buffer.alloc(90_000)), file('b', Buffer.alloc(90_000))));
    taking = lengthOf;
    expect([answer.status, answer.error()['message']]).toEqual([422, 'not this one']);
  });

  test('may have an epilogue', async () => {
    const answer = await post(Buffer.concat([form(file('a', 'abc')), Buffer.alloc(50_000, 'e')]));
    expect(answer.status).toBe(200);
  });

  test('that is refused unread gets its response all the same', async () => {
    expect((await post(form(file('a', Buffer.alloc(90_000))), '/v1/refusing')).status).toBe(409);
    expect(
      (await harness.send('POST', '/v1/form', { headers: type, body: form(file('a', 'abc')), key: 'wrong' })).status,
    ).toBe(401);
  });

  test('is requested by 100-continue only when it is read', async () => {
    const head = (path: string, length: number) =>
      `POST ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-type: multipart/form-data; boundary=x\r\n` +
      `content-length: ${length}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n`;
    const body = form(file('a', 'abc'));
    expect(await harness.sendRaw(head('/v1/form', body.length), body)).toMatch(
      /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200/,
    );
    expect(await harness.sendRaw(head('/v1/refusing', body.length))).toMatch(/^HTTP\/1.1 409/);
    expect(await harness.sendRaw(head('/v1/form', 99_999_999))).toMatch(/^HTTP\/1.1 413/);
  });

  test('that stalls gets a response and is cut soon', async () => {
    const head =
      'POST /v1/form HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-length: 5000\r\ncontent-type: multipart/form-data; boundary=x\r\n\r\n';
    const hasty = await startHarness(endpoints, { timeouts: { body_idle_ms: 200, discard_ms: 200 } });
    for (const begun of ['', '--x\r\ncontent-disp', file('a', 'abc'), file('a', 'abc').subarray(0, 70)]) {
      const answer = parseRaw(await hasty.sendRaw(head, begun));
      expect([answer.status, answer.error()['message']]).toEqual([400, 'The body arrives too slowly.']);
    }
    await hasty.close();
  });

  test('of a client that disconnected is dropped', async () => {
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
    taking = async (stream) => {
      begun.resolve();
      await lengthOf(stream).catch((error: unknown) => ended.resolve(String(error)));
      throw new Error('gone');
    };
    const socket = connect(harness.port, '127.0.0.1');
    socket.write(
      'POST /v1/form HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key_1\r\ncontent-length: 5000\r\ncontent-type: multipart/form-data; boundary=x\r\n\r\n',
    );
    socket.write(file('a', 'abc'));
    await begun.promise;
    socket.destroy();
    expect(await ended.promise).toContain('before the body did');
    taking = lengthOf;
  });
});

describe('a body that nobody reads', () => {
  test.each([
    ['none', '', {}],
    ['JSON', '{"a":1}', { 'content-type': 'application/json' }],
    ['broken JSON', '{', { 'content-type': 'application/json' }],
    ['something else', '\0\0', { 'content-type': 'image/png', 'content-encoding': 'br' }],
    ['a large one', 'a'.repeat(5_000_000), { 'content-type': 'text/plain' }],
  ])('may be %s', async (_name, body, headers: Record<string, string>) => {
    const answer = await harness.send('POST', '/told?a=%zz', { key: null, body, headers });
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('percent')]);
    const good = await harness.send('POST', '/told', { key: null, body, headers });
    expect([good.status, good.text]).toEqual([200, '{}']);
  });

  test('is not waited for', async () => {
    const answer = await harness.sendRaw('POST /told HTTP/1.1\r\nhost: a\r\ncontent-length: 5000\r\n\r\nabc');
    expect(parseRaw(answer).status).toBe(200);
  });

  test('leaves the connection usable when it has arrived', async () => {
    const one = 'POST /told HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc';
    const answers = await harness.sendRaw(one + one.replace('host: a', 'host: a\r\nconnection: close'));
    expect(answers.match(/HTTP\/1.1 200/g)).toHaveLength(2);
  });
});
