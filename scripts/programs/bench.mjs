// npm run bench NAME [-- --quick]: installs what is missing, then runs bench/NAME.ts on the pinned Node.
// Plain JavaScript for Node 20. Each bench prints a table and writes bench/results/NAME.md.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';

const benches = ['backup', 'chat', 'generate', 'growth', 'money', 'monitoring', 'scale', 'soak', 'usage', 'webhooks'];

/** Benches that need packages of their own (bench/package.json): what they are compared with. */
const compared = ['chat'];

const root = fileURLToPath(new URL('../..', import.meta.url));
const [name, ...args] = process.argv.slice(2);

forwardSignals();
await finish(async () => {
  if (!benches.includes(name)) {
    console.error(`Which one? npm run bench ${benches.join(' | ')}`);
    return 2;
  }
  const place = await setUp(root, compared.includes(name) ? ['.', 'bench'] : ['.']);
  try {
    return await runScript(root, place, `bench/${name}.ts`, args, { cwd: root });
  } finally {
    place.leave();
  }
});
