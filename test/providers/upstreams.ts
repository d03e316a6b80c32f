import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { JsonObject, ProviderConfig } from '../../src/catalog/model.ts';
import type { ChatCall, ChatProvider } from '../../src/providers/provider.ts';
import { upstreamNamed, type UpstreamStyle } from '../styles/by-name.ts';

export const secret = 'sk-upstream-secret-0123456789';

export function configOf(adapter: string, base_url: string, more: Partial<ProviderConfig> = {}): ProviderConfig {
  return { name: 'p', adapter, base_url, api_key: secret, allow_private: true, ...more };
}

const timeout_ms = { connect: 60_000, first_byte: 60_000, idle: 60_000, start: 60_000, total: 60_000 };

/** A call of one user message for the upstream model `m`. */
export function callOf(style: UpstreamStyle, more: Partial<ChatCall> = {}): ChatCall {
  const body: JsonObject = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] };
  return {
    request_id: 'req_1',
    style: upstreamNamed(style),
    model: 'm',
    body,
    stream: false,
    headers: {},
    timeout_ms,
    options: {},
    ...more,
  };
}

export const never = new AbortController().signal;

/** The whole body of a reply. */
export async function textOf(provider: ChatProvider, call: ChatCall, signal = never): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of (await provider.send(call, signal)).body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** A server that is no HTTP server unless `onConnection` makes it one. */
export async function startRaw(
  onConnection: (socket: Socket) => void,
): Promise<{ url: string; sockets: Socket[]; stop(): Promise<void> }> {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sockets,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Resolves when the connection is over, however it ended. */
export async function untilClosed(socket: Socket | undefined): Promise<void> {
  if (socket && !socket.closed) await new Promise<void>((resolve) => socket.once('close', () => resolve()));
}
