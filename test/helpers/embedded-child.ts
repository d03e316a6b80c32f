/**
 * A process with an embedded PostgreSQL, for tests that kill it or run it as another user:
 * `node embedded-child.ts DATA_FOLDER`. Says one line of JSON when it is ready or has failed, stops
 * at the end of its input. A terminal's Ctrl-C does not end it.
 */
import { startEmbedded } from '../../src/embedded-postgres/embedded.ts';

process.on('SIGINT', () => undefined);
try {
  const log: string[] = [];
  const embedded = await startEmbedded({
    data_dir: process.argv[2] ?? '',
    settings: { fsync: 'off' },
    log: (line) => log.push(line),
  });
  const { pid, adopted, url, connection } = embedded;
  say({ pid, adopted, url, connection, log });
  process.stdin.on('end', () => void embedded.stop()).resume();
} catch (error) {
  say({ failed: error instanceof Error ? error.message : String(error) });
}

function say(answer: object): void {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
