import { gzip } from 'node:zlib';
import { promisify } from 'node:util';
import { page_headers } from '../../http/browser-headers.ts';
import type { Answer, Endpoint } from '../../http/endpoint.ts';

/**
 * Content security policy of the page: its own script, its own origin. Scalar loads fonts from its makers'
 * servers, sends telemetry and offers a proxy by default; if a later version ignores our settings, the browser
 * still refuses. Its script writes its styles, so they are inline.
 */
const content_security_policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The bar above the reference, in the colours of the reference, which leaves room for it. */
const style = `
  :root { --scalar-custom-header-height: 48px }
  body { margin: 0 }
  body > header {
    position: sticky; top: 0; z-index: 100; box-sizing: border-box; height: 48px; padding: 0 1.5rem;
    display: flex; align-items: center; justify-content: space-between; font: 15px system-ui, sans-serif;
    color: var(--scalar-color-1); background: var(--scalar-background-1);
    border-bottom: 1px solid var(--scalar-border-color)
  }
  body > header a { color: inherit; margin-left: 1.25rem }
`;

/** Its files are named from where it stands: the service may be below a path of its host. */
const pageAt = ({ root, docs }: { root: string; docs: string }) => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Medley API</title>
    <link rel="icon" href="data:,">
    <style>${style}</style>
  </head>
  <body>
    <header>
      <strong>Medley</strong>
      <nav aria-label="Service"><a href="${root}guide">Guide</a><a href="${root}guide/reference">Reference</a><a href="${root}.">Dashboard</a></nav>
    </header>
    <div id="reference"></div>
    <noscript>This page needs JavaScript. The same in one file: <a href="${root}openapi.json">/openapi.json</a></noscript>
    <script src="${docs}scalar.js"></script>
    <script src="${docs}start.js"></script>
  </body>
</html>
`;

/** Options of @scalar/api-reference; everything that leads out of this server is off. */
const options = {
  telemetry: false,
  withDefaultFonts: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  persistAuth: false,
  documentDownloadType: 'direct',
  modelsSectionLabel: 'Schemas',
  hiddenClients: true, // the document has samples of its own
  authentication: { preferredSecurityScheme: 'bearer' },
};

/** Requests made from the page go to where the page came from: `connect-src` lets them go nowhere else. */
const start = `const options = ${JSON.stringify(options)};
const own = location.origin + location.pathname.replace(/\\/docs\\/?$/, '');
Scalar.createApiReference('#reference', { ...options, url: own + '/openapi.json', servers: [{ url: own }] });
`;

const hidden = {
  tag: 'Service',
  summary: 'API reference',
  responses: { 200: { description: 'ok' } },
  hidden: true,
} as const;

/** /docs: the API reference as a page. Its script is loaded with the first visitor. */
export function docsEndpoints<App>(): Endpoint<App>[] {
  const get = (path: string, answer: () => Promise<Answer> | Answer): Endpoint<App> => ({
    method: 'GET',
    path,
    public: true,
    lenient_query: true,
    docs: hidden,
    handle: answer,
  });
  return [
    get('/docs', () => htmlAnswer(pageAt({ root: '', docs: 'docs/' }), content_security_policy)),
    get('/docs/', () => htmlAnswer(pageAt({ root: '../', docs: '' }), content_security_policy)),
    get('/docs/start.js', () => ({ status: 200, body: start, headers: scriptHeaders })),
    get('/docs/scalar.js', async () => ({
      status: 200,
      body: await (scalar_gzipped ??= loadScalar()),
      headers: { ...scriptHeaders, 'content-encoding': 'gzip' },
    })),
  ];
}

const scriptHeaders = { 'content-type': 'text/javascript; charset=utf-8', 'cache-control': 'public, max-age=3600' };

/** A page of ours: it loads nothing that `policy` does not name. */
export function htmlAnswer(html: string, policy: string): Answer {
  return {
    status: 200,
    body: html,
    headers: {
      ...page_headers,
      'content-security-policy': policy,
      'cache-control': 'no-cache',
    },
  };
}

let scalar_gzipped: Promise<Buffer> | undefined;

/**
 * The browser bundle is a text inside of Scalar's Fastify plugin, which answers it under a path of its
 * own: ask a throw-away Fastify for it. 4.4 MB, 1.3 MB when compressed; every browser since 2000 takes
 * gzip, so only that is kept.
 */
async function loadScalar(): Promise<Buffer> {
  const [{ fastify }, { default: scalar }] = await Promise.all([
    import('fastify'),
    import('@scalar/fastify-api-reference'),
  ]);
  const server = fastify({ logger: false });
  await server.register(scalar, { routePrefix: '/docs', configuration: { url: '/openapi.json' } });
  const answer = await server.inject('/docs/js/scalar.js');
  await server.close();
  if (answer.statusCode !== 200) throw new Error(`Scalar's plugin answered ${answer.statusCode} for its script`);
  return promisify(gzip)(answer.rawPayload);
}
