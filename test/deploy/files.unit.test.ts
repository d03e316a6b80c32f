import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import package_json from '../../package.json' with { type: 'json' };
import { repository } from '../docs/document.ts';
import { checkCatalogText } from './catalog-text.ts';

/** The schema of the Compose Specification (github.com/compose-spec/compose-spec, Apache-2.0), commit 170098b of 2026-06-23. */
const compose_schema = join(import.meta.dirname, 'compose-spec.json');

const read = (path: string) => readFileSync(join(repository, path), 'utf8');
const ajv = new Ajv({ strict: false, allErrors: true, formats: { duration: true, uri: true } });

describe('compose.yaml', () => {
  const compose = parse(read('deploy/compose.yaml'), { merge: true });
  const services: Record<string, Record<string, unknown>> = compose.services;

  it('is what the Compose Specification allows', () => {
    const { $schema: _schema, ...schema } = JSON.parse(readFileSync(compose_schema, 'utf8')); // draft 7, under another address
    const validate = ajv.compile(schema);
    expect(validate(compose), JSON.stringify(validate.errors?.slice(0, 5))).toBe(true);
    expect(validate({ ...compose, services: { medley: { imagine: 'x' } } })).toBe(false);
  });

  it('starts one container by default, and a whole installation by its profile', () => {
    const inProfile = (name: string | undefined) =>
      Object.keys(services).filter((each) => JSON.stringify(services[each]?.['profiles']) === (name && `["${name}"]`));
    expect(inProfile(undefined)).toEqual(['medley']);
    expect(inProfile('scale')).toEqual([
      'api-1',
      'api-2',
      'worker-1',
      'worker-2',
      'postgres',
      'standby',
      'bucket',
      'bucket-made',
      'caddy',
    ]);
  });

  it('gives Medley a file system that is read-only, one writable folder, and no rights', () => {
    for (const name of ['medley', 'api-1', 'api-2', 'worker-1', 'worker-2']) {
      expect(services[name]).toMatchObject({
        read_only: true,
        user: '10001:10001',
        cap_drop: ['ALL'],
        init: true,
        volumes: [expect.stringMatching(/^[\w-]+:\/data$/)],
      });
    }
  });

  it('names volumes and configurations that it defines, and writes no secret', () => {
    const volumes = Object.values(services).flatMap(({ volumes: each }) => (Array.isArray(each) ? each : []));
    const named = volumes.map((each) => String(each).split(':')[0] ?? '').filter((name) => !name.startsWith('.'));
    expect([...new Set(named)].toSorted()).toEqual(Object.keys(compose.volumes).toSorted());
    const secrets = Object.values(services).flatMap(({ environment }) =>
      Object.entries(environment ?? {}).filter(([name]) => /PASSWORD|SECRET|ACCESS_KEY/.test(name)),
    );
    expect(secrets.length).toBeGreaterThan(5);
    expect(secrets.filter(([, value]) => !/^\$\{[A-Z0-9_]+:-\}$/.test(String(value)))).toEqual([]);
  });

  it('has a medley.yaml that Medley takes', async () => {
    expect(await checkCatalogText(compose.configs['medley.yaml'].content)).toEqual([]);
  });
});

describe('the Dockerfile', () => {
  const text = read('deploy/Dockerfile');
  const lines = text.replaceAll('\\\n', ' ').split('\n');
  const of = (word: string) =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));

  it('has two stages, a user that is not root, and programs without a shell', () => {
    expect(of('FROM')).toHaveLength(2);
    expect(of('USER')).toEqual(['10001:10001']);
    const [, check = ''] = /CMD (\[.*\])$/.exec(of('HEALTHCHECK')[0] ?? '') ?? [];
    expect(JSON.parse(check)).toEqual(['/app/bin/node', '/app/health.mjs']);
    expect(JSON.parse(of('ENTRYPOINT')[0] ?? '')).toEqual(['/app/bin/node', '/app/bin/medley']);
    expect(JSON.parse(of('CMD')[0] ?? '')).toEqual(['start']);
    expect(of('VOLUME')).toEqual(['/data']);
  });

  it('runs files that there are', () => {
    const files = [...text.matchAll(/deploy\/[\w./-]+\.mjs/g)].map(([name]) => name);
    expect(files.filter((name) => !existsSync(join(repository, name)))).toEqual([]);
    expect(Object.keys(package_json.scripts)).toContain('package');
  });

  it('is built without what .dockerignore names: data, secrets, packages of another machine', () => {
    const ignored = read('.dockerignore').split('\n');
    expect(ignored).toEqual(expect.arrayContaining(['**/node_modules', '**/.git', '**/.medley*', '**/.env*']));
  });
});

describe('the chart', () => {
  const chart = parse(read('deploy/helm/medley/Chart.yaml'));
  const values = parse(read('deploy/helm/medley/values.yaml'));
  const schema = JSON.parse(read('deploy/helm/medley/values.schema.json'));
  const isValid = ajv.compile(schema);
  const filled = { ...values, baseUrl: 'https://ai.example.com', existingSecret: 'medley' };

  it('has the version of the product', () => {
    expect([chart.version, chart.appVersion]).toEqual([package_json.version, package_json.version]);
  });

  it('takes its values once the address and the secret are named, and refuses what it does not know', () => {
    expect(isValid(filled), JSON.stringify(isValid.errors)).toBe(true);
    for (const wrong of [
      values,
      { ...filled, replicas: 3 },
      { ...filled, baseUrl: 'ai.example.com' },
      { ...filled, config: { version: 1 } },
      { ...filled, ingress: { enabled: true } },
      { ...filled, api: { ...values.api, autoscaling: { ...values.api.autoscaling, cpuPercent: 0 } } },
    ])
      expect(isValid(wrong), JSON.stringify(wrong)).toBe(false);
  });

  it('has a medley.yaml that Medley takes', async () => {
    expect(await checkCatalogText(JSON.stringify(values.config))).toEqual([]);
  });
});

describe('medley.service', () => {
  it('keeps its data in a folder of its own, may write nowhere else, and gives a stop its time', () => {
    const settings = new Map(
      read('deploy/medley.service')
        .split('\n')
        .flatMap((line) => (/^\w+=/.test(line) ? [line.split(/=(.*)/s).slice(0, 2) as [string, string]] : [])),
    );
    expect(settings.get('ExecStart')).toBe('/usr/bin/medley start');
    expect(settings.get('Environment')).toContain(`MEDLEY_DATA=/var/lib/${settings.get('StateDirectory')}`);
    expect(settings.get('ProtectSystem')).toBe('strict');
    expect(settings.get('KillMode')).toBe('mixed');
    expect(Number(settings.get('TimeoutStopSec'))).toBeGreaterThan(8);
  });
});
