import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConfigError, readConfig, resolveSecret, unknownSettings } from '../src/config.ts';

const folder = resolve('/srv/medley');
const read = (env: Record<string, string>) => readConfig(env, folder);

describe('readConfig', () => {
  const defaults = {
    port: 8080,
    host: '127.0.0.1',
    data_dir: join(folder, '.medley'),
    config_file: undefined,
    database_url: undefined,
    redis_url: undefined,
    role: 'all',
    processes: 1,
    base_url: undefined,
    secret: undefined,
    allow_private: false,
    log_level: 'warn',
    log: expect.objectContaining({ format: expect.stringMatching(/json|text/) }),
    log_file: join(folder, '.medley/logs/medley.log'),
  };

  it('has a default for everything', () => {
    expect(read({})).toEqual(defaults);
  });

  it('takes an empty variable for an absent one', () => {
    const names = [
      'PORT',
      'HOST',
      'MEDLEY_DATA',
      'MEDLEY_CONFIG',
      'DATABASE_URL',
      'REDIS_URL',
      'MEDLEY_ROLE',
      'MEDLEY_PROCESSES',
    ];
    const more = ['MEDLEY_BASE_URL', 'MEDLEY_SECRET', 'MEDLEY_ALLOW_PRIVATE', 'MEDLEY_LOG_LEVEL'];
    expect(read(Object.fromEntries([...names, ...more].map((name) => [name, ''])))).toEqual(defaults);
  });

  it('reads every variable', () => {
    const env = {
      PORT: '0',
      HOST: '::',
      MEDLEY_DATA: 'data',
      MEDLEY_CONFIG: 'medley.yaml',
      DATABASE_URL: 'postgres://db/medley',
      REDIS_URL: 'redis://cache',
      MEDLEY_ROLE: 'worker',
      MEDLEY_PROCESSES: '3',
      MEDLEY_BASE_URL: 'https://api.example.com/',
      MEDLEY_SECRET: '0123456789abcdef',
      MEDLEY_ALLOW_PRIVATE: '1',
      MEDLEY_LOG_LEVEL: 'debug',
      MEDLEY_LOG_FORMAT: 'text',
      MEDLEY_LOG_FILE: 'none',
      NO_COLOR: '1',
      MEDLEY_METRICS: '0.0.0.0:9464',
      MEDLEY_METRICS_TOKEN: 'fedcba9876543210',
    };
    expect(read(env)).toEqual({
      port: 0,
      host: '::',
      data_dir: join(folder, 'data'),
      config_file: join(folder, 'medley.yaml'),
      database_url: 'postgres://db/medley',
      redis_url: 'redis://cache',
      role: 'worker',
      processes: 3,
      base_url: 'https://api.example.com',
      secret: '0123456789abcdef',
      allow_private: true,
      log_level: 'debug',
      log: { format: 'text', colors: false },
      metrics: { host: '0.0.0.0', port: 9464 },
      metrics_token: 'fedcba9876543210',
    });
  });

  it('keeps absolute paths', () => {
    const path = resolve('/var/lib/medley');
    expect(read({ MEDLEY_DATA: path, MEDLEY_CONFIG: path })).toMatchObject({ data_dir: path, config_file: path });
  });

  it.each([
    ['9464', { host: '127.0.0.1', port: 9464 }],
    ['[::1]:9464', { host: '::1', port: 9464 }],
    ['metrics.internal:0', { host: 'metrics.internal', port: 0 }],
  ])('MEDLEY_METRICS=%s is an address', (text, metrics) => {
    expect(read({ MEDLEY_METRICS: text }).metrics).toEqual(metrics);
  });

  it('reads the collector of traces as SDKs of OpenTelemetry do', () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20abc, x-tenant = a',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      OTEL_TRACES_SAMPLER_ARG: '0.01',
    };
    expect(read(env).traces).toEqual({
      url: 'http://collector:4318/v1/traces',
      headers: { authorization: 'Basic abc', 'x-tenant': 'a' },
      resource: { 'deployment.environment.name': 'test', 'service.name': 'medley' },
      ratio: 0.01,
    });
    const own = { ...env, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://other/traces', OTEL_SERVICE_NAME: 'gateway' };
    expect(read(own).traces).toMatchObject({ url: 'https://other/traces', resource: { 'service.name': 'gateway' } });
    expect(read({ ...env, OTEL_SDK_DISABLED: 'true' }).traces).toBeUndefined();
  });

  it('sends metrics to a collector only where that is asked for by name', () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'a=b' };
    expect(read(env).metrics_push).toBeUndefined();
    expect(read({ ...env, OTEL_METRICS_EXPORTER: 'otlp', OTEL_METRIC_EXPORT_INTERVAL: '5000' }).metrics_push).toEqual({
      url: 'http://collector:4318/v1/metrics',
      headers: { a: 'b' },
      resource: { 'service.name': 'medley' },
      every_ms: 5_000,
    });
    const own = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'https://other/metrics' };
    expect(read(own)).toMatchObject({
      metrics_push: { url: 'https://other/metrics', every_ms: 60_000 },
      traces: undefined,
    });
    expect(read({ ...own, OTEL_METRICS_EXPORTER: 'none' }).metrics_push).toBeUndefined();
    expect(read({ ...own, OTEL_SDK_DISABLED: 'true' }).metrics_push).toBeUndefined();
  });

  it.each([
    [
      { OTEL_METRICS_EXPORTER: 'prometheus' },
      /must be otlp or none, not "prometheus"\. For Prometheus set MEDLEY_METRICS/,
    ],
    [{ OTEL_METRICS_EXPORTER: 'otlp' }, /needs the collector: set OTEL_EXPORTER_OTLP_ENDPOINT/],
    [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'collector' }, /OTEL_EXPORTER_OTLP_METRICS_ENDPOINT must be an http/],
    [
      { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://c', OTEL_METRIC_EXPORT_INTERVAL: '60s' },
      /OTEL_METRIC_EXPORT_INTERVAL must be a number of milliseconds from 1000 on, not "60s"/,
    ],
  ])('says what is wrong with %j', (env, message) => {
    expect(() => read(env)).toThrow(message);
  });

  it.each([
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_TRACES_SAMPLER_ARG: '2' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_TRACES_SAMPLER_ARG: 'all' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_EXPORTER_OTLP_HEADERS: 'a secret' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_EXPORTER_OTLP_HEADERS: 'a=%secret' },
  ])('refuses %j and shows no header', (env) => {
    const error = (() => {
      try {
        return read(env);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(ConfigError);
    expect(String(error)).toContain('OTEL_');
    expect(String(error)).not.toContain('secret');
  });

  it.each(['0', 'true', 'yes', ' 1'])('MEDLEY_ALLOW_PRIVATE=%j allows nothing', (text) => {
    expect(read({ MEDLEY_ALLOW_PRIVATE: text }).allow_private).toBe(false);
  });

  it.each([
    ['https://api.example.com', 'https://api.example.com'],
    ['https://example.com/medley//', 'https://example.com/medley'],
    ['HTTP://Example.com:80', 'http://example.com'],
    [' https://example.com ', 'https://example.com'],
    ['https://example.com?', 'https://example.com'],
    ['http://[::1]:8080', 'http://[::1]:8080'],
  ])('MEDLEY_BASE_URL=%j is %s', (text, base_url) => {
    expect(read({ MEDLEY_BASE_URL: text }).base_url).toBe(base_url);
  });

  it.each([
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80a'],
    ['PORT', '8080.5'],
    ['PORT', '1e3'],
    ['MEDLEY_ROLE', 'ALL'],
    ['MEDLEY_ROLE', 'server'],
    ['MEDLEY_BASE_URL', 'api.example.com'],
    ['MEDLEY_BASE_URL', 'ftp://example.com'],
    ['MEDLEY_BASE_URL', 'https://example.com/?a=1'],
    ['MEDLEY_BASE_URL', 'https://example.com/#a'],
    ['MEDLEY_BASE_URL', 'https://ann@example.com'],
    ['MEDLEY_BASE_URL', 'https://:secret@example.com'],
    ['MEDLEY_SECRET', 'short'],
    ['MEDLEY_LOG_FORMAT', 'pretty'],
    ['MEDLEY_METRICS', 'localhost'],
    ['MEDLEY_METRICS', '65536'],
    ['MEDLEY_METRICS', '::1:9464'],
    ['MEDLEY_METRICS', 'http://127.0.0.1:9464'],
    ['MEDLEY_METRICS_TOKEN', 'short'],
    ['MEDLEY_LOG_LEVEL', 'verbose'],
  ])('%s=%s is refused by name', (name, text) => {
    expect(() => read({ [name]: text })).toThrow(ConfigError);
    expect(() => read({ [name]: text })).toThrow(name);
  });

  it('does not repeat a secret', () => {
    expect(() => read({ MEDLEY_SECRET: 'short' })).not.toThrow('short');
  });
});

describe('variables that begin like ours', () => {
  it.each([
    ['MEDLEY_PROT', 'Did you mean PORT?'],
    ['MEDLEY_CONFIGS', 'Did you mean MEDLEY_CONFIG?'],
    ['MEDLEY_DATABASE_URL', 'Did you mean DATABASE_URL?'],
    ['MEDLEY_COLOUR_SCHEME', 'There are: MEDLEY_DATA, MEDLEY_CONFIG, '],
  ])('%s is warned about, since it has no effect', (name, hint) => {
    expect(unknownSettings({ [name]: 'x', MEDLEY_DATA: 'y', PORT: '1', HOME: 'z' })).toEqual([
      expect.stringContaining(`${name} is no setting of Medley and has no effect by itself. ${hint}`),
    ]);
  });

  it('those that are settings are not', () => {
    expect(unknownSettings({ MEDLEY_DATA: 'x', MEDLEY_CONFIG: 'x', MEDLEY_FAILPOINTS: 'x' })).toEqual([]);
  });
});

describe('resolveSecret', () => {
  it('reads a variable', () => {
    const env = { KEY: 'value', EMPTY: '' };
    expect(resolveSecret('env:KEY', env)).toBe('value');
    expect(resolveSecret('env:EMPTY', env)).toBeUndefined();
    expect(resolveSecret('env:ABSENT', env)).toBeUndefined();
  });

  it('reads a file without the white space around', () => {
    const directory = mkdtempSync(join(tmpdir(), 'medley-config-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, 'key'), ' value\n');
    writeFileSync(join(directory, 'blank'), '\n');
    expect(resolveSecret(`file:${join(directory, 'key')}`, {})).toBe('value');
    expect(resolveSecret(`file:${join(directory, 'blank')}`, {})).toBeUndefined();
    expect(resolveSecret(`file:${join(directory, 'absent')}`, {})).toBeUndefined();
    expect(resolveSecret(`file:${directory}`, {})).toBeUndefined();
  });

  it('refuses every other form', () => {
    expect(resolveSecret('value', { value: 'x' })).toBeUndefined();
    expect(resolveSecret(`xxxxx${import.meta.filename}`, {})).toBeUndefined();
  });
});
