import type { Logger } from 'pino';
import type { Caller } from '../accounts/authenticate.ts';
import type { JsonObject, Route } from '../catalog/model.ts';
import { withoutWords } from '../lib/without-words.ts';
import type { AddressRules } from '../net/address.ts';
import { allowanceOf, allowedRequest } from '../styles/allowed.ts';
import type { CallerCodec, ChatRequest, Codec } from '../styles/codec.ts';
import { inputSize } from '../styles/input-size.ts';
import { quirksOf } from '../styles/quirks.ts';
import { readChatRequest, upstreamBody } from '../styles/request.ts';
import { findLinks, judgeLinks, type BodyLink } from '../styles/links.ts';
import type { ChatCaller } from './attempt.ts';
import { candidatesIn } from './candidates.ts';
import { headersFor } from './ignored.ts';
import { checkPolicy, linkPolicy, type LinkPolicyParts } from './linked.ts';
import { takePreferences } from './preferences.ts';
import { countInput } from './price.ts';
import { hostedTools, withToolsOf } from './tools.ts';

const upstream_patience_ms = 10_000;

/** The parts of the app that counting tokens takes. */
export type CountParts = LinkPolicyParts & { readonly log: Logger; addressRules(): AddressRules };

/**
 * Tokens of a conversation in one of these styles: by the first route whose upstream counts them, else by
 * their bytes. Runs no model and costs nothing. Throws ApiError 400 and 404.
 */
export async function countTokens(
  parts: CountParts,
  style: CallerCodec,
  call: { caller: Caller; request_id: string; body: Record<string, unknown> | undefined },
  caller: ChatCaller,
): Promise<number> {
  const read = readChatRequest(style, call.body ?? {}, 'count');
  const { body: alone, candidates } = candidatesIn(parts.catalog.current, {
    caller: call.caller,
    request: read,
  });
  const [{ model }] = candidates;
  const { body } = takePreferences(alone, model, parts.catalog.current);
  const request = { ...read, body };
  const links = findLinks(request.body);
  judgeLinks(links, parts.addressRules());
  const hosted = hostedTools(request, model);
  for (const route of model.routes) {
    const provider = parts.providers.chat(route.provider);
    if (!provider?.countTokens) continue;
    const counted = provider.styles.find((each) => countsFor(each, style));
    if (!counted) continue;
    try {
      if (links.length > 0) checkCounted(links, linkPolicy(parts, route, style));
      const reduced = withToolsOf(
        route,
        { style: counted, runs_no_tools: provider.runs_no_tools },
        request,
        hosted,
      ).request;
      const allowed = allowedRequest(reduced, allowanceOf(route.options));
      return await provider.countTokens(
        {
          request_id: call.request_id,
          style: counted,
          model: route.upstream_model,
          body: bodyFor(allowed, counted, route),
          headers: counted === style ? headersFor(style, model, route.options, caller) : {},
          timeout_ms: route.timeout_ms,
          options: route.options,
        },
        AbortSignal.any([caller.gone, AbortSignal.timeout(upstream_patience_ms)]),
      );
    } catch (error) {
      parts.log.info(
        { request_id: call.request_id, route: route.id, error: withoutWords(String(error)) },
        'an upstream did not count',
      );
    }
  }
  return countInput(inputSize(request));
}

/** Files are not fetched for a count. Throws where they would have to be. */
function checkCounted(links: readonly BodyLink[], policy: ReturnType<typeof linkPolicy>): void {
  if (policy === 'fetch') throw new Error('its links are not fetched for a count');
  checkPolicy(links, policy);
}

/** Returns true if an upstream of this style counts the tokens of a request of a caller's. */
function countsFor(style: Codec, caller_style: CallerCodec): boolean {
  const { countedBody } = style === caller_style ? caller_style.caller.passthrough : style.upstream;
  return countedBody !== undefined;
}

/** The body that an upstream counts. Throws if it cannot be asked: it takes no such body, or files that nobody fetches for this. */
function bodyFor(request: ChatRequest, style: Codec, route: Route): JsonObject {
  const target = { style, model: route.upstream_model, max_tokens: 1, quirks: quirksOf(route.options) };
  const { countedBody } = request.style.caller.passthrough;
  if (style === request.style && countedBody) return countedBody(request, target);
  const { body, links } = upstreamBody(request, target);
  if (links) throw new Error('its links are not fetched for a count');
  return style.upstream.countedBody?.(body) ?? body;
}
