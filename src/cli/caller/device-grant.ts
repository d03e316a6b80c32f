import { setTimeout as wait } from 'node:timers/promises';
import { isRecord } from '../../lib/is-record.ts';
import { program_name } from '../../lib/program-name.ts';
import { CommandError } from '../result.ts';
import { oneLine } from './terminal.ts';

/** The program's side of the device authorization grant (RFC 8628). */

const client_id = 'medley';
const answer_bytes_max = 65_536;
const request_ms_max = 30_000;
const device_grant = 'urn:ietf:params:oauth:grant-type:device_code';

export type Codes = {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
  expires_in_s: number;
  interval_s: number;
};

export type NewKey = {
  api_key: string;
  account: { id: string; name: string };
  key: { id: string; name: string };
};

type Reply = { status: number; json: Record<string, unknown>; retry_after_s: number };

/** Sends a form without any key, and follows no redirect. Rejects with CommandError 5 without an answer. */
async function postForm(
  url: string,
  path: string,
  fields: Record<string, string>,
  signal: AbortSignal,
): Promise<Reply> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(request_ms_max)]);
  try {
    const response = await fetch(url + path, {
      method: 'POST',
      body: new URLSearchParams(fields),
      redirect: 'error',
      signal: limit,
    });
    const json = parse(await readText(response));
    const retry_after = Number(response.headers.get('retry-after') ?? Number.NaN);
    const retry_after_s = Number.isFinite(retry_after) ? Math.min(120, Math.max(0, retry_after)) : 0;
    return { status: response.status, json: isRecord(json) ? json : {}, retry_after_s };
  } catch (error) {
    signal.throwIfAborted();
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const reason = oneLine(cause instanceof Error ? cause.message : String(cause), 200);
    throw new CommandError(`${url} gave no answer (${reason}). Is it the address of a Medley?`, 5);
  }
}

async function readText(response: Response): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > answer_bytes_max) throw new Error('the answer is too long');
  }
  return text;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Begins. Rejects with CommandError. */
export async function beginLogin(url: string, device_name: string, signal: AbortSignal): Promise<Codes> {
  const { status, json } = await postForm(url, '/oauth/device_authorization', { client_id, device_name }, signal);
  const { device_code, user_code, verification_uri, verification_uri_complete, expires_in, interval } = json;
  if (status !== 200 || typeof device_code !== 'string' || typeof user_code !== 'string') {
    const message =
      status === 404
        ? `It has no sign-in for programs: use ${program_name} login --key.`
        : messageOf(json, `It answered ${status}.`);
    throw new CommandError(`${url} gives no code. ${message}`);
  }
  return {
    device_code,
    user_code,
    verification_uri: String(verification_uri),
    verification_uri_complete: String(verification_uri_complete ?? verification_uri),
    expires_in_s: secondsOf(expires_in, 600),
    interval_s: Math.max(1, secondsOf(interval, 5)),
  };
}

function secondsOf(value: unknown, otherwise: number): number {
  return typeof value === 'number' && value > 0 && value <= 3_600 ? value : otherwise;
}

function messageOf(json: Record<string, unknown>, otherwise: string): string {
  const { error, error_description } = json;
  if (typeof error_description === 'string') return oneLine(error_description);
  if (isRecord(error) && typeof error['message'] === 'string') return oneLine(error['message']);
  return otherwise;
}

/** Asks at the service's pace until the person has decided. Rejects with CommandError. */
export async function awaitKey(url: string, codes: Codes, signal: AbortSignal): Promise<NewKey> {
  const end_ms = performance.now() + codes.expires_in_s * 1000;
  const fields = { grant_type: device_grant, device_code: codes.device_code, client_id };
  for (let interval_s = codes.interval_s; performance.now() < end_ms;) {
    await wait(interval_s * 1000, undefined, { signal }).catch(() => signal.throwIfAborted());
    const reply = await postForm(url, '/oauth/token', fields, signal).catch((error: unknown) => {
      if (error instanceof CommandError && error.exit_code === 5) return undefined; // it may be starting again
      throw error;
    });
    if (!reply) continue;
    const key = reply.status === 200 ? keyIn(reply.json) : undefined;
    if (key) return key;
    const { error } = reply.json;
    if (error === 'slow_down') interval_s += 5; // RFC 8628, 3.5
    else if (reply.status === 429 || reply.status >= 500) interval_s = Math.max(interval_s, reply.retry_after_s);
    else if (error === 'access_denied') throw new CommandError('The request was refused in the dashboard.', 3);
    else if (error !== 'authorization_pending')
      throw new CommandError(`There is no key: ${messageOf(reply.json, `${url} answered ${reply.status}.`)}`, 3);
  }
  throw new CommandError(`The code has expired. Run ${program_name} login again.`, 3);
}

function keyIn({ access_token, account, key }: Record<string, unknown>): NewKey | undefined {
  if (typeof access_token !== 'string' || !/^[\x21-\x7e]{1,500}$/.test(access_token)) return undefined;
  return { api_key: access_token, account: named(account), key: named(key) };
}

function named(value: unknown): { id: string; name: string } {
  const { id = '', name = '' } = isRecord(value) ? value : {};
  return { id: oneLine(String(id), 100), name: oneLine(String(name), 100) };
}

/** Deletes a key at its service. False if that gave no answer. */
export async function revokeKey(url: string, api_key: string, signal: AbortSignal): Promise<boolean> {
  const reply = await postForm(url, '/oauth/revoke', { token: api_key }, signal).catch((error: unknown) => {
    if (error instanceof CommandError) return undefined;
    throw error;
  });
  return reply?.status === 200;
}
