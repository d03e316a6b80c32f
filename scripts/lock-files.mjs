// The packages of this repository that have a lock file, and npm's answers about them. Plain JavaScript for Node 20.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve as resolvePath } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** `name` is that of the file with its materials. The dashboard is built in: what it needs is delivered. */
export const packages = [
  { name: 'medley', folder: '.' },
  { name: 'dashboard', folder: 'web' },
  { name: 'tests', folder: 'test' },
  { name: 'benchmarks', folder: 'bench' },
];

/** The npm that runs us, else the one of the PATH. */
function npmCommand() {
  const script = process.env.npm_execpath;
  if (script && /npm-cli\.[cm]?js$/.test(script) && existsSync(script)) return [process.execPath, script];
  return ['npm'];
}

/** Resolves to what npm prints, as JSON; undefined if it prints none. `problem` is what it complains of. */
export function askNpm(words, folder) {
  const [command, ...first] = npmCommand();
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...first, ...words], {
      cwd: resolvePath(root, folder),
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: command === 'npm' && process.platform === 'win32', // it is a script there
    });
    const printed = [];
    const complained = [];
    child.stdout.on('data', (chunk) => printed.push(chunk));
    child.stderr.on('data', (chunk) => complained.push(chunk));
    child.on('error', reject);
    child.on('close', () => {
      const problem = Buffer.concat(complained).toString('utf8').trim();
      resolve({ answer: parse(Buffer.concat(printed).toString('utf8')), problem });
    });
  });
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
