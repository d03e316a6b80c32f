import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { repository } from './document.ts';

type Page = { title: string; markdown: string };
type Document = { tags: { name: string; description: string }[]; paths: Record<string, object> };

/** The pages that the build of the guide makes of a document. */
async function pagesOf(document: Document): Promise<Page[]> {
  const module: { referencePages(document: Document, address: string, titleOf: (name: string) => string): Page[] } =
    await import(join(repository, 'web/guide/reference.mjs'));
  return module.referencePages(document, 'http://127.0.0.1/docs', (name) => name);
}

const document: Document = JSON.parse(readFileSync(join(repository, 'openapi.json'), 'utf8'));

it('every group of operations has a page, and what it says of the guides is a sentence', async () => {
  const pages = await pagesOf(document);
  expect(pages.map(({ title }) => title)).toEqual(['Overview', ...document.tags.map(({ name }) => name)]);
  for (const { markdown } of pages) expect(markdown).not.toMatch(/undefined|\[object|Guides?: \./);
});

it('a group that no guide is about has its page, too', async () => {
  const tags = [...document.tags, { name: 'New things', description: 'New.' }];
  const pages = await pagesOf({ ...document, tags });
  expect(pages.at(-1)?.markdown).toMatch(/^# API reference: New things\n\nNew\. All groups: /);
});
