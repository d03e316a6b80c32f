// Processes of the set-up: who is alive, and children that get our signals. Plain JavaScript for Node 20.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';

/** The Node that npm has installed in `root`, or this one where there is none. */
export function pinnedNode(root) {
  const path = join(root, 'node_modules', '.bin', 'node');
  return process.platform !== 'win32' && existsSync(path) ? path : process.execPath;
}

/** Tells whether the packages of the tests are installed; if not, says how to install them. */
export function hasTests(root) {
  const needed = [join('node_modules', 'pg'), join('test', 'node_modules', 'vitest')];
  if (needed.every((path) => existsSync(join(root, path)))) return true;
  console.error('The packages of the tests are not installed yet: run npm test once, which installs them.');
  return false;
}

/** A process for as long as it lives: a pid alone would be mistaken for the next process that gets it. */
export function identify(pid) {
  return { pid, started: startOf(pid) };
}

export function isAlive({ pid, started }) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error.code !== 'EPERM') return false;
  }
  return started !== undefined && startOf(pid) === started;
}

/**
 * Returns the start time of a process, in the system's own words; 'unknown' on Windows; undefined once it is
 * gone or a zombie.
 */
function startOf(pid) {
  if (process.platform === 'win32') return 'unknown';
  if (process.platform !== 'linux') {
    return spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim() || undefined;
  }
  try {
    // The name in brackets may hold anything; the state follows it, the start time stands 19 fields later.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/** The signal that asked this process to stop, if one did. */
let stop_signal;
const children = new Set();

/**
 * From now on signals go to our children, and we stay until they have ended: whoever waits for us
 * waits for them. Ctrl-C comes from the terminal, from npm and perhaps again from an impatient user;
 * the children get it from us once.
 */
export function forwardSignals() {
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stop(signal));
  // Asks the service to read its configuration again; without a service, the terminal is gone.
  process.on('SIGHUP', () => (children.size > 0 ? signalChildren('SIGHUP') : stop('SIGHUP')));
  if (process.env.npm_lifecycle_event) stopWithParent();
}

/** npm, or the shell that it starts us by, may be killed by a signal that nobody passes on to us. */
function stopWithParent() {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) stop('SIGTERM');
  }, 500).unref();
}

function stop(signal) {
  if (stop_signal) return;
  stop_signal = signal;
  signalChildren(signal);
}

function signalChildren(signal) {
  for (const child of children) child.kill(signal);
}

/** Thrown instead of going on after a signal. */
export class Stopped extends Error {
  exit_code = 128 + constants.signals[stop_signal];
}

/**
 * Runs a program to its end and returns its exit code, 128 + number if a signal ended it. `onStart`
 * gets its pid at once.
 */
export function runChild(command, args, { onStart, onOutput, ...options }) {
  if (stop_signal) throw new Stopped();
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: onOutput ? ['ignore', 'pipe', 'pipe'] : 'inherit', ...options });
    child.once('error', reject);
    if (child.pid === undefined) return;
    children.add(child);
    onStart?.(child.pid);
    child.stdout?.on('data', onOutput);
    child.stderr?.on('data', onOutput);
    child.once('close', (code, signal) => {
      children.delete(child);
      resolve(signal ? 128 + constants.signals[signal] : code);
    });
  });
}

/** For the end of an installation that a signal has cut short. */
export function throwIfStopped() {
  if (stop_signal) throw new Stopped();
}
