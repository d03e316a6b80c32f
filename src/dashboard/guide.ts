import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { ApiError } from '../errors.ts';
import { page_headers } from '../http/browser-headers.ts';
import type { Answer, Endpoint, PublicCall } from '../http/endpoint.ts';
import { ownPath, takesGzip } from './own-path.ts';

/** The parts of the app that serving the guide takes. */
type Parts = { base_url(): string };

/** The pages that the build of the dashboard makes of docs/: `NAME.page` is HTML, `NAME.md` the same as Markdown. */
const folder = new URL('../../web/dist/guide/', import.meta.url);

const docs = {
  tag: 'Dashboard',
  summary: 'The guide',
  hidden: true,
  responses: { 200: { description: 'ok' } },
} as const;

/** `/guide`, its pages, their Markdown, and the two files for language models. */
export function guideEndpoints(): Endpoint<Parts>[] {
  const get = (path: string, fileOf: (call: PublicCall) => string | undefined): Endpoint<Parts> => ({
    method: 'GET',
    path,
    public: true,
    lenient_query: true,
    docs,
    handle: (app, call) => serve(app, call, fileOf(call)),
  });
  return [
    get('/guide', () => 'index.page'),
    get('/guide/', () => 'index.page'),
    get('/guide/{+name}', ({ params }) => fileNamed(params['name'] ?? '')),
    get('/llms.txt', () => 'llms.txt'),
    get('/llms-full.txt', () => 'llms-full.txt'),
  ];
}

/** Returns undefined for what is no name of a page: nothing else reaches the disk. */
function fileNamed(name: string): string | undefined {
  if (name === 'search.json') return name;
  const [, page, suffix] = /^([a-z0-9-]{1,60})(\.md)?$/.exec(name) ?? [];
  return page && page + (suffix ?? '.page');
}

/** Scripts and styles of its own, and images of this service; nothing is sent anywhere. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const page_own = { ...page_headers, 'content-security-policy': policy };

const headers_of: Record<string, Record<string, string>> = {
  page: page_own,
  md: { 'content-type': 'text/markdown; charset=utf-8' },
  txt: { 'content-type': 'text/plain; charset=utf-8' },
  json: { 'content-type': 'application/json' },
};

type Written = { base_url: string; plain: Buffer; gzipped: Buffer };

/** Files as they are served at this address: as many as the build has made, 3 MB. */
const written = new Map<string, Written>();

async function serve(app: Parts, { path, headers }: PublicCall, file: string | undefined): Promise<Answer> {
  const ready = file === undefined ? undefined : await fileFor(app, file);
  if (file !== undefined && ready !== undefined) return answerOf(200, file, ready, headers);
  const page = isBrowser(headers) ? await fileFor(app, not_found_page) : undefined;
  if (page !== undefined) return answerOf(404, not_found_page, page, headers);
  throw new ApiError('not_found', `There is nothing at GET ${path}. /llms.txt lists the pages of the guide.`);
}

/** For people; programs get the error of the service. */
const not_found_page = 'not_found.page';

const isBrowser = ({ accept }: PublicCall['headers']) => /\btext\/html\b/.test(accept ?? '');

function answerOf(status: number, file: string, ready: Written, headers: PublicCall['headers']): Answer {
  const own = {
    ...headers_of[file.slice(file.lastIndexOf('.') + 1)],
    'cache-control': 'no-cache',
    vary: status === 404 ? 'accept, accept-encoding' : 'accept-encoding',
  };
  if (!takesGzip(headers['accept-encoding'])) return { status, body: ready.plain, headers: own };
  return { status, body: ready.gzipped, headers: { ...own, 'content-encoding': 'gzip' } };
}

async function fileFor(app: Parts, file: string): Promise<Written | undefined> {
  const base_url = app.base_url();
  const cached = written.get(file);
  if (cached?.base_url === base_url) return cached;
  const ready = await write(app, file, base_url);
  if (ready !== undefined) written.set(file, ready); // a name without a page must not stay here
  return ready;
}

/** Returns undefined where there is no such page, or nobody has built the guide. */
async function write(app: Parts, file: string, base_url: string): Promise<Written | undefined> {
  const text = await readFile(fileURLToPath(new URL(file, folder)), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const address = base_url.replace(/\/+$/, '');
  const shown = file.endsWith('.page') ? address.replaceAll('&', '&amp;') : address;
  const plain = Buffer.from(
    text.replaceAll('%PATH%', () => ownPath(app)).replaceAll('%BASE_URL%', () => shown),
    'utf8',
  );
  return { base_url, plain, gzipped: await promisify(gzip)(plain) };
}
