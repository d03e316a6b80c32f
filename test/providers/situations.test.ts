import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultProviders } from '../../src/catalog/default.ts';
import { adapters } from '../../src/providers/index.ts';
import { readDocument, repository } from '../docs/document.ts';
import { cellOf } from './situations/cells.ts';
import { situations } from './situations/subject.ts';
import { subjects } from './situations/subjects.ts';
import { vendors } from './vendors.ts';

/** Every provider of media in every situation that its users meet, as docs/providers.md has it. */

describe('the table of situations', () => {
  it('has every adapter of media', () => {
    const all = Object.values(adapters).filter(({ open }) => open);
    const here = new Set(subjects.map(({ adapter }) => adapter));
    expect(all.filter((adapter) => !here.has(adapter)).length).toBe(1); // the sandbox, which is no provider
  });

  it('has every preset without code of the default catalogue', () => {
    const presets = Object.entries(defaultProviders()).flatMap(([name, { adapter }]) =>
      adapter === 'http-queue' ? [name] : [],
    );
    expect([...new Set(vendors.map(({ name }) => name))].toSorted()).toEqual(presets.toSorted());
    const titles = new Set(subjects.map(({ title }) => title));
    expect(vendors.filter(({ title }) => !titles.has(title))).toEqual([]);
  });

  it('is in docs/providers.md as the adapters do it (vitest -u writes it again)', { timeout: 300_000 }, async () => {
    const rows: string[] = [];
    for (const subject of subjects) {
      const cells = await Promise.all(situations.map((situation) => cellOf(subject, situation)));
      rows.push(`| ${[subject.title, ...cells].join(' | ')} |`);
    }
    const head = [`| Provider | ${situations.join(' | ')} |`, `|${'---|'.repeat(situations.length + 1)}`];
    const { text } = readDocument('docs/providers.md');
    const table = /(?<=<!-- situations -->\n).*?(?=\n\n)/s;
    expect(text).toMatch(table);
    await expect(text.replace(table, () => [...head, ...rows].join('\n'))).toMatchFileSnapshot(
      join(repository, 'docs/providers.md'),
    );
  });
});
