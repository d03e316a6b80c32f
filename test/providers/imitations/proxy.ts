import { createServer, request as httpRequest, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { Certificate } from '../../helpers/certificate.ts';

/** A request to a proxy: `CONNECT host:port`, or the whole address of one without TLS. */
export type Proxied = { line: string; authorization: string | undefined };

export type ImitatedProxy = { host: string; seen: Proxied[]; stop(): Promise<void> };

/**
 * A forward proxy as RFC 9110 has it (7.6, 9.3.6). All names lead to this machine. `status`: the answer to CONNECT.
 * `certificate`: it is spoken to by TLS.
 */
export async function startProxy(
  options: { status?: number; certificate?: Certificate; user?: string } = {},
): Promise<ImitatedProxy> {
  const seen: Proxied[] = [];
  const sockets = new Set<Socket>();
  const { status = 200, certificate, user } = options;
  const expected = user === undefined ? undefined : `Basic ${Buffer.from(user).toString('base64')}`;
  const server: Server = certificate ? createTlsServer(certificate) : createServer();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  server.on('request', (request, response) => {
    const authorization = request.headers['proxy-authorization'];
    seen.push({ line: request.url ?? '', authorization });
    if (expected !== undefined && authorization !== expected) return response.writeHead(407).end();
    const { port, pathname, search } = new URL(request.url ?? '');
    const { 'proxy-authorization': _, ...headers } = request.headers;
    const onward = httpRequest({ host: '127.0.0.1', port, path: pathname + search, method: request.method, headers });
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.writeHead(502).end());
    return request.pipe(onward);
  });
  server.on('connect', (request, socket) => {
    const authorization = request.headers['proxy-authorization'];
    seen.push({ line: `CONNECT ${request.url}`, authorization });
    const answer = expected === undefined || authorization === expected ? status : 407;
    if (answer !== 200) return void socket.end(`HTTP/1.1 ${answer} No\r\ncontent-length: 0\r\n\r\n`);
    const port = Number((request.url ?? '').split(':').at(-1));
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    sockets.add(onward);
    for (const each of [onward, socket]) each.on('error', () => [onward, socket].map((one) => one.destroy()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
