import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type EventServer = {
  url: string;
  /** Number of requests so far. */
  count: number;
  /** Called when a caller has left before the end of its answer. */
  onLeft: () => void;
  stop(): Promise<void>;
};

/** Starts a server that answers each request with 200 and the head of a stream, and leaves the rest to `answer`. */
export async function startEventServer(answer: (response: ServerResponse) => void): Promise<EventServer> {
  const server = createServer((request, response) => {
    state.count += 1;
    request.resume();
    response.once('close', () => response.writableFinished || state.onLeft());
    response.writeHead(200, { 'content-type': 'text/event-stream', 'x-request-id': 'req_1' });
    response.flushHeaders();
    answer(response);
  });
  const state: EventServer = {
    url: '',
    count: 0,
    onLeft: () => undefined,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return state;
}
