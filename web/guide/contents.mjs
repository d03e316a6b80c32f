// Pages of the guide, in the order of its index, with their Markdown. Plain JavaScript, which Vite reads.
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { reference_section, referencePages, seeReference } from './reference.mjs';

/** Where the examples of the documentation expect the service. */
const example_address = 'http://127.0.0.1:8080';

/** The service puts these in the place of what it knows when it answers. */
export const own_path = '%PATH%';
const own_address = '%BASE_URL%';

/** Pages that are not in docs/, by their paths in the repository. */
const names_elsewhere = {
  'medley.example.yaml': 'settings',
  'CHANGELOG.md': 'changelog',
  'SECURITY.md': 'security-policy',
  'deploy/README.md': 'run-it-for-others',
  'clients/typescript/README.md': 'typescript-client',
  'clients/python/README.md': 'python-client',
  'clients/ai-sdk/README.md': 'ai-sdk',
};

/** Sections for callers of a service: their examples call the address at which they are read. */
const sections_of_callers = new Set(['Begin', 'Use it', reference_section]);

/** Pages of operators show the usual address where they start a service, and the reader's where they call it. */
function withOwnAddress({ path, section }, text) {
  const is_for_callers = sections_of_callers.has(section) || path.startsWith('clients/');
  const replaced = is_for_callers ? example_address : `${example_address}/v1/`;
  return text.replaceAll(replaced, replaced.replace(example_address, own_address));
}

export const index_path = 'docs/README.md';

/** The API reference is made of this document. */
const api_document = 'openapi.json';

/** The section that it follows. */
const section_before = 'Use it';

/** Files that pages are made of, as paths in the repository. */
const sourcesElsewhere = Object.keys(names_elsewhere);

/** The name that a file has below /guide; '' is the index; undefined if it is no page. */
function nameOf(path) {
  if (path === index_path) return '';
  return names_elsewhere[path] ?? /^docs\/([\w-]+)\.md$/.exec(path)?.[1];
}

/**
 * Reads the index and every page that it or another page links. Each page: `path`, `name`, `title`, `about` (its line in
 * the index), `section`, `markdown`, with the reader's address in the examples of callers. Those of no section come last.
 */
export function readGuide(root) {
  const read = (path) => readFileSync(join(root, path), 'utf8');
  const listed = [];
  let section = '';
  for (const line of read(index_path).split('\n')) {
    section = /^## (.+)$/.exec(line)?.[1] ?? section;
    const [, title, target, about = ''] = /^- \[([^\]]+)\]\(([^)]+)\)[:.]? ?(.*)$/.exec(line) ?? [];
    const path = target && normalize(join(dirname(index_path), target));
    if (path && nameOf(path)) listed.push({ path, title, section, about });
  }
  const document = JSON.parse(read(api_document));
  const titleOf = (name) => listed.find(({ path }) => nameOf(path) === name).title;
  const reference = referencePages(document, `${own_address}/docs`, titleOf);
  const place = listed.findLastIndex((page) => page.section === section_before) + 1;
  const others = sourcesElsewhere.filter((path) => listed.every((page) => page.path !== path));
  const pages = [
    ...listed.toSpliced(place, 0, ...reference),
    ...others.map((path) => ({ path, section: '', about: '' })),
  ];
  return [{ path: index_path, title: 'Guide', section: '', about: '' }, ...pages].map((page) => {
    const name = nameOf(page.path);
    const text = page.markdown ?? markdownOf(page.path, read(page.path)) + seeReference(document, name);
    const markdown = withOwnAddress(page, text);
    const heading = /^# (.+)$/m.exec(markdown)?.[1] ?? page.path;
    return { ...page, name, title: page.title ?? heading, heading, markdown };
  });
}

/** A page of settings is one block of YAML below a heading. */
function markdownOf(path, text) {
  return path.endsWith('.yaml') ? `# Every setting\n\n\`\`\`yaml\n${text.trimEnd()}\n\`\`\`\n` : text;
}

/**
 * Returns how readers see a comment before a code block: the name of the file, that a command prints it, or the language
 * of one of several samples of a request; else ''.
 */
export function labelOf(comment) {
  if (comment === 'output') return { text: 'Output' };
  const [, language] = /^sample (\S+)$/.exec(comment) ?? [];
  if (language !== undefined) return { text: language, is_sample: true };
  const [, file] = /^file (\S+)$/.exec(comment) ?? [];
  return file === undefined ? '' : { text: 'Save as', file };
}

/** Address of a link in the page at `from`: undefined if it leads to a file that is no page. */
export function resolveLink(pages, from, href) {
  if (/^(?:[a-z]+:|#)/i.test(href) || href.startsWith(own_address)) return { address: href };
  const [target, fragment] = href.split('#', 2);
  const path = normalize(join(dirname(from), target));
  const hash = fragment === undefined ? '' : `#${fragment}`;
  if (path === api_document) return { address: `${own_path}/openapi.json` };
  const page = pages.find((each) => each.path === path);
  return page && { address: addressOf(page) + hash, page, hash };
}

export function addressOf({ name }) {
  return name === '' ? `${own_path}/guide` : `${own_path}/guide/${name}`;
}

/** Markdown of a page as it is served: links lead to pages of this service, or are text. */
export function servedMarkdown(pages, { path, markdown }) {
  const parts = markdown.split(/(^```[^]*?^```$)/m);
  return parts.map((part, index) => (index % 2 === 1 ? part : rewriteLinks(pages, path, part))).join('');
}

function rewriteLinks(pages, path, text) {
  const plain = text
    .replaceAll(/^<!-- (.*?) -->\n/gm, (_whole, comment) => {
      const label = labelOf(comment);
      return label && `${label.text}${label.file ? ` \`${label.file}\`` : ''}:\n\n`;
    })
    .replaceAll(/^<img .*>\n/gm, '');
  return plain.replaceAll(/\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (whole, label, href) => {
    const link = resolveLink(pages, path, href);
    if (link === undefined) return label;
    if (link.page === undefined) return link.address === href ? whole : `[${label}](${withHost(link.address)})`;
    return `[${label}](${own_address}/guide/${link.page.name || 'index'}.md${link.hash})`;
  });
}

const withHost = (address) => address.replace(own_path, own_address);

/** The list of pages for language models, in the form of llmstxt.org. */
export function llmsText(pages) {
  const sections = [...new Set(pages.map(({ section }) => section))].filter(Boolean);
  const line = ({ name, title, about }) => `- [${title}](${own_address}/guide/${name}.md)${about && `: ${about}`}`;
  const lists = sections.map((section) => {
    const inside = pages.filter((page) => page.section === section).map((page) => servedAbout(pages, page));
    return `## ${section === 'Know it' ? 'Optional' : section}\n\n${inside.map(line).join('\n')}\n`;
  });
  return `# Medley

> A self-hosted gateway: chat, image, video and audio models behind one API key and one account balance.

This service is at ${own_address}. Send \`Authorization: Bearer <API_KEY>\` with every request below \`/v1\`. SDKs of OpenAI have the base URL ${own_address}/v1, those of Anthropic and Google ${own_address}. The models are at ${own_address}/v1/models.

- [OpenAPI document](${own_address}/openapi.json): every operation with its parameters, answers, and examples in curl, TypeScript and Python
- [All guides but the optional ones in one file](${own_address}/llms-full.txt)

${lists.join('\n')}`;
}

const servedAbout = (pages, page) => ({ ...page, about: rewriteLinks(pages, index_path, page.about) });

/** Every guide but the optional ones, one after the other. The reference is nearly as long as all of them. */
export function llmsFullText(pages) {
  const shown = pages.filter(({ section }) => !['', 'Know it', reference_section].includes(section));
  return shown.map((page) => servedMarkdown(pages, page).trimEnd()).join('\n\n---\n\n') + '\n';
}
