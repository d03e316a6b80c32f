import { expect, it } from 'vitest';
import { openGuard } from '../../src/net/guard.ts';
import { unreached } from '../../src/providers/http/connections.ts';

it('a private address of an upstream is refused with the setting that permits it', async () => {
  const rules = { allow: [], allow_private: false };
  const refused = openGuard()
    .connect('http://127.0.0.1:11434', { rules, connect_timeout_ms: 1_000 })
    .then(() => undefined, unreached);
  await expect(refused).rejects.toMatchObject({
    reason: 'unreachable',
    message: expect.stringMatching(
      /[^.]\. If this upstream is your own, set allow_private: true for its provider in medley\.yaml$/,
    ),
  });
});
