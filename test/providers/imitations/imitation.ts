import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { Maker } from '../../../src/providers/sandbox/maker.ts';
import { never } from '../upstreams.ts';

/** The purpose of a request; `other`: the provider does not have it. */
export type Role = 'upload' | 'submit' | 'poll' | 'result' | 'cancel' | 'file' | 'other';

export type ReceivedRequest = {
  role: Role;
  method: string;
  /** Without its query. */
  path: string;
  query: Record<string, string>;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** The body as JSON; empty if it is none. */
  json: JsonObject;
  /** By the rate_clock of the test. */
  at_ms: number;
  socket: Socket;
};

/** `cut`: the connection is dropped without an answer. `half`: it is dropped within the answer. */
export type Reply =
  | 'hang'
  | 'cut'
  | {
      status?: number;
      headers?: Record<string, string>;
      json?: unknown;
      text?: string;
      bytes?: Buffer;
      half?: boolean;
    };

/** The behaviour of a provider: the role of each request, and its answer unless a test wants another. */
export type Behaviour = {
  roleOf(request: Omit<ReceivedRequest, 'role' | 'json'>): Role;
  /** A promise is an answer that comes later. */
  answer(request: ReceivedRequest, own: { url: string }): Reply | Promise<Reply>;
};

/** A real HTTP server on loopback that answers as a provider documents, or as a test scripts it. */
export type Imitation = {
  /** Its origin; what comes behind it belongs to the adapter's `base_url`. */
  url: string;
  requests: ReceivedRequest[];
  /** Those with this part. */
  requestsFor(role: Role): ReceivedRequest[];
  /** For the next requests of this part, one reply each; after them it answers as always. */
  instead(role: Role, ...replies: Reply[]): void;
  /** From now on it answers this part as always. */
  asAlways(role: Role): void;
  /** Resolves when a request of this part has come. */
  nextRequest(role: Role): Promise<ReceivedRequest>;
  stop(): Promise<void>;
};

export async function startImitation(behaviour: Behaviour, now: () => number = () => 0): Promise<Imitation> {
  const requests: ReceivedRequest[] = [];
  const scripts = new Map<Role, Reply[]>();
  const waiting: { role: Role; resolve: (one: ReceivedRequest) => void }[] = [];
  let url = '';
  const server = createServer((request, response) => {
    const answer = (one: ReceivedRequest) => {
      requests.push(one);
      const reply = scripts.get(one.role)?.shift() ?? behaviour.answer(one, { url });
      if (reply instanceof Promise) void reply.then((late) => play(late, response));
      else play(reply, response);
      const index = waiting.findIndex(({ role }) => role === one.role);
      if (index !== -1) waiting.splice(index, 1)[0]?.resolve(one);
    };
    read(request, behaviour, now()).then(answer, () => undefined); // a request that was broken off is none
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    requests,
    requestsFor: (role) => requests.filter((one) => one.role === role),
    instead: (role, ...replies) => void scripts.set(role, [...(scripts.get(role) ?? []), ...replies]),
    asAlways: (role) => void scripts.delete(role),
    nextRequest: (role) => new Promise((resolve) => waiting.push({ role, resolve })),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function read(request: IncomingMessage, behaviour: Behaviour, at_ms: number): Promise<ReceivedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://x');
  const one = {
    method: request.method ?? '',
    path: pathname,
    query: Object.fromEntries(searchParams),
    headers: request.headers,
    body: Buffer.concat(chunks),
    at_ms,
    socket: request.socket,
  };
  return { ...one, role: behaviour.roleOf(one), json: jsonOf(one.body) };
}

function jsonOf(body: Buffer): JsonObject {
  try {
    return JSON.parse(body.toString()) as JsonObject;
  } catch {
    return {};
  }
}

function play(reply: Reply, response: ServerResponse): void {
  if (reply === 'hang') return;
  if (reply === 'cut') return void response.socket?.destroy();
  const { status = 200, headers = {}, json, text, bytes, half = false } = reply;
  const type =
    json === undefined ? (text === undefined ? 'application/octet-stream' : 'text/html') : 'application/json';
  const body = bytes ?? Buffer.from(text ?? (json === undefined ? '' : JSON.stringify(json)));
  response.writeHead(status, { 'content-type': type, 'content-length': String(body.length), ...headers });
  if (!half) return void response.end(body);
  response.write(body.subarray(0, body.length / 2), () => response.socket?.destroySoon());
}

const samples = new Map<string, Promise<Buffer>>();

/** A small real file of a kind: 64 × 64 pixels, or a second. */
export function sampleFile(kind: 'image' | 'video' | 'audio'): Promise<Buffer> {
  const sample = samples.get(kind) ?? makeSample(kind);
  samples.set(kind, sample);
  return sample;
}

async function makeSample(kind: 'image' | 'video' | 'audio'): Promise<Buffer> {
  const maker = new Maker();
  const common = { text: 'sample', seed: 1 };
  const order =
    kind === 'image'
      ? { kind, ...common, width: 64, height: 64, n: 1 }
      : kind === 'audio'
        ? { kind, ...common, duration: 1 }
        : { kind, ...common, aspect_ratio: '1:1' as const, resolution: '480p' as const, duration: 1 };
  const files = await maker.make(order, never);
  await maker.close();
  const [file] = files;
  if (!Buffer.isBuffer(file)) throw new Error('the sandbox made no sample');
  return file;
}
