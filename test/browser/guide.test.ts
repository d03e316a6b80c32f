import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { firstOperator } from '../../src/accounts/members.ts';
import { guidePaths, readDocument, repository } from '../docs/document.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, sidewaysOf, signIn, violationsIn, watchedPage } from '../helpers/dashboard.ts';

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;

beforeAll(async () => {
  service = await startTestApp({ worker: false });
  chromium = await launchBrowser();
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

const textOf = async (path: string) => (await fetch(service.url + path)).text();

/** Addresses and ids in the HTML of a page. */
function partsOf(html: string): { links: string[]; ids: Set<string> } {
  const all = (pattern: RegExp) => [...html.matchAll(pattern)].map(([, value = '']) => value.replaceAll('&amp;', '&'));
  return { links: all(/(?:href|src)="([^"]*)"/g), ids: new Set(all(/ id="([^"]*)"/g)) };
}

/** Every page that the guide leads to, with its HTML. */
async function readPages(): Promise<Map<string, string>> {
  const pages = new Map<string, string>();
  const waiting = ['/guide'];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (pages.has(path)) continue;
    const html = await textOf(path);
    pages.set(path, html);
    const inside = partsOf(html).links.map((link) => link.replace(/#.*/, ''));
    waiting.push(...inside.filter((link) => /^\/guide\/[\w-]+$/.test(link)));
  }
  return pages;
}

describe('the guide', () => {
  test('has every page of the index, and no link in it leads nowhere', async () => {
    const pages = await readPages();
    const names = guidePaths().map((path) => path.replace('docs/', '/guide/').replace('.md', ''));
    expect([...pages.keys()]).toEqual(expect.arrayContaining(names));
    const ids = new Map([...pages].map(([path, html]) => [path, partsOf(html).ids]));
    const checked = new Map<string, number>();
    const broken: string[] = [];
    for (const [path, html] of pages) {
      for (const link of new Set(partsOf(html).links)) {
        if (/^[a-z]+:/.test(link) && !link.startsWith(service.url)) continue;
        const { pathname, hash } = new URL(link, service.url + path);
        if (!checked.has(pathname)) checked.set(pathname, (await fetch(service.url + pathname)).status);
        if (checked.get(pathname) !== 200) broken.push(`${path}: ${link} is ${checked.get(pathname)}`);
        const anchors = ids.get(pathname);
        if (hash !== '' && anchors && !anchors.has(decodeURIComponent(hash.slice(1)))) broken.push(`${path}: ${link}`);
      }
    }
    expect(broken).toEqual([]);
    expect(checked.size).toBeGreaterThan(60);
  });

  test('shows the address of the service in the examples of callers, and the usual one where operators start it', async () => {
    const chat = await textOf('/guide/chat');
    expect(chat).toContain(`${service.url}/v1/chat/completions`);
    expect(chat).not.toContain('127.0.0.1:8080');
    expect(await textOf('/guide/monitoring')).toContain('127.0.0.1:8080');
    expect(await textOf('/guide/models-and-prices')).toContain(`${service.url}/v1/generate`);
    for (const name of ['typescript-client', 'python-client', 'ai-sdk'])
      expect(await textOf(`/guide/${name}`), name).toContain(`<code>${service.url}</code>`);
    expect(await textOf('/guide/chat.md')).toContain(`${service.url}/v1/chat/completions`);
  });

  test('says under which name a reader saves each program, and which text is an output', async () => {
    const paths = guidePaths().map((path) => ({ path, name: path.replace('docs/', '/guide/').replace('.md', '') }));
    let files = 0;
    for (const { path, name } of paths) {
      const [html, markdown] = [await textOf(name), await textOf(`${name}.md`)];
      const blocks = readDocument(path).blocks.filter(({ verb }) => verb === 'file');
      for (const { argument } of blocks) {
        expect(html).toContain(`<figcaption>Save as <code>${argument}</code></figcaption><pre`);
        expect(markdown).toContain(`\nSave as \`${argument}\`:\n\n\`\`\``);
      }
      files += blocks.length;
    }
    expect(files).toBeGreaterThan(20);
    expect(await textOf('/guide/webhooks')).toContain(
      '<figcaption>Output</figcaption><pre tabindex="0"><code>task.succeeded:',
    );
    expect(await textOf('/guide/webhooks.md')).toContain('\nOutput:\n\n```text\ntask.succeeded:');
  });

  test('has the Markdown of every page, whose links lead to Markdown', async () => {
    const pages = await readPages();
    for (const path of pages.keys()) {
      const answer = await fetch(`${service.url}${path === '/guide' ? '/guide/index' : path}.md`);
      expect(answer.status, path).toBe(200);
      expect(answer.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
      const text = await answer.text();
      expect(text, path).toMatch(/^# /);
      expect(text, path).not.toMatch(/%PATH%|%BASE_URL%|<!-- (run|output|file)/);
    }
    expect(await textOf('/guide/chat.md')).toContain(`](${service.url}/guide/chat-billing.md`);
  });

  test('has llms.txt in the form of llmstxt.org, whose addresses all answer', async () => {
    const text = await textOf('/llms.txt');
    expect(text).toMatch(/^# Medley\n\n> [^\n]+\n\n/);
    expect(text).toMatch(/\n## Optional\n\n- \[/);
    const lines = text.split('\n').filter((line) => line.startsWith('- '));
    for (const line of lines) {
      const [, address = ''] = /^- \[[^\]]+\]\((\S+)\)(?:: \S.*)?$/.exec(line) ?? [];
      expect(address, line).toMatch(/^http/);
      expect((await fetch(address)).status, line).toBe(200);
    }
    expect(lines.length).toBeGreaterThan(30);
    const full = await textOf('/llms-full.txt');
    for (const title of ['# Get started', '# Webhooks', '# Deploy']) expect(full).toContain(`${title}\n`);
    expect(full).not.toContain('# Specification coverage');
  });

  test('answers 404 for what is no page, wherever it points: programs get the error, browsers a page', async () => {
    const names = ['nothing', 'nothing.md', 'index.page', 'not_found', '..%2f..%2fpackage.json', 'search.JSON', '.md'];
    for (const name of [...names, 'a/b']) {
      const answer = await fetch(`${service.url}/guide/${name}`);
      expect(answer.status, name).toBe(404);
      expect(await answer.json(), name).toMatchObject({ error: { type: 'not_found' } });
      const page = await fetch(`${service.url}/guide/${name}`, { headers: { accept: 'text/html,*/*;q=0.8' } });
      expect(page.status, name).toBe(404);
      expect(page.headers.get('content-type'), name).toBe('text/html; charset=utf-8');
      expect(await page.text(), name).toContain('<h1>Page not found</h1>');
    }
  });

  test('is compressed for whom takes that, and plain for others', async () => {
    const plain = await fetch(`${service.url}/guide/chat`, { headers: { 'accept-encoding': 'identity' } });
    expect(plain.headers.get('content-encoding')).toBe(null);
    const compressed = await fetch(`${service.url}/guide/chat`);
    expect(compressed.headers.get('content-encoding')).toBe('gzip');
    expect(compressed.headers.get('content-security-policy')).toContain("script-src 'self';");
    expect(await compressed.text()).toBe(await plain.text());
  });
});

/** Opens a page of the guide in a browser of its own. */
async function open(path: string, options: Parameters<typeof contextOf>[1] = {}) {
  const watched = await watchedPage(await contextOf(chromium.browser, options), `${service.url}/`);
  await watched.page.goto(service.url + path);
  await watched.page.getByRole('heading', { level: 1 }).waitFor();
  return watched;
}

const phone = { viewport: { width: 360, height: 740 } };

describe('the guide in a browser', () => {
  test('finds a word, leads to its place, and marks it in the navigation', async () => {
    const { page, problems } = await open('/guide');
    await page.keyboard.press('Control+k');
    await page.getByRole('searchbox').fill('whsec');
    await page.locator('#results a', { hasText: 'Create an account and a key' }).waitFor();
    await page.getByRole('searchbox').fill('webhooks');
    await page.locator('#results a[href$="/guide/webhooks"]').waitFor();
    await expect.poll(() => page.locator('#results a').first().textContent()).toMatch(/^Webhooks/);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/guide\/webhooks/);
    await expect.poll(() => page.locator('#navigation a[aria-current=page]').textContent()).toBe('Webhooks');
    await page.getByRole('button', { name: /^Search/ }).click();
    await page.getByRole('searchbox').fill('qqqzzzxxx');
    await page.getByText('Nothing matches.').waitFor();
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test('copies an example, and goes to the next page and to the API reference and back', async () => {
    const { page, problems } = await open('/guide/embeddings', {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    // It says so for a moment only.
    await Promise.all([
      page.getByRole('button', { name: 'Copied' }).waitFor(),
      page.getByRole('button', { name: 'Copy' }).first().click(),
    ]);
    const copied: string = await page.evaluate('navigator.clipboard.readText()');
    expect(copied).toContain(`curl -sS ${service.url}/v1/embeddings`);
    await page.locator('a[rel=next]').click();
    await page.waitForURL(/\/guide\/rerank$/);
    await page.getByRole('link', { name: 'API reference' }).first().click();
    await page.waitForURL(/\/guide\/reference$/);
    await page.getByRole('link', { name: 'Send requests' }).click();
    await page.waitForURL(/\/docs$/);
    await page.getByRole('link', { name: 'Guide', exact: true }).click();
    await page.waitForURL(/\/guide$/);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test('shows the beginning of the own key to who has signed in', async () => {
    const now = new Date();
    const { id } = await createAccount(service.app.db, { name: 'Own', currency: 'USD', initial_credit: 0n }, now);
    const { text } = await createKey(service.app.db, { account_id: id, name: 'Mine', limit_month: null }, now);
    const user_id = await firstOperator(service.app.db, id, now);
    const { page, problems } = await open('/guide');
    await signIn(page, service.app, user_id, '/guide/get-started');
    await page.getByText(`export KEY=${text.slice(0, 8)}`).waitFor();
    expect(problems).toEqual([]);
    await page.context().close();
  });

  const shapes: [string, Parameters<typeof contextOf>[1]][] = [
    ['a laptop', {}],
    ['a laptop by night', { colorScheme: 'dark' }],
    ['a phone', phone],
    ['a phone by night', { ...phone, colorScheme: 'dark' }],
  ];
  test.each(shapes)('has no finding of axe and nothing cut off on %s', async (_name, options) => {
    const { page, problems } = await open('/guide', options);
    const reference = ['/guide/reference', '/guide/reference-tasks', '/guide/reference-webhooks', '/guide/nothing'];
    for (const path of ['/guide', '/guide/get-started', '/guide/chat', '/guide/monitoring', ...reference]) {
      await page.goto(service.url + path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      expect(await violationsIn(page), path).toEqual([]);
      expect(await sidewaysOf(page), path).toBe(0);
    }
    await openSearch(page);
    expect(await violationsIn(page)).toEqual([]);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test.each([{}, phone])('has no button on an example: %o', async (options) => {
    const { page } = await open('/guide/path-sdk', options);
    await expect.poll(() => page.getByRole('button', { name: 'Copy' }).count()).toBeGreaterThan(4);
    const overlaps: string[] = await page.evaluate(`[...document.querySelectorAll('.example')].flatMap((each) => {
      const [text, button] = ['pre', 'button'].map((part) => each.querySelector(part).getBoundingClientRect());
      const is_apart = text.right <= button.left || text.top >= button.bottom;
      return is_apart ? [] : [each.textContent];
    })`);
    expect(overlaps).toEqual([]);
    await page.context().close();
  });

  test('opens its navigation on a phone, and keeps the colours that a reader chose', async () => {
    const { page } = await open('/guide/chat', phone);
    const link = page.getByRole('list', { name: 'Use it' }).getByRole('link', { name: 'Webhooks' });
    await expect.poll(() => link.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Menu' }).click();
    await link.waitFor();
    await page.getByRole('button', { name: 'Dark' }).click();
    await link.click();
    await page.waitForURL(/webhooks$/);
    await expect.poll(() => page.evaluate('document.documentElement.dataset.mantineColorScheme')).toBe('dark');
    await page.context().close();
  });
});

async function openSearch(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Search/ }).click();
  await page.getByRole('searchbox').fill('webhook');
  await page.locator('#results a').first().waitFor();
}

type Operation = { summary: string; tags: [string] };

/** Every operation of the document, with its request and the address of its page. */
function operations() {
  const document: { paths: Record<string, Record<string, Operation>> } = JSON.parse(
    readFileSync(join(repository, 'openapi.json'), 'utf8'),
  );
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { summary, tags }]) => ({
      summary,
      request: `${method.toUpperCase()} ${path}`,
      page: `/guide/reference-${tags[0].toLowerCase().replaceAll(' ', '-')}`,
    })),
  );
}

describe('the API reference in the guide', () => {
  test('has every operation of openapi.json on the page of its group, in three languages, and on the page of all', async () => {
    const overview = await textOf('/guide/reference.md');
    const all = operations();
    expect(all.length).toBeGreaterThan(80);
    for (const path of new Set(all.map(({ page }) => page))) {
      const [html, markdown] = [await textOf(path), await textOf(`${path}.md`)];
      const inside = all.filter(({ page }) => page === path);
      for (const { summary, request } of inside) {
        expect(markdown).toContain(`\n## ${summary}\n\n\`${request}\``);
        expect(overview).toContain(`[${summary}](${service.url}${path}.md#`);
        expect(html).toContain(`>${summary.replaceAll("'", '&#39;')}</a></h2>`);
      }
      expect(html.match(/ data-language="(curl|TypeScript|Python)"/g)?.length, path).toBe(inside.length * 3);
      expect(html, path).not.toContain('127.0.0.1:8080');
    }
  });

  test('says of fields which contain them, their type, their default, and whether they are required', async () => {
    const tasks = await textOf('/guide/reference-tasks.md');
    expect(tasks).toContain(
      '- `model` **required** *`sandbox/image`*\n- `input` **required** *object*\n  - `prompt` **required** *string',
    );
    expect(tasks).toMatch(/\n {2}- `width` \*integer, 16 to 2048, default `768`\* In pixels\.\n/);
    expect(tasks).toMatch(/\n- `limit` \*in query, integer, 1 to 100, default `20`\* Number of tasks\.\n/);
    expect(tasks).toContain('\n- `202` *[Task](#task)* The task, final if it finished within `wait`.\n');
    expect(tasks).toContain(`Their body is [Error](${service.url}/guide/reference.md#error).`);
    const money = await textOf('/guide/reference-money.md');
    expect(money).toContain(`[Cost](${service.url}/guide/reference-tasks.md#cost)`);
    expect(await textOf('/guide/reference-webhooks.md')).toContain('\n## Event task.succeeded\n');
  });

  test('is linked from the guides that are about it, and leads back', async () => {
    expect(await textOf('/guide/webhooks')).toContain(
      '<a href="/guide/reference-webhooks">API reference: Webhooks</a>',
    );
    expect(await textOf('/guide/reference-webhooks')).toContain('<a href="/guide/webhooks">Webhooks</a>');
  });

  test('is found by the path of a request, opens at its operation, and leads to where it can be sent', async () => {
    const { page, problems } = await open('/guide');
    await page.keyboard.press('Control+k');
    await page.getByRole('searchbox').fill('/v1/tasks/{id}/cancel');
    await page.locator('#results a', { hasText: 'Cancel a task (POST /v1/tasks/{id}/cancel)' }).click();
    await page.waitForURL(/\/guide\/reference-tasks#cancel-a-task$/);
    const heading = page.getByRole('heading', { name: 'Cancel a task' });
    await heading.waitFor();
    await expect.poll(async () => (await heading.boundingBox())?.y).toBeLessThan(300);
    expect(problems).toEqual([]);
    await page.locator('p', { hasText: '/v1/tasks/{id}/cancel' }).getByRole('link', { name: 'Try it' }).click();
    await page.getByRole('heading', { name: 'Cancel a task' }).waitFor();
    await page.context().close();
  });

  test('shows its examples in the language that the reader chose, by the keyboard too, on every page', async () => {
    const { page, problems } = await open('/guide/reference-tasks');
    const shown = () =>
      page
        .locator('.sample:visible')
        .evaluateAll((all) => [...new Set(all.map((each) => each.getAttribute('data-language')))]);
    await expect.poll(shown).toEqual(['curl']);
    await page.getByRole('radio', { name: 'curl' }).first().focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await expect.poll(shown).toEqual(['Python']);
    await page.goto(`${service.url}/guide/reference-money#get-usage`);
    await page.getByRole('radio', { name: 'Python' }).first().waitFor();
    await expect.poll(shown).toEqual(['Python']);
    expect(problems).toEqual([]);
    await page.context().close();
  });
});

test('the build looks at every document that the guide is made of', () => {
  const contents = readFileSync(join(repository, 'web/guide/contents.mjs'), 'utf8');
  const [, table = ''] = /names_elsewhere = \{([^}]*)\}/.exec(contents) ?? [];
  const builder = readFileSync(join(repository, 'scripts/web.mjs'), 'utf8');
  const names = [...table.matchAll(/'([^']+)':/g)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(3);
  for (const name of [...names, 'openapi.json']) expect(builder).toContain(`'${name}',`);
});
