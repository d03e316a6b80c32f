import type { Catalog } from '../catalog/catalog.ts';
import type { Config } from '../config.ts';
import { contentKeys } from '../db/content.ts';
import type { Db } from '../db/database.ts';
import { migrate } from '../db/migrate.ts';
import { openListener, openNotifier, type Listener, type Notifier } from '../db/notify.ts';
import { systemClock, type Clock } from '../lib/clock.ts';
import { localUrl } from './address.ts';
import { withData } from './data.ts';

/**
 * The parts of the app that most operator commands need. They run beside a service or without one. Only parts
 * that open at once are here: the whole app would add half a second to each command.
 */
export type CommandApp = {
  readonly config: Config;
  readonly clock: Clock;
  readonly db: Db;
  readonly notifier: Notifier;
  readonly listener: Listener;
  /** Reads the configuration. Throws CatalogError if it has a mistake. */
  catalog(): Promise<Catalog>;
  /** The public address of the service, by the same rule as `App.base_url`. */
  base_url(): Promise<string>;
};

/** Opens it on an up-to-date schema, and closes what was opened. */
export function withCommandApp<T>(config: Config, work: (app: CommandApp) => Promise<T>): Promise<T> {
  return withData(config, async (db, onStop) => {
    await migrate(db);
    const notifier = openNotifier(db);
    onStop(() => notifier.close());
    const listener = openListener(db);
    onStop(() => listener.close());
    const catalog = () => readCatalog(config, db);
    const base_url = async () => config.base_url ?? (await catalog()).settings.base_url ?? localUrl(config);
    return work({ config, clock: systemClock, db, notifier, listener, catalog, base_url });
  });
}

/** With what operators added in the dashboard. */
async function readCatalog(config: Config, db: Db): Promise<Catalog> {
  const [{ openCatalog }, { adapterFacts }, { adapters }, { readAdded }] = await Promise.all([
    import('../catalog/catalog.ts'), // 600 modules with those below
    import('../providers/facts.ts'),
    import('../providers/index.ts'),
    import('../catalog/added/rows.ts'),
  ]);
  const added = await readAdded(db, contentKeys(config), { is_command: true });
  const { current } = await openCatalog({ config_file: config.config_file, ...adapterFacts(adapters), added });
  return current;
}
