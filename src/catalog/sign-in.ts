import type { Newcomers, SignInIssuer, SignInSettings } from '../accounts/sign-in/settings.ts';
import { isObject } from './model.ts';
import { missing, type Surroundings } from './check-settings.ts';
import type { Report } from './report.ts';
import type { IssuerOfSignIn, SignInEntry } from './sign-in-schema.ts';

/** `sign_in` of `medley.yaml`: its settings, and what its schema cannot say. */

type Preset = { name: string; issuer(entry: Pick<IssuerOfSignIn, 'tenant'>): string };

const presets: ReadonlyMap<string, Preset> = new Map([
  ['google', { name: 'Google', issuer: () => 'https://accounts.google.com' }],
  ['github', { name: 'GitHub', issuer: () => 'https://github.com' }],
  ['microsoft', { name: 'Microsoft', issuer: ({ tenant = '' }) => `https://login.microsoftonline.com/${tenant}/v2.0` }],
]);

export function signInOf(entry: SignInEntry = {}): SignInSettings {
  return {
    password: entry.password ?? true,
    passkeys: entry.passkeys ?? true,
    operators_need_second_factor: entry.operators_need_second_factor ?? false,
    issuers: Object.entries(entry.issuers ?? {}).map(([id, issuer]) => issuerOf(id, issuer)),
  };
}

function issuerOf(id: string, entry: IssuerOfSignIn): SignInIssuer {
  const issuer = addressOf(id, entry);
  return {
    id,
    protocol: id === 'github' ? 'github' : 'oidc',
    issuer,
    name: entry.name ?? presets.get(id)?.name ?? new URL(issuer).host,
    client_id: entry.client_id,
    client_secret: entry.client_secret,
    email_domains: entry.email_domains ?? [],
    verified_emails: entry.verified_emails ?? false,
    trusts_second_factor: entry.trusts_second_factor ?? false,
    newcomers: newcomersOf(entry),
  };
}

function addressOf(id: string, entry: Pick<IssuerOfSignIn, 'issuer' | 'tenant'>): string {
  return (entry.issuer ?? presets.get(id)?.issuer(entry) ?? '').replace(/\/+$/, '');
}

function newcomersOf({ auto_create = 'no', join }: IssuerOfSignIn): Newcomers {
  if (auto_create === 'account') return 'own_account';
  if (auto_create === 'join' && join) return { account_id: join.account, role: join.role ?? 'viewer' };
  return 'refused';
}

/** Contradictions in `sign_in`, and secrets that are not there. */
export function checkSignIn(value: unknown, surroundings: Surroundings, report: Report): void {
  if (!isObject(value)) return;
  const issuers = isObject(value['issuers']) ? Object.entries(value['issuers']) : [];
  if (value['password'] === false && issuers.length === 0) {
    report.error(
      ['sign_in', 'password'],
      'false would leave nobody a way in: name an issuer in sign_in.issuers first.',
    );
  }
  const ids_by_address = new Map<string, string>();
  for (const [id, issuer] of issuers) {
    const path = ['sign_in', 'issuers', id];
    if (!isObject(issuer) || report.hasError(path)) continue;
    const { issuer: url, tenant, client_secret } = issuer;
    checkAddress(id, issuer, report);
    checkNewcomers(id, issuer, report);
    if (typeof client_secret === 'string' && surroundings.secret(client_secret) === undefined)
      report.warn([...path, 'client_secret'], `${missing(client_secret)}: nobody signs in by ${id}.`);
    const address = addressOf(id, {
      ...(typeof url === 'string' && { issuer: url }),
      ...(typeof tenant === 'string' && { tenant }),
    });
    const other = ids_by_address.get(address);
    if (address !== '' && other !== undefined)
      report.error(path, `is the same issuer as ${other}: people are known by the address of their issuer.`, 'key');
    ids_by_address.set(address, id);
  }
}

function checkAddress(id: string, { issuer, tenant }: Record<string, unknown>, report: Report): void {
  const path = ['sign_in', 'issuers', id];
  if (typeof issuer === 'string') {
    const { protocol, hostname } = new URL(issuer);
    const is_here = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
    if (protocol === 'http:' && !is_here)
      report.warn([...path, 'issuer'], 'is not https: who listens on the way can sign in as anybody.');
  } else if (!presets.has(id)) {
    report.error(path, 'issuer is missing: only google, microsoft and github have one of their own.', 'key');
  } else if (id === 'microsoft' && tenant === undefined) {
    report.error(path, 'tenant is missing: the id of your directory. Other directories could name any address.', 'key');
  }
  if (tenant !== undefined && (id !== 'microsoft' || issuer !== undefined))
    report.error([...path, 'tenant'], 'belongs to microsoft alone, without issuer.', 'key');
}

function checkNewcomers(id: string, entry: Record<string, unknown>, report: Report): void {
  const path = ['sign_in', 'issuers', id];
  const { auto_create = 'no', join, verified_emails } = entry;
  if (auto_create === 'join' && join === undefined)
    report.error(path, 'join is missing: the account that new people join.', 'key');
  if (auto_create !== 'join' && join !== undefined)
    report.error([...path, 'join'], 'needs auto_create: join beside it.', 'key');
  if (id === 'microsoft' && auto_create !== 'no' && verified_emails !== true)
    report.warn(
      [...path, 'auto_create'],
      'does nothing: Microsoft does not say whether an address is proved. If all of your directory are, set verified_emails: true.',
    );
}
