import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import { Medley } from '../../../clients/typescript/src/index.ts';
import { readCaller } from '../../config.ts';
import { CommandError, says, type CommandResult } from '../result.ts';
import { readCredentials, writeCredentials, type Credential } from './credentials.ts';
import { awaitKey, beginLogin } from './device-grant.ts';
import { chosenUrl, explained } from './service.ts';
import { interruptible, oneLine } from './terminal.ts';

const key_bytes_max = 1_000;

export function loginCommand(login: Command): void {
  login.option('--key', 'read an API key from stdin instead, for machines without a browser nearby');
  says(login, (url) =>
    interruptible(async (signal) => {
      const address = chosenUrl(url);
      warnOfPlainHttp(address);
      try {
        const { key = false }: { key?: boolean } = login.opts();
        return key ? await loginByKey(address, signal) : await loginByCode(address, signal);
      } catch (error) {
        throw explained(error, address);
      }
    }),
  );
}

/** On the way to another machine, others can read the key. */
function warnOfPlainHttp(url: string): void {
  const { protocol, hostname: host } = new URL(url);
  if (protocol === 'https:' || host === 'localhost' || host === '[::1]' || host.startsWith('127.')) return;
  process.stderr.write(`Warning: ${url} is not encrypted. Whoever is on the way can read your key.\n`);
}

async function loginByCode(url: string, signal: AbortSignal): Promise<CommandResult> {
  const codes = await beginLogin(url, deviceName(), signal);
  const minutes = Math.round(codes.expires_in_s / 60);
  process.stderr.write(
    `Open   ${oneLine(codes.verification_uri)}\nCode   ${oneLine(codes.user_code, 60)}\n\n` +
      `Or open ${oneLine(codes.verification_uri_complete)} and compare the code. It lasts ${minutes} minutes. Waiting…\n`,
  );
  const { api_key, account, key } = await awaitKey(url, codes, signal);
  const created_at = new Date().toISOString();
  return store(url, { api_key, account, key, source: 'login', created_at });
}

/** Names this machine, so that the person knows it in the list of keys. */
function deviceName(): string {
  const name = oneLine(hostname(), 60).replaceAll(/[^\p{L}\p{N} ._-]/gu, '') || 'a machine';
  try {
    const user = oneLine(userInfo().username, 30).replaceAll(/[^\p{L}\p{N} ._-]/gu, '');
    return user === '' ? name : `${name} (${user})`;
  } catch {
    return name; // a user without a name
  }
}

async function loginByKey(url: string, signal: AbortSignal): Promise<CommandResult> {
  if (process.stdin.isTTY) process.stderr.write('Paste the API key, then press Enter and Ctrl-D:\n');
  const api_key = (await readStdin()).trim();
  if (!/^[\x21-\x7e]+$/.test(api_key)) throw new CommandError('stdin must have one API key, such as mdl_….', 2);
  const { id, name } = await new Medley({ base_url: url, api_key }).key({ signal }); // a refused key is not stored
  const created_at = new Date().toISOString();
  return store(url, { api_key, account: undefined, key: { id, name: oneLine(name, 100) }, source: 'key', created_at });
}

async function readStdin(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += String(chunk);
    if (text.length > key_bytes_max) throw new CommandError('stdin has more than an API key.', 2);
  }
  return text;
}

function store(url: string, credential: Credential): CommandResult {
  const { config_dir, api_key } = readCaller();
  const { services } = readCredentials(config_dir);
  writeCredentials(config_dir, { current: url, services: new Map([...services, [url, credential]]) });
  if (api_key !== undefined)
    process.stderr.write('MEDLEY_API_KEY is set, and commands use it instead of the key that is stored now.\n');
  const { account, key } = credential;
  const whose = account ? ` for ${account.name}` : '';
  const name = key ? ` The key is "${key.name}".` : '';
  return {
    json: { url, account: account ?? null, key: key ?? null },
    text: `You are signed in to ${url}${whose}.${name}`,
  };
}
