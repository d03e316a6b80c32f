import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { page_headers, recording_policy } from '../http/browser-headers.ts';
import type { Answer, Endpoint, PublicCall } from '../http/endpoint.ts';
import { homeAnswer } from '../api/home.ts';
import { ApiError } from '../errors.ts';
import { chosenLanguage } from './chosen-language.ts';
import { ownPath, takesGzip } from './own-path.ts';

/** The parts of the app that serving the web app takes. */
type Parts = { base_url(): string };

/** The web app, as its build has left it; all of its pages are one, which reads its own address. */

const folder = fileURLToPath(new URL('../../web/dist/', import.meta.url));

/** First parts of addresses that are pages; everything else is no page, but 404. */
const pages = [
  'sign-in',
  'invitation',
  'reset-password',
  'confirm-email',
  'device',
  'playground',
  'models',
  'activity',
  'tasks',
  'chats',
  'usage',
  'speed',
  'status',
  'billing',
  'budgets',
  'keys',
  'webhooks',
  'settings',
  'admin',
];

const docs = {
  tag: 'Dashboard',
  summary: 'The dashboard',
  hidden: true,
  responses: { 200: { description: 'ok' } },
} as const;

/** `/`, and every address of the dashboard: the same page. */
export function webEndpoints(): Endpoint<Parts>[] {
  const page = (path: string): Endpoint<Parts> => {
    return { method: 'GET', path, public: true, lenient_query: true, docs, handle: servePage };
  };
  const file = (path: string): Endpoint<Parts> => {
    return { method: 'GET', path, public: true, lenient_query: true, docs, handle: serveFile };
  };
  return [
    page('/'),
    ...pages.flatMap((name) => [page(`/${name}`), page(`/${name}/{+rest}`)]),
    file('/assets/{name}'),
    file('/icon.svg'),
    file('/theme.js'),
  ];
}

/** No inline script, nothing from elsewhere; images and videos of tasks come from this service too. */
function policyWith(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "style-src-attr 'unsafe-inline'", // positions that React writes into the markup; no script comes by it
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

async function servePage(app: Parts, { headers }: PublicCall): Promise<Answer> {
  const html = builtPage(headers);
  if (html === undefined) return homeAnswer();
  const nonce = randomBytes(16).toString('base64url');
  const path = ownPath(app);
  return {
    status: 200,
    body: html.replace('%NONCE%', nonce).replace(own_path, () => path),
    headers: {
      ...page_headers,
      'permissions-policy': recording_policy,
      'content-security-policy': policyWith(nonce),
      'cache-control': 'no-store',
    },
  };
}

/** Places of its path in the page: for its scripts, and before each of its files, whose names begin with `./`. */
const own_path = /%PATH%|(?<=(?:src|href)=")\.(?=\/)/g;

/** The page in each of its languages, once it is built. */
let built: ReadonlyMap<string, string> | undefined;

function builtPages(): ReadonlyMap<string, string> {
  if (built) return built;
  const by_language = new Map<string, string>();
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const match = /^index(?:\.([\w-]+))?\.html$/.exec(name);
    if (match) by_language.set(match[1] ?? 'en', readFileSync(join(folder, name), 'utf8'));
  }
  if (by_language.size > 0) built = by_language;
  return by_language;
}

/** Returns the languages of the dashboard; none where nobody has built it. */
export function builtLanguages(): readonly string[] {
  return [...builtPages().keys()];
}

/** Returns undefined where nobody has built the dashboard: the API is there without it. */
function builtPage(headers: PublicCall['headers']): string | undefined {
  const by_language = builtPages();
  const { cookie, 'accept-language': accepted } = headers;
  const language = chosenLanguage({ cookie, 'accept-language': accepted }, [...by_language.keys()]);
  return by_language.get(language) ?? by_language.get('en');
}

const types: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};

/** Names of built files tell their content, so they may be kept for ever; the two others are asked for again. */
async function serveFile(_app: Parts, { path, params, headers }: PublicCall): Promise<Answer> {
  const { name } = params;
  const names =
    name === undefined
      ? [path.slice(1)]
      : (await readdir(join(folder, 'assets')).catch(() => [])).filter((each) => each === name);
  const [file] = names;
  const type = types[extname(file ?? '')];
  if (file === undefined || type === undefined) throw new ApiError('not_found', `There is nothing at GET ${path}.`);
  const bytes = await readFile(join(folder, name === undefined ? '' : 'assets', file)).catch(() => undefined);
  if (!bytes) throw new ApiError('not_found', `There is nothing at GET ${path}.`);
  const lifetime = name === undefined ? 'no-cache' : 'public, max-age=31536000, immutable';
  const own = { 'content-type': type, 'cache-control': lifetime };
  if (name === undefined || !compressed.has(extname(file))) return { status: 200, body: bytes, headers: own };
  const vary = { ...own, vary: 'accept-encoding' };
  if (!takesGzip(headers['accept-encoding'])) return { status: 200, body: bytes, headers: vary };
  return { status: 200, body: await gzipped(file, bytes), headers: { ...vary, 'content-encoding': 'gzip' } };
}

/** Scripts and styles become a third of what they were; everything else is compressed as it is. */
const compressed = new Set(['.js', '.css']);

/** Scripts and styles of the build, of all languages: their number is fixed, so they are kept. */
const gzip_cache = new Map<string, Promise<Buffer>>();

function gzipped(name: string, bytes: Buffer): Promise<Buffer> {
  const cached = gzip_cache.get(name);
  if (cached) return cached;
  const compressing = promisify(gzip)(bytes);
  gzip_cache.set(name, compressing);
  return compressing;
}
