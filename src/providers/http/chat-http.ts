import { makeWellFormed } from '../../lib/well-formed.ts';
import { Readable } from 'node:stream';
import type { ProviderConfig } from '../../catalog/model.ts';
import { ask, type UpstreamAnswer } from './answer-body.ts';
import { openConnections, readRefusal, unreached } from './connections.ts';
import type { ChatReply, UpstreamParts } from '../provider.ts';
import { openCredentials } from './credentials.ts';
import { ownTexts } from './own-texts.ts';
import { refusalError, type Hints } from './refusal.ts';
import { traceHeaders } from '../../tracing/tracer.ts';

/** The HTTP of upstreams that chat: connections of their own, kept open, judged like every other. */
export type ChatClient = {
  /** Posts JSON; resolves when a 2xx has come. Throws NotStarted, InputRefused, or that no answer came. */
  post(path: string, headers: Record<string, string>, body: object, options: PostOptions): Promise<ChatReply>;
  close(): Promise<void>;
};

type PostOptions = { signal: AbortSignal; connect_timeout_ms: number };

/** The client keeps a body for as long as its answer is streamed; a larger one it gets piece by piece. */
const error_bytes_max = 65_536;

const refusal_limits = { bytes_max: 65_536, wait_ms: 3_000 };

export function openChatClient(
  config: ProviderConfig & { base_url: string },
  parts: UpstreamParts,
  hints: Hints = {},
): ChatClient {
  const { origin, pathname } = new URL(config.base_url);
  const prefix = pathname.replace(/\/+$/, '');
  const connections = openConnections(parts.guard, config);
  const own = ownTexts(config);
  const { secrets } = own;
  const authorize = openCredentials(config, parts);
  return {
    post: async (path, headers, body, { signal, connect_timeout_ms }) => {
      const bytes = Buffer.from(JSON.stringify(makeWellFormed(body)));
      const target = { method: 'POST', origin, path: own.path(prefix + path) } as const;
      const sent_headers = own.headers({
        'content-type': 'application/json',
        'content-length': String(bytes.length),
        'user-agent': 'Medley',
        ...headers,
        ...traceHeaders(),
      });
      const proven = await authorize?.({ ...target, headers: sent_headers, body: bytes });
      const request = {
        ...target,
        path: proven?.path ?? target.path,
        headers: proven?.headers ?? sent_headers,
        body: bytes.length > error_bytes_max ? sentOnce(bytes) : bytes,
      } as const;
      const pool = connections.to(origin, { connect_timeout_ms, keep_alive: true });
      let reached: UpstreamAnswer;
      try {
        reached = await ask(pool, request, signal);
      } catch (error) {
        unreached(error);
      }
      const { status, headers: response_headers, body: answer } = reached;
      if (status < 300) return { body: answer, secrets };
      const refusal = (await readRefusal(answer, refusal_limits)).toString('utf8');
      const [retry_after] = [response_headers['retry-after']].flat();
      throw refusalError({ status, retry_after, body: refusal }, secrets, hints);
    },
    close: () => connections.close(),
  };
}

/** A body that nobody holds any more once it was sent. */
function sentOnce(bytes: Buffer): Readable {
  let rest: Buffer | undefined = bytes;
  return new Readable({
    read() {
      const next = rest?.subarray(0, error_bytes_max) ?? null;
      rest = rest && rest.length > error_bytes_max ? rest.subarray(error_bytes_max) : undefined;
      this.push(next);
    },
  });
}
