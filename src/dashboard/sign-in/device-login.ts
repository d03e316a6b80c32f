import { decideDeviceLogin, findDeviceLogin, type GivenKey } from '../../accounts/sign-in/device-logins.ts';
import { KeyRuleError } from '../../accounts/key-rule-error.ts';
import { readExpiry } from '../../accounts/key-rules.ts';
import type { Db } from '../../db/database.ts';
import { ApiError, invalidField } from '../../errors.ts';
import type { SessionCall } from '../../http/endpoint.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Backoff } from '../../limits/backoff.ts';
import { networkOf } from '../../net/address.ts';
import { readBodyFields } from '../body-fields.ts';
import { limitText, readLimit } from '../keys.ts';
import { auditAction } from '../audit-action.ts';
import { account_endpoint, session_endpoint } from '../page.ts';
import type { DeviceLoginView } from '../views/device-login.ts';

/** The parts of the app that deciding takes. */
type Parts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly secret: string;
  readonly sign_in_backoff: Backoff;
};

const code_length_max = 40;
const name_length_max = 100;

/**
 * Runs `work`, which returns undefined for a wrong code. Codes are short, so wrong ones are counted, by the person and by
 * where they come from; a right one takes back only itself, since anybody can make right ones.
 */
async function guarded<T>(
  { sign_in_backoff }: Parts,
  { person, address }: SessionCall,
  work: () => Promise<T | undefined>,
): Promise<T> {
  const names = [`device code by ${person.user.id}`, `device code from ${networkOf(address)}`];
  for (const name of names) {
    const wait_ms = await sign_in_backoff.take(name);
    if (wait_ms > 0) throw tooManyCodes(wait_ms);
  }
  const result = await work();
  if (result === undefined) {
    const message = 'No program waits with this code. Codes last 10 minutes and count once: look at your terminal.';
    throw new ApiError('not_found', message, { param: 'code' });
  }
  await Promise.all(names.map((name) => sign_in_backoff.undo(name)));
  return result;
}

function tooManyCodes(wait_ms: number): ApiError {
  const seconds = Math.ceil(wait_ms / 1000);
  const headers = { 'retry-after': String(seconds) };
  return new ApiError('rate_limit', `Too many wrong codes. Try again in ${seconds} s.`, { headers });
}

/** Shows the program that waits with this code. */
export const find_device_login = session_endpoint('POST', '/dash/device-login', 'signed in', async (app, call) => {
  const code = readBodyFields(call.body).text('code', code_length_max);
  const program = await guarded(app, call, () => findDeviceLogin(app, code, new Date(app.clock.now())));
  const view: DeviceLoginView = {
    client: program.client,
    device: program.device,
    address: program.address,
    is_same_address: networkOf(program.address) === networkOf(call.address),
    created_at: program.created_at.toISOString(),
    expires_at: program.expires_at.toISOString(),
    scopes: program.scopes && [...program.scopes],
  };
  return { status: 200, body: view };
});

/** Refuses the program. */
export const deny_device_login = session_endpoint('POST', '/dash/device-login/deny', 'signed in', async (app, call) => {
  const code = readBodyFields(call.body).text('code', code_length_max);
  await decide(app, call, code, undefined);
  await auditAction(app, call, 'device_login.deny');
  return { status: 200, body: { ok: true } };
});

/** Gives the program a key of this account. It is made when the program fetches it. */
export const approve_device_login = account_endpoint(
  'POST',
  '/device-login',
  'keys',
  async (app, call) => {
    const { account, body } = call;
    const fields = readBodyFields(body);
    const code = fields.text('code', code_length_max);
    const name = fields.text('name', name_length_max);
    const limit_month = readLimit(body) ?? null;
    const expires_at = readEnd(body?.['expires_at'], new Date(app.clock.now()));
    await decide(app, call, code, { account_id: account.id, name, limit_month, expires_at });
    await auditAction(app, call, 'device_login.approve', undefined, {
      name,
      limit: limitText(limit_month),
      expires_at,
    });
    return { status: 200, body: { ok: true } };
  },
  { needs_proof: true },
);

async function decide(app: Parts, call: SessionCall, code: string, key: GivenKey | undefined): Promise<void> {
  const decision = { user_id: call.person.user.id, key };
  const now = new Date(app.clock.now());
  await guarded(app, call, async () => (await decideDeviceLogin(app, code, decision, now)) || undefined);
}

function readEnd(value: unknown, now: Date): Date | null {
  try {
    return value === undefined ? null : readExpiry(value, now);
  } catch (error) {
    if (error instanceof KeyRuleError) throw invalidField('expires_at', `expires_at ${error.message}`);
    throw error;
  }
}
