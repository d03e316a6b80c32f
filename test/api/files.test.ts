// isolated: it measures its process
import { once } from 'node:events';
import { readdir, readlink } from 'node:fs/promises';
import { request, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { serveFile } from '../../src/api/files.ts';
import { makeLink } from '../../src/storage/links.ts';
import type { Extension } from '../../src/storage/media-types.ts';
import { parseRange } from '../../src/storage/range.ts';
import type { Storage } from '../../src/storage/storage.ts';
import { newKey, sampleImage } from '../storage/samples.ts';
import { expires_at_ms, no_thumbnails, now_ms, secret, startFileServer, type FileServer } from './file-server.ts';

let files: FileServer;
let storage: Storage;
let base_url = '';
beforeAll(async () => {
  files = await startFileServer();
  ({ storage, base_url } = files);
});
afterAll(() => files.stop());

const publish = (bytes: Buffer, extension?: Extension) => files.publish(bytes, extension);

type Answer = { status: number; headers: IncomingHttpHeaders; body: Buffer };

/** Without the help of fetch, which follows, decodes and forbids. */
async function call(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  const sent = request(url, { method, headers, agent: false }).end();
  const [response] = await once(sent, 'response');
  return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
}

const digits = Buffer.from('0123456789');

describe('GET /files', () => {
  test('returns 200 and the whole file with the headers that a browser needs', async () => {
    const bytes = await sampleImage('png', 40, 30);
    const { key, url } = await publish(bytes);
    const { status, headers, body } = await call(url);
    expect(status).toBe(200);
    expect(body.equals(bytes)).toBe(true);
    expect(headers).toMatchObject({
      'content-type': 'image/png',
      'content-length': String(bytes.length),
      'content-disposition': `inline; filename="${key.split('/')[1]}-0.png"`,
      'accept-ranges': 'bytes',
      'cache-control': 'private, max-age=60',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'; media-src 'self'; style-src 'unsafe-inline'",
      'cross-origin-resource-policy': 'cross-origin',
    });
    expect(headers.etag).toMatch(/^"[\w-]{27}"$/);
  });

  test.each([
    ['png', 'image/png', 'inline'],
    ['jpg', 'image/jpeg', 'inline'],
    ['webp', 'image/webp', 'inline'],
    ['gif', 'image/gif', 'inline'],
    ['avif', 'image/avif', 'attachment'],
    ['mp4', 'video/mp4', 'inline'],
    ['webm', 'video/webm', 'inline'],
    ['mov', 'video/quicktime', 'attachment'],
    ['wav', 'audio/wav', 'inline'],
    ['mp3', 'audio/mpeg', 'inline'],
    ['ogg', 'audio/ogg', 'inline'],
    ['flac', 'audio/flac', 'attachment'],
    ['aac', 'audio/aac', 'attachment'],
    ['m4a', 'audio/mp4', 'attachment'],
    ['bin', 'application/octet-stream', 'attachment'],
  ] as const)('serves %s as %s, %s, whatever is in it', async (extension, content_type, disposition) => {
    const { url } = await publish(Buffer.from('<script>alert(1)</script>'), extension);
    const { headers } = await call(url);
    expect(headers['content-type']).toBe(content_type);
    expect(headers['content-disposition']).toMatch(
      new RegExp(`^${disposition}; filename="task_\\w{26}-0\\.${extension}"$`),
    );
  });

  test('lets no cache keep a file longer than the link lives, or an hour', async () => {
    const key = newKey();
    await storage.put(key, digits, { content_type: 'image/png', size_limit_bytes: 10 });
    const max_age = async (left_ms: number) => {
      const { url } = makeLink(secret, { base_url, key, expires_at_ms: now_ms + left_ms });
      return (await call(url)).headers['cache-control'];
    };
    expect(await max_age(1_999)).toBe('private, max-age=1');
    expect(await max_age(86_400_000)).toBe('private, max-age=3600');
  });

  test('returns 200 for an empty file', async () => {
    const { url } = await publish(Buffer.alloc(0));
    const { status, headers, body } = await call(url);
    expect({ status, length: headers['content-length'], body: body.length }).toEqual({
      status: 200,
      length: '0',
      body: 0,
    });
  });

  test('returns the same 404 for an expired, forged, absent or removed file', async () => {
    const { key, url } = await publish(digits);
    const removed = await publish(digits);
    await storage.remove([removed.key]);
    const absent = makeLink(secret, { base_url, key: newKey(), expires_at_ms }).url;
    const expired = makeLink(secret, { base_url, key, expires_at_ms: now_ms }).url;
    const forged = makeLink('another secret of the tests', { base_url, key, expires_at_ms }).url;
    const bare = url.replace(/\?.*/, '');
    for (const each of [
      expired,
      forged,
      absent,
      removed.url,
      bare,
      `${url}&exp=1`,
      `${base_url}/files/`,
      `${base_url}/files/../x`,
    ]) {
      const { status, headers, body } = await call(each);
      expect({ status, ...JSON.parse(body.toString()) }, `${each}`).toEqual({
        status: 404,
        error: {
          type: 'not_found',
          message: 'There is no such file, or the link to it has expired.',
          request_id: 'req_1',
        },
      });
      expect(headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
    }
  });

  test('returns 404 for every changed character of the address', async () => {
    const { url } = await publish(digits);
    const from = `${base_url}/files/`.length;
    const answers = await Promise.all(
      Array.from({ length: url.length - from }, async (_, i) => {
        const at = from + i;
        const other = url[at] === '1' ? '2' : '1';
        // A changed name of a value is as good as none; a doubled one is refused.
        return (await call(url.slice(0, at) + other + url.slice(at + 1))).status;
      }),
    );
    expect(new Set(answers)).toEqual(new Set([404]));
  });

  test('returns 405 for other methods', async () => {
    const { url } = await publish(digits);
    const { status, headers, body } = await call(url, {}, 'DELETE');
    expect(status).toBe(405);
    expect(headers.allow).toBe('GET, HEAD');
    expect(JSON.parse(body.toString()).error.type).toBe('invalid_request');
  });
});

describe('HEAD /files', () => {
  test('returns 200 with the headers of GET and no body', async () => {
    const { url } = await publish(digits);
    const { headers } = await call(url);
    for (const range of ['bytes=1-2', 'bytes=100-']) {
      const answer = await call(url, { range }, 'HEAD');
      expect(answer.status).toBe(200);
      expect(answer.body.length).toBe(0);
      expect({ ...answer.headers, date: '' }).toEqual({ ...headers, date: '' });
    }
  });

  test('returns 404 without a body', async () => {
    const { status, body } = await call(`${base_url}/files/x`, {}, 'HEAD');
    expect({ status, length: body.length }).toEqual({ status: 404, length: 0 });
  });
});

describe('the header Range', () => {
  test('gets 206 and the bytes of any single range', async () => {
    const { url } = await publish(digits);
    const position = fc.option(fc.nat(12), { nil: undefined });
    for (const [first, last] of fc.sample(fc.tuple(position, position), 60)) {
      const header = `bytes=${first ?? ''}-${last ?? ''}`;
      const range = parseRange(header, digits.length);
      const { status, headers, body } = await call(url, { range: header });
      const expected = {
        whole: { status: 200, range: undefined, body: digits.toString() },
        none: { status: 416, range: 'bytes */10', body: expect.stringContaining('"range_not_satisfiable"') },
        part: typeof range === 'object' && {
          status: 206,
          range: `bytes ${range.start}-${range.end}/10`,
          body: digits.toString('latin1', range.start, range.end + 1),
        },
      }[range === undefined ? 'whole' : range === 'unsatisfiable' ? 'none' : 'part'];
      expect({ status, range: headers['content-range'], body: body.toString() }, `${header}`).toEqual(expected);
    }
  });

  test('gets 206 with the length of the range and the tag of the whole file', async () => {
    const { url } = await publish(digits);
    const whole = await call(url);
    const part = await call(url, { range: 'bytes=-3' });
    expect(part.body.toString()).toBe('789');
    expect(part.headers).toMatchObject({
      'content-length': '3',
      etag: whole.headers.etag,
      'content-type': 'image/png',
    });
  });

  test('gets 200 and the whole file for several ranges or an invalid one', async () => {
    const { url } = await publish(digits);
    for (const range of ['bytes=0-1,4-5', 'bytes=5-1', 'lines=1-2', 'bytes']) {
      const { status, body } = await call(url, { range });
      expect({ status, body: body.toString() }, `${range}`).toEqual({ status: 200, body: '0123456789' });
    }
  });

  test('gets 416 with the size and the format of all errors', async () => {
    const { url } = await publish(digits);
    const { status, headers, body } = await call(url, { range: 'bytes=10-' });
    expect(status).toBe(416);
    expect(headers).toMatchObject({ 'content-range': 'bytes */10', 'content-type': 'application/json; charset=utf-8' });
    expect(JSON.parse(body.toString()).error).toMatchObject({ type: 'invalid_request', code: 'range_not_satisfiable' });
  });
});

describe('a conditional request', () => {
  test('gets 304 for If-None-Match with our tag, also weak or in a list', async () => {
    const { url } = await publish(digits);
    const { etag = '' } = (await call(url)).headers;
    for (const tags of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const { status, headers, body } = await call(url, { 'if-none-match': tags, range: 'bytes=0-1' });
      expect({ status, etag: headers.etag, body: body.toString() }, `${tags}`).toEqual({ status: 304, etag, body: '' });
      expect(headers['cache-control']).toBe('private, max-age=60');
    }
    expect((await call(url, { 'if-none-match': etag }, 'HEAD')).status).toBe(304);
  });

  test('gets 200 for If-None-Match with other tags', async () => {
    const { url } = await publish(digits);
    const { etag = '' } = (await call(url)).headers;
    for (const tags of ['"x"', etag.replaceAll('"', ''), '', etag.replace(/.$/, 'x"')]) {
      expect((await call(url, { 'if-none-match': tags })).status, `${tags}`).toBe(200);
    }
  });

  test('gets 404 for a file without a link, whatever its condition', async () => {
    const { url } = await publish(digits);
    const { etag = '' } = (await call(url)).headers;
    expect((await call(`${url}x`, { 'if-none-match': etag })).status).toBe(404);
  });

  test('gets a range with If-Range only while the file is the same', async () => {
    const { key, url } = await publish(digits);
    const { etag = '' } = (await call(url)).headers;
    const resume = async (if_range: string) =>
      (await call(url, { range: 'bytes=5-', 'if-range': if_range })).body.toString();
    expect(await resume(etag)).toBe('56789');
    for (const other of ['"x"', `W/${etag}`, 'Wed, 21 Oct 2026 07:28:00 GMT', ''])
      expect(await resume(other)).toBe('0123456789');
    await storage.put(key, Buffer.from('abcdefghij'), { content_type: 'image/png', size_limit_bytes: 10 });
    expect(await resume(etag)).toBe('abcdefghij');
  });

  test('gets 412 for If-Match with another tag', async () => {
    const { url } = await publish(digits);
    const { etag = '' } = (await call(url)).headers;
    expect((await call(url, { 'if-match': '"x"' })).status).toBe(412);
    expect((await call(url, { 'if-match': `W/${etag}` })).status).toBe(412);
    expect((await call(url, { 'if-match': `"x", ${etag}` })).status).toBe(200);
    expect((await call(url, { 'if-match': '*' })).status).toBe(200);
  });
});

describe('a file that changes meanwhile', () => {
  test('is served as one version, never the headers of one and the bytes of another', async () => {
    const { key, url } = await publish(digits);
    const versions = [Buffer.from('0123456789'), Buffer.from('abcdefghijklmnop')];
    const { exp, sig } = Object.fromEntries(new URL(url).searchParams);
    let puts = 0;
    const changing: Storage = {
      ...storage,
      open: async (...args) => {
        // Twice the file is replaced between the two looks.
        if (puts < 2)
          await storage.put(key, versions[++puts % 2] ?? digits, { content_type: '', size_limit_bytes: 100 });
        return storage.open(...args);
      },
    };
    const reply = await serveFile(
      { storage: changing, thumbnails: no_thumbnails, secret, now_ms },
      { method: 'GET', key, query: { exp, sig }, headers: { range: 'bytes=0-' }, request_id: 'req_1' },
    );
    expect(puts).toBe(2);
    expect(reply.headers['content-range']).toBe('bytes 0-9/10');
    expect(reply.stream && (await buffer(reply.stream)).toString()).toBe('0123456789');
  });
});

describe('a client of /files', () => {
  const open_files = async () => {
    const links = await readdir('/proc/self/fd').then((fds) =>
      Promise.all(fds.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''))),
    );
    return links.filter((path) => path.startsWith(files.folder));
  };

  test('leaves no file open when it disconnects, and a slow one is waited for', async () => {
    const { url } = await publish(Buffer.alloc(30_000_000), 'mp4');
    const { pathname, search, port } = new URL(url);
    const sockets = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const socket = connect(Number(port), '127.0.0.1');
        socket.write(`GET ${pathname}${search} HTTP/1.1\r\nhost: x\r\n\r\n`);
        await once(socket, 'readable');
        return socket;
      }),
    );
    // Nobody reads on: the files stay open, and what is in memory stays far below their size.
    await vi.waitFor(async () => expect(await open_files()).toHaveLength(5), { timeout: 120_000 });
    for (const socket of sockets) socket.destroy();
    await vi.waitFor(async () => expect(await open_files()).toEqual([]), { timeout: 120_000 });
  });

  test('leaves no file open after HEAD, 304, 416 and ranges', async () => {
    const { url } = await publish(digits);
    const { etag = '' } = (await call(url)).headers;
    await call(url, {}, 'HEAD');
    await call(url, { 'if-none-match': etag });
    await call(url, { range: 'bytes=100-' });
    await call(url, { range: 'bytes=1-2' });
    await vi.waitFor(async () => expect(await open_files()).toEqual([]), { timeout: 120_000 });
  });

  test('gets the whole file although it is removed meanwhile', async () => {
    const bytes = Buffer.alloc(20_000_000, 7);
    const { key, url } = await publish(bytes, 'mp4');
    const sent = request(url, { agent: false }).end();
    const [response] = await once(sent, 'response');
    await storage.remove([key]);
    expect((await buffer(response)).equals(bytes)).toBe(true);
    expect((await call(url)).status).toBe(404);
  });
});
