import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** `digits`: of whole numbers that its parsed `body` cannot hold, in and out of texts. */
export type UpstreamRequest = {
  path: string;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown>;
  digits: string[];
};

/** The response of a route: a status and a body, perhaps only after something else, or the parts of a stream. */
export type Script =
  | { status?: number; headers?: Record<string, string>; json: unknown; after?: Promise<void> }
  /** Parts are written one by one; after the last one the answer ends, is cut, or stays open. */
  | { stream: (string | Buffer | number | Promise<void>)[]; then?: 'end' | 'cut' | 'hang' }
  | 'hang'
  | 'cut';

/** A real HTTP upstream of any style whose answers a test writes. A number in a stream is a pause in ms, a promise one until it resolves. */
export type ChatUpstream = {
  url: string;
  requests: UpstreamRequest[];
  /** For the next requests of this upstream model; the last one stays. */
  script(model: string, ...scripts: (Script | ((request: UpstreamRequest) => Script))[]): void;
  /** Number of connections with a running response. */
  open(): number;
  /** Breaks off all answers that are under way, also of callers that have left. */
  letGo(): void;
  stop(): Promise<void>;
};

export async function startChatUpstream(): Promise<ChatUpstream> {
  const requests: UpstreamRequest[] = [];
  const scripts = new Map<string, (Script | ((request: UpstreamRequest) => Script))[]>();
  const under_way = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString() || '{}';
      const body = JSON.parse(text) as Record<string, unknown>;
      chunks.length = 0; // the answer may go on for long
      const one = { path: request.url ?? '', headers: request.headers, body, digits: longDigits(text) };
      requests.push(one);
      under_way.add(response);
      response.once('close', () => under_way.delete(response));
      const model = body['model'] ?? modelIn(one.path);
      const list = scripts.get(String(model)) ?? [{ status: 404, json: { error: { message: 'no script' } } }];
      const next = list.length > 1 ? list.shift() : list[0];
      void play(typeof next === 'function' ? next(one) : (next ?? 'cut'), response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    script: (model, ...list) => void scripts.set(model, list),
    open: () => under_way.size,
    letGo: () => {
      for (const response of under_way) response.destroy();
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The runs of sixteen digits and more in a text. */
export function longDigits(text: string): string[] {
  return text.match(/\d{16,}/g) ?? [];
}

const flush_ms = 50;

async function play(script: Script, response: ServerResponse): Promise<void> {
  if (script === 'hang') return;
  if (script === 'cut') return void response.socket?.destroy();
  if ('json' in script) {
    await script.after;
    response.writeHead(script.status ?? 200, { 'content-type': 'application/json', ...script.headers });
    return void response.end(typeof script.json === 'string' ? script.json : JSON.stringify(script.json));
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  for (const part of script.stream) {
    if (response.destroyed) return;
    if (typeof part === 'number') await new Promise((resolve) => setTimeout(resolve, part));
    else if (part instanceof Promise) await part;
    else if (!response.write(part)) await new Promise((resolve) => response.once('drain', resolve));
  }
  if (script.then === 'hang') return;
  if (script.then !== 'cut') return void response.end();
  await new Promise((resolve) => setTimeout(resolve, flush_ms)); // what was written has to arrive
  response.socket?.destroy();
}

/** The model in a path of Google's (`…/models/MODEL:method`) or AWS's (`/model/MODEL/method`). */
function modelIn(path: string): string | undefined {
  const [, google, aws] = /\/models\/([^/:]+):|\/model\/([^/]+)\//.exec(path) ?? [];
  return google ?? (aws === undefined ? undefined : decodeURIComponent(aws));
}
