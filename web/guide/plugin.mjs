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
  const sections = pages.flatMap((page, index) => {
    const rendered = renderPage(pages, page, assetOf);
    const file = page.name || 'index';
    emit(`${file}.page`, fill(frame, pages, index, rendered));
    emit(`${file}.md`, servedMarkdown(pages, page));
    return rendered.sections.map(({ id, title, text }) => ({
      page: page.title,
      name: page.name,
      is_background: isBackground(page),
      id,
      title,
      text,
    }));
  });
  emit('search.json', JSON.stringify(sections));
  emit('llms.txt', llmsText(pages));
  emit('llms-full.txt', llmsFullText(pages));
}

/** Pages that few readers look for: the search shows others first. */
const isBackground = ({ section }) => section === '' || section === 'Know it';

/** Puts a page into the frame; a function for each value, since `$&` in a text means nothing here. */
function fill(frame, pages, index, { html, outline }) {
  const page = pages[index];
  const values = {
    '%TITLE%': page.path === index_path ? 'Guide · Medley' : `${escapeHtml(page.heading)} · Medley`,
    '%NAVIGATION%': navigation(pages, page),
    '%OUTLINE%': outlineOf(outline),
    '%CONTENT%': html,
    '%MARKDOWN%': `${own_path}/guide/${page.name || 'index'}.md`,
    '%AROUND%': around(pages, index),
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
      return `<h2>${escapeHtml(section)}</h2><ul>${links.join('')}</ul>`;
    })
    .join('');
}

function outlineOf(outline) {
  if (outline.length < 2) return '';
  const links = outline.map(
    ({ id, text, depth }) => `<li class="depth-${depth}"><a href="#${id}">${escapeHtml(text)}</a></li>`,
  );
  return `<nav class="outline" aria-label="On this page"><h2>On this page</h2><ul>${links.join('')}</ul></nav>`;
}

function around(pages, index) {
  const listed = pages.filter((page, position) => position === 0 || page.section !== '');
  const place = listed.indexOf(pages[index]);
  const link = (page, rel, word) =>
    page === undefined
      ? '<span></span>'
      : `<a rel="${rel}" href="${addressOf(page)}"><small>${word}</small> ${escapeHtml(page.title)}</a>`;
  if (place === -1) return '';
  return link(listed[place - 1], 'prev', 'Previous') + link(listed[place + 1], 'next', 'Next');
}
