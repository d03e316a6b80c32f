import { availableParallelism, homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { readFileSync } from 'node:fs';
import { nearest } from './lib/edit-distance.ts';

export type Role = 'all' | 'api' | 'worker';

/** Settings from the environment (docs/deploy.md). Only this file reads it. */
export type Config = {
  port: number;
  host: string;
  data_dir: string;
  config_file: string | undefined;
  database_url: string | undefined;
  redis_url: string | undefined;
  role: Role;
  /** API processes behind one port. */
  processes: number;
  base_url: string | undefined;
  secret: string | undefined;
  /** The secret before this one: what was encrypted with it can still be read. */
  secret_before: string | undefined;
  allow_private: boolean;
  log_level: string;
  log: { format: 'json' | 'text'; colors: boolean };
  /** The log in a file of bounded size, beside stderr; absent: there is none. */
  log_file: string | undefined;
  /** The collector of traces; absent: none are recorded. */
  traces: TracesConfig | undefined;
  /** The collector of metrics; absent: none are sent. */
  metrics_push: MetricsPushConfig | undefined;
  /** The address of a port for /metrics alone; absent: there is none. */
  metrics: MetricsAddress | undefined;
  /** Whoever has it may read /metrics, on every port. */
  metrics_token: string | undefined;
  /** For kill tests: see lib/failpoint.ts. */
  failpoints: string | undefined;
  /** Accounts top up by card where both secrets are set. */
  stripe: StripeConfig | undefined;
};

/** A collector of OpenTelemetry. `resource`: facts about this service. */
export type CollectorConfig = {
  url: string;
  headers: Record<string, string>;
  resource: Record<string, string>;
};

/** `ratio`: the share of traces that begin here and are recorded. */
export type TracesConfig = CollectorConfig & { ratio: number };

export type MetricsPushConfig = CollectorConfig & { every_ms: number };

export type MetricsAddress = { host: string; port: number };

export type StripeConfig = { secret_key: string; webhook_secret: string; api_url: string };

/** A setting of the environment that cannot be used; the message names it and says what to do. */
export class ConfigError extends Error {
  override name = 'ConfigError';
}

type Environment = Record<string, string | undefined>;

/** Reads the environment, `process.env` unless told otherwise. Throws ConfigError. */
export function readConfig(env: Environment = process.env, cwd: string = process.cwd()): Config {
  const absolute = (path: string) => (isAbsolute(path) ? path : resolve(cwd, path));
  const text = (name: string) => (env[name] === undefined || env[name] === '' ? undefined : env[name]);
  const config_file = text('MEDLEY_CONFIG');
  const data_dir = absolute(text('MEDLEY_DATA') ?? '.medley');
  const log_file = text('MEDLEY_LOG_FILE') ?? join(data_dir, 'logs', 'medley.log');
  return {
    port: parsePort(text('PORT') ?? '8080'),
    host: text('HOST') ?? '127.0.0.1',
    data_dir,
    config_file: config_file === undefined ? undefined : absolute(config_file),
    database_url: parseDatabaseUrl(text('DATABASE_URL')),
    redis_url: text('REDIS_URL'),
    role: parseRole(text('MEDLEY_ROLE') ?? 'all'),
    processes: parseProcesses(text('MEDLEY_PROCESSES') ?? '1'),
    base_url: parseBaseUrl('MEDLEY_BASE_URL', text('MEDLEY_BASE_URL')),
    secret: parseSecret('MEDLEY_SECRET', text('MEDLEY_SECRET')),
    secret_before: parseSecret('MEDLEY_SECRET_BEFORE', text('MEDLEY_SECRET_BEFORE')),
    allow_private: text('MEDLEY_ALLOW_PRIVATE') === '1',
    log_level: parseLogLevel(text('MEDLEY_LOG_LEVEL') ?? 'warn'),
    log: parseLogFormat(text('MEDLEY_LOG_FORMAT'), text('NO_COLOR')),
    log_file: log_file === 'none' ? undefined : absolute(log_file),
    traces: parseTraces(text),
    metrics_push: parseMetricsPush(text),
    metrics: parseMetrics(text('MEDLEY_METRICS')),
    metrics_token: parseSecret('MEDLEY_METRICS_TOKEN', text('MEDLEY_METRICS_TOKEN')),
    failpoints: text('MEDLEY_FAILPOINTS'),
    stripe: parseStripe(text('STRIPE_SECRET_KEY'), text('STRIPE_WEBHOOK_SECRET'), text('STRIPE_API_URL')),
  };
}

/** Address of a service unless somebody says otherwise. */
export const local_url = 'http://127.0.0.1:8080';

/** Settings of the environment for commands of callers. */
export type CallerConfig = {
  url: string | undefined;
  api_key: string | undefined;
  /** The folder of programs' configuration, of this person. */
  config_dir: string;
  /** The protocol by which the terminal shows images; undefined: by none that is known. */
  images: 'kitty' | 'iterm2' | undefined;
  colors: boolean;
};

/** Throws ConfigError. */
export function readCaller(env: Environment = process.env): CallerConfig {
  const text = (name: string) => env[name] || undefined;
  const xdg = text('XDG_CONFIG_HOME');
  const base = env['MEDLEY_BASE_URL'];
  return {
    url: parseBaseUrl('MEDLEY_URL', text('MEDLEY_URL')) ?? parseBaseUrl('MEDLEY_BASE_URL', base || undefined),
    api_key: text('MEDLEY_API_KEY'),
    // A relative path is none (XDG Base Directory Specification).
    config_dir: xdg !== undefined && isAbsolute(xdg) ? xdg : resolve(homedir(), '.config'),
    images: imageProtocol(text),
    colors: text('NO_COLOR') === undefined && text('TERM') !== 'dumb',
  };
}

/** A multiplexer between the two would show the image as text. */
function imageProtocol(text: (name: string) => string | undefined): CallerConfig['images'] {
  if (text('TMUX') !== undefined || /^(?:screen|tmux)/.test(text('TERM') ?? '')) return undefined;
  const program = text('TERM_PROGRAM') ?? '';
  if (text('KITTY_WINDOW_ID') !== undefined || text('TERM') === 'xterm-kitty' || program === 'ghostty') return 'kitty';
  return program === 'iTerm.app' || program === 'WezTerm' || text('LC_TERMINAL') === 'iTerm2' ? 'iterm2' : undefined;
}

const own_names = [
  'DATA',
  'CONFIG',
  'ROLE',
  'PROCESSES',
  'BASE_URL',
  'SECRET',
  'SECRET_BEFORE',
  'ALLOW_PRIVATE',
  'LOG_LEVEL',
  'LOG_FORMAT',
  'LOG_FILE',
  'METRICS',
  'METRICS_TOKEN',
  'URL',
  'API_KEY',
  'FAILPOINTS',
].map((name) => `MEDLEY_${name}`);
const other_names = ['PORT', 'HOST', 'DATABASE_URL'];

/**
 * Returns a sentence for each variable that begins like one of ours and is none: it is probably misspelt, and has no
 * effect.
 */
export function unknownSettings(env: Environment = process.env): string[] {
  return Object.keys(env)
    .filter((name) => /^MEDLEY_(?!TEST_)/.test(name) && !own_names.includes(name))
    .toSorted()
    .map((name) => {
      const near = nearest(name.slice('MEDLEY_'.length), other_names) ?? nearest(name, own_names);
      const hint = near === undefined ? `There are: ${own_names.slice(0, -1).join(', ')}.` : `Did you mean ${near}?`;
      return `${name} is no setting of Medley and has no effect by itself. ${hint}`;
    });
}

/**
 * Reads the configuration as readConfig does, with `defaults` for what the environment leaves open. A variable that is
 * empty is left open.
 */
export function readConfigOver(defaults: Environment): Config {
  const entries = Object.entries(process.env).filter(([, value]) => value !== '');
  return readConfig({ ...defaults, ...Object.fromEntries(entries) });
}

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : -1;
  if (port < 0 || port > 65_535) throw new ConfigError(`PORT must be a number from 0 to 65535, not "${text}".`);
  return port;
}

/**
 * The variables that OpenTelemetry's SDKs read (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/,
 * read 2026-11-27). Undefined where they name no collector.
 */
function parseCollector(
  text: (name: string) => string | undefined,
  { kind, own, own_headers }: { kind: 'traces' | 'metrics'; own: string | undefined; own_headers: string | undefined },
): CollectorConfig | undefined {
  const prefix = `OTEL_EXPORTER_OTLP_${kind.toUpperCase()}`;
  const common = text('OTEL_EXPORTER_OTLP_ENDPOINT');
  if (text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return undefined;
  if (own === undefined && common === undefined) return undefined;
  const name = own === undefined ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : `${prefix}_ENDPOINT`;
  const url = own ?? `${common?.replace(/\/+$/, '')}/v1/${kind}`;
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new ConfigError(`${name} must be an http(s) address such as http://127.0.0.1:4318, not "${own ?? common}".`);
  return {
    url,
    headers: {
      ...parsePairs('OTEL_EXPORTER_OTLP_HEADERS', text('OTEL_EXPORTER_OTLP_HEADERS')),
      ...parsePairs(`${prefix}_HEADERS`, own_headers),
    },
    resource: {
      ...parsePairs('OTEL_RESOURCE_ATTRIBUTES', text('OTEL_RESOURCE_ATTRIBUTES')),
      'service.name': text('OTEL_SERVICE_NAME') ?? 'medley',
    },
  };
}

function parseTraces(text: (name: string) => string | undefined): TracesConfig | undefined {
  const own = text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
  const own_headers = text('OTEL_EXPORTER_OTLP_TRACES_HEADERS');
  const collector = parseCollector(text, { kind: 'traces', own, own_headers });
  return collector && { ...collector, ratio: parseRatio(text('OTEL_TRACES_SAMPLER_ARG') ?? '1') };
}

/** Metrics are sent only where that is asked for by name: many collectors, Langfuse for one, take traces alone. */
function parseMetricsPush(text: (name: string) => string | undefined): MetricsPushConfig | undefined {
  const own = text('OTEL_EXPORTER_OTLP_METRICS_ENDPOINT');
  const own_headers = text('OTEL_EXPORTER_OTLP_METRICS_HEADERS');
  const exporter = text('OTEL_METRICS_EXPORTER') ?? (own === undefined ? 'none' : 'otlp');
  if (exporter === 'none') return undefined;
  if (exporter !== 'otlp')
    throw new ConfigError(
      `OTEL_METRICS_EXPORTER must be otlp or none, not "${exporter}". For Prometheus set MEDLEY_METRICS.`,
    );
  const collector = parseCollector(text, { kind: 'metrics', own, own_headers });
  if (!collector && text('OTEL_SDK_DISABLED')?.toLowerCase() !== 'true')
    throw new ConfigError('OTEL_METRICS_EXPORTER=otlp needs the collector: set OTEL_EXPORTER_OTLP_ENDPOINT.');
  return collector && { ...collector, every_ms: parseInterval(text('OTEL_METRIC_EXPORT_INTERVAL') ?? '60000') };
}

function parseInterval(text: string): number {
  const ms = /^\d{1,8}$/.test(text) ? Number(text) : 0;
  if (ms >= 1_000) return ms;
  throw new ConfigError(`OTEL_METRIC_EXPORT_INTERVAL must be a number of milliseconds from 1000 on, not "${text}".`);
}

function parseRatio(text: string): number {
  const ratio = /^(?:0|1|0?\.\d+|[01]\.\d+)$/.test(text) ? Number(text) : Number.NaN;
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw new ConfigError(`OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not "${text}".`);
}

/** `name=value,name=value`, percent-encoded. The text may have a secret, so no message shows it. */
function parsePairs(variable: string, text: string | undefined): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const pair of (text ?? '').split(',').filter((each) => each.trim() !== '')) {
    const [, name = '', value = ''] = /^\s*([\w.-]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    if (name === '') throw new ConfigError(`${variable} must be a list such as name=value,name=value.`);
    try {
      pairs[name] = decodeURIComponent(value);
    } catch {
      throw new ConfigError(`${variable}: the value of ${name} is not percent-encoded.`);
    }
  }
  return pairs;
}

/** A port of this machine alone, or `HOST:PORT`. */
function parseMetrics(text: string | undefined): MetricsAddress | undefined {
  if (text === undefined) return undefined;
  const [, host = '127.0.0.1', digits = ''] = /^(?:(\[[0-9a-fA-F:.]+\]|[\w.-]+):)?(\d{1,5})$/.exec(text) ?? [];
  const port = digits === '' ? -1 : Number(digits);
  if (port >= 0 && port <= 65_535) return { host: host.replace(/^\[|\]$/g, ''), port };
  throw new ConfigError(`MEDLEY_METRICS must be a port, or HOST:PORT such as 127.0.0.1:9464, not "${text}".`);
}

/** Checks that the text names a server: pg makes a host or a port of its own of anything else. The text stays out of the message, since it has a password. */
function parseDatabaseUrl(text: string | undefined): string | undefined {
  if (text === undefined || /^(postgres(ql)?:\/\/|socket:|\/)/i.test(text)) return text;
  throw new ConfigError('DATABASE_URL must begin with postgres://, as in postgres://USER:PASSWORD@HOST:PORT/NAME.');
}

function parseRole(text: string): Role {
  if (text === 'all' || text === 'api' || text === 'worker') return text;
  throw new ConfigError(`MEDLEY_ROLE must be all, api or worker, not "${text}".`);
}

/** More than these would have too few connections to the database. */
const processes_max = 64;

function parseProcesses(text: string): number {
  if (text === 'auto') return Math.min(availableParallelism(), processes_max);
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= processes_max) return count;
  throw new ConfigError(
    `MEDLEY_PROCESSES must be a number from 1 to ${processes_max}, or auto for one per core, not "${text}".`,
  );
}

function parseBaseUrl(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username || url.password) {
    throw new ConfigError(`${name} must be a plain http(s) address such as https://api.example.com, not "${text}".`);
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

/** One of the two alone would take money that is never credited, or credit none. */
function parseStripe(
  secret_key: string | undefined,
  webhook_secret: string | undefined,
  api_url = 'https://api.stripe.com',
): StripeConfig | undefined {
  if (secret_key === undefined && webhook_secret === undefined) return undefined;
  if (secret_key === undefined || webhook_secret === undefined) {
    throw new ConfigError('STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET must be set together, or neither.');
  }
  if (!URL.canParse(api_url)) throw new ConfigError('STRIPE_API_URL must be an address.');
  return { secret_key, webhook_secret, api_url: api_url.replace(/\/+$/, '') };
}

const log_levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

function parseLogLevel(text: string): string {
  if (log_levels.includes(text)) return text;
  throw new ConfigError(`MEDLEY_LOG_LEVEL must be one of ${log_levels.join(', ')}, not "${text}".`);
}

/** On a terminal a person reads along; whatever else stderr is, a program does. */
function parseLogFormat(text: string | undefined, no_color: string | undefined): Config['log'] {
  const is_terminal = process.stderr.isTTY === true; // its type leaves out that it may be undefined
  const format = text ?? (is_terminal ? 'text' : 'json');
  if (format !== 'json' && format !== 'text')
    throw new ConfigError(`MEDLEY_LOG_FORMAT must be json or text, not "${format}".`);
  return { format, colors: is_terminal && no_color === undefined };
}

function parseSecret(name: string, text: string | undefined): string | undefined {
  if (text !== undefined && text.length < 16) throw new ConfigError(`${name} must have at least 16 characters.`);
  return text;
}

/**
 * The value behind `env:NAME` or `file:/path`, the only forms in which `medley.yaml` may name a
 * secret. Undefined if it has another form, the variable is unset or empty, or the file cannot be read.
 */
export function resolveSecret(reference: string, env: Environment = process.env): string | undefined {
  if (reference.startsWith('env:')) return env[reference.slice('env:'.length)] || undefined;
  if (!reference.startsWith('file:')) return undefined;
  try {
    return readFileSync(reference.slice('file:'.length), 'utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}
