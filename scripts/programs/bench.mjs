// npm run bench NAME [-- --quick]: installs what is missing, then runs bench/NAME.ts on the pinned Node.
// Plain JavaScript for Node 20. Each bench prints a table and writes bench/results/NAME.md.
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';
import { buildWeb } from '../web.mjs';

const benches = [
  'backup',
  'chat',
  'generate',
  'growth',
  'money',
  'monitoring',
  'pages',
  'scale',
  'soak',
  'usage',
  'webhooks',
];

/** Parts whose packages a bench needs, too: those of what it is compared with (bench/package.json), or of the browser. */
const parts = { chat: ['bench'], pages: ['web', 'test'] };

const root = fileURLToPath(new URL('../..', import.meta.url));
const [name, ...args] = process.argv.slice(2);

forwardSignals();
await finish(async () => {
  if (!benches.includes(name)) {
    console.error(`Which one? npm run bench ${benches.join(' | ')}`);
    return 2;
  }
  const place = await setUp(root, ['.', ...(parts[name] ?? [])]);
  try {
    const run = (script, words) => runScript(root, place, script, words, { cwd: root });
    const built = parts[name]?.includes('web') ? await buildWeb(root, run) : 0;
    return built || (await run(`bench/${name}.ts`, args));
  } finally {
    place.leave();
  }
});
