import { speak, transcribe, translate } from './api/audio.ts';
import { transportSecurity } from './http/browser-headers.ts';
import { batch_endpoints } from './batches/endpoints.ts';
import { chatEndpoints, chat_record, stored_completions } from './api/chat.ts';
import { chat_contents } from './api/chat-content.ts';
import { compactEndpoints } from './api/compact.ts';
import { list_calls } from './api/calls.ts';
import { conversations } from './api/conversations.ts';
import { docsEndpoints } from './api/openapi/docs-page.ts';
import { embeddings } from './api/embeddings.ts';
import type { Endpoint } from './http/endpoint.ts';
import { estimate } from './api/estimate.ts';
import { run_event } from './api/events.ts';
import { gemini_endpoints } from './api/gemini/models.ts';
import { gemini_files } from './api/gemini/files.ts';
import { gemini_uploads } from './api/gemini/uploads.ts';
import { generate } from './api/generate.ts';
import { get_file } from './api/get-file.ts';
import { healthEndpoints } from './api/health.ts';
import { edit_images, generate_images, vary_images } from './api/images.ts';
import { mcp_endpoint } from './mcp/endpoint.ts';
import { metricsEndpoint } from './api/metrics.ts';
import { get_model, list_models } from './api/models.ts';
import { moderate } from './api/moderations.ts';
import { get_balance, get_key, get_usage, list_transactions } from './api/money.ts';
import { get_refusals } from './api/refusals.ts';
import { delete_feedback, give_feedback, list_feedback } from './api/feedback.ts';
import { get_speed } from './api/speed.ts';
import { multi_part_uploads } from './api/multi-part-uploads.ts';
import { makePipeline } from './http/pipeline.ts';
import { oauth_endpoints } from './api/oauth.ts';
import { openApiEndpoint } from './api/openapi/reference.ts';
import { rerank, rerank_of_cohere } from './api/rerank.ts';
import { stored_responses } from './api/responses.ts';
import type { Codec } from './styles/codec.ts';
import { styles } from './styles/index.ts';
import { cancel_task, delete_output, get_task, list_tasks, make_links } from './api/tasks.ts';
import { change_videos, create_video, delete_video, get_video, get_video_content, list_videos } from './api/videos.ts';
import { admitPerson } from './accounts/person.ts';
import { delete_file, get_file_content, get_file_record, list_files, upload_file } from './api/uploads.ts';
import { webhook_endpoints } from './api/webhook-endpoints.ts';
import type { App } from './app.ts';
import { dashboardEndpoints } from './dashboard/endpoints.ts';
import { ConfigError } from './config.ts';
import type { EndedRequest } from './http/options.ts';
import type { Metrics } from './metrics/metrics.ts';
import { pendingMigrations } from './db/migrate.ts';

/** Every route of the service in one list: the table of contents of the API. */
export function listEndpoints(offered: readonly Codec[] = styles): Endpoint<App>[] {
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
    ...chatEndpoints(offered),
    ...compactEndpoints(offered),
    ...gemini_endpoints,
    ...stored_responses,
    ...conversations,
    embeddings,
    rerank,
    rerank_of_cohere,
    moderate,
    chat_record,
    ...chat_contents,
    stored_completions,
    generate_images,
    edit_images,
    vary_images,
    speak,
    transcribe,
    translate,
    create_video,
    list_videos,
    get_video,
    get_video_content,
    delete_video,
    ...change_videos,
    get_balance,
    list_transactions,
    get_usage,
    get_refusals,
    get_speed,
    list_calls,
    give_feedback,
    list_feedback,
    delete_feedback,
    get_key,
    upload_file,
    list_files,
    get_file_record,
    get_file_content,
    delete_file,
    ...multi_part_uploads,
    ...batch_endpoints,
    ...webhook_endpoints,
    ...gemini_files,
    ...gemini_uploads,
    get_file,
    run_event,
    mcp_endpoint,
    ...oauth_endpoints,
    ...dashboardEndpoints(),
    ...docsEndpoints<App>(),
    openApiEndpoint(() => endpoints),
    ...healthEndpoints<App>({ checks: readiness }),
  ];
  return endpoints;
}

/** Calls of accounts whose row somebody else has locked are not counted: others are served. */
const money_silent_ms = 2_000;

const readiness = {
  database: async (app: App) => {
    await app.db.query('select 1', [], 'brief');
    return 'ok';
  },
  money: (app: App) => {
    const silent_ms = app.holds.oldest_ms();
    return silent_ms < money_silent_ms ? 'ok' : `no answer for ${Math.floor(silent_ms / 1000)} s`;
  },
  migrations: async (app: App) => ((await pendingMigrations(app.db)).length === 0 ? 'ok' : 'pending'),
};

/** Together below the 8 s in which the whole program must have stopped. */
const stop_grace_ms = 4_000;
const stop_announce_ms = 1_000;

/**
 * Listens on the configured address until the app stops; requests in flight are answered first. `is_shared`: another
 * process of this service listens there already.
 */
export async function startServer(app: App, { is_shared = false } = {}): Promise<void> {
  const { host, port } = app.config;
  const pipeline = makePipeline<App>({
    app,
    endpoints: [...listEndpoints(app.styles), ...(app.config.metrics_token === undefined ? [] : [metricsEndpoint()])],
    authenticate: (headers) => app.authenticator.authenticate(headers),
    admitPerson: (request, purpose) => {
      const { db, login, clock, catalog } = app;
      const { operators_need_second_factor } = catalog.current.settings.sign_in;
      const { origin } = new URL(app.base_url());
      return admitPerson({ db, login, clock, origin, operators_need_second_factor }, request, purpose);
    },
    windows: app.windows,
    address_windows: app.address_windows,
    body_memory: app.limits.body_memory,
    limits: () => {
      const { generate_per_minute, chat_per_minute, other_per_minute } = app.catalog.current.settings.limits;
      return { generate: generate_per_minute, chat: chat_per_minute, other: other_per_minute };
    },
    cors_origins: () => app.catalog.current.settings.cors_origins,
    trusted_proxies: () => app.catalog.current.settings.trusted_proxies,
    transport_security: () => transportSecurity(app.base_url(), app.catalog.current.settings.hsts),
    now_ms: () => app.clock.now(),
    log: app.log,
    tracer: app.tracer,
    observe: (ended) => countRequest(app.metrics, ended),
    refusals: app.refusals,
  });
  const bound = await pipeline.listen({ host, port, is_shared }).catch((error: unknown) => {
    throw explainListen(error, { host, port });
  });
  app.setListening({ host, port: bound.port });
  // Balancers are not on loopback: on a developer's machine Ctrl-C need not wait for one.
  const announce_ms = isLoopback(host) ? 0 : stop_announce_ms;
  app.onStop(() => pipeline.close({ announce_ms, grace_ms: stop_grace_ms }));
}

/** A caller who left before the end of the answer, as nginx counts it. */
const gone_status = 499;

function countRequest(metrics: Metrics, { method, route = 'none', status, aborted, ms }: EndedRequest): void {
  const of_route = { method: known_methods.has(method) ? method : 'other', route };
  metrics.http_requests.add({ ...of_route, status: String(aborted ? gone_status : status) });
  metrics.http_seconds.observe(of_route, ms / 1000);
}

const known_methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Returns the reason why the server cannot listen there, with the setting that changes it. */
function explainListen(error: unknown, { host, port }: { host: string; port: number }): unknown {
  switch (error instanceof Error && 'code' in error ? error.code : undefined) {
    case 'EADDRINUSE':
      return new ConfigError(
        `Port ${port} on ${host} is taken by another program, perhaps by another Medley. Stop that one, or set PORT to a free one.`,
      );
    case 'EACCES':
      return new ConfigError(`This user may not listen on port ${port}. Set PORT to one above 1023.`);
    case 'EADDRNOTAVAIL':
      return new ConfigError(
        `HOST is ${host}, which is no address of this machine. Set it to one of its own, to 127.0.0.1, or to 0.0.0.0 for all.`,
      );
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EINVAL':
      return new ConfigError(
        `HOST is "${host}", a name that leads to no address. Set it to an address of this machine, such as 127.0.0.1.`,
      );
    default:
      return error;
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}
