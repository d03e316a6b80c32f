import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Checkout } from './checkout.ts';
import { repository } from './document.ts';

describe('medley.example.yaml', () => {
  const text = readFileSync(join(repository, 'medley.example.yaml'), 'utf8');
  const [start = '', ...commands] = [...text.matchAll(/^# .*: +((?:\w+=\S+ )*npm .*)$/gm)].map(([, line = '']) => line);
  let checkout: Checkout;

  beforeAll(async () => {
    checkout = await Checkout.make('');
  });
  afterAll(() => checkout.remove());

  it(`runs: ${start}`, async () => {
    expect(await checkout.start(start)).toContain('Medley is running at http://127.0.0.1:8080 ');
  });

  it.each(commands)('runs: %s', async (command) => {
    expect(await checkout.run(command)).not.toBe('');
  });

  it('offers its models, and each makes its file', async () => {
    const { data } = await checkout.call<{ data: { id: string; modality: string; models?: string[] }[] }>('/v1/models');
    expect(data.find(({ id }) => id === 'smart')).toMatchObject({ models: ['sandbox/chat'] }); // no key is set
    const models = data.filter(({ id, modality }) => !id.startsWith('sandbox/') && modality !== 'chat');
    expect(models.map(({ modality }) => modality)).toEqual(['image', 'video', 'audio']);
    for (const { id: model, modality } of models) {
      const input = modality === 'audio' ? { text: 'Hello' } : { prompt: 'Hello' };
      const task = await checkout.call('/v1/generate?wait=60', { model, input });
      expect(task).toMatchObject({ model, status: 'succeeded', output: [{ type: modality }] });
    }
  });
});

/** Compares the stand-in for curl with curl: the documents' lines run with it where there is no curl. */
it('the stand-in for curl sends what curl sends', async () => {
  const checkout = await Checkout.make('');
  const echo = createServer((request, response) => {
    request.on('data', () => {}).on('end', () => response.end(`${request.method} ${request.headers['x-a']}`));
  }).listen(0, '127.0.0.1');
  await once(echo, 'listening');
  checkout.provideCurl();
  const url = `http://127.0.0.1:${(echo.address() as AddressInfo).port}/`;
  expect(await checkout.run(`curl -sS ${url} -H "x-a: b c" -d '{}'\ncurl -sS -o out -X DELETE ${url}; cat out`)).toBe(
    'POST b cDELETE undefined',
  );
  echo.close();
  await checkout.remove();
});
