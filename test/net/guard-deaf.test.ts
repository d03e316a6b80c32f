import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { openGuard } from '../../src/net/guard.ts';
import { startDeafHost } from '../helpers/deaf.ts';

const guard = openGuard({ resolve: async () => ['127.0.0.6', '127.0.0.7'] });
const send = (url: string) =>
  guard.send(url, {
    method: 'POST',
    headers: {},
    rules: { allow: ['127.0.0.0/8'], allow_private: false },
    connect_timeout_ms: 1_000,
    timeout_ms: 60_000,
    answer_bytes_max: 1_000,
  });

test('a host that accepts no connection gives a timeout, and the other ones of several addresses are tried', async () => {
  const deaf = await startDeafHost('127.0.0.6');
  const { port } = new URL(deaf.url);
  const server = createServer((_, response) => response.end('here'));
  await new Promise<void>((resolve) => server.listen(Number(port), '127.0.0.7', resolve));
  try {
    await expect(send(deaf.url)).rejects.toMatchObject({ code: 'timeout' });
    expect((await send(`http://both.example:${port}/`)).answer.toString()).toBe('here');
  } finally {
    server.close();
    await deaf.stop();
  }
});
