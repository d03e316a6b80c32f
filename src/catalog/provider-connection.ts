import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { Report } from './report.ts';
import type { ProviderEntry } from './schema.ts';

/** The proxy and the certificates of a provider. */

type Secrets = (reference: string) => string | undefined;

const is_reference = /^(?:env|file):/;

/** `http://user:env:NAME@host:port`: what is before the password, the reference to it, and the host. */
const proxy_parts = /^(https?:\/\/[^\s:@/]+):((?:env|file):[^\s@]+)@([^\s/@]+)\/?$/;

/** The reference in the address of a proxy: of all of it, or of its password. */
export function proxyReference(proxy: string): string | undefined {
  return is_reference.test(proxy) ? proxy : proxy_parts.exec(proxy)?.[2];
}

/** Returns the address of a proxy with its password; undefined if it is none. */
export function resolveProxy(proxy: string, secret: Secrets): string | undefined {
  const parts = proxy_parts.exec(proxy);
  const [, begin = '', reference = '', host = ''] = parts ?? [];
  const text = is_reference.test(proxy)
    ? (secret(proxy) ?? '')
    : parts
      ? `${begin}:${encodeURIComponent(secret(reference) ?? '')}@${host}`
      : proxy;
  if (!URL.canParse(text)) return undefined;
  const { protocol, pathname, search, hash, href, hostname } = new URL(text);
  const is_address = (protocol === 'http:' || protocol === 'https:') && hostname !== '';
  return is_address && pathname === '/' && search === '' && hash === '' && isEncoded(href) ? href : undefined;
}

/** A password with a percent sign that stands for itself cannot be read. */
function isEncoded(href: string): boolean {
  const { username, password } = new URL(href);
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

/** The secrets in the address of a proxy. */
export function proxySecrets(href: string): string[] {
  const { password } = new URL(href);
  return password === '' ? [] : [password, decodeURIComponent(password)];
}

/** Checks the proxy and the certificates of a provider whose secrets are there. */
export function checkConnection(name: string, { proxy, tls }: ProviderEntry, secret: Secrets, report: Report): void {
  const path = ['providers', name];
  if (proxy !== undefined && resolveProxy(proxy, secret) === undefined) {
    report.error([...path, 'proxy'], 'is not the address of a proxy, such as http://user:password@host:3128.');
  }
  if (!tls) return;
  const { cert, key, ca } = tls;
  if ((cert === undefined) !== (key === undefined)) {
    report.error([...path, 'tls'], 'cert and key go together.');
    return;
  }
  const at = (member: string, problem: string) => report.error([...path, 'tls', member], problem);
  if (ca !== undefined && !isBundle(secret(ca) ?? '')) at('ca', 'is no certificate in PEM.');
  if (cert === undefined || key === undefined) return;
  const own = certificateIn(secret(cert) ?? '');
  if (!own) return at('cert', 'is no certificate in PEM.');
  const private_key = keyIn(secret(key) ?? '');
  if (!private_key) return at('key', 'is no private key in PEM, or one with a passphrase, which cannot be read.');
  if (!own.checkPrivateKey(private_key)) return at('key', 'is not the key of the certificate in cert.');
  if (!isPair(secret(cert) ?? '', secret(key) ?? '')) at('cert', 'cannot be used with its key for TLS.');
}

/** The first certificate of a text in PEM, which is the one of whoever shows it; undefined if there is none. */
function certificateIn(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function keyIn(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

function isBundle(ca: string): boolean {
  return certificateIn(ca) !== undefined && isContext({ ca });
}

function isPair(cert: string, key: string): boolean {
  return isContext({ cert, key });
}

function isContext(parts: { cert?: string; key?: string; ca?: string }): boolean {
  try {
    createSecureContext(parts);
    return true;
  } catch {
    return false;
  }
}

/** The time before the end of a certificate in which operators are warned. */
const warned_ms = 30 * 86_400_000;

type Shown = { name: string; tls?: { cert?: string } };

/** Says which certificates that providers are shown end within 30 days, or have ended. */
export function endingCertificates(providers: Iterable<Shown>, now_ms: number): { ended: string[]; soon: string[] } {
  const ended: string[] = [];
  const soon: string[] = [];
  for (const { name, tls } of providers) {
    const until = tls?.cert === undefined ? undefined : certificateIn(tls.cert)?.validToDate;
    if (!until || until.getTime() > now_ms + warned_ms) continue;
    const day = until.toISOString().slice(0, 10);
    if (until.getTime() <= now_ms) ended.push(`the certificate of ${name} ended on ${day}`);
    else soon.push(`the certificate of ${name} ends on ${day}`);
  }
  return { ended, soon };
}
