import { connect, createServer, type Socket } from 'node:net';
import { freePort } from '../../helpers/free-port.ts';

/** A door before a server: shut, nobody listens at its port, so that connections are refused. */
export type SwitchedProxy = { url: string; open(): Promise<void>; shut(): Promise<void> };

export async function startGate(target: string): Promise<SwitchedProxy> {
  const target_port = Number(new URL(target).port);
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(target_port, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const port = await freePort(); // nobody is given it while the door is shut
  await listen(port);
  return {
    url: `http://127.0.0.1:${port}`,
    open: () => (server.listening ? Promise.resolve() : listen(port)),
    shut: () =>
      new Promise((resolve) => {
        if (!server.listening) return resolve();
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
