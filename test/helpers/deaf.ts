import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';

/** Listens with a queue of one, tells its port, and never runs again: nothing is ever accepted. */
const script = `
  const { parentPort, workerData } = require('node:worker_threads');
  const server = require('node:net').createServer();
  server.listen({ host: workerData, port: 0, backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); // in this turn: nothing is accepted before
  });
`;

const enough_to_be_full = 8;

/** A host that nobody can connect to, though nothing is refused: its queue of connections is full. */
export async function startDeafHost(host = '127.0.0.1'): Promise<{ url: string; stop(): Promise<void> }> {
  const worker = new Worker(script, { eval: true, workerData: host });
  const port = await new Promise<number>((resolve) => worker.once('message', resolve));
  const sockets: Socket[] = [];
  for (let i = 0; i < enough_to_be_full; i++) {
    const socket = connect(port, host);
    socket.on('error', () => {});
    sockets.push(socket);
  }
  return {
    url: `http://${host}:${port}`,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await worker.terminate();
    },
  };
}
