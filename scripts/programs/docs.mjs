// npm run docs: builds the pages of /guide from docs/ (with the dashboard, which is made by the same build). A service
// that is started later has them. npm start does it by itself where a document has changed. Plain JavaScript for Node 20.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals } from '../setup-process.mjs';
import { buildWeb } from '../web.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'web']);
  try {
    const code = await buildWeb(root, (script, words) => runScript(root, place, script, words, { cwd: root }));
    if (code !== 0) return code;
    const names = readdirSync(join(root, 'web/dist/guide'));
    console.log(`web/dist/guide has ${names.filter((name) => name.endsWith('.page')).length} pages.`);
    return 0;
  } finally {
    place.leave();
  }
});
