import { isDeepStrictEqual } from 'node:util';
import type { BetterAuthPlugin } from 'better-auth';
import type { Queryable } from '../../db/database.ts';
import { isRecord } from '../../lib/is-record.ts';
import { undoSignIn } from './sessions.ts';
import type { SignInSettings } from './settings.ts';
import { useUpCode } from './totp-once.ts';
import { weaknessOf, type Owner } from './weak-passwords.ts';

/**
 * Blocks what the login library would let through: using a code twice, weak passwords, sign-ins by what is replaced
 * meanwhile, and passwords where the service takes none.
 */

type Hooks = NonNullable<BetterAuthPlugin['hooks']>;

/** Throws what the library answers as a 400 or 401. */
export async function loginHooks({ db, sign_in }: { db: Queryable; sign_in(): SignInSettings }): Promise<Hooks> {
  const { createAuthMiddleware, getSessionFromCtx, APIError } = await import('better-auth/api');
  const { symmetricDecrypt } = await import('better-auth/crypto');

  const checkCode = createAuthMiddleware(async (ctx) => {
    const code = textIn(ctx.body, 'code');
    const { secret, secretConfig, internalAdapter } = ctx.context;
    const cookie = await ctx.getSignedCookie(ctx.context.createAuthCookie('two_factor').name, secret);
    const session = await getSessionFromCtx(ctx);
    const waiting = !session && cookie ? await internalAdapter.findVerificationValue(cookie) : null;
    const user_id = session?.user.id ?? waiting?.value;
    if (code === undefined || user_id === undefined) return;
    const [factor] = await db.query<{ id: string; secret: string }>(
      'select id, secret from auth."twoFactor" where "userId" = $1',
      [user_id],
    );
    if (!factor) return;
    const key = await symmetricDecrypt({ key: secretConfig, data: factor.secret });
    if (await useUpCode(db, { factor_id: factor.id, secret: key, code }, Date.now())) return; // the library's own clock
    throw new APIError('UNAUTHORIZED', { message: 'This code has been used. Wait for the next one.' });
  });

  const checkPassword = createAuthMiddleware(async (ctx) => {
    const password = textIn(ctx.body, 'newPassword');
    const token = textIn(ctx.body, 'token');
    const { internalAdapter } = ctx.context;
    const reset = token === undefined ? null : await internalAdapter.findVerificationValue(`reset-password:${token}`);
    const session = reset ? null : await getSessionFromCtx(ctx);
    const owner: Owner | null = reset ? await internalAdapter.findUserById(reset.value) : (session?.user ?? null);
    const problem = password !== undefined && owner ? weaknessOf(password, owner) : undefined;
    if (problem !== undefined) throw new APIError('BAD_REQUEST', { message: problem });
  });

  /** Then whoever has a password proves themselves as people without one do: the library finds none. */
  const hidePasswords = createAuthMiddleware(async () =>
    sign_in().password ? undefined : { context: { context: { internalAdapter: { findAccounts: async () => [] } } } },
  );

  const passwords = ['/change-password', '/reset-password'];
  const { noteStanding, checkStanding } = await standingHooks(db);
  const by_password = ({ path }: { path?: string }) => path === '/sign-in/email';
  return {
    before: [
      { matcher: ({ path }) => path === '/two-factor/verify-totp', handler: checkCode },
      { matcher: ({ path }) => path !== undefined && passwords.includes(path), handler: checkPassword },
      { matcher: by_password, handler: noteStanding },
      { matcher: ({ path }) => path?.startsWith('/two-factor/') === true, handler: hidePasswords },
    ],
    after: [{ matcher: by_password, handler: checkStanding }],
  };
}

/** The hooks before and after a sign-in by a password, which end what began with a password or factor of before. */
async function standingHooks(db: Queryable) {
  const { createAuthMiddleware, APIError } = await import('better-auth/api');
  const { deleteSessionCookie } = await import('better-auth/cookies');
  const begun_with = new WeakMap<Request, Standing | undefined>();

  const noteStanding = createAuthMiddleware(async (ctx) => {
    const email = textIn(ctx.body, 'email');
    if (ctx.request && email !== undefined) begun_with.set(ctx.request, await standingOf(db, email));
  });

  /**
   * The hash may have waited, and a new password or factor has ended only the sessions that were there: this one began
   * with what it found before.
   */
  const checkStanding = createAuthMiddleware(async (ctx) => {
    const email = textIn(ctx.body, 'email');
    const before = ctx.request && begun_with.get(ctx.request);
    if (!before || email === undefined || isDeepStrictEqual(before, await standingOf(db, email))) return;
    await undoSignIn(db, before.user_id, ctx.context.newSession?.session.id);
    deleteSessionCookie(ctx, true);
    throw new APIError('UNAUTHORIZED', { message: 'Your password or your second factor has just changed. Try again.' });
  });

  return { noteStanding, checkStanding };
}

/** Password and factor on which a sign-in rests. */
type Standing = { user_id: string; password: string | null; two_factor: boolean };

async function standingOf(db: Queryable, email: string): Promise<Standing | undefined> {
  const rows = await db.query<Standing>(
    `select u.id as user_id, a.password, coalesce(u."twoFactorEnabled", false) as two_factor
       from auth."user" u left join auth.account a on a."userId" = u.id and a."providerId" = 'credential'
      where u.email = $1`,
    [email.toLowerCase()],
  );
  return rows[0];
}

function textIn(body: unknown, name: string): string | undefined {
  const value = isRecord(body) ? body[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}
