// nightly: npm reads four lock files, and asks its registry
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { afterAll, describe, expect, it } from 'vitest';
import { repository } from './document.ts';

const folder = mkdtempSync(join(tmpdir(), 'medley-materials-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** As `npm run NAME -- WORDS` runs it, with the npm of the machine. */
async function runScript(name: string, words: string[], env: Record<string, string> = {}) {
  const child = spawn('node', [`scripts/${name}.mjs`, ...words], {
    cwd: repository,
    env: { ...process.env, npm_config_cache: join(folder, 'cache'), npm_config_fetch_retries: '0', ...env },
  });
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => output.push(chunk));
  const [code] = await once(child, 'close');
  return { code, output: Buffer.concat(output).toString('utf8') };
}

const lock_file = Type.Object({
  packages: Type.Record(
    Type.String(),
    Type.Object({ version: Type.Optional(Type.String()), integrity: Type.Optional(Type.String()) }),
  ),
});
const materials = Type.Object({
  bomFormat: Type.Literal('CycloneDX'),
  specVersion: Type.String(),
  metadata: Type.Object({ component: Type.Object({ name: Type.String() }) }),
  components: Type.Array(
    Type.Object({
      purl: Type.String(),
      hashes: Type.Optional(Type.Array(Type.Object({ alg: Type.String(), content: Type.String() }))),
    }),
  ),
});

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));

/** Lists the packages that a lock file pins, as package URLs with the hash in hexadecimal. */
function pinned(path: string): string[] {
  const { packages } = Value.Parse(lock_file, readJson(path));
  const entries = Object.entries(packages).flatMap(([place, { version, integrity }]) => {
    if (place === '' || version === undefined) return [];
    const hash = Buffer.from(integrity?.replace('sha512-', '') ?? '', 'base64').toString('hex');
    return [`${version} ${hash}`];
  });
  return [...new Set(entries)].toSorted();
}

describe('npm run sbom', () => {
  it('writes every package that the lock files pin, with its version and its hash, as CycloneDX', async () => {
    const out = join(folder, 'sbom');
    const { code, output } = await runScript('sbom', ['--out', out]);
    expect(output).toContain('medley.cdx.json');
    expect(code).toBe(0);
    const parts = { medley: '.', dashboard: 'web', tests: 'test', benchmarks: 'bench' };
    for (const [name, part] of Object.entries(parts)) {
      const document = Value.Parse(materials, readJson(join(out, `${name}.cdx.json`)));
      const listed = document.components.map(({ purl, hashes = [] }) => {
        const version = decodeURIComponent(purl.replace(/\?.*/, '').replace(/^.*@/, ''));
        return `${version} ${hashes.find(({ alg }) => alg === 'SHA-512')?.content ?? ''}`;
      });
      expect([...new Set(listed)].toSorted()).toEqual(pinned(join(repository, part, 'package-lock.json')));
      expect(document.metadata.component.name).toMatch(/^medley/);
    }
  }, 240_000);
});

/** A registry that knows these advisories, or answers no audits at all. */
async function startRegistry(
  advisories: object | undefined,
): Promise<{ server: Server; url: string; requests: string[] }> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (chunk: Buffer) => parts.push(chunk));
    request.on('end', () => {
      const is_audit = request.method === 'POST' && request.url?.endsWith('/advisories/bulk');
      if (!is_audit || !advisories) return response.writeHead(is_audit ? 405 : 404).end('{}');
      requests.push(gunzipSync(Buffer.concat(parts)).toString('utf8'));
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(advisories));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { server, url: `http://127.0.0.1:${port}/`, requests };
}

describe('npm run audit', () => {
  const advisory = {
    id: 1,
    url: 'https://advisories.example/1',
    title: 'A planted weakness',
    severity: 'high',
    vulnerable_versions: '>=0.0.0',
  };

  it.each([
    [
      'names each package with an advisory, and ends with 1',
      { pino: [advisory] },
      1,
      /high +pino[^]*A planted weakness/,
    ],
    ['says that none is affected, and ends with 0', {}, 0, /medley: no package is affected[^]*tests: no package is/],
    [
      'says that nothing was compared where the registry answers no audits, and ends with 2',
      undefined,
      2,
      /Nothing was compared: the registry does not answer audits/,
    ],
  ])(
    '%s',
    async (_, advisories, expected, text) => {
      const { server, url, requests } = await startRegistry(advisories);
      try {
        const { code, output } = await runScript('audit', [], { npm_config_registry: url });
        expect(output).toMatch(text);
        expect(code).toBe(expected);
        expect(requests.every((question) => /"(?:fastify|react|vitest|@portkey-ai\/gateway)"/.test(question))).toBe(
          true,
        );
        expect(requests).toHaveLength(advisories ? 4 : 0);
      } finally {
        server.close();
      }
    },
    240_000,
  );
});
