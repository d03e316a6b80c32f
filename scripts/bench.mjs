// npm run bench NAME [-- --quick]: installs what is missing, then runs bench/NAME.ts on the pinned Node.
// Plain JavaScript for Node 20. Each bench prints a table and writes bench/results/NAME.md.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from './setup.mjs';
import { forwardSignals } from './setup-process.mjs';

const parts = /^(cpu|report|service|leash|profile|bare-proxy|chat-.*)\.ts$/;

/** Benches that need packages of their own (bench/package.json): what they are compared with. */
const compared = ['chat'];

const root = fileURLToPath(new URL('..', import.meta.url));
const [name, ...args] = process.argv.slice(2);

/** A bench says what it is for in its first lines. */
function benches() {
  return readdirSync(join(root, 'bench'))
    .filter((file) => file.endsWith('.ts') && !parts.test(file))
    .map((file) => file.slice(0, -'.ts'.length));
}

forwardSignals();
await finish(async () => {
  if (!benches().includes(name)) {
    console.error(`Which one? npm run bench ${benches().join(' | ')}`);
    return 2;
  }
  const place = await setUp(root, compared.includes(name) ? ['.', 'bench'] : ['.']);
  try {
    return await runScript(root, place, `bench/${name}.ts`, args, { cwd: root });
  } finally {
    place.leave();
  }
});
