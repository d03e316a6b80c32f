// Markdown of the documentation → HTML, an outline, and sections for the search. Plain JavaScript, which Vite reads.
import highlight from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import nginx from 'highlight.js/lib/languages/nginx';
import python from 'highlight.js/lib/languages/python';
import typescript from 'highlight.js/lib/languages/typescript';
import yaml from 'highlight.js/lib/languages/yaml';
import { Marked } from 'marked';
import { labelOf, resolveLink } from './contents.mjs';
import { headingId } from './heading-id.mjs';

const languages = { sh: bash, bash, js: javascript, ts: typescript, json, nginx, python, yaml };
for (const [name, language] of Object.entries(languages)) highlight.registerLanguage(name, language);

export const escapeHtml = (text) =>
  text.replaceAll(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]);

/**
 * Renders a page. `assetOf` returns the address of an image beside it. Returns `html`, `outline` (`id`, `text`, `depth`
 * 2 or 3) and `sections` (`id`, `title`, `text`). On a page of the reference each operation is one section.
 */
export function renderPage(pages, page, assetOf) {
  const outline = [];
  const ids = new Map();
  const sections = [{ id: '', title: page.heading, text: [] }];
  const depth_max = page.is_reference ? 2 : 6;
  const marked = new Marked({ gfm: true, renderer: rendererOf(pages, page, { outline, ids, assetOf }) });
  const tokens = marked.lexer(page.markdown);
  const section_ids = new Map();
  let comment = '';
  for (const token of tokens) {
    if (token.type === 'code') token.label = labelOf(comment);
    comment = token.type === 'html' ? (/^<!-- (.*?) -->\s*$/.exec(token.raw)?.[1] ?? '') : '';
    if (token.type === 'heading') {
      const title = plainText(token.tokens);
      const id = headingId(title, section_ids);
      if (token.depth > 1 && token.depth <= depth_max) sections.push({ id, title: searchTitle(page, title), text: [] });
    } else if (token.type !== 'html') sections.at(-1).text.push(searchable(page, token));
  }
  const html = marked
    .parser(tokens)
    .replaceAll('<table>', '<div class="table" tabindex="0"><table>')
    .replaceAll(/<td[^>]*>[^]*?<\/td>/g, breakable)
    .replaceAll('</table>', '</table></div>')
    .replaceAll(/<th([^>]*)><\/th>/g, '<td$1></td>') // an empty corner is no heading
    .replaceAll(/(?:<figure class="example sample"[^]*?<\/figure>\s*)+/g, '<div class="samples">$&</div>\n');
  const texts = sections.map((each) => ({ ...each, text: each.text.join(' ').replaceAll(/\s+/g, ' ').trim() }));
  return { html: page.is_reference ? `<div class="reference">${html}</div>` : html, outline, sections: texts };
}

function rendererOf(pages, page, { outline, ids, assetOf }) {
  return {
    heading({ tokens, depth }) {
      const text = plainText(tokens);
      const id = headingId(text, ids);
      const inner = this.parser.parseInline(tokens);
      if (page.is_reference && depth === 2) {
        outline.push({ id, text, depth });
        return `<h2 id="${id}"><a href="#${id}">${inner}</a></h2>\n`;
      }
      if (!page.is_reference && (depth === 2 || depth === 3)) outline.push({ id, text, depth });
      return `<h${depth} id="${id}">${inner}</h${depth}>\n`;
    },
    codespan: ({ text }) => requestHtml(page, text) ?? `<code>${escapeHtml(text)}</code>`,
    code({ text, lang = '', label }) {
      const language = lang.split(/\s/)[0];
      const code = language in languages ? highlight.highlight(text, { language }).value : escapeHtml(text);
      const sample = label?.is_sample ? ` sample" data-language="${label.text}` : '';
      return `<figure class="example${sample}">${captionOf(label)}<pre tabindex="0"><code>${code}\n</code></pre></figure>\n`;
    },
    link({ href, tokens }) {
      const inner = this.parser.parseInline(tokens);
      const link = resolveLink(pages, page.path, href);
      return link === undefined ? inner : `<a href="${escapeHtml(link.address)}">${inner}</a>`;
    },
    image: ({ href, text }) => `<img src="${assetOf(page, href)}" alt="${escapeHtml(text)}" loading="lazy">`,
    html({ text }) {
      const shown = text.replaceAll(/<!--[^]*?-->/g, '');
      return shown.replaceAll(
        /(<img [^>]*?src=")([^"]+)"/g,
        (_whole, start, href) => `${start}${assetOf(page, href)}"`,
      );
    },
  };
}

function captionOf(label) {
  if (!label) return '';
  return `<figcaption>${label.text}${label.file ? ` <code>${escapeHtml(label.file)}</code>` : ''}</figcaption>`;
}

/** A method and a path, as in `GET /v1/tasks`, on a page of the reference: the method is marked. */
function requestHtml(page, text) {
  const [, method, path] = (page.is_reference && /^([A-Z]+) (\/\S+)$/.exec(text)) || [];
  if (method === undefined) return undefined;
  const shown = escapeHtml(path).replaceAll(/(?<=.)\//g, '<wbr>/');
  return `<span class="request"><span class="method ${method.toLowerCase()}">${method}</span> <code>${shown}</code></span>`;
}

/** The search names the request of an operation, too. */
function searchTitle(page, title) {
  const request = page.requests?.get(title);
  return request === undefined ? title : `${title} (${request})`;
}

function plainText(tokens) {
  return tokens.map((token) => (token.tokens ? plainText(token.tokens) : (token.text ?? token.raw))).join('');
}

/** A long path in a cell goes on in the next line, behind a slash or a colon, before the table is wider than the page. */
function breakable(cell) {
  return cell.replaceAll(/<code>[^<]*<\/code>/g, (code) =>
    code.replaceAll(/(?<=[^/:<>])[/:](?=[^/:<>\s]{6})/g, '$&<wbr>'),
  );
}

/** What the search finds of a block; long examples are found by their first lines, samples of requests by nothing. */
function searchable(page, token) {
  if (token.type === 'code') return page.is_reference ? '' : token.text.slice(0, 600);
  return token.raw.replaceAll(/\]\([^)]*\)|[`*|[\]]|-{3,}/g, ' ');
}
