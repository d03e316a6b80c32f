import type { Settings } from '../catalog/model.ts';
import type { Clock } from '../lib/clock.ts';
import { GuardError, type Guard } from '../net/guard.ts';
import { signedHeaders } from '../webhooks/sign.ts';

/** The parts of the app that a post to the operators' receiver takes. */
export type PostParts = {
  readonly clock: Clock;
  readonly guard: Guard;
  readonly catalog: { readonly current: { readonly settings: Settings } };
};

/** Result of a post. Without a status there was no answer, and `error` has the reason. */
export type PostResult = { delivered: boolean; status: number | null; error: string | null };

const connect_timeout_ms = 5_000;
const answer_bytes_max = 16_384;

/**
 * Posts a message to the receiver in `alerts` of medley.yaml, signed as webhooks are. Its address is the operator's own,
 * and may be private. Never throws for what the receiver does.
 */
export async function postToOperators(
  { clock, guard, catalog }: PostParts,
  receiver: { url: string; secret: string },
  message: { id: string; event: string; body: string },
): Promise<PostResult> {
  const { timeout_ms } = catalog.current.settings.webhooks;
  const body = Buffer.from(message.body);
  const headers = signedHeaders({ ...message, body, sent_at_ms: clock.now() }, [receiver.secret]);
  try {
    const { status } = await guard.send(receiver.url, {
      method: 'POST',
      headers,
      body,
      rules: { allow: [], allow_private: true },
      connect_timeout_ms: Math.min(connect_timeout_ms, timeout_ms),
      timeout_ms,
      answer_bytes_max,
    });
    return { delivered: status >= 200 && status < 300, status, error: null };
  } catch (error) {
    if (!(error instanceof GuardError)) throw error;
    return { delivered: false, status: null, error: error.message };
  }
}
