import type { Readable } from 'node:stream';
import { Pool } from 'undici';
import type { ProviderConfig } from '../catalog/model.ts';
import { GuardError, type Guard } from '../lib/guard.ts';
import { refusalError } from './chat-refusal.ts';
import { NotStarted, type ChatReply } from './provider.ts';

/** The HTTP of upstreams that chat: connections of their own, kept open, judged like every other. */
export type ChatClient = {
  /** Posts JSON; resolves when a 2xx has come. Throws NotStarted, InputRefused, or that no answer came. */
  post(path: string, headers: Record<string, string>, body: object, options: PostOptions): Promise<ChatReply>;
  close(): Promise<void>;
};

type PostOptions = { signal: AbortSignal; connect_timeout_ms: number };

/** Of each route's time to connect one pool; streams stay open, so there are many connections. */
const connections_max = 1_024;
const keep_alive_ms = 30_000;
const refusal_bytes_max = 65_536;
/** The status says what to do; its explanation may be late, or never end. */
const refusal_ms = 3_000;

export function openChatClient(config: ProviderConfig & { base_url: string }, guard: Guard): ChatClient {
  const { origin, pathname } = new URL(config.base_url);
  const prefix = pathname.replace(/\/+$/, '');
  const rules = { allow: [], allow_private: config.allow_private };
  const pools = new Map<number, Pool>();
  const poolFor = (connect_timeout_ms: number) => {
    const known = pools.get(connect_timeout_ms);
    if (known) return known;
    const pool = new Pool(origin, {
      connections: connections_max,
      pipelining: 1,
      headersTimeout: 0, // whoever calls keeps the time
      bodyTimeout: 0,
      keepAliveTimeout: keep_alive_ms,
      connect: (_, callback) => {
        guard.connect(origin, { rules, connect_timeout_ms }).then(
          (socket) => callback(null, socket),
          (error: Error) => callback(error, null),
        );
      },
    });
    pools.set(connect_timeout_ms, pool);
    return pool;
  };
  const secrets = config.api_key === undefined ? [] : [config.api_key];
  return {
    post: async (path, headers, body, { signal, connect_timeout_ms }) => {
      const request = {
        path: prefix + path,
        method: 'POST',
        headers: { 'content-type': 'application/json', 'user-agent': 'Medley', ...headers },
        body: JSON.stringify(body),
        signal,
      } as const;
      const answer = await poolFor(connect_timeout_ms).request(request).catch(unreached);
      if (answer.statusCode >= 200 && answer.statusCode < 300) return { body: answer.body };
      const refusal = await readUpTo(answer.body, refusal_bytes_max);
      const [retry_after] = [answer.headers['retry-after']].flat();
      throw refusalError({ status: answer.statusCode, retry_after, body: refusal }, secrets);
    },
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.close()));
    },
  };
}

/** Without a connection nothing was sent. */
function unreached(error: unknown): never {
  if (!(error instanceof GuardError)) throw error;
  throw new NotStarted(error.code === 'timeout' ? 'timeout' : 'unreachable', error.message, { cause: error });
}

async function readUpTo(body: Readable, bytes_max: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size_bytes = 0;
  const late = setTimeout(() => body.destroy(), refusal_ms);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size_bytes += chunk.length;
      if (size_bytes >= bytes_max) break;
    }
  } catch {
    // What there is of the explanation will do.
  } finally {
    clearTimeout(late);
  }
  return Buffer.concat(chunks).toString('utf8');
}
