import { connect } from 'node:net';
import { request } from 'undici';
import type { Caller } from '../../src/accounts/authenticate.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import type { PipelineOptions } from '../../src/http/options.ts';
import { Semaphore } from '../../src/concurrency/semaphore.ts';
import { makePipeline, type Pipeline } from '../../src/http/pipeline.ts';
import { ApiError } from '../../src/errors.ts';
import { memoryWindows } from '../../src/limits/window.ts';
import { windowsOfOneProcess } from '../helpers/windows.ts';

/** The app that endpoints of these tests get. */
export type TestApp = { name: string };

export type LogLine = { level: 'info' | 'error'; message: string; fields: Record<string, unknown> };

export type Harness = {
  pipeline: Pipeline;
  port: number;
  log: LogLine[];
  /** The number of requests whose key was looked up. */
  authenticated(): number;
  /** Sends a request with the key of key_1 unless headers say otherwise. */
  send(method: string, path: string, options?: SendOptions): Promise<Received>;
  /** Sends bytes as they are, and tells what came back until the server closed or went quiet. */
  sendRaw(...parts: (string | Buffer)[]): Promise<string>;
  /** At once. */
  close(): Promise<void>;
};

export type SendOptions = {
  headers?: Record<string, string>;
  body?: string | Buffer;
  json?: unknown;
  key?: string | null;
};

export type Received = {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /** The parsed JSON body; fails the test if it is none. */
  json(): Record<string, unknown>;
  /** `error` of the body. */
  error(): Record<string, unknown>;
};

function caller(number: number): Caller {
  return {
    account: { id: `acct_${number}`, name: `Account ${number}`, currency: 'USD', status: 'active' },
    key: { id: `key_${number}`, name: `Key ${number}` },
  };
}

/** Any `Bearer key_N` is a key; takes a turn of the event loop, as a look into a database does. */
export const authenticate: PipelineOptions<TestApp>['authenticate'] = async ({ authorization, api_key: key }) => {
  await new Promise((resolve) => setImmediate(resolve));
  const text = authorization === undefined ? key : /^bearer (\S+)$/i.exec(authorization)?.[1];
  const number = /^key_(\d+)$/.exec(text ?? '')?.[1];
  if (number === undefined) throw new ApiError('unauthenticated', 'Invalid API key.');
  return caller(Number(number));
};

/** A real server on a free port. */
export async function startHarness(
  endpoints: readonly Endpoint<TestApp>[],
  options: Partial<PipelineOptions<TestApp>> = {},
): Promise<Harness> {
  const log: LogLine[] = [];
  let authenticated = 0;
  const pipeline = makePipeline<TestApp>({
    app: { name: 'test' },
    endpoints,
    authenticate: (headers) => {
      authenticated += 1;
      return authenticate(headers);
    },
    windows: windowsOfOneProcess(),
    address_windows: memoryWindows(),
    body_memory: new Semaphore({ name: 'Memory for large request bodies', bound: 512_000_000, key_bound: 'fair' }),
    limits: () => ({ generate: 60, chat: 600, other: 600 }),
    cors_origins: () => [],
    trusted_proxies: () => [],
    log: {
      info: (fields, message) => void log.push({ level: 'info', message, fields: { ...fields } }),
      error: (fields, message) => void log.push({ level: 'error', message, fields: { ...fields } }),
    },
    ...options,
  });
  const { port } = await pipeline.listen({ host: '127.0.0.1', port: 0 });
  return {
    pipeline,
    port,
    log,
    authenticated: () => authenticated,
    send: (method, path, sent) => send(port, method, path, sent),
    sendRaw: (...parts) => sendRaw(port, parts),
    close: () => pipeline.close({ announce_ms: 0, grace_ms: 0 }),
  };
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

async function send(port: number, method: string, path: string, options: SendOptions = {}): Promise<Received> {
  const { key = 'key_1', json, headers = {} } = options;
  const body = json === undefined ? options.body : JSON.stringify(json);
  const answer = await request(`http://127.0.0.1:${port}${path}`, {
    method: methods.find((name) => name === method) ?? 'GET',
    headers: {
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body }),
  });
  const text = await answer.body.text();
  return received(answer.statusCode, answer.headers, text);
}

function received(status: number, headers: Received['headers'], text: string): Received {
  const json = () => asObject(JSON.parse(text));
  return { status, headers, text, json, error: () => asObject(json()['error']) };
}

export function asObject(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new Error(`not an object: ${JSON.stringify(value)}`);
  return { ...value };
}

/**
 * A server that has said nothing at so many looks has nothing more to say. It runs in this process: where that stands
 * still, a look comes late, and behind what the server has said meanwhile.
 */
const quiet_looks = 15;
const look_ms = 100;

async function sendRaw(port: number, parts: readonly (string | Buffer)[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  let looks = 0;
  socket.on('data', (chunk) => {
    chunks.push(Buffer.from(chunk));
    looks = 0;
  });
  socket.on('error', () => {});
  const looking = setInterval(() => {
    looks += 1;
    if (looks > quiet_looks) socket.destroy();
  }, look_ms);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  for (const part of parts) socket.write(part);
  await closed;
  clearInterval(looking);
  return Buffer.concat(chunks).toString('latin1');
}

/** The first answer in what `sendRaw` returned. */
export function parseRaw(text: string): Received {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [status_line = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const body = rest.join('\r\n\r\n').slice(0, Number(headers['content-length'] ?? Infinity));
  return received(Number(status_line.split(' ')[1]), headers, body);
}

/** Resolves when `happened` is true; it is looked at whenever the event loop has gone round. */
export async function until(happened: () => boolean): Promise<void> {
  while (!happened()) await new Promise((resolve) => setTimeout(resolve, 5));
}
