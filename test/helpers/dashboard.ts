import axe from 'axe-core';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { makeLoginLink } from '../../src/accounts/sign-in/login-links.ts';
import type { App } from '../../src/app.ts';

/** A page with the errors of its scripts and its requests to other origins. */
export type Watched = { page: Page; problems: string[] };

/** Somebody's browser, on a laptop unless told otherwise. */
export async function contextOf(browser: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(120_000);
  return context;
}

const busyAt = (url: string) => `503 without a later answer: ${url}`;

/** A page that tells what goes wrong in it. A 503 of a busy machine is no problem once the page has asked again and was answered. */
export async function watchedPage(context: BrowserContext, url: string): Promise<Watched> {
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(`script: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() !== 'error' || /status of 4\d\d/.test(message.text())) return;
    const is_busy = message.text().includes('status of 503');
    problems.push(is_busy ? busyAt(message.location().url) : message.text());
  });
  page.on('response', (response) => {
    const place = response.ok() ? problems.indexOf(busyAt(response.url())) : -1;
    if (place >= 0) problems.splice(place, 1);
  });
  page.on('request', (request) => {
    const at = request.url();
    if (!at.startsWith(url) && !/^(data|blob|about):/.test(at)) problems.push(`left the origin: ${at}`);
  });
  return { page, problems };
}

/** Signs this person in by a link as the operator hands it over, but without its page, and opens the one at `path`. */
export async function signIn(page: Page, app: App, user_id: string, path = '/'): Promise<void> {
  const statuses: number[] = [];
  while (statuses.at(-1) !== 200) {
    const answer = await page.request.post(`${app.base_url()}/auth/sign-in/link`, {
      headers: { origin: app.base_url(), 'sec-fetch-site': 'same-origin' },
      data: { token: new URL(await linkOf(app, user_id)).searchParams.get('token') },
    });
    statuses.push(answer.status());
    // The database of a busy machine answers too late now and then.
    if (!answer.ok() && (answer.status() < 500 || statuses.length === tries_max))
      throw new Error(`links of ${user_id} were answered ${statuses.join(', ')}`);
  }
  await page.goto(app.base_url() + path);
  await page.getByRole('heading', { level: 1 }).waitFor();
}

const tries_max = 5;

const linkOf = (app: App, user_id: string) => makeLoginLink(app.db, app.base_url(), user_id, new Date(app.clock.now()));

/** Signs this person in by the page of such a link. */
export async function followLink(page: Page, app: App, user_id: string): Promise<void> {
  await page.goto(await linkOf(app, user_id));
  await page.waitForURL((url) => url.pathname === '/');
  await page.getByRole('heading', { level: 1 }).waitFor();
}

type Violation = { id: string; help: string; nodes: { html: string; failureSummary?: string }[] };

/** As text: it runs in the page, which has a document and axe. */
const run_axe = `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
  .then(({ violations }) => violations)`;

/** Every page that is opened from now on has axe, whose half a megabyte is sent once and not for each of them. */
export async function bringAxe(page: Page): Promise<void> {
  await page.addInitScript(axe.source);
}

/** Looks at a page with faults: what fades, opens or is still being read is over after a second or two, what is wrong stays. */
const looks_max = 6;

/** Returns the problems that axe finds in the page, by WCAG 2.2 A and AA: a line for each kind and its first place. */
export async function violationsIn(page: Page): Promise<string[]> {
  let violations = await lookForViolations(page);
  for (let looks = 1; violations.length > 0 && looks < looks_max; looks++) {
    await page.waitForTimeout(100);
    violations = await lookForViolations(page);
  }
  return violations;
}

async function lookForViolations(page: Page): Promise<string[]> {
  const is_there: boolean = await page.evaluate(`'axe' in globalThis`);
  if (!is_there) await page.evaluate(axe.source); // a policy that allows no inline script does not hold back a debugger
  const violations: Violation[] = await page.evaluate(run_axe);
  return violations.map(({ id, help, nodes }) => {
    return `${id}: ${help} (${nodes.length}×) ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary ?? ''}`;
  });
}

const rest_ms_max = 60_000;

/** Returns the pixels by which the page could be scrolled sideways, once it has come to rest: scripts may size parts later. */
export async function sidewaysOf(page: Page): Promise<number> {
  const until_ms = Date.now() + rest_ms_max;
  for (;;) {
    const over: number = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    if (over <= 0 || Date.now() > until_ms) return over;
    await page.waitForTimeout(50);
  }
}

/** Waits until nothing says that it is still loading, in any language of the tests. */
export async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  const loading = page.locator('[role=status]:is([aria-label^=Loading], [aria-label^=Wczytywanie])');
  await loading.first().waitFor({ state: 'detached' });
}

/** Comes back to a page after two minutes: it reads again who is here. */
export async function comeBackLater(page: Page): Promise<void> {
  await page.evaluate(`{
    const now = Date.now;
    Date.now = () => now() + 120_000;
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
  }`);
}

/** Somebody's page in a browser of theirs, and what went wrong in it. */
export type Visit = Watched & { context: BrowserContext };

/** Opens the page at `path` for a person who is signed in, without movements, and waits for its content. */
export async function visit(
  browser: Browser,
  app: App,
  { user_id, path, ...options }: BrowserContextOptions & { user_id: string; path: string },
): Promise<Visit> {
  const context = await contextOf(browser, { reducedMotion: 'reduce', ...options });
  const { page, problems } = await watchedPage(context, app.base_url());
  await signIn(page, app, user_id, path);
  await settled(page);
  return { context, page, problems };
}

/** Closes it. Throws if something went wrong in it. */
export async function leave({ context, problems }: Visit): Promise<void> {
  await context.close();
  if (problems.length > 0) throw new Error(problems.join('\n'));
}
