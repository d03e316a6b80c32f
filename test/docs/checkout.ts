import { spawn, spawnSync, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { removeFolder, temporaryFolder } from '../helpers/embedded.ts';
import { freePort } from '../helpers/free-port.ts';
import { repository } from './document.ts';

/** The address at which the service listens in the documents. */
const shown_address = '127.0.0.1:8080';

/** The address in the documents of a database that the reader has, and the tests have too. */
const shown_database = 'postgres://medley:secret@db.example.com/medley';

type Service = ChildProcessByStdio<null, Readable, Readable>;

/**
 * A clone of the repository as its reader sees it, with all packages installed: a folder of links, so
 * that what the commands write stays out of the real one. Its port stands wherever the documents show
 * the default; `mdl_…`, `acct_…`, `key_…`, `task_…` and `whsec_…` stand for what was printed last.
 */
export class Checkout {
  readonly folder = temporaryFolder(0o755);
  readonly #port: number;
  readonly #seen = new Map<string, string>();
  readonly #database_url: string;
  /** The first key that was printed, by the first start. */
  #key = '';
  #service: { process: Service; closed: Promise<unknown> } | undefined;

  private constructor(port: number, database_url: string) {
    this.#port = port;
    this.#database_url = database_url;
    const left_out = ['.git', '.medley', 'medley.yaml', 'medley.example.yaml', '.setup', 'node_modules'];
    for (const name of readdirSync(repository)) {
      if (!left_out.includes(name)) symlinkSync(join(repository, name), join(this.folder, name));
    }
    this.#installPackages();
    this.write('medley.example.yaml', readFileSync(join(repository, 'medley.example.yaml'), 'utf8'));
    if (spawnSync('curl', ['--version']).status !== 0) this.provideCurl();
  }

  /** `database_url` is an empty database for the documents' external one. */
  static async make(database_url: string): Promise<Checkout> {
    return new Checkout(await freePort(), database_url);
  }

  /** Writes a file of the documents. */
  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), `${this.#real(text)}\n`);
  }

  /** Runs commands to their end, in the environment that the ones before have left; answers what they print. */
  async run(text: string): Promise<string> {
    const state = join(this.folder, '.environment');
    const restore = existsSync(state) ? `. '${state}'\n` : '';
    const script = `trap 'export -p > "${state}"' EXIT\n${restore}set -e\n${this.#real(text)}\n`;
    const child = spawn('sh', ['-c', script], {
      cwd: this.folder,
      env: this.#environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { out: '', error: '' };
    child.stdout.on('data', (chunk: Buffer) => (output.out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output.error += chunk.toString()));
    await once(child, 'close');
    if (child.exitCode !== 0) throw new Error(`ended with ${child.exitCode}:\n${text}\n${output.out}${output.error}`);
    return this.#remember(output.out);
  }

  /** Starts the service by a line such as `X=y npm start` and waits until it is ready; answers what it prints. */
  async start(line: string): Promise<string> {
    await this.stop();
    const command = this.#real(line).replace(/\bnpm start$/, 'exec npm start');
    // A process group of its own, as a terminal makes one: Ctrl-C reaches all of it at once.
    const service = spawn('sh', ['-c', command], {
      cwd: this.folder,
      env: this.#environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.#service = { process: service, closed: once(service, 'close') };
    const printed = await untilReady(service);
    const from_npm = /^\n?> medley@.*\n> .*\n+/;
    return this.#remember(printed.replace(from_npm, ''));
  }

  /** Ctrl-C. */
  async stop(): Promise<void> {
    const service = this.#service;
    this.#service = undefined;
    if (!service?.process.pid) return;
    const { pid, exitCode, signalCode } = service.process;
    if (exitCode === null && signalCode === null) process.kill(-pid, 'SIGINT');
    await service.closed; // of one that did not start, this may have been long ago
  }

  /** Asks the service with the key of its first start. Throws unless the answer is below 400. */
  async call<T>(path: string, body?: object): Promise<T> {
    const response = await fetch(`http://127.0.0.1:${this.#port}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  async remove(): Promise<void> {
    await this.stop();
    removeFolder(this.folder);
  }

  /** Machines without curl get what the documents use of it, made of fetch. */
  provideCurl(): void {
    const bin = join(this.folder, '.bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'curl'), `#!/bin/sh\nexec '${process.execPath}' '${join(repository, curl)}' "$@"\n`);
    chmodSync(join(bin, 'curl'), 0o755);
  }

  /** The packages of the service, and the SDKs that the documents tell their reader to install. */
  #installPackages(): void {
    const own = join(repository, 'node_modules');
    for (const name of packagesIn(own)) this.#linkPackage(own, name);
    const further = ['openai', '@anthropic-ai/sdk', '@google/genai', '@modelcontextprotocol/client'];
    for (const name of further) this.#linkPackage(join(repository, 'test/node_modules'), name);
  }

  #linkPackage(from: string, name: string): void {
    const place = join(this.folder, 'node_modules', name);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(from, name), place);
  }

  /** Of a reader: without what npm and the tests have set. */
  #environment(): Record<string, string | undefined> {
    const own = /^(npm_|INIT_CWD$|NODE_|VITEST|MEDLEY_|TEST|DATABASE_URL$|HOST$|FAL_KEY$)|_(API_KEY|TOKEN|SECRET)$/;
    const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.test(name)));
    const path = [join(this.folder, '.bin'), process.env['PATH']].join(delimiter);
    return { ...inherited, PATH: path, PORT: String(this.#port), MEDLEY_URL: `http://127.0.0.1:${this.#port}` };
  }

  #real(text: string): string {
    return text
      .replaceAll(shown_address, `127.0.0.1:${this.#port}`)
      .replaceAll(shown_database, this.#database_url)
      .replaceAll(/\b(mdl|acct|key|task|whsec)_…/g, (whole, prefix: string) => this.#seen.get(prefix) ?? whole);
  }

  /** Keeps the ids and keys in `printed`, which is answered as the documents would show it. */
  #remember(printed: string): string {
    const secrets_and_ids = /\b(?:(mdl|acct|key|task)_[0-9A-Za-z]{26,}|(whsec)_[0-9A-Za-z+/]{26,}=?)/g;
    for (const [whole, id_prefix, prefix = id_prefix ?? ''] of printed.matchAll(secrets_and_ids)) {
      this.#seen.set(prefix, whole);
      if (prefix === 'mdl') this.#key ||= whole;
    }
    return printed.replaceAll(`127.0.0.1:${this.#port}`, shown_address);
  }
}

const curl = 'test/docs/curl.mjs';

const ready_ms_max = 150_000;
const last_words = 'echo hello.png\n\n';

/** Returns the output of the service once it says how to make an image. Throws when it ends before, or hangs. */
function untilReady(service: Service): Promise<string> {
  return new Promise((resolve, reject) => {
    const output = { out: '', error: '' };
    const fail = () => reject(new Error(`the service did not start:\n${output.out}${output.error}`));
    const timer = setTimeout(fail, ready_ms_max);
    service.stderr.on('data', (chunk: Buffer) => (output.error += chunk.toString()));
    service.stdout.on('data', (chunk: Buffer) => {
      output.out += chunk.toString();
      const end = output.out.indexOf(last_words);
      if (end < 0) return; // more may come behind it at once
      clearTimeout(timer);
      resolve(output.out.slice(0, end + last_words.length));
    });
    service.once('close', fail);
  });
}

/** Names of the packages in a folder of packages, those of a scope one by one. */
function packagesIn(folder: string): string[] {
  return readdirSync(folder).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(folder, name)).map((inner) => join(name, inner)) : [name],
  );
}
