import { request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';

/** Returns the headers that sign in to a proxy, if its address has a user. */
export function proxyHeaders(proxy: URL): Record<string, string> {
  if (proxy.username === '' && proxy.password === '') return {};
  const user = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(user).toString('base64')}` };
}

/** The proxy did not open the tunnel; `status` is its answer. */
export class TunnelError extends Error {
  override name = 'TunnelError';
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}

const header_bytes_max = 16_384;

/** Asks a proxy for a tunnel to a host and port. Rejects with TunnelError; the socket is closed then. */
export function openTunnel(
  socket: Socket,
  proxy: URL,
  place: string,
  onExpiry: (fail: (reason: Error) => void) => void,
): Promise<Socket> {
  return new Promise((opened, failed) => {
    const outgoing = httpRequest({
      method: 'CONNECT',
      path: place,
      headers: { host: place, ...proxyHeaders(proxy) },
      createConnection: () => socket,
      maxHeaderSize: header_bytes_max,
    });
    const fail = (error: Error) => {
      failed(error);
      socket.destroy();
    };
    onExpiry(fail);
    outgoing.once('connect', ({ statusCode: status = 0 }, _, head) => {
      if (status < 200 || status > 299) return fail(new TunnelError(`it answered ${status}`, status));
      if (head.length > 0) return fail(new TunnelError('it spoke before it was asked'));
      opened(socket);
    });
    outgoing.once('error', () => fail(new TunnelError('it closed the connection, or its answer is no HTTP')));
    outgoing.end();
  });
}
