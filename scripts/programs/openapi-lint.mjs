// npm run openapi-lint: the recommended rules of Redocly and of Spectral for the OpenAPI document. Plain JavaScript
// for Node 20. Ends with 1 if a rule has an error or a warning.
//
//   npm run openapi-lint -- [--file FILE] [--rules all|redocly]     the file is openapi.json unless named
//
// Redocly's rules are a package of the tests, which run them. Spectral is 52 MB and takes three times as long, so npm
// fetches it for this command alone.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { readOptions } from '../options.mjs';
import { finish, setUp } from '../setup.mjs';
import { forwardSignals, runChild } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const spectral = '@stoplight/spectral-cli@6.16.3';

/** The number of problems, which are printed. */
async function askRedocly(file) {
  const { resolve: find } = createRequire(join(root, 'test/package.json'));
  const redocly = await import(pathToFileURL(find('@redocly/openapi-core')));
  const config = await redocly.createConfig({ extends: ['recommended'] });
  const source = readFileSync(file, 'utf8');
  const problems = await redocly.lintFromString({ source, absoluteRef: file, config });
  for (const { severity, ruleId, message, location } of problems)
    console.log(`${severity} ${ruleId} ${location[0]?.pointer ?? ''}: ${message}`);
  console.log(`Redocly: ${problems.length} problems`);
  return problems.length;
}

async function askSpectral(file) {
  const folder = mkdtempSync(join(tmpdir(), 'medley-spectral-'));
  try {
    const ruleset = join(folder, 'ruleset.json');
    writeFileSync(ruleset, JSON.stringify({ extends: ['spectral:oas'] }));
    const words = ['lint', file, '--ruleset', ruleset, '--fail-severity', 'warn'];
    return await runChild('npm', ['exec', '--yes', `--package=${spectral}`, '--', 'spectral', ...words], {
      cwd: folder,
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

forwardSignals();
await finish(async () => {
  const { file, rules } = readOptions({
    file: { type: 'string', default: 'openapi.json' },
    rules: { type: 'string', default: 'all' },
  });
  if (rules !== 'all' && rules !== 'redocly') {
    console.error('--rules is all or redocly.');
    return 2;
  }
  const place = await setUp(root, ['test']);
  try {
    const path = resolve(file);
    const problems = await askRedocly(path);
    const code = rules === 'all' ? await askSpectral(path) : 0;
    return problems > 0 ? 1 : code;
  } finally {
    place.leave();
  }
});
