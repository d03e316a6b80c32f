import { Client } from 'undici';
export class GuardError extends Error {
  code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
type Send = {
  method: 'POST';
  headers: Record<string, string>;
  body: Buffer;
  rules: unknown;
  connect_timeout_ms: number;
  timeout_ms: number;
  answer_bytes_max: number;
  signal?: AbortSignal | undefined;
};
export type Guard = { send(url: string, o: Send): Promise<{ status: number; answer: Buffer }> };
export function openGuard(): Guard {
  return {
    send: async (url, o) => {
      const u = new URL(url);
      const client = new Client(u.origin, { connect: { timeout: o.connect_timeout_ms } });
      const limit = AbortSignal.timeout(o.timeout_ms);
      try {
        const r = await client.request({
          path: u.pathname + u.search,
          method: o.method,
          headers: o.headers,
          body: o.body,
          signal: o.signal ? AbortSignal.any([o.signal, limit]) : limit,
        });
        const chunks: Buffer[] = [];
        let n = 0;
        for await (const c of r.body) {
          chunks.push(c);
          n += c.length;
          if (n >= o.answer_bytes_max) break;
        }
        return { status: r.statusCode, answer: Buffer.concat(chunks).subarray(0, o.answer_bytes_max) };
      } catch (error) {
        if (limit.aborted) throw new GuardError('timeout', 'The receiver did not answer in time.');
        if (o.signal?.aborted) throw error;
        throw new GuardError('reset', `The connection was closed: ${String(error)}`);
      } finally {
        client.destroy().catch(() => {});
      }
    },
  };
}
