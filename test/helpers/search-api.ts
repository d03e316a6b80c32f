import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type SearchRequest = { method: string; path: string; headers: IncomingHttpHeaders; body: string };

/** Answers a search: a body with status 200, or whatever the test does with the response. */
type Play = (request: SearchRequest, response: ServerResponse) => unknown;

/** A real HTTP server in place of a search API, whose answers a test writes. */
export type SearchServer = {
  url: string;
  requests: SearchRequest[];
  /** An object is sent as JSON; undefined: the function has answered, or never does. */
  play(answer: Play): void;
  stop(): Promise<void>;
};

export async function startSearchApi(): Promise<SearchServer> {
  const requests: SearchRequest[] = [];
  let play: Play = () => ({ results: [] });
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const one = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body };
      requests.push(one);
      const answer = play(one, response);
      if (answer === undefined) return;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    play: (answer) => (play = answer),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
