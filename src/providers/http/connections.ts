import { Pool, type Dispatcher } from 'undici';
import type { ProviderConfig } from '../../catalog/model.ts';
import { GuardError, type Guard } from '../../net/guard.ts';
import { proxyHeaders } from '../../net/proxy-tunnel.ts';
import { NotStarted } from '../provider.ts';

/** Connections to upstreams, judged like every other. */
export type Connections = {
  to(origin: string, options: PoolOptions): Dispatcher;
  /** Carries out what was asked for before; refuses what comes later. */
  close(): Promise<void>;
};

export type PoolOptions = {
  connect_timeout_ms: number;
  /**
   * Without it each request has a connection of its own. A kept one may be closed by its peer just when it is
   * used again, and then nobody knows whether the request was taken.
   */
  keep_alive: boolean;
};

/** Connections of each pool; streams and long answers stay open, so there are many. */
const connections_max = 1_024;
/**
 * Of servers that do not say how long they keep a connection: many close it after 5 s without a word (Node, uvicorn),
 * and nobody knows what became of a request that meets its end. Those that say it are believed.
 */
const keep_alive_ms = 4_000;

/** An upstream may name any host of its own: the pool that is oldest makes room. */
const pools_max = 32;

/** The parts of a provider's configuration that say how it is reached. */
export type Reach = Pick<ProviderConfig, 'allow_private' | 'proxy' | 'tls'>;

/** Opens connections to the hosts of one provider, by its proxy and with its certificates. */
export function openConnections(guard: Guard, { allow_private, proxy, tls }: Reach): Connections {
  const rules = { allow: [], allow_private };
  const dial_options = { proxy, tls, proxy_resolves: true };
  const pools = new Map<string, { pool: Pool; dispatcher: Dispatcher }>();
  let is_closed = false;
  const open = (origin: string, { connect_timeout_ms, keep_alive }: PoolOptions) =>
    new Pool(origin, {
      connections: connections_max,
      pipelining: keep_alive ? 1 : 0,
      allowH2: false, // the guard speaks HTTP/1.1 with all
      headersTimeout: 0, // whoever calls keeps the time
      bodyTimeout: 0,
      keepAliveTimeout: keep_alive_ms,
      connect: (_, callback) => {
        guard.connect(origin, { rules, connect_timeout_ms, dial_options }).then(
          (socket) => callback(null, socket),
          (error: Error) => callback(error, null),
        );
      },
    });
  return {
    to: (origin, pool_options) => {
      const name = `${origin} ${pool_options.connect_timeout_ms} ${pool_options.keep_alive}`;
      const existing = pools.get(name);
      if (existing) return existing.dispatcher;
      const [oldest] = pools;
      if (oldest && pools.size >= pools_max) {
        pools.delete(oldest[0]);
        void oldest[1].pool.close();
      }
      const pool = open(origin, pool_options);
      const is_forwarded = proxy !== undefined && origin.startsWith('http:');
      const dispatcher = is_forwarded ? forwarded(pool, origin, new URL(proxy)) : pool;
      pools.set(name, { pool, dispatcher });
      if (is_closed) void pool.close();
      return dispatcher;
    },
    close: async () => {
      is_closed = true;
      await Promise.all([...pools.values()].map(({ pool }) => pool.close()));
    },
  };
}

/**
 * Requests without TLS are sent to the proxy itself, which reads the whole address. They are changed in place: whoever
 * sends one lets go of its body there.
 */
function forwarded(pool: Pool, origin: string, proxy: URL): Dispatcher {
  const own = proxyHeaders(proxy);
  return pool.compose((dispatch) => (options, handler) => {
    options.path = origin + options.path;
    options.headers = { ...(options.headers as Record<string, string> | undefined), ...own };
    return dispatch(options, handler);
  });
}

const private_remedy = 'If this upstream is your own, set allow_private: true for its provider in medley.yaml';

/** Throws NotStarted if there was no connection, since nothing was sent; else the error as it is. */
export function unreached(error: unknown): never {
  if (error instanceof GuardError) {
    const remedy = error.code === 'address_refused' ? ` ${private_remedy}` : '';
    throw new NotStarted(reasonOf(error), error.message + remedy, { cause: error });
  }
  if (isUntrusted(error)) {
    const message = 'the upstream did not take the certificate that the connection showed (tls of its provider)';
    throw new NotStarted('rejected_credentials', message, { cause: error });
  }
  if (!isClosed(error)) throw error;
  const message = 'the configuration of its provider was replaced before the request was sent';
  throw new NotStarted('unavailable', message, { simulated: true, cause: error }); // health does not count it
}

function reasonOf({ code, status }: GuardError): NotStarted['reason'] {
  if (status === proxy_auth_status) return 'rejected_credentials';
  return code === 'timeout' ? 'timeout' : 'unreachable';
}

const proxy_auth_status = 407;

/** With TLS 1.3 a server refuses the certificate of its client after the client believes that all is well. */
function isUntrusted(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^ERR_SSL_.*ALERT.*(?:CERTIFICATE|UNKNOWN_CA|HANDSHAKE)/.test(code);
}

/**
 * So undici says of requests that come to a pool after its `close`. Those that came before are carried out first, and
 * we never call `destroy`, which would break them off with the second of these words.
 */
function isClosed(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED';
}

/** Reads the body of a refusal up to the limits: the status alone decides, and the body may be late or never end. */
export async function readRefusal(
  body: AsyncIterable<Buffer> & { destroy(): void },
  limits: { bytes_max: number; wait_ms: number },
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size_bytes = 0;
  const late = setTimeout(() => body.destroy(), limits.wait_ms);
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      size_bytes += chunk.length;
      if (size_bytes >= limits.bytes_max) break;
    }
  } catch {
    // What there is of the explanation will do.
  } finally {
    clearTimeout(late);
  }
  return Buffer.concat(chunks);
}
