import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Response of a path: a status, no response at all, a status whose body never ends, one that stops for ever
 * after 20 kB, or a cut connection. A redirect leads to /elsewhere.
 */
export type Answer = number | 'hang' | 'endless' | 'stuck' | 'cut' | ((request: Received) => number | Promise<number>);

export type Received = { at_ms: number; method: string; path: string; headers: IncomingHttpHeaders; body: Buffer };

/** A real webhook receiver on loopback with a journal of what it was sent. */
export type Receiver = {
  url: string;
  /** In the order of arrival, of all paths. */
  received: Received[];
  /** Sets the response of a path (without its query); 204 by default. */
  answer(path: string, answer: Answer): void;
  /** Returns the number of requests in progress, by path; `most` is the highest number so far. */
  open(path?: string): number;
  most(path?: string): number;
  /** The request number `count` (from 1) of a path; waits for it. */
  nth(path: string, count: number): Promise<Received>;
  /** Answers what hangs on a path with this status. */
  release(path: string, status: number): void;
  stop(): Promise<void>;
};

export async function startReceiver(host = '127.0.0.1', wanted_port = 0): Promise<Receiver> {
  const received: Received[] = [];
  const answers = new Map<string, Answer>();
  const hanging = new Map<string, Set<ServerResponse>>();
  const open = new Map<string, number>();
  const most = new Map<string, number>();
  let arrived = Promise.withResolvers<void>();

  const count = (path: string, change: number) => {
    for (const name of [path, '']) {
      const now = (open.get(name) ?? 0) + change;
      open.set(name, now);
      most.set(name, Math.max(most.get(name) ?? 0, now));
    }
  };
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    count(path, 1);
    response.once('close', () => count(path, -1));
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const one = { at_ms: Date.now(), method, path: url, headers, body: Buffer.concat(chunks) };
      received.push(one);
      arrived.resolve();
      arrived = Promise.withResolvers<void>();
      void respond(one, path, response);
    });
  });
  const respond = async (one: Received, path: string, response: ServerResponse) => {
    const answer = answers.get(path) ?? 204;
    if (answer === 'cut') return void response.socket?.destroy();
    if (answer === 'endless') return writeForEver(response);
    if (answer === 'stuck') return void response.writeHead(200).write('x'.repeat(20_480));
    if (answer === 'hang') {
      const set = hanging.get(path) ?? new Set();
      hanging.set(path, set.add(response));
      response.once('close', () => set.delete(response));
      return;
    }
    const status = typeof answer === 'function' ? await answer(one) : answer;
    response.writeHead(status, status >= 300 && status < 400 ? { location: '/elsewhere' } : {});
    response.end(status === 204 ? undefined : `answer ${status}`);
  };
  await new Promise<void>((resolve) => server.listen(wanted_port, host, resolve));
  const { port } = server.address() as AddressInfo;
  const of = (path: string) => received.filter((one) => one.path.split('?')[0] === path);
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    received,
    answer: (path, answer) => void answers.set(path, answer),
    open: (path = '') => open.get(path) ?? 0,
    most: (path = '') => most.get(path) ?? 0,
    nth: async (path, number) => {
      for (;;) {
        const one = of(path)[number - 1];
        if (one) return one;
        await arrived.promise;
      }
    },
    release: (path, status) => {
      for (const response of hanging.get(path) ?? []) response.writeHead(status).end();
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function writeForEver(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/plain' });
  const more = () => {
    while (!response.destroyed && response.write('x'.repeat(1024)));
  };
  response.on('drain', more);
  more();
}
