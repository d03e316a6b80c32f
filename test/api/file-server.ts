import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { serveFile } from '../../src/api/files.ts';
import { openDiskStorage } from '../../src/storage/disk.ts';
import { makeLink } from '../../src/storage/links.ts';
import { mediaType, type Extension } from '../../src/storage/media-types.ts';
import type { Storage } from '../../src/storage/storage.ts';
import { newKey } from '../storage/samples.ts';

export const secret = 'a secret of the tests';
export const expires_at_ms = 1_800_000_000_000;

/** A minute before all links end. */
export const now_ms = expires_at_ms - 60_000;

export type FileServer = {
  base_url: string;
  folder: string;
  storage: Storage;
  /** Stores a file and gives its link. */
  publish(bytes: Uint8Array, extension?: Extension): Promise<{ key: string; url: string }>;
  stop(): Promise<void>;
};

/** Of no file. */
export const no_thumbnails = { keyOf: async () => undefined };

/** A plain HTTP server with a folder of files, and nothing between them but `serveFile`. */
export async function startFileServer(): Promise<FileServer> {
  const folder = await mkdtemp(join(tmpdir(), 'medley-files-'));
  const storage = await openDiskStorage(folder);
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    const key = url.replace(/\?.*$/, '').replace('/files/', '');
    const call = { method, key, query: queryOf(url), headers, request_id: 'req_1' };
    serveFile({ storage, thumbnails: no_thumbnails, secret, now_ms }, call)
      .then(async ({ status, headers: answer_headers, stream, body }) => {
        response.writeHead(status, answer_headers);
        if (stream) await pipeline(stream, response);
        else response.end(body);
      })
      .catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    base_url,
    folder,
    storage,
    publish: async (bytes, extension = 'png') => {
      const key = newKey(extension);
      const { content_type } = mediaType(extension);
      await storage.put(key, Buffer.from(bytes), { content_type, size_limit_bytes: 1e9 });
      return { key, url: makeLink(secret, { base_url, key, expires_at_ms }).url };
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** As Fastify gives it: a list where a name is said twice. */
function queryOf(url: string): Record<string, unknown> {
  const { searchParams } = new URL(url, 'http://localhost');
  const names = [...new Set(searchParams.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const values = searchParams.getAll(name);
      return [name, values.length > 1 ? values : values[0]];
    }),
  );
}
