import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { Checkout } from './checkout.ts';

it('a service that does not start is told with its reason, and nothing waits for it afterwards', async () => {
  const checkout = await Checkout.make('postgres://nobody@127.0.0.1:1/none');
  await expect(checkout.start('MEDLEY_ROLE=cook npm start')).rejects.toThrow('MEDLEY_ROLE must be all, api or worker');
  await checkout.remove();
  expect(existsSync(checkout.folder)).toBe(false);
});
