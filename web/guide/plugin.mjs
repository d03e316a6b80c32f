// Makes the pages of /guide with the build of the dashboard: a page of HTML and one of Markdown for each document, the
// sections for the search, llms.txt and llms-full.txt. Plain JavaScript, which Vite reads.
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { addressOf, index_path, llmsFullText, llmsText, own_path, readGuide, servedMarkdown } from './contents.mjs';
import { escapeHtml, renderPage } from './markdown.mjs';

/** A plugin of Vite. `root` is the repository; the frame of every page is `guide.html`. */
export function guide(root) {
  return {
    name: 'medley-guide',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const frame = bundle['guide.html'];
        if (frame === undefined) throw new Error('guide.html is no entry of the build');
        delete bundle['guide.html'];
        const emit = (fileName, source) => this.emitFile({ type: 'asset', fileName: `guide/${fileName}`, source });
        emitGuide(root, frame.source.toString().replaceAll('"./', `"${own_path}/`), emit, (path) =>
          this.getFileName(this.emitFile({ type: 'asset', name: basename(path), source: readFileSync(path) })),
        );
      },
    },
  };
}

function emitGuide(root, frame, emit, emitAsset) {
  const pages = readGuide(root);
  const assetOf = (page, href) => `${own_path}/${emitAsset(join(root, dirname(page.path), href))}`;
  const sections = pages.flatMap((page) => {
    const rendered = renderPage(pages, page, assetOf);
    const file = page.name || 'index';
    emit(`${file}.page`, fill(frame, pages, page, rendered));
    emit(`${file}.md`, servedMarkdown(pages, page));
    const shown = { page: page.is_reference ? page.heading : page.title, name: page.name, weight: weightOf(page) };
    return rendered.sections.map((section) => ({ ...shown, ...section }));
  });
  emit('not_found.page', fill(frame, pages, not_found, { html: not_found.html, outline: [] }));
  emit('search.json', JSON.stringify(sections));
  emit('llms.txt', llmsText(pages));
  emit('llms-full.txt', llmsFullText(pages));
}

/** What browsers get at an address without a page, with status 404. No page may have its name. */
const not_found = {
  heading: 'Page not found',
  html: `<h1>Page not found</h1>
<p>The guide has no page at this address: it was moved, or the address has a mistake.</p>
<ul>
<li>Search the guide, above or with Ctrl K, for a word of the page.</li>
<li>Go to <a href="${own_path}/guide">the list of all pages</a>.</li>
<li>For an operation of the API, go to <a href="${own_path}/guide/reference">the API reference</a>.</li>
</ul>`,
};

/** The search shows guides first, then the reference, then pages that few readers look for. */
function weightOf({ section, is_reference }) {
  if (is_reference) return 0.6;
  return section === '' || section === 'Know it' ? 0.3 : 1;
}

/** Puts a page into the frame; a function for each value, since `$&` in a text means nothing here. */
function fill(frame, pages, page, { html, outline }) {
  const markdown = page.name === undefined ? '' : `${own_path}/guide/${page.name || 'index'}.md`;
  const values = {
    '%TITLE%': page.path === index_path ? 'Guide · Medley' : `${escapeHtml(page.heading)} · Medley`,
    '%NAVIGATION%': navigation(pages, page),
    '%OUTLINE%': outlineOf(outline),
    '%CONTENT%': html,
    '%MARKDOWN%': markdown && `<p><a href="${markdown}">This page as Markdown</a></p>`,
    '%AROUND%': around(pages, page),
  };
  return Object.entries(values).reduce((text, [name, value]) => text.replace(name, () => value), frame);
}

function navigation(pages, current) {
  const sections = [...new Set(pages.map(({ section }) => section))].filter(Boolean);
  const link = (page) =>
    `<li><a href="${addressOf(page)}"${page === current ? ' aria-current="page"' : ''}>${escapeHtml(page.title)}</a></li>`;
  return sections
    .map((section) => {
      const links = pages.filter((page) => page.section === section).map(link);
      return `<h2 id="${idOf(section)}">${escapeHtml(section)}</h2><ul aria-labelledby="${idOf(section)}">${links.join('')}</ul>`;
    })
    .join('');
}

/** Several sections have pages of the same title: a list says which one it is. */
const idOf = (section) => `section-${section.toLowerCase().replaceAll(' ', '-')}`;

function outlineOf(outline) {
  if (outline.length < 2) return '';
  const links = outline.map(
    ({ id, text, depth }) => `<li class="depth-${depth}"><a href="#${id}">${escapeHtml(text)}</a></li>`,
  );
  return `<nav class="outline" aria-label="On this page"><h2>On this page</h2><ul>${links.join('')}</ul></nav>`;
}

function around(pages, page) {
  const listed = pages.filter(({ section }, position) => position === 0 || section !== '');
  const place = listed.indexOf(page);
  const link = (other, rel, word) =>
    other === undefined
      ? '<span></span>'
      : `<a rel="${rel}" href="${addressOf(other)}"><small>${word}</small> ${escapeHtml(other.title)}</a>`;
  if (place === -1) return '';
  return link(listed[place - 1], 'prev', 'Previous') + link(listed[place + 1], 'next', 'Next');
}
