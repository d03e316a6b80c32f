import type { GenericEndpointContext } from 'better-auth';
import { addressOf, type Parts } from './sign-in/login-parts.ts';
import { answerPasskey, challengeFor, passkey_refusals } from './passkey-answers.ts';
import { assertionOptions } from './passkey-ceremonies.ts';
import { challenge_ms } from './passkey-challenges.ts';
import { noteTwoFactors } from './sign-in/sessions.ts';

/**
 * Sign-in by a passkey, within the login library: its sessions and its cookies. Its own plugin for this keeps challenges
 * that another browser may answer, and opens a session that counts as one factor
 * (docs/decisions/0126-passkeys-are-two-factors.md).
 */

export function passkeyEndpoints(parts: Parts) {
  return { beginByPasskey: begin(parts), signInByPasskey: end(parts) };
}

const cookie_name = 'passkey_browser';

const cookieOf = (ctx: GenericEndpointContext) =>
  ctx.context.createAuthCookie(cookie_name, { maxAge: challenge_ms / 1000 });

/** The browser that asked for a challenge alone can answer it. Two of its tabs have one name. */
async function browserOf(ctx: GenericEndpointContext): Promise<string | undefined> {
  return (await ctx.getSignedCookie(cookieOf(ctx).name, ctx.context.secret)) || undefined;
}

function begin(parts: Parts) {
  return parts.createAuthEndpoint('/passkey/start', { method: 'POST' }, async (ctx) => {
    const browser = (await browserOf(ctx)) ?? parts.generateRandomString(32);
    const begun = challengeFor(parts, { purpose: 'sign_in', holder: browser });
    if ('obstacle' in begun) throw new parts.APIError('CONFLICT', { message: begun.obstacle });
    const cookie = cookieOf(ctx);
    await ctx.setSignedCookie(cookie.name, browser, ctx.context.secret, cookie.attributes);
    return ctx.json(assertionOptions(begun.party, begun.challenge, []));
  });
}

function end(parts: Parts) {
  return parts.createAuthEndpoint('/sign-in/passkey', { method: 'POST' }, async (ctx) => {
    const refuse = (message: string) => new parts.APIError('UNAUTHORIZED', { message });
    const browser = await browserOf(ctx);
    if (browser === undefined) throw refuse(passkey_refusals.expired);
    const scope = { purpose: 'sign_in', holder: browser } as const;
    const answered = await answerPasskey(parts, { scope, address: addressOf(ctx) }, ctx.body);
    if ('refused' in answered) throw refuse(answered.refused);
    const { internalAdapter } = ctx.context;
    const user = await internalAdapter.findUserById(answered.user_id);
    if (!user) throw refuse(passkey_refusals.unknown); // removed in this very moment
    const session = await internalAdapter.createSession(user.id);
    await noteTwoFactors(parts.db, session.id);
    await parts.setSessionCookie(ctx, { session, user });
    return ctx.json({ ok: true });
  });
}
