import { createServer, request as ask, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Act = 'pass' | 'cut' | { status: number; headers: Record<string, string>; body?: string };

export type CuttingProxy = {
  url: string;
  /** Method, path and key of each request, in their order. */
  seen: { method: string; path: string; key: string | undefined; at_ms: number }[];
  /** Decides about each request; `cut` lets it reach the service, waits for its answer, and ends the connection. */
  decide: (method: string, path: string, nth: number) => Act;
  stop(): Promise<void>;
};

/** Starts an HTTP proxy before the service at `target` that loses answers, or answers by itself. */
export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  const seen: CuttingProxy['seen'] = [];
  const proxy: CuttingProxy = { url: '', seen, decide: () => 'pass', stop: async () => undefined };
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const { method = 'GET', url = '/', headers } = request;
    const key = headers['idempotency-key'];
    seen.push({ method, path: url, key: typeof key === 'string' ? key : undefined, at_ms: Date.now() });
    const act = proxy.decide(method, url, seen.length);
    if (typeof act === 'object') {
      request.resume();
      const refusal = JSON.stringify({ error: { type: 'rate_limit', message: 'Slow down.' } });
      response.writeHead(act.status, act.headers).end(act.body ?? refusal);
      return;
    }
    const forward = ask(target + url, { method, headers }, (answer) => {
      if (act === 'cut') {
        answer.resume();
        answer.once('end', () => request.socket.destroy());
        return;
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    forward.once('error', () => request.socket.destroy());
    response.once('close', () => forward.destroy());
    request.pipe(forward);
  };
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  proxy.stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return proxy;
}
