import type { CatalogHolder } from '../catalog/catalog.ts';
import type { JsonObject, LinkPolicy, Route } from '../catalog/model.ts';
import type { Permit } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';
import type { Providers } from '../providers/open.ts';
import { allowanceOf, isCovered } from '../styles/allowed.ts';
import { isObject, mistake } from '../styles/fields.ts';
import { judgeLinks, withFiles, type BodyLink } from '../styles/links.ts';
import type { Codec, Link } from '../styles/codec.ts';
import { attemptRoute, type AttemptContext, type ChatCaller } from './attempt.ts';
import { failed, type AttemptResult, type RouteFailure } from './attempt-result.ts';
import { fetchLinks, type LinkParts } from './links.ts';
import type { PricedChatRequest, PricedRequest } from './priced-request.ts';
import { attemptWithTools, type ToolLoopParts } from './tool-loop.ts';

/** Literal addresses that are private are given to no upstream: what `net.allow` permits is fetched by us alone. */
const public_only = { allow: [], allow_private: false };

/** The parts of the app that decide about links. */
export type LinkPolicyParts = { readonly catalog: CatalogHolder; readonly providers: Pick<Providers, 'chat'> };

/** The parts of the app that fetching the files behind links takes. */
export type FetchingParts = LinkParts & { readonly stopping: AbortSignal };

/** The parts of the app that an attempt with links takes. */
export type LinkedParts = ToolLoopParts & LinkPolicyParts;

/**
 * Asks one route, with the caller's links as its provider wants them: as they are, or as the files behind them. Throws
 * like `attemptRoute`; links that the route does not take are a failure of the route with its refusal.
 */
export async function attemptWithLinks(
  parts: LinkedParts,
  priced: PricedChatRequest,
  route: Route,
  context: AttemptContext,
): Promise<AttemptResult> {
  const links = priced.links.filter((link) => !isOfToolLeftOut(link, priced.request.body, route));
  const attempt = priced.search || priced.images ? attemptWithTools : attemptRoute;
  const policy = linkPolicy(parts, route, priced.request.style);
  const { replaceLink } = priced.request.style.caller;
  const linked = { links, policy, ...(replaceLink && { replaceLink }) };
  return attemptLinked(parts, priced, linked, { route, caller: context.caller }, (fetched) =>
    attempt(parts, fetched, route, context),
  );
}

/** A priced request whose body may have links. */
type WithLinks = PricedRequest & { request: { body: JsonObject }; links: readonly BodyLink[] };

/** The links of a request that concern a route, and what happens to them there. */
type LinksOfRoute = {
  links: readonly BodyLink[];
  policy: LinkPolicy | 'own';
  replaceLink?: Parameters<typeof withFiles>[2];
};

/** Makes an attempt with the request as it is, or with the files behind its links. Resolves to a failure where the route does not take them. */
export async function attemptLinked<Priced extends WithLinks>(
  parts: FetchingParts,
  priced: Priced,
  linked: LinksOfRoute,
  { route, caller }: { route: Route; caller: ChatCaller },
  attempt: (priced: Priced) => Promise<AttemptResult>,
): Promise<AttemptResult> {
  const { links, policy } = linked;
  if (links.length === 0) return attempt(priced);
  try {
    checkPolicy(links, policy);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return failed(refusedFailure(error));
  }
  if (policy !== 'fetch') return attempt(priced);
  const files = await fetchAll(parts, priced, linked, route, caller.gone);
  if ('problem' in files) return failed(files.problem);
  const { permit, body } = files;
  const fetched = { ...priced, request: { ...priced.request, body }, links: [] };
  const letGo = caller.memory.add(() => {
    fetched.request.body = {};
    permit.release();
  });
  try {
    return await attempt(fetched);
  } finally {
    letGo();
  }
}

/** The server of a tool that the route's upstream does not get is spoken to by nobody. */
function isOfToolLeftOut({ kind, place }: BodyLink, body: JsonObject, { options }: Route): boolean {
  const [list, index] = place;
  if (kind !== 'server' || list !== 'tools' || typeof index !== 'number') return false;
  const tool = Array.isArray(body['tools']) ? body['tools'][index] : undefined;
  return isObject(tool) && !isCovered(tool) && !allowanceOf(options).pass.has('tools');
}

/**
 * `own`: the adapter's style has no links, and files are fetched where it is written. A caller's request of that style is
 * not written again: its files are fetched before.
 */
export function linkPolicy(
  { catalog, providers }: LinkPolicyParts,
  route: Route,
  caller_style?: Codec,
): LinkPolicy | 'own' {
  const config = catalog.current.providers.get(route.provider);
  if (config?.links === 'refuse') return 'refuse';
  const { styles = [], has_no_links = false } = providers.chat(route.provider) ?? {};
  if (has_no_links) return 'fetch';
  if (caller_style && styles.length > 0 && styles.every(({ upstream }) => upstream.has_no_links))
    return styles.includes(caller_style) ? 'fetch' : 'own';
  return config?.links ?? (config?.allow_private === true ? 'fetch' : 'pass');
}

/** Throws ApiError 400 naming the first link that may not be sent, or fetched. */
export function checkPolicy(links: readonly BodyLink[], policy: LinkPolicy | 'own'): void {
  const [first] = links;
  if (policy === 'pass') return judgeLinks(links, public_only);
  const unfetched = policy === 'refuse' ? first : links.find(({ kind }) => kind === 'server');
  if (!unfetched) return;
  const why = 'must not be a link: this model accepts none, send the content itself';
  throw mistake(unfetched.at, unfetched.kind === 'server' ? 'is not offered with this model' : why, 'link_not_allowed');
}

function refusedFailure(refusal: ApiError): RouteFailure {
  return { cause: 'upstream_error', reason: refusal.message, refusal };
}

type Fetched = { permit: Permit; body: JsonObject } | { problem: RouteFailure };

/** Within the time that the route has for its first byte: nothing is asked before the files are here. */
async function fetchAll(
  parts: FetchingParts,
  { request, caller }: WithLinks,
  { links, replaceLink }: LinksOfRoute,
  { timeout_ms }: Route,
  gone: AbortSignal,
): Promise<Fetched> {
  const late_ms = request.stream ? Math.min(timeout_ms.first_byte, timeout_ms.total) : timeout_ms.total;
  const late = AbortSignal.timeout(late_ms);
  const signal = AbortSignal.any([gone, parts.stopping, late]);
  const inlined = links.map(({ url, at }): Link => ({ url, at, inline: { mimeType: '', data: '' } }));
  try {
    const permit = await fetchLinks(parts, caller.account.id, inlined, signal);
    if (permit instanceof ApiError) return { problem: refusedFailure(permit) };
    const files = links.map((link, index) => ({ link, file: inlined[index]?.inline ?? { mimeType: '', data: '' } }));
    return { permit, body: withFiles(request.body, files, replaceLink) };
  } catch (error) {
    if (!signal.aborted) throw error;
    const is_late = signal.reason === late.reason;
    const reason = is_late ? 'its files did not come in time' : 'the caller left before its files came';
    return { problem: { cause: is_late ? 'timeout' : 'upstream_error', reason, is_not_route_fault: true } };
  }
}
