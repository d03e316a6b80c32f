import type { BetterAuthPlugin } from 'better-auth';
import type { Queryable } from '../../db/database.ts';
import { isRecord } from '../../lib/is-record.ts';
import { useUpCode } from './totp-once.ts';
import { weaknessOf, type Owner } from './weak-passwords.ts';

/** Blocks two things in the login library: using a code twice, and weak passwords. */

type Hooks = NonNullable<BetterAuthPlugin['hooks']>;

/** Throws what the library answers as a 400 or 401. */
export async function loginHooks({ db }: { db: Queryable }): Promise<Hooks> {
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

  const passwords = ['/change-password', '/reset-password'];
  return {
    before: [
      { matcher: ({ path }) => path === '/two-factor/verify-totp', handler: checkCode },
      { matcher: ({ path }) => path !== undefined && passwords.includes(path), handler: checkPassword },
    ],
  };
}

function textIn(body: unknown, name: string): string | undefined {
  const value = isRecord(body) ? body[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}
