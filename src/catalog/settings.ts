import { assert } from '../lib/assert.ts';
import type { Issuer } from '../billing/invoice.ts';
import { parseDuration } from '../lib/duration.ts';
import type { AlertSettings, SearchApi, Settings, WebSearchSettings } from './model.ts';
import type { StorageSettings } from '../storage/settings.ts';
import type { CatalogFile, IssuerEntry } from './schema.ts';
import type { BucketEntry } from './storage-schema.ts';
import type { WebSearchEntry } from './tools-schema.ts';
import { signInOf } from './sign-in.ts';
import { default_price_list } from './price-list.ts';

export const default_currencies = { USD: '1', PLN: '3.65' };

/** The settings of a file that has been checked, with defaults for what it leaves out. */
export function settingsOf(file: CatalogFile): Settings {
  const { server, limits, money, net, webhooks, outputs, tasks, retention, storage, files, responses, billing, mail } =
    file;
  const currencies = new Map(Object.entries(file.currencies ?? default_currencies));
  const [base_currency] = currencies.keys();
  assert(base_currency, 'there is a currency');
  return {
    ...(server?.base_url !== undefined && { base_url: server.base_url.replace(/\/+$/, '') }),
    trusted_proxies: server?.trusted_proxies ?? [],
    cors_origins: server?.cors_origins ?? [],
    hsts: server?.hsts ?? 'host',
    limits: {
      generate_per_minute: limits?.generate_per_minute ?? 60,
      chat_per_minute: limits?.chat_per_minute ?? 600,
      chat_at_once: limits?.chat_at_once ?? 200,
      failed_per_24h: limits?.failed_per_24h ?? 25,
      other_per_minute: limits?.other_per_minute ?? 600,
      waiting_tasks: limits?.waiting_tasks ?? 1_000,
    },
    money: { reservations: money?.reservations ?? 'memory' },
    routing: { by_caller: file.routing?.by_caller ?? true },
    net_allow: net?.allow ?? [],
    webhooks: {
      retry_delays_ms: (webhooks?.retry_delays ?? ['10s', '1m', '5m', '30m', '2h']).map(milliseconds),
      timeout_ms: milliseconds(webhooks?.timeout ?? '10s'),
      disable_after_ms: milliseconds(webhooks?.disable_after ?? '3d'),
    },
    outputs: { link_ttl_ms: milliseconds(outputs?.link_ttl ?? '24h'), keep_ms: milliseconds(outputs?.keep ?? '7d') },
    tasks: { keep_ms: milliseconds(tasks?.keep ?? default_keep) },
    retention: retentionOf(tasks?.keep ?? default_keep, retention),
    storage: storage?.s3 ? bucketOf(storage.s3) : { type: 'disk', shared: storage?.shared ?? false },
    ...((file.catalog?.check ?? true) && {
      model_check: { price_list: file.catalog?.price_list ?? default_price_list },
    }),
    ...(file.backup && {
      backup: {
        every_ms: Math.max(60_000, milliseconds(file.backup.every)),
        keep: file.backup.keep ?? 14,
        to: file.backup.to,
      },
    }),
    files: {
      keep_ms: milliseconds(files?.keep ?? '7d'),
      file_bytes_max: (files?.file_mb_max ?? 200) * 1_000_000,
      account_bytes_max: (files?.account_mb_max ?? 5_000) * 1_000_000,
      account_files_max: files?.account_files_max ?? 1_000,
    },
    responses: {
      keep_ms: milliseconds(responses?.keep ?? '30d'),
      response_bytes_max: (responses?.response_mb_max ?? 8) * 1_000_000,
      account_bytes_max: (responses?.account_mb_max ?? 1_000) * 1_000_000,
    },
    content: contentOf(file.content_log),
    tools: toolsOf(file.tools),
    ...(billing?.issuer && { issuer: issuerOf(billing.issuer) }),
    ...(billing?.top_up_text !== undefined && { top_up_text: billing.top_up_text }),
    ...(mail && { mail }),
    sign_in: signInOf(file.sign_in),
    status_page: { public: file.status_page?.public ?? false },
    alerts: alertsOf(file.alerts),
    currencies,
    base_currency,
  };
}

const default_keep = '90d';
const day_ms = 86_400_000;

/** The books look for the delivery of every task that is there: a delivery is kept a day longer at least. */
function retentionOf(tasks_keep: string, retention: CatalogFile['retention'] = {}): Settings['retention'] {
  const { chat_records = tasks_keep, deliveries = tasks_keep, audit, sessions = '1d', invitations = '30d' } = retention;
  return {
    chat_records_ms: milliseconds(chat_records),
    deliveries_ms: Math.max(milliseconds(deliveries), milliseconds(tasks_keep) + day_ms),
    ...(audit !== undefined && { audit_ms: milliseconds(audit) }),
    sessions_ms: milliseconds(sessions),
    invitations_ms: milliseconds(invitations),
  };
}

/** Without a longest time there are no contents. */
function contentOf(content: CatalogFile['content_log'] = {}): Settings['content'] {
  const {
    allowed = true,
    keep_max = '90d',
    call_kb_max = 256,
    account_mb_max = 1_000,
    redact = [],
    patterns = [],
    traces = false,
  } = content;
  return {
    keep_ms: allowed ? milliseconds(keep_max) : 0,
    call_length_max: call_kb_max * 1_000,
    account_bytes_max: account_mb_max * 1_000_000,
    redact,
    patterns,
    traces,
  };
}

/** Returns the most days for which a key may keep contents; 0: it may store none. */
export function keepDaysMax({ content: { keep_ms } }: Pick<Settings, 'content'>): number {
  return Math.ceil(keep_ms / day_ms);
}

function alertsOf(alerts: CatalogFile['alerts'] = {}): AlertSettings {
  const { mail, webhook_url: url, webhook_secret: secret, quiet_hours: quiet } = alerts;
  return {
    ...(mail && { mail }),
    ...(url !== undefined && secret !== undefined && { webhook: { url, secret } }),
    ...(quiet && {
      quiet: { from: minuteOf(quiet.from), to: minuteOf(quiet.to), time_zone: quiet.time_zone ?? 'UTC' },
    }),
    per_hour_max: alerts.per_hour_max ?? 20,
    disk_percent_min: alerts.disk_percent_min ?? 10,
  };
}

/** The minute of the day of a time such as 22:00. */
function minuteOf(time: string): number {
  const [hours, minutes] = time.split(':').map(Number);
  assert(hours !== undefined && minutes !== undefined, `"${time}" is a time of day`);
  return 60 * hours + minutes;
}

function issuerOf({ name, address = '', tax_id = '', series = 'MED', tax_percent }: IssuerEntry): Issuer {
  return { name, address, tax_id, series, ...(tax_percent !== undefined && { tax_percent }) };
}

function bucketOf(entry: BucketEntry): StorageSettings {
  const { bucket, region, endpoint, prefix, force_path_style, links } = entry;
  const { access_key_id, secret_access_key, encryption: algorithm, kms_key_id } = entry;
  return {
    type: 's3',
    bucket,
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    prefix: prefix === undefined ? '' : `${prefix}/`,
    force_path_style: force_path_style ?? false,
    ...(access_key_id !== undefined &&
      secret_access_key !== undefined && { credentials: { access_key_id, secret_access_key } }),
    ...(algorithm !== undefined && {
      encryption: { algorithm, ...(kms_key_id !== undefined && { kms_key_id }) },
    }),
    links: links ?? 'through',
  };
}

/** Public addresses of the search APIs; a search engine of one's own has none. */
const search_urls: { readonly [api in SearchApi]?: string } = {
  brave: 'https://api.search.brave.com',
  tavily: 'https://api.tavily.com',
  exa: 'https://api.exa.ai',
};

function toolsOf({ web_search, image_generation: images }: NonNullable<CatalogFile['tools']> = {}): Settings['tools'] {
  return {
    ...(web_search && { web_search: searchOf(web_search) }),
    ...(images && {
      image_generation: {
        model: images.model,
        images_max: images.images_max ?? 1,
        timeout_ms: milliseconds(images.timeout ?? '2m'),
      },
    }),
  };
}

function searchOf(entry: WebSearchEntry): WebSearchSettings {
  const { api, base_url = search_urls[api] ?? '', api_key, price, cost, per, models } = entry;
  return {
    api,
    base_url: base_url.replace(/\/+$/, ''),
    ...(api_key !== undefined && { api_key }),
    price,
    ...(cost !== undefined && { cost }),
    per: per ?? 1,
    results_max: entry.results_max ?? 5,
    searches_max: entry.searches_max ?? 5,
    timeout_ms: milliseconds(entry.timeout ?? '10s'),
    allow_private: entry.allow_private ?? false,
    ...(models && { models }),
  };
}

/** The milliseconds of a duration that has been checked. */
export function milliseconds(duration: string): number {
  const duration_ms = parseDuration(duration);
  assert(duration_ms !== undefined, `"${duration}" is a duration`);
  return duration_ms;
}
