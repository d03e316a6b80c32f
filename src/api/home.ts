import { createHash } from 'node:crypto';
import { htmlAnswer } from './openapi/docs-page.ts';
import type { Answer } from '../http/endpoint.ts';

const style = `
  :root { color-scheme: light dark }
  body { font: 17px/1.6 system-ui, sans-serif; max-width: 34rem; margin: 18vh auto 0; padding: 0 1.5rem }
  h1 { font-size: 2rem; margin: 0 }
  a { color: inherit }
`;

const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Medley</title>
    <link rel="icon" href="data:,">
    <style>${style}</style>
  </head>
  <body>
    <h1>Medley</h1>
    <p>Chat, image, video and audio models behind one API key and one account balance.</p>
    <p><a href="docs">API reference</a> · <a href="openapi.json">openapi.json</a></p>
  </body>
</html>
`;

/** The plain page at `/` where the dashboard is not built: it leads to the reference. */
export function homeAnswer(): Answer {
  return htmlAnswer(page, policy);
}
