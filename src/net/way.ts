import { request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { rememberByObject } from '../lib/remember.ts';

/** The way of connections that an operator has chosen. Absent members: straight, with the usual certificates. */
export type Way = {
  /** Address of an HTTP(S) proxy, with its user and password. */
  proxy?: string | undefined;
  /**
   * The operator has named the target: where its name is unknown here, the proxy resolves it. A target that somebody else
   * chose must have an address here, which is judged.
   */
  proxy_resolves?: boolean;
  tls?: TlsParts | undefined;
};

/** Texts in PEM: what this side shows of itself, and whom it believes instead of the usual authorities. */
export type TlsParts = { cert?: string; key?: string; ca?: string; server_name?: string };

/** Returns the certificates of a connection, parsed once. */
export const secureContextOf: (tls: TlsParts) => SecureContext = rememberByObject(({ cert, key, ca }: TlsParts) =>
  createSecureContext({
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(ca !== undefined && { ca }),
  }),
);

/** The headers that a proxy wants. */
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
