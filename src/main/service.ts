import { watchDisks } from '../alerts/disks.ts';
import { listAccounts } from '../accounts/accounts.ts';
import { makeFirstAccount } from '../accounts/first.ts';
import { makeLoginLink } from '../accounts/sign-in/login-links.ts';
import { firstOperator } from '../accounts/members.ts';
import { makeApp, type App } from '../app.ts';
import { reload_channel } from '../app/channels.ts';
import { DataFolderError } from '../app/data-folder.ts';
import { noteRunning } from '../app/running.ts';
import { refuseUnsharedDisk } from '../app/storage.ts';
import { startReplay } from '../chat/unsettled.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { CatalogError } from '../catalog/problem.ts';
import { ConfigError, readConfig, unknownSettings } from '../config.ts';
import { EmbeddedError } from '../embedded-postgres/embedded.ts';
import { MigrationError } from '../db/migrate.ts';
import { retryWhileUnavailable } from '../db/retry-while-unavailable.ts';
import { UnreachableError } from '../db/servers.ts';
import { startMetricsPush } from '../monitoring/metrics-push.ts';
import { startMetricsServer } from '../monitoring/metrics-server.ts';
import { onceRequested } from '../lib/end-signals.ts';
import { armFailpoints } from '../lib/failpoint.ts';
import { program_name } from '../lib/program-name.ts';
import { endAfter, NoAnswer } from '../lib/time-limit.ts';
import { startServer } from '../server.ts';
import { watchLeftovers } from './leftovers.ts';
import { ApiProcessEnded, isApiProcess, serveAsOneOfMany, startApiProcesses } from './processes.ts';
import { startWorker } from '../worker.ts';

const demo_credit = 5_000_000n;
const stop_limit_ms = 8_000;

/** Configuration → app → roles, until a signal stops it; ends the process when it cannot go on. */
export async function runService(): Promise<void> {
  process.on('unhandledRejection', (error) => console.error('A promise was rejected that nobody waited for:', error));
  await run().catch(fail);
}

async function run(): Promise<void> {
  const config = readConfig();
  for (const warning of isApiProcess() ? [] : unknownSettings()) console.error(`Warning: ${warning}`);
  if (config.failpoints) armFailpoints(config.failpoints);
  const opening = makeApp(config);
  stopOnSignals(opening);
  const app = await opening;
  try {
    await startRoles(app);
  } catch (error) {
    await app.stop();
    throw error;
  }
}

async function startRoles(app: App): Promise<void> {
  const { role, processes, metrics, metrics_push } = app.config;
  if (metrics) await startMetricsServer(app, metrics);
  if (metrics_push) startMetricsPush(app, metrics_push);
  if (!isApiProcess()) await refuseUnsharedDisk(app.config, app.catalog.current.settings.storage, app.engine);
  watchDisks(app);
  watchLeftovers(app);
  startReplay(app);
  if (role !== 'api') await startWorker(app);
  if (role === 'worker') return console.log('Medley worker is running.');
  if (isApiProcess()) return serveAsOneOfMany(app);
  if (processes > 1) await startApiProcesses(app, processes);
  else await startServer(app);
  noteRunning(app.config, app.local_url());
  await greet(app);
}

/** The address, and on the first start the key; nothing else of length. */
async function greet(app: App): Promise<void> {
  const url = app.local_url();
  const { base_currency: currency } = app.catalog.current.settings;
  const demo = { currency, credit: demo_credit };
  const first = await forTerminal('the first account', 'account create', () =>
    makeFirstAccount(app.db, demo, new Date(app.clock.now())),
  );
  const link = await forTerminal('the sign-in link', 'login-link', () => operatorLink(app));
  const loopback = /^(127\.|localhost$|\[?::1\]?$)/.test(app.config.host);
  if (!loopback && !app.config.base_url && !app.catalog.current.settings.base_url) {
    console.log(`Warning: links in answers will begin with ${url}. Set MEDLEY_BASE_URL to the public address.`);
  }
  if (app.config.allow_private) {
    console.log('Warning: MEDLEY_ALLOW_PRIVATE=1 lets webhooks reach private addresses. For local development only.');
  }
  const { processes } = app.config;
  const by = processes > 1 ? ` with ${processes} API processes` : '';
  console.log(`\nMedley is running at ${url}${by}   (API reference: ${url}/docs)\n`);
  const keys_line = keysLine(app.catalog.current);
  if (keys_line !== undefined) console.log(`${keys_line}\n`);
  if (link) console.log(`Sign in to the dashboard (once, within an hour): ${link}\n`);
  if (first) console.log(`API key, shown only now: ${first.key}\n`);
  console.log(`Make an image${first ? '' : ' (KEY is your API key)'}:\n\n  ${curlLine(url, first?.key ?? '$KEY')}\n`);
}

/**
 * Makes what is only for the terminal. Callers are served already, and no failure here ends that: a database that goes away
 * just now is back soon, and for anything else there is a command.
 */
async function forTerminal<T>(what: string, command: string, make: () => Promise<T>): Promise<T | undefined> {
  try {
    return await retryWhileUnavailable(make);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    console.error(`Medley runs, but ${what} could not be made: ${reason}. Make it: ${program_name} ${command}`);
    return undefined;
  }
}

const link_ms = 3_600_000;

/** Whoever reads this terminal runs the service. Without any account there is nobody to look at yet. */
async function operatorLink(app: App): Promise<string | undefined> {
  const now = new Date(app.clock.now());
  const [account] = await listAccounts(app.db);
  if (!account) return undefined;
  return makeLoginLink(app.db, app.base_url(), await firstOperator(app.db, account.id, now), now, link_ms);
}

/** Which keys of the default catalogue were found; nothing without one. */
function keysLine({ keyed_providers, models }: Catalog): string | undefined {
  if (keyed_providers.length === 0) return undefined;
  const offered = [...models.values()].filter(({ routes }) =>
    routes.some(({ provider }) => keyed_providers.includes(provider)),
  );
  return `Keys found: ${keyed_providers.join(', ')}. ${offered.length} models of theirs (${program_name} models)`;
}

/** One line for any POSIX shell with curl: creates a task, takes the link from its answer, saves the file. */
function curlLine(url: string, key: string): string {
  const create = `curl -sS '${url}/v1/generate?wait=60' -H "Authorization: Bearer ${key}" -H 'Content-Type: application/json' -d '{"model":"sandbox/image","input":{"prompt":"Hello from Medley"}}'`;
  return `curl -sS -o hello.png "$(${create} | sed 's/.*"url":"\\([^"]*\\)".*/\\1/')" && echo hello.png`;
}

/** From the first moment on: a start that is broken off must not leave a PostgreSQL behind. */
function stopOnSignals(opening: Promise<App>): void {
  const onSignal = onceRequested(() => {
    setTimeout(() => process.exit(1), stop_limit_ms).unref();
    opening.then((app) => app.stop()).then(() => process.exit(0), fail);
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal);
  process.on('SIGHUP', () => {
    if (process.stdin.isTTY) onSignal('SIGHUP');
    else void opening.then((app) => app.notifier.notify(reload_channel, 'hangup'));
  });
}

const mendable = [
  ConfigError,
  CatalogError,
  MigrationError,
  EmbeddedError,
  UnreachableError,
  DataFolderError,
  NoAnswer,
  ApiProcessEnded,
];

/** Ends the process. Prints a sentence for an error that the operator can mend, else the error with its stack. */
function fail(error: unknown): never {
  const disk_advice = explainDisk(error);
  const expected = mendable.some((kind) => error instanceof kind);
  console.error(disk_advice ?? (expected && error instanceof Error ? error.message : error));
  endAfter(error, 1);
}

/** A disk that refuses, wherever the start meets it. */
function explainDisk(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const { code, message } = error;
  if (code === 'ENOSPC' || code === 'EDQUOT') return `No space is left on the disk: ${message}. Free some space on it.`;
  if (code === 'EROFS') return `The disk is mounted read-only: ${message}. Mount it for writing.`;
  if (code !== 'EACCES' && code !== 'EPERM') return undefined;
  return `This user may not do that: ${message}. Start Medley as the user to whom its data belongs.`;
}
