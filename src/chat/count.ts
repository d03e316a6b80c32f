import type { Caller } from '../accounts/authenticate.ts';
import type { App } from '../app.ts';
import { allowedAsk, readAllowance } from '../styles/allowed.ts';
import { inputSize, readAsk } from '../styles/ask.ts';
import { readQuirks } from '../styles/quirks.ts';
import { countingBody } from '../styles/same-style.ts';
import type { ChatCaller } from './attempt.ts';
import { findModel } from './order.ts';
import { countInput } from './price.ts';

const upstream_patience_ms = 10_000;

/**
 * Tokens of a conversation in one of these styles: by the first route whose upstream counts them, else by
 * their bytes. Runs no model and costs nothing. Throws ApiError 400 and 404.
 */
export async function countTokens(
  app: App,
  style: 'messages' | 'responses',
  call: { caller: Caller; request_id: string; body: Record<string, unknown> | undefined },
  caller: ChatCaller,
): Promise<number> {
  const ask = readAsk(style, call.body ?? {}, 'count');
  const model = findModel(app, ask.model, 'chat');
  for (const route of model.routes) {
    const provider = app.providers.chat(route.provider);
    if (!provider?.countTokens || !provider.styles.includes(style)) continue;
    const { quirks } = readQuirks(route.options);
    try {
      const allowed = allowedAsk(ask, readAllowance(route.options).allowance);
      const body =
        style === 'messages'
          ? countingBody(allowed, route.upstream_model, quirks)
          : { ...allowed.body, model: route.upstream_model };
      return await provider.countTokens(
        {
          request_id: call.request_id,
          style,
          model: route.upstream_model,
          body,
          headers: caller.headers,
          timeout_ms: route.timeout_ms,
          options: route.options,
        },
        AbortSignal.any([caller.gone, AbortSignal.timeout(upstream_patience_ms)]),
      );
    } catch (error) {
      app.log.info({ request_id: call.request_id, route: route.id, error: String(error) }, 'an upstream did not count');
    }
  }
  return countInput(inputSize(ask));
}
