import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { findLinks } from '../../src/styles/links.ts';
import { workedMs } from '../helpers/work.ts';

/** The least of five readings. */
function workFor(run: () => unknown): number {
  const readings = Array.from({ length: 5 }, () => {
    const before_ms = workedMs();
    run();
    return workedMs() - before_ms;
  });
  return Math.min(...readings);
}

test('looking for links in half a million lists in lists takes at most four times as long as to parse them', () => {
  const text = `{"stop":[${Array.from({ length: 8_000 }, () => `${'['.repeat(60)}0${']'.repeat(60)}`).join(',')}]}`;
  const body: JsonObject = JSON.parse(text);
  expect(workFor(() => findLinks(body)) / workFor(() => JSON.parse(text))).toBeLessThan(4);
});

test('a link in nested lists is found under the name of the member that holds them', () => {
  const url = 'https://pictures.example/cat.png';
  const body = { messages: [{ content: [{ images: [[[url, 1, null, 'no link']]] }] }] };
  expect(findLinks(body)).toEqual([
    {
      url,
      at: 'messages[0].content[0].images[0][0][0]',
      place: ['messages', 0, 'content', 0, 'images', 0, 0, 0],
      kind: 'file',
    },
  ]);
});
