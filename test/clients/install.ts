import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { hash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import type { Client } from './list.ts';
import { isLine, type Line } from './programme.ts';

const run = promisify(execFile);
const install_ms_max = 400_000;
const drivers = join(import.meta.dirname, 'drivers');

/** Installs a client's packages into a folder of their own below the cache, once. Throws with what the installer said. */
export async function install(client: Client, cache: string): Promise<string> {
  const [first = ''] = client.packages;
  const words = first.replaceAll(/[^\w.]+/g, '-').replace(/^-/, '');
  const folder = join(cache, `${words}-${hash('sha1', client.packages.join(' ')).slice(0, 8)}`);
  const is_complete = join(folder, 'complete');
  if (!existsSync(is_complete)) {
    mkdirSync(folder, { recursive: true });
    if (client.from === 'npm') await installNpm(client, folder);
    else await installPypi(client, folder);
    writeFileSync(is_complete, '');
  }
  const helpers = client.from === 'npm' ? ['programme.mjs', 'results_mcp.mjs'] : ['programme.py'];
  for (const name of [client.driver, ...helpers]) {
    copyFileSync(join(drivers, name), join(folder, name)); // packages are found from where the driver is
  }
  return folder;
}

async function installNpm({ packages }: Client, folder: string): Promise<void> {
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--no-update-notifier', '--loglevel=error'];
  await run('npm', ['install', ...flags, ...packages], { cwd: folder, timeout: install_ms_max });
}

async function installPypi({ packages }: Client, folder: string): Promise<void> {
  const options = { cwd: folder, timeout: install_ms_max };
  await run('python3', ['-m', 'venv', 'venv'], options);
  const flags = ['--quiet', '--disable-pip-version-check', '--no-input', '--prefer-binary', '--no-compile'];
  await run(join(folder, 'venv/bin/python'), ['-m', 'pip', 'install', ...flags, ...packages], options);
}

/** Tells whether a registry answers, so that a report does not blame a client for a network that is not there. */
export async function reaches(from: Client['from']): Promise<boolean> {
  const ask =
    from === 'npm'
      ? run('npm', ['view', 'openai@4.104.0', 'version'], { timeout: 60_000 })
      : run('python3', ['-m', 'pip', 'index', 'versions', 'openai'], { timeout: 60_000 });
  return ask.then(
    () => true,
    () => false,
  );
}

export type Place = { url: string; key: string; programme: string; time_ms_max: number };

/** A driver's lines, and what it wrote on stderr. A driver that takes too long is killed. */
export async function drive(
  client: Client,
  folder: string,
  { url, key, programme, time_ms_max }: Place,
  hold: (child: ChildProcess) => void,
): Promise<{ lines: Line[]; output: string }> {
  const home = join(folder, 'home');
  mkdirSync(home, { recursive: true });
  const program = client.from === 'npm' ? process.execPath : join(folder, 'venv/bin/python');
  const child = spawn(program, [join(folder, client.driver), client.word], {
    cwd: folder,
    env: { ...quiet_env, HOME: home, MEDLEY_URL: url, MEDLEY_KEY: key, PROGRAMME: programme },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  hold(child);
  const timer = setTimeout(() => child.kill('SIGKILL'), time_ms_max);
  let output = '';
  child.stderr.on('data', (chunk) => (output = `${output}${String(chunk)}`.slice(-4_000)));
  const lines: Line[] = [];
  createInterface({ input: child.stdout }).on('line', (text) => {
    const value = parse(text);
    if (isLine(value)) lines.push(value);
  });
  await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  return { lines, output };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // some SDKs print on stdout
  }
}

/** Nothing of this machine's, no telemetry, no update; whatever wants to leave loopback meets a closed port. */
const quiet_env = {
  PATH: process.env['PATH'],
  LANG: 'C.UTF-8',
  PYTHONUNBUFFERED: '1',
  NODE_USE_ENV_PROXY: '1',
  HTTP_PROXY: 'http://127.0.0.1:9',
  HTTPS_PROXY: 'http://127.0.0.1:9',
  http_proxy: 'http://127.0.0.1:9',
  https_proxy: 'http://127.0.0.1:9',
  NO_PROXY: '127.0.0.1,localhost',
  no_proxy: '127.0.0.1,localhost',
  NODE_NO_WARNINGS: '1',
  DO_NOT_TRACK: '1',
  OTEL_SDK_DISABLED: 'true',
  LANGSMITH_TRACING: 'false',
  LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  OPENAI_AGENTS_DISABLE_TRACING: '1',
  HAYSTACK_TELEMETRY_ENABLED: 'False',
  CREWAI_DISABLE_TELEMETRY: 'true',
  AGNO_TELEMETRY: 'false',
  AUTOGEN_TELEMETRY: 'false',
  ANONYMIZED_TELEMETRY: 'False',
};
