import { expect, test } from 'vitest';
import { closeAll } from '../../src/app/data.ts';

test('what opens while all parts are closed is closed too, and no part is closed twice', async () => {
  const closed: string[] = [];
  const closing = Promise.withResolvers<void>();
  const close = (name: string) => () => void closed.push(name);
  const closers = [close('server'), () => closing.promise, close('database')];
  const all = closeAll(closers);
  await Promise.resolve();
  closers.unshift(close('late'));
  closing.resolve();
  await all;
  expect(closed).toEqual(['server', 'late', 'database']);
});
