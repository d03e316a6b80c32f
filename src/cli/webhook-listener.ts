import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { printable } from './caller/terminal.ts';
import { CommandError } from './result.ts';

/** A receiver of webhooks on this machine, for commands that print what comes. */

/** A request to the receiver. `verified`: one of the secrets has signed it. */
export type ReceivedWebhook = { delivery: string; event: string; verified: boolean; body: unknown };

export type Webhook = { bytes: Buffer; headers: IncomingHttpHeaders };

type ListenerOptions = {
  /** 0: any that is free. */
  port: number;
  count_max: number;
  verify: (webhook: Webhook) => Promise<boolean>;
  say: (text: string) => void;
};

export type Listener = {
  url: string;
  /** Resolves with what has come, after `count_max` requests or as soon as the signal is aborted. */
  until(signal: AbortSignal): Promise<ReceivedWebhook[]>;
};

export type ListenOptions = { port?: string; count?: string; json?: boolean };

/** Reads the options of a receiver. Without a port it takes any. */
export function readListenOptions({ port, count, json }: ListenOptions) {
  return {
    port: port === undefined ? 0 : wholeNumber(port, '--port', 1, 65_535),
    count_max: count === undefined ? Number.POSITIVE_INFINITY : wholeNumber(count, '--count', 1, 1_000_000),
    say: json ? () => {} : (text: string) => console.log(printable(text)),
  };
}

/** Starts a receiver on 127.0.0.1 that answers 204 to what is verified, else 401, and prints a line for each. */
export async function startListener({ port, count_max, verify, say }: ListenerOptions): Promise<Listener> {
  const received: ReceivedWebhook[] = [];
  const { promise: enough, resolve: stop } = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    const take = (one: ReceivedWebhook) => {
      response.writeHead(one.verified ? 204 : 401).end();
      received.push(one);
      say(line(one));
      if (received.length >= count_max) stop();
    };
    const lose = (error: Error) => {
      response.destroy();
      say(`A request was lost: ${error.message}`);
    };
    receive(request, verify).then(take, lose);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const chosen = typeof address === 'object' && address ? address.port : port;
  return {
    url: `http://127.0.0.1:${chosen}/`,
    until: async (signal) => {
      signal.addEventListener('abort', () => stop(), { once: true });
      if (!signal.aborted) await enough;
      server.closeAllConnections();
      server.close();
      return received;
    },
  };
}

async function receive(request: IncomingMessage, verify: ListenerOptions['verify']): Promise<ReceivedWebhook> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const { headers } = request;
  return {
    delivery: headerOf(headers, 'x-service-delivery'),
    event: headerOf(headers, 'x-service-event'),
    verified: await verify({ bytes, headers }),
    body: asJson(bytes),
  };
}

/** Returns a header of a webhook; empty if it has none. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string {
  return String(headers[name] ?? '');
}

/** Returns the result of a command that listened. */
export function listenResult(received: readonly ReceivedWebhook[]) {
  const verified = received.filter((one) => one.verified).length;
  return { json: { received }, text: `${received.length} received, ${verified} verified` };
}

function asJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return bytes.toString();
  }
}

function line({ delivery, event, verified, body }: ReceivedWebhook): string {
  return `${new Date().toISOString()}  ${verified ? 'verified' : 'NOT VERIFIED'}  ${event}  ${delivery}  ${JSON.stringify(body)}`;
}

function wholeNumber(text: string, name: string, min: number, max: number): number {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new CommandError(`${name} must be a whole number from ${min} to ${max}; not "${text}".`, 2);
}
