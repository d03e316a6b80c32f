import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterEach, expect, it } from 'vitest';
import { openCatalog } from '../../../src/catalog/catalog.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { openai } from '../../../src/providers/adapters/openai/adapter.ts';
import { openProviders } from '../../../src/providers/open.ts';
import { makeCertificate, type Certificate } from '../../helpers/certificate.ts';
import { prober } from '../../helpers/prober.ts';
import { callOf, textOf } from '../upstreams.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

it('a certificate is read again by a reload; a file that is none changes nothing, and its place is named', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'certificates-'));
  stops.push(() => rmSync(folder, { recursive: true }));
  const path = (name: string) => join(folder, name);
  const write = ({ cert, key }: Certificate) => {
    writeFileSync(path('client.pem'), cert);
    writeFileSync(path('client.key'), key);
  };
  const server_certificate = makeCertificate('upstream.example');
  const shown: string[] = [];
  const server = createServer(
    { ...server_certificate, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      shown.push(String((request.socket as TLSSocket).getPeerCertificate().subject.CN));
      response.end('{}');
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(
    () => server.close(),
    () => server.closeAllConnections(),
  );
  const { port } = server.address() as AddressInfo;
  write(makeCertificate('first.example'));
  writeFileSync(path('ca.pem'), server_certificate.cert);
  const config_file = path('medley.yaml');
  writeFileSync(
    config_file,
    `version: 1
providers:
  own:
    adapter: openai
    base_url: https://upstream.example:${port}/v1
    allow_private: true
    tls: { cert: "file:${path('client.pem')}", key: "file:${path('client.key')}", ca: "file:${path('ca.pem')}" }
models:
  - id: own/chat
    kind: chat
    price: [{ unit: output_token, amount: "1" }]
    routes: [{ provider: own }]
`,
  );
  const catalog = await openCatalog({ config_file, adapters: ['openai'] });
  const guard = openGuard({ resolve: async () => ['127.0.0.1'] });
  const providers = openProviders(catalog, { openai }, { guard, prober });
  stops.push(() => providers.close());
  const ask = () => {
    const provider = providers.chat('own');
    if (!provider) throw new Error('there is no such provider');
    return textOf(provider, callOf('completions'));
  };
  await ask();
  write(makeCertificate('second.example'));
  await ask();
  expect(await catalog.reload()).toMatchObject({ ok: true });
  await ask();
  writeFileSync(path('client.pem'), 'half of a file');
  const refused = await catalog.reload();
  expect(refused.ok).toBe(false);
  expect(refused.message).toContain('providers.own.tls.cert: is no certificate in PEM.');
  await ask();
  expect(shown).toEqual(['first.example', 'first.example', 'second.example', 'second.example']);
});
