/** The servers to measure: the service, and others that could stand before the same upstream. */
import { execFileSync, fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createAccount } from '../src/accounts/accounts.ts';
import { createKey } from '../src/accounts/keys.ts';
import type { Db } from '../src/db/database.ts';
import type { Leash } from './leash.ts';

const accounts = 1_000;
/** The first ones have several keys: 600 over 120 accounts. */
const shared_accounts = 120;
const keys_per_account = 5;

/** The catalogue of the bench. `frames`: how many a long stream has. */
export function yamlOf(upstream_port: number, frames: number): string {
  const url = `http://127.0.0.1:${upstream_port}`;
  const price = `[{ unit: input_token, per: 1000000, amount: "2.00" }, { unit: output_token, per: 1000000, amount: "10.00" }]`;
  const model = (id: string, provider: string, upstream_model: string) =>
    `  - { id: ${id}, kind: chat, max_output_tokens: 1000, price: ${price}, routes: [{ provider: ${provider}, upstream_model: ${upstream_model} }] }`;
  return `version: 1
storage: { shared: true }
limits: { chat_per_minute: 1000000, chat_at_once: 1000000, generate_per_minute: 1000000 }
providers:
  same: { adapter: openai, base_url: "${url}/v1", allow_private: true }
  other: { adapter: anthropic, base_url: "${url}", allow_private: true }
models:
${model('bench/completions', 'same', `frames-${frames}-50`)}
${model('bench/messages', 'other', `frames-${frames}-50`)}
${model('bench/short', 'same', 'frames-10-50')}
`;
}

export type Keys = { shared: string[]; many: string[]; hot: string[] };

/** 600 keys of 120 accounts, 1,000 keys of 1,000, and the five of one. Each has a monthly limit that must be looked at. */
export async function makeKeys(db: Db): Promise<Keys> {
  const now = new Date();
  const texts = await Promise.all(
    Array.from({ length: accounts }, async (_, i) => {
      const owner = { name: `bench ${i}`, currency: 'USD', initial_credit: 1_000_000_000_000n };
      const { id: account_id } = await createAccount(db, owner, now);
      const key_options = { account_id, name: 'bench', limit_month: 900_000_000_000n };
      const count = i < shared_accounts ? keys_per_account : 1;
      const keys = [];
      for (let k = 0; k < count; k++) keys.push((await createKey(db, key_options, now)).text);
      return keys;
    }),
  );
  await db.query('vacuum analyze');
  return {
    shared: texts.slice(0, shared_accounts).flat(),
    many: texts.map(([text = '']) => text),
    hot: texts[0] ?? [],
  };
}

const question =
  'Write a short paragraph about an engineer who looks at a clock. Use simple words, do not explain what you do, and end with a question.';

/** A whole request as text. `model` may be the upstream's own name where nobody translates it. */
export function ask(
  style: 'completions' | 'messages',
  model: string,
  { key = 'none', stream = false, headers = [] }: { key?: string; stream?: boolean; headers?: string[] } = {},
): string {
  const system = 'You are a helpful assistant that answers in at most five sentences and never uses lists.';
  const user = { role: 'user', content: question };
  const common = { model, max_tokens: 200, temperature: 0.7, ...(stream && { stream }) };
  const body = JSON.stringify(
    style === 'completions'
      ? { ...common, messages: [{ role: 'system', content: system }, user] }
      : { ...common, system, messages: [user] },
  );
  const lines = [
    `POST ${style === 'completions' ? '/v1/chat/completions' : '/v1/messages'} HTTP/1.1`,
    'host: 127.0.0.1',
    'content-type: application/json',
    ...(style === 'messages' ? ['anthropic-version: 2023-06-01'] : []),
    ...headers,
    `authorization: Bearer ${key}`,
    `content-length: ${body.length}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** A whole request for a small picture of the sandbox. */
export function askGenerate(key: string): string {
  const body = JSON.stringify({ model: 'sandbox/image', input: { prompt: 'bench', width: 64, height: 64 } });
  const lines = [
    'POST /v1/generate HTTP/1.1',
    'host: 127.0.0.1',
    'content-type: application/json',
    `authorization: Bearer ${key}`,
    `content-length: ${body.length}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** Somebody else who stands before the upstream. */
export type Rival = { name: string; port: number; headers: string[]; child: ChildProcess };

const bare_port = 18_101;
const portkey_port = 18_102;
const nginx_port = 18_103;

export async function startBareProxy(upstream_port: number, leash: Leash): Promise<Rival> {
  const file = join(import.meta.dirname, 'bare-proxy.ts');
  const child = fork(file, [String(upstream_port), String(bare_port)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  leash.hold(child);
  await listening(bare_port, child);
  return { name: 'bare proxy', port: bare_port, headers: [], child };
}

/** Undefined if it is not installed (`npm ci --prefix bench`). */
export async function startPortkey(upstream_port: number, leash: Leash): Promise<Rival | undefined> {
  const file = join(import.meta.dirname, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  if (!existsSync(file)) return undefined;
  const env = { ...process.env, NODE_ENV: 'production' };
  const child = spawn(process.execPath, [file, `--port=${portkey_port}`, '--headless'], { env, stdio: 'ignore' });
  leash.hold(child);
  await listening(portkey_port, child);
  const custom_host = `x-portkey-custom-host: http://127.0.0.1:${upstream_port}/v1`;
  return { name: 'Portkey', port: portkey_port, headers: ['x-portkey-provider: openai', custom_host], child };
}

/** Undefined if it is not installed. One worker, as the others have one thread. */
export async function startNginx(upstream_port: number, folder: string, leash: Leash): Promise<Rival | undefined> {
  const program = findNginx();
  if (program === undefined) return undefined;
  const home = join(folder, 'nginx');
  mkdirSync(home);
  writeFileSync(
    join(home, 'nginx.conf'),
    `daemon off; master_process off; pid ${home}/pid; error_log ${home}/error.log; worker_processes 1;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 10000000; client_body_temp_path ${home}/body; proxy_temp_path ${home}/proxy;
  fastcgi_temp_path ${home}/f; uwsgi_temp_path ${home}/u; scgi_temp_path ${home}/s;
  upstream up { server 127.0.0.1:${upstream_port}; keepalive 1024; keepalive_requests 10000000; }
  server { listen 127.0.0.1:${nginx_port} backlog=4096;
    location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
}
`,
  );
  const child = spawn(program, ['-p', home, '-c', join(home, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  leash.hold(child);
  await listening(nginx_port, child);
  return { name: 'nginx', port: nginx_port, headers: [], child };
}

function findNginx(): string | undefined {
  try {
    return execFileSync('sh', ['-c', 'command -v nginx'], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}

const start_tries_max = 300;

/** Resolves when somebody accepts connections there. */
async function listening(port: number, child: ChildProcess): Promise<void> {
  for (let tries = 1; ; tries++) {
    const socket = connect({ port, host: '127.0.0.1' });
    const is_there = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (is_there) return;
    if (child.exitCode !== null || tries === start_tries_max) throw new Error(`nobody listens on port ${port}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The upstream, told by the port that it has got. */
export async function startUpstream(leash: Leash): Promise<{ port: number; child: ChildProcess }> {
  const child = fork(join(import.meta.dirname, 'chat-upstream.ts'), ['--upstream']);
  leash.hold(child);
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { port, child };
}
