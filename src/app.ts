import { randomBytes, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import package_json from '../package.json' with { type: 'json' };
import { localUrl } from './app/address.ts';
import { keys_channel, reload_channel, reloaded_channel, type ReloadReply } from './app/channels.ts';
import { closeAll, openData } from './app/data.ts';
import { openLimits, type Limits } from './app/limits.ts';
import { openLog } from './app/log.ts';
import { openStorage } from './app/storage.ts';
import { openWatch } from './app/watch.ts';
import { openProviders, type Providers } from './providers/open.ts';
import { currenciesInUse } from './accounts/accounts.ts';
import { openAuthenticator, type Authenticator } from './accounts/authenticate.ts';
import { usual_cost } from './accounts/sign-in/hashing.ts';
import { openIssuers } from './accounts/sign-in/issuers.ts';
import { openLogin, type Login } from './accounts/sign-in/login.ts';
import { openMailer, type Mailer } from './accounts/mailer.ts';
import { openCatalog, type CatalogHolder } from './catalog/catalog.ts';
import { readAdded } from './catalog/added/rows.ts';
import { watchAdded } from './catalog/added/watch.ts';
import { watchOverrides, type OverrideWatcher } from './catalog/overrides.ts';
import { showProblem } from './catalog/problem.ts';
import type { Config } from './config.ts';
import { openDatabaseClock } from './db/clock.ts';
import { contentKeys } from './db/content.ts';
import type { Db } from './db/database.ts';
import { migrate } from './db/migrate.ts';
import { openListener, openNotifier, type Listener, type Notifier } from './db/notify.ts';
import { settingOnce } from './db/settings.ts';
import type { Watcher } from './db/watched.ts';
import { openEngine, type Engine } from './queue/queue.ts';
import { ownAddresses, type AddressRules } from './net/address.ts';
import type { Clock } from './lib/clock.ts';
import { openGuard, type Guard } from './net/guard.ts';
import type { Resolve } from './net/resolve.ts';
import type { Tracer } from './tracing/tracer.ts';
import type { Metrics } from './metrics/metrics.ts';
import { sharedBackoff, type Backoff } from './limits/backoff.ts';
import { sharedWindows } from './limits/shared-windows.ts';
import { memoryWindows, type LocalWindows, type Windows } from './limits/window.ts';
import { endLeases } from './leases/leases.ts';
import { openLiveness, type Liveness } from './leases/liveness.ts';
import { openShares, type Shares } from './leases/shares.ts';
import { leases_channel } from './leases/while-leased.ts';
import { databaseHolds, makeHoldBatcher, money_channel, type Holds } from './money/holds.ts';
import type { Refusals } from './money/refusals.ts';
import { reserveInMemory } from './money/reservations.ts';
import { adapterFacts } from './providers/facts.ts';
import { adapters as built_in } from './providers/index.ts';
import type { Adapter } from './providers/provider.ts';
import { openRouteHealth, type RouteHealth } from './routing/health.ts';
import { makeRouteSpeeds, type RouteSpeeds } from './routing/speeds.ts';
import type { Codec } from './styles/codec.ts';
import { styles as built_in_styles } from './styles/index.ts';
import { openContents, type Contents } from './contents/content-log.ts';
import { openJournal, type Journal } from './storage/journal.ts';
import { openProber, type Prober } from './storage/probe.ts';
import type { Storage } from './storage/storage.ts';
import { openThumbnails, type Thumbnails } from './storage/thumbnails.ts';
import { makeInserter, type Inserter } from './tasks/create-batch.ts';
import { makeNoticeEvent, type NoticeEvent } from './tasks/events.ts';
import { makeFinisher, type Finisher } from './tasks/finish.ts';
import { makeThrottle, type Throttle } from './tasks/throttled.ts';
import { makeUntilFinal, type UntilFinal } from './tasks/wait.ts';
import { makeDeliverySlots, type DeliverySlots } from './webhooks/delivery-slots.ts';

/** Everything that is opened once: the value that main, the CLI and tests start. */
export type App = Contents & {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly db: Db;
  readonly engine: Engine;
  readonly notifier: Notifier;
  readonly listener: Listener;
  readonly storage: Storage;
  /** Charges that could not be written to the database, on this node's disk. */
  readonly journal: Journal;
  readonly catalog: CatalogHolder;
  /** Keeps the catalogue at what operators changed while the service runs; absent in a command. */
  readonly overrides: Pick<OverrideWatcher, 'refresh'> | undefined;
  /** Keeps it at what operators added; absent in a command, which reads it once. */
  readonly added: Pick<Watcher, 'refresh'> | undefined;
  readonly providers: Providers;
  /** Wire formats of chat. */
  readonly styles: readonly Codec[];
  readonly health: RouteHealth;
  /** Speeds of routes, as this node measured them. */
  readonly speeds: RouteSpeeds;
  readonly windows: Windows;
  readonly address_windows: LocalWindows;
  /** Calls at once of each key, on all nodes. */
  readonly shares: Shares;
  /** Semaphores. */
  readonly limits: Limits;
  /** Counters of this process. */
  readonly metrics: Metrics;
  /** Records traces; undefined where nobody collects them. */
  readonly tracer: Tracer | undefined;
  /** Measures files. */
  readonly prober: Prober;
  readonly thumbnails: Thumbnails;
  /** Guesses of passwords. */
  readonly sign_in_backoff: Backoff;
  readonly authenticator: Authenticator;
  /** Sign-in to the dashboard. */
  readonly login: Login;
  /** Writes to people, where the operator has said how. */
  readonly mailer: Mailer;
  readonly holds: Holds;
  /** Counts requests that are refused. */
  readonly refusals: Pick<Refusals, 'note'>;
  /** The id of this process among all that run the service: it answers for the holds of its calls. */
  readonly node_id: string;
  /** Writes new tasks. */
  readonly inserter: Inserter;
  /** Writes the ends of tasks. */
  readonly finisher: Finisher;
  readonly untilFinal: UntilFinal;
  /** Hears of runs from their upstreams. */
  readonly noticeEvent: NoticeEvent;
  /** Tasks that wait for a provider that is full. */
  readonly throttle: Throttle;
  /** Delivery slots of webhooks. */
  readonly delivery_slots: DeliverySlots;
  /** Every request to an address that a user or an upstream chose. */
  readonly guard: Guard;
  /** Signs links; the same on all nodes. */
  readonly secret: string;
  /** The public address of this service, never taken from a request. No slash at its end. */
  base_url(): string;
  /** The address on which it listens, for a browser on this machine. */
  local_url(): string;
  /** Sets the address once the server listens: with PORT 0 the system chooses the port. */
  setListening(address: { host: string; port: number }): void;
  addressRules(): AddressRules;
  /** Parts that live longer than the app's making register here; closed last first. */
  onStop(close: () => Promise<void> | void): void;
  /** Aborted when no caller is served any more: work that goes on without its caller ends then. */
  readonly stopping: AbortSignal;
  /** Work that goes on behind an answer, such as settling a call: it ends before the database closes. */
  track(work: Promise<unknown>): void;
  /** The same for work that calls what this answers, once, when it is over. */
  begin(): () => void;
  /** Stops everything in order, the embedded PostgreSQL last. */
  stop(): Promise<void>;
};

type AppWithoutEngine = Omit<App, 'engine' | 'noticeEvent' | 'throttle'>;

export type AppOptions = {
  clock?: Clock;
  log?: Logger;
  /** Adapters by name, beside the built-in ones. */
  adapters?: Record<string, Adapter>;
  /** Wire formats of chat, beside the built-in ones. */
  styles?: readonly Codec[];
  /** Resolves the names in addresses that users choose. */
  resolve?: Resolve;
  /** The cost of new hashes of passwords, where they need not be safe: in tests of something else. */
  password_cost?: number;
  /** An operator's command: it may run beside the service of the same data folder. */
  command?: boolean;
};

const queues = ['task.start', 'task.poll', 'delivery.send', 'delivery.retry', 'response.run', 'batch.run'].map(
  (name) => ({
    name,
  }),
);

/** Opens everything; what was opened is closed again if a later part fails. */
export async function makeApp(config: Config, options: AppOptions = {}): Promise<App> {
  const app = await makeAppWithoutEngine(config, options);
  try {
    const { db, log, notifier, listener, node_id } = app;
    const node = { id: node_id, role: config.role, version: package_json.version };
    const engine = await openEngine({ db, log, queues, notifier, listener, ...(!options.command && { node }) });
    app.onStop(() => engine.stop());
    const with_engine = { ...app, engine };
    return { ...with_engine, noticeEvent: makeNoticeEvent(with_engine), throttle: makeThrottle(with_engine) };
  } catch (error) {
    await app.stop();
    throw error;
  }
}

/** Opens everything else. */
async function makeAppWithoutEngine(config: Config, options: AppOptions = {}): Promise<AppWithoutEngine> {
  const closers: (() => Promise<void> | void)[] = [];
  const onStop = (close: () => Promise<void> | void) => void closers.unshift(close);
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= closeAll(closers));
  try {
    return await openParts(config, options, onStop, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Prices go by the database's time, and a service keeps the currencies that accounts have. A command reads once what
 * operators added.
 */
async function tieToDatabase(
  catalog: CatalogHolder,
  db: Db,
  config: Config,
  options: AppOptions,
  onStop: App['onStop'],
): Promise<Pick<App, 'clock' | 'content_keys'>> {
  const clock = options.clock ?? (await openClock(db, onStop));
  const content_keys = contentKeys(config);
  catalog.keepTime(clock);
  if (options.command) catalog.add(await readAdded(db, content_keys, { is_command: true }));
  else await catalog.keepCurrencies(() => currenciesInUse(db));
  return { clock, content_keys };
}

function openRouting(db: Db, clock: Clock): Pick<App, 'health' | 'speeds'> {
  return { health: openRouteHealth(db, clock), speeds: makeRouteSpeeds(() => clock.now()) };
}

async function openParts(
  config: Config,
  options: AppOptions,
  onStop: App['onStop'],
  stop: App['stop'],
): Promise<AppWithoutEngine> {
  const log = options.log ?? openLog(config.log_level, config.log, options.command ? undefined : config.log_file);
  const adapters = { ...built_in, ...options.adapters };
  const catalog = await openCatalog({ config_file: config.config_file, ...adapterFacts(adapters) });
  if (!options.command) warnOfRedis(config, log);
  const db = await openData(config, { command: options.command === true, log }, onStop);
  await migrate(db);
  const { clock, content_keys } = await tieToDatabase(catalog, db, config, options, onStop);
  const { notifier, listener } = openNotifications(db, log, onStop);
  const authenticator = openAuthenticator({ db, clock, log }, onStop);
  const watched = openWatch(config, { db, clock, log }, onStop);
  const node_id = randomUUID();
  const liveness = openLiveness(db, node_id);
  if (!options.command && config.role !== 'worker') await liveness.ensure(); // others lease nothing
  const money = openMoney(db, config, { clock, node_id, catalog, liveness }, onStop);
  const heard = { db, log, notifier, listener, catalog, authenticator, content_keys, holds: money.holds };
  const watchers = options.command ? { overrides: undefined, added: undefined } : await hearOthers(heard, onStop);
  const secret = config.secret ?? (await settingOnce(db, 'secret', () => randomBytes(32).toString('base64url')));
  let listening: { host: string; port: number } = config;
  const base_url = () => config.base_url ?? catalog.current.settings.base_url ?? localUrl(listening);
  const limits = openLimits({ catalog });
  const rates = await openRates(db, { clock, listener, log, node_id, liveness }, onStop);
  const guard = openGuard(options);
  const people = openPeople({ db, secret, base_url, clock, catalog, log, limits, guard, ...rates }, options, onStop);
  const tracker = makeTracker(onStop);
  const storage = await openStorage(config, catalog.current.settings.storage, onStop, limits);
  const media = openMedia(catalog, adapters, { guard, clock, limits, storage }, onStop);
  const stopping = new AbortController();
  onStop(() => stopping.abort(new Error('the service stops'))); // before providers wait for what they carry out
  return {
    config,
    clock,
    node_id,
    log,
    db,
    notifier,
    listener,
    ...money,
    catalog,
    ...watchers,
    ...media,
    styles: [...built_in_styles, ...(options.styles ?? [])],
    ...openRouting(db, clock),
    ...rates,
    limits,
    ...watched,
    authenticator,
    guard,
    inserter: makeInserter({ db, clock, catalog }),
    finisher: makeFinisher(db),
    untilFinal: makeUntilFinal({ db, listener, onStop }),
    delivery_slots: openDeliverySlots({ db, clock, catalog }),
    secret,
    ...openContents({ db, clock, log, catalog, content_keys, ...watched }, onStop),
    local_url: () => localUrl(listening),
    ...people,
    base_url,
    setListening: (address) => (listening = address),
    addressRules: () => rulesOf(config, catalog),
    onStop,
    stopping: stopping.signal,
    ...tracker,
    stop,
  };
}

/** Delays are those of the configuration as it is at each attempt. */
function openDeliverySlots({ db, clock, catalog }: Pick<App, 'db' | 'clock' | 'catalog'>): DeliverySlots {
  const retry_delays_ms = () => catalog.current.settings.webhooks.retry_delays_ms;
  return makeDeliverySlots({ db, clock, retry_delays_ms });
}

function warnOfRedis({ redis_url }: Config, log: Logger): void {
  if (redis_url) log.warn('REDIS_URL is set, but nothing here needs Redis: nodes share their limits by the database');
}

/** The time of the database, which all nodes share. */
async function openClock(db: Db, onStop: App['onStop']): Promise<Clock> {
  const clock = await openDatabaseClock(db);
  onStop(() => clock.close());
  return clock;
}

/** Opens limits on requests and tries: those that all nodes share, and those of this node. */
async function openRates(
  db: Db,
  {
    clock,
    listener,
    log,
    node_id,
    liveness,
  }: Pick<App, 'clock' | 'listener' | 'log' | 'node_id'> & { liveness: Liveness },
  onStop: App['onStop'],
): Promise<Pick<App, 'windows' | 'shares' | 'address_windows' | 'sign_in_backoff'>> {
  const shares = openShares(db, node_id, liveness);
  onStop(async () => {
    // What is not given back ends by itself.
    await shares.close().catch((error: unknown) => log.warn({ err: error }, 'shares of limits were not given back'));
  });
  await listener.subscribe(leases_channel, {
    onPayload: (payload) => {
      const [account_id, ...resource] = payload.split(' ');
      if (account_id === '') shares.returnUnused(resource.join(' '));
    },
  });
  const own = { address_windows: memoryWindows(), sign_in_backoff: sharedBackoff({ db, clock }) };
  return { windows: sharedWindows(shares), shares, ...own };
}

/** Opens what people sign in with, and the mail to them. */
function openPeople(
  parts: Pick<App, 'db' | 'secret' | 'base_url' | 'clock' | 'catalog' | 'log' | 'limits' | 'windows' | 'guard'>,
  { password_cost = usual_cost }: AppOptions,
  onStop: App['onStop'],
): Pick<App, 'mailer' | 'login'> {
  const { db, secret, base_url, clock, catalog, log, limits, windows, guard } = parts;
  const mailer = openMailer({ settings: () => catalog.current.settings.mail, log, limit: limits.mails });
  onStop(() => mailer.close());
  const now = () => new Date(clock.now());
  const hashing = { limit: limits.password_hashes, cost: password_cost };
  const sign_in = () => catalog.current.settings.sign_in;
  const base_currency = () => catalog.current.settings.base_currency;
  const issuers = openIssuers({ guard, now });
  const login = openLogin({
    db,
    secret,
    base_url,
    now,
    mailer,
    log,
    windows,
    hashing,
    issuers,
    sign_in,
    base_currency,
  });
  onStop(() => login.close());
  return { mailer, login };
}

/** Opens the providers, and what measures, draws and keeps their files. */
function openMedia(
  catalog: CatalogHolder,
  adapters: Record<string, Adapter>,
  { guard, clock, limits, storage }: Pick<App, 'guard' | 'clock' | 'limits' | 'storage'>,
  onStop: App['onStop'],
): Pick<App, 'storage' | 'prober' | 'providers' | 'thumbnails'> {
  const prober = openProber(limits);
  onStop(() => prober.close());
  const thumbnails = openThumbnails({ storage, limits });
  onStop(() => thumbnails.close());
  const providers = openProviders(catalog, adapters, { guard, clock, prober });
  onStop(() => providers.close());
  return { storage, prober, providers, thumbnails };
}

/** Which addresses a caller or an upstream may name now. */
function rulesOf({ allow_private }: Config, { current }: Pick<App, 'catalog'>['catalog']): AddressRules {
  return { allow: current.settings.net_allow, allow_private, own: ownAddresses() };
}

/** Opens the NOTIFY connections. */
function openNotifications(db: Db, log: App['log'], onStop: App['onStop']): Pick<App, 'notifier' | 'listener'> {
  const onError = (error: Error) => log.warn({ err: error }, 'a NOTIFY connection failed');
  const notifier = openNotifier(db, { onError });
  onStop(() => notifier.close());
  const listener = openListener(db, { onError });
  onStop(() => listener.close());
  return { notifier, listener };
}

/** Subscribes to changes made by other nodes and by commands. */
async function hearOthers(
  {
    db,
    log,
    notifier,
    listener,
    catalog,
    authenticator,
    holds,
    content_keys,
  }: Pick<App, 'db' | 'log' | 'notifier' | 'listener' | 'catalog' | 'authenticator' | 'holds' | 'content_keys'>,
  onStop: App['onStop'],
): Promise<Pick<App, 'overrides' | 'added'>> {
  await listener.subscribe(keys_channel, { onPayload: authenticator.invalidate, onGap: authenticator.invalidate });
  await listener.subscribe(money_channel, {
    onPayload: (account_id) => holds.invalidate(account_id),
    onGap: () => holds.invalidate(),
  });
  await listener.subscribe(leases_channel, {
    onPayload: (payload) => {
      const [account_id = '', ...resource] = payload.split(' ');
      if (account_id === '') return; // a limit of another kind
      // What cannot be given back now ends by itself.
      holds
        .returnLeases(account_id, resource.join(' '))
        .catch((error: unknown) => log.warn({ err: error }, leases_channel));
    },
  });
  await listener.subscribe(reload_channel, { onPayload: () => void reload(catalog, notifier, log) });
  const onError = (error: unknown) => log.warn({ err: error }, 'what operators changed about models cannot be read');
  const added = await watchAdded({ db, content_keys, catalog, listener }, onError);
  onStop(() => added.close());
  const overrides = await watchOverrides(db, catalog, listener, onError);
  onStop(() => overrides.close());
  for (const warning of catalog.current.warnings) log.warn(showProblem(warning));
  return { overrides, added };
}

/** The journal is closed behind the calls that still write to it. */
function openMoney(
  db: Db,
  { data_dir }: Config,
  { clock, node_id, catalog, liveness }: Pick<App, 'clock' | 'node_id' | 'catalog'> & { liveness: Liveness },
  onStop: App['onStop'],
): Pick<App, 'holds' | 'journal'> {
  const of_database = databaseHolds(makeHoldBatcher(db, () => new Date(clock.now()), { node_id }));
  const in_memory = catalog.current.settings.money.reservations === 'memory';
  const holds = in_memory ? reserveInMemory(of_database, () => liveness.now()) : of_database;
  onStop(async () => {
    holds.stop();
    await liveness.close();
    // A node that dies does not come here: then its leases end by themselves.
    await endLeases(db, node_id).catch(() => undefined);
  });
  const journal = openJournal(data_dir);
  onStop(() => journal.close());
  return { holds, journal };
}

/**
 * Counts and keeps nothing: a set that is filled and emptied at every call gets a new table again and again, and V8
 * keeps what stands in an old one until it collects the old generation (a third of what a chat call moved there).
 */
function makeTracker(onStop: App['onStop']): Pick<App, 'track' | 'begin'> {
  let under_way = 0;
  let noticeEnd: (() => void) | undefined;
  const end = () => {
    under_way -= 1;
    if (under_way === 0) noticeEnd?.();
  };
  onStop(async () => {
    // What ends may have begun more.
    while (under_way > 0) await new Promise<void>((resolve) => (noticeEnd = resolve));
  });
  const begin = () => {
    under_way += 1;
    return end;
  };
  return { begin, track: (work) => void work.then(begin(), end) };
}

/** A NOTIFY holds 8,000 bytes, and base64 takes four for three. */
const message_length_max = 2_000;

/** Reads the configuration again and tells whoever asked how that went. */
async function reload(catalog: CatalogHolder, notifier: Notifier, log: Logger): Promise<void> {
  const result = await catalog.reload();
  const message = result.message.slice(0, message_length_max);
  const answer: ReloadReply = { node: `${hostname()} ${process.pid}`, ok: result.ok, message };
  log[result.ok ? 'info' : 'error'](answer, 'configuration reload');
  notifier.notify(reloaded_channel, Buffer.from(JSON.stringify(answer)).toString('base64url'));
}
