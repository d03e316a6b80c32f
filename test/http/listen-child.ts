/**
 * A process whose child listens on the port of its first argument with `listen`, as an API process does. It is busy
 * whenever it hears that the child listens, as a starting service on a busy machine is. Ends with 0 if the child could.
 */
import cluster from 'node:cluster';
import { createServer } from 'node:http';
import { listen } from '../../src/http/listen.ts';

const busy_ms = 500;

if (cluster.isPrimary) {
  cluster.on('listening', () => {
    const end = performance.now() + busy_ms;
    while (performance.now() < end);
  });
  cluster.fork().once('exit', (code) => process.exit(code ?? 1));
} else {
  const port = Number(process.argv[2]);
  const { close } = await listen(createServer(), { host: '127.0.0.1', port });
  await close();
  process.exit(0);
}
