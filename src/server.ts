import { chat_completions, chat_record, count_tokens, messages, stored_completions } from './api/chat.ts';
import { docsEndpoints } from './api/docs.ts';
import type { Endpoint } from './api/endpoint.ts';
import { estimate } from './api/estimate.ts';
import { generate } from './api/generate.ts';
import { get_file } from './api/get-file.ts';
import { healthEndpoints } from './api/health.ts';
import { homeEndpoint } from './api/home.ts';
import { get_model, list_models } from './api/models.ts';
import { get_balance, get_key, get_usage, list_transactions } from './api/money.ts';
import { makePipeline, type Pipeline } from './api/pipeline.ts';
import { openApiEndpoint } from './api/reference.ts';
import { cancel_task, delete_output, get_task, list_tasks, make_links } from './api/tasks.ts';
import type { App } from './app.ts';
import { pendingMigrations } from './db/migrate.ts';

/** Every route of the service in one list: the table of contents of the API. */
export function listEndpoints(): Endpoint<App>[] {
  const endpoints: Endpoint<App>[] = [
    generate,
    estimate,
    list_tasks,
    get_task,
    cancel_task,
    make_links,
    delete_output,
    list_models,
    get_model,
    chat_completions,
    messages,
    count_tokens,
    chat_record,
    stored_completions,
    get_balance,
    list_transactions,
    get_usage,
    get_key,
    get_file,
    homeEndpoint(),
    ...docsEndpoints<App>(),
    openApiEndpoint(() => endpoints),
    ...healthEndpoints<App>({ checks: readiness }),
  ];
  return endpoints;
}

const readiness = {
  database: async (app: App) => {
    await app.db.query('select 1');
    return 'ok';
  },
  migrations: async (app: App) => ((await pendingMigrations(app.db)).length === 0 ? 'ok' : 'pending'),
};

/** Together below the 8 s in which the whole program must have stopped. */
const stop_grace_ms = 4_000;
const stop_announce_ms = 1_000;

/** Listens on the configured address until the app stops; requests in flight are answered first. */
export async function startServer(app: App): Promise<Pipeline> {
  const { host, port } = app.config;
  const pipeline = makePipeline<App>({
    app,
    endpoints: listEndpoints(),
    authenticate: (headers) => app.authenticator.authenticate(headers),
    windows: app.windows,
    limits: () => {
      const { generate_per_minute, chat_per_minute, other_per_minute } = app.catalog.current.settings.limits;
      return { generate: generate_per_minute, chat: chat_per_minute, other: other_per_minute };
    },
    cors_origins: () => app.catalog.current.settings.cors_origins,
    trusted_proxies: app.catalog.current.settings.trusted_proxies,
    log: app.log,
  });
  const bound = await pipeline.listen({ host, port });
  app.setListening({ host, port: bound.port });
  // Balancers are not on loopback: on a developer's machine Ctrl-C need not wait for one.
  const announce_ms = isLoopback(host) ? 0 : stop_announce_ms;
  app.onStop(() => pipeline.close({ announce_ms, grace_ms: stop_grace_ms }));
  return pipeline;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}
