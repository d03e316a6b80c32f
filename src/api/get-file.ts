import type { Clock } from '../lib/clock.ts';
import { thumbnail_sizes } from '../storage/key.ts';
import type { Storage } from '../storage/storage.ts';
import type { Thumbnails } from '../storage/thumbnails.ts';
import type { Endpoint } from '../http/endpoint.ts';
import { serveFile } from './files.ts';

/** The parts of the app that serving files by links takes. */
type Parts = {
  readonly storage: Storage;
  readonly thumbnails: Thumbnails;
  readonly secret: string;
  readonly clock: Clock;
};

const prefix = '/files/';

/** An output file for whoever holds a valid link to it: the link is the whole authorisation. */
export const get_file: Endpoint<Parts> = {
  method: 'GET',
  path: `${prefix}{+key}`,
  public: true,
  lenient_query: true, // whoever passes a link on may add parameters of their own
  docs: {
    tag: 'Files',
    summary: 'Download an output file',
    description: 'Takes a link of a task. Supports Range requests.',
    params: { key: { description: 'From the link.', schema: { type: 'string' } } },
    query: {
      exp: { description: 'Expiry of the link, seconds since 1970.', schema: { type: 'integer' }, required: true },
      sig: { description: 'Signature of the link.', schema: { type: 'string' }, required: true },
      thumbnail: {
        description: 'Answers a small WebP of the file instead, whose shorter side has so many pixels.',
        schema: { type: 'integer', enum: [...thumbnail_sizes] },
      },
    },
    responses: {
      200: { description: 'The file.', content_type: 'application/octet-stream' },
      206: { description: 'The requested part of the file.', content_type: 'application/octet-stream' },
      302: { description: 'The file is at the address in `location`, where a bucket serves files itself.' },
      304: { description: 'The file matches If-None-Match.' },
      404: { description: 'There is no such file, or the link has expired.' },
      412: { description: 'The file does not match If-Match.' },
      416: { description: 'The file has no such range.' },
    },
  },
  handle: async (app, { method, path, query, headers, request_id }) => {
    const { storage, thumbnails, secret } = app;
    const serving = { storage, thumbnails, secret, now_ms: app.clock.now() };
    const key = path.slice(prefix.length);
    const reply = await serveFile(serving, { method, key, query: Object.fromEntries(query), headers, request_id });
    const body = reply.stream ?? reply.body;
    return { status: reply.status, headers: reply.headers, ...(body !== undefined && { body }) };
  },
};
