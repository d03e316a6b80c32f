import { describe, expect, it } from 'vitest';
import { readCatalogFile } from '../../src/catalog/file.ts';
import { showProblem } from '../../src/catalog/problem.ts';
import { endingCertificates } from '../../src/catalog/provider-connection.ts';
import { resolveTexts } from '../../src/catalog/provider-secrets.ts';
import { makeCertificate } from '../helpers/certificate.ts';

const own = makeCertificate('medley.example');
const other = makeCertificate('other.example');
const values: Record<string, string> = {
  'env:CERT': own.cert,
  'env:KEY': own.key,
  'env:OTHER_KEY': other.key,
  'env:BROKEN': '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
  'env:WORD': 'p@ss:w%rd/',
  'env:WHOLE': 'http://medley:secret%20word@proxy.example:3128',
  'env:NO_PROXY': 'socks5://proxy.example:1080',
  'env:BAD_PERCENT': 'http://medley:100%@proxy.example:3128',
  'file:/run/secrets/word': 'from-a-file',
};
const secret = (reference: string) => values[reference];

function problemsOf(provider: string): string[] {
  const text = `version: 1\nproviders:\n  p: { adapter: mock, ${provider} }\nmodels: []\n`;
  const reading = readCatalogFile(text, 'medley.yaml', { adapters: ['mock'], canServe: () => true, secret });
  return (reading.ok ? reading.warnings : reading.problems).map(
    (problem) => `${problem.severity}: ${showProblem(problem).replace(/^medley\.yaml:\d+:\d+ /, '')}`,
  );
}

describe('the address of a proxy in a file', () => {
  it.each([
    ['http://proxy.example:3128', 'http://proxy.example:3128/', ''],
    ['https://10.0.0.1/', 'https://10.0.0.1/', ''],
    ['http://medley@proxy.example:3128', 'http://medley@proxy.example:3128/', ''],
    ['http://medley:env:WORD@proxy.example:3128', 'http://medley:p%40ss%3Aw%25rd%2F@proxy.example:3128/', 'p@ss:w%rd/'],
    ['http://medley:file:/run/secrets/word@[::1]:3128', 'http://medley:from-a-file@[::1]:3128/', 'from-a-file'],
    ['env:WHOLE', 'http://medley:secret%20word@proxy.example:3128/', 'secret word'],
  ])('may be %s, and its password is a secret', (proxy, address, password) => {
    expect(problemsOf(`proxy: "${proxy}"`)).toEqual([]);
    const texts = resolveTexts({ adapter: 'mock', proxy }, secret);
    expect(texts?.proxy).toBe(address);
    expect(texts?.secrets ?? ['']).toContain(password);
  });

  it.each([
    ['http://medley:plain@proxy.example:3128', 'error: providers.p.proxy must be http(s)://host:port'],
    ['socks5://proxy.example', 'error: providers.p.proxy must be http(s)://host:port'],
    ['http://proxy.example/path', 'error: providers.p.proxy must be http(s)://host:port'],
    ['env:NO_PROXY', 'error: providers.p.proxy: is not the address of a proxy'],
    ['env:BAD_PERCENT', 'error: providers.p.proxy: is not the address of a proxy'],
    ['http://proxy.example:99999', 'error: providers.p.proxy: is not the address of a proxy'],
    [
      'http://medley:env:ABSENT@proxy.example',
      'warning: providers.p.proxy: the environment variable ABSENT is not set',
    ],
  ])('is not %s', (proxy, expected) => {
    const [problem = ''] = problemsOf(`proxy: "${proxy}"`);
    expect(problem.replace('proxy: must', 'proxy must')).toContain(expected);
    expect(problem).not.toContain('secret');
  });
});

describe('certificates in a file', () => {
  it('are read, and only the key is a secret', () => {
    expect(problemsOf('tls: { cert: env:CERT, key: env:KEY, ca: env:CERT, server_name: a.example }')).toEqual([]);
    const entry = { adapter: 'mock', tls: { cert: 'env:CERT', key: 'env:KEY', server_name: 'a.example' } };
    expect(resolveTexts(entry, secret)).toEqual({
      tls: { cert: own.cert, key: own.key, server_name: 'a.example' },
      secrets: [own.key],
    });
  });

  it.each([
    ['cert: env:CERT', 'error: providers.p.tls: cert and key go together.'],
    ['cert: env:BROKEN, key: env:KEY', 'error: providers.p.tls.cert: is no certificate in PEM.'],
    ['cert: env:KEY, key: env:KEY', 'error: providers.p.tls.cert: is no certificate in PEM.'],
    ['cert: env:CERT, key: env:CERT', 'error: providers.p.tls.key: is no private key in PEM'],
    ['cert: env:CERT, key: env:OTHER_KEY', 'error: providers.p.tls.key: is not the key of the certificate in cert.'],
    ['ca: env:BROKEN', 'error: providers.p.tls.ca: is no certificate in PEM.'],
    ['ca: "file:/nowhere.pem"', 'warning: providers.p.tls.ca: /nowhere.pem cannot be read, or is empty'],
    ['ca: "-----BEGIN"', 'error: providers.p.tls.ca'],
  ])('that are not what they should be are named with their place: %s', (tls, expected) => {
    expect(problemsOf(`tls: { ${tls} }`)).toEqual([expect.stringContaining(expected)]);
  });

  it('that end within 30 days, or have ended, are named for the operator', () => {
    const day_ms = 86_400_000;
    const provider = (name: string, lives_ms: number) => ({ name, tls: makeCertificate(name, { lives_ms }) });
    const providers = [
      provider('long', 40 * day_ms),
      provider('soon', 20 * day_ms),
      provider('over', -day_ms),
      { name: 'none' },
    ];
    const dayIn = (ms: number) => new Date(Date.now() + ms).toISOString().slice(0, 10);
    expect(endingCertificates(providers, Date.now())).toEqual({
      ended: [`the certificate of over ended on ${dayIn(-day_ms)}`],
      soon: [`the certificate of soon ends on ${dayIn(20 * day_ms)}`],
    });
  });
});
