import { Marked, type Token } from 'marked';
import { formulas } from './formulas.ts';
import { isInlineImage, safeLink } from './links.ts';
import type { Align, Block, Inline, ListItem } from './tree.ts';

const marked = new Marked({ gfm: true, extensions: formulas });

/** Deeper ones are no text of a person: their source is shown. */
const depth_max = 12;

/** A block with more than this between two empty lines is not read but shown: some of its forms take very long. */
const block_max = 20_000;

/** Returns the blocks of a text in Markdown. HTML in it is text. */
export function readMarkdown(text: string): Block[] {
  return tokensOf(text).flatMap((token) => blockOf(token, 0));
}

/** Returns the blocks as the text grew: those that are whole, and the rest from `rest_at`, in which anything may change. */
export type Growing = { text: string; blocks: readonly Block[]; rest_at: number; rest: Block[] };

export const nothing_read: Growing = { text: '', blocks: [], rest_at: 0, rest: [] };

/** Reads only what came since `before`, so that an answer costs what its length is, and not the square of it. */
export function readOn(before: Growing, text: string): Growing {
  const { blocks, rest_at } = text.startsWith(before.text) ? before : nothing_read;
  const tokens = tokensOf(text.slice(rest_at));
  const last = tokens.findLastIndex(({ type }) => type !== 'space');
  const whole = tokens.slice(0, Math.max(0, last));
  const settled = whole.flatMap((token) => blockOf(token, 0));
  return {
    text,
    blocks: settled.length > 0 ? [...blocks, ...settled] : blocks,
    rest_at: rest_at + whole.reduce((sum, { raw }) => sum + raw.length, 0),
    rest: tokens.slice(whole.length).flatMap((token) => blockOf(token, 0)),
  };
}

function tokensOf(text: string): Token[] {
  if (!hasLongBlock(text)) {
    try {
      return marked.lexer(text);
    } catch {
      // Nested too deeply for its stack.
    }
  }
  return [{ type: 'text', raw: text, text }];
}

/** Tells whether a block is too long to draw; program code may be as long as it likes. */
function hasLongBlock(text: string): boolean {
  if (text.length <= block_max) return false;
  const outside = text.replaceAll(/^ {0,3}(`{3,}|~{3,})[^\n]*\n[^]*?(?:^ {0,3}\1[`~]*[ \t]*$|$(?![^]))/gm, '');
  return outside.split(/\n[ \t]*\n/).some((part) => part.length > block_max);
}

function blockOf(token: Token, depth: number): Block[] {
  if (depth > depth_max) return [plain(token.raw)];
  switch (token.type) {
    case 'space':
    case 'def':
      return [];
    case 'heading':
      return [{ kind: 'heading', level: token['depth'], parts: inlineIn(token, depth) }];
    case 'code':
      return [{ kind: 'code', text: token['text'], language: languageOf(token['lang']) }];
    case 'block_formula':
      return [{ kind: 'formula', tex: token['tex'] }];
    case 'blockquote':
      return [{ kind: 'quote', blocks: blocksIn(token, depth) }];
    case 'list':
      return [{ kind: 'list', start: startOf(token), items: itemsOf(token, depth) }];
    case 'table':
      return [tableOf(token, depth)];
    case 'hr':
      return [{ kind: 'rule' }];
    case 'paragraph':
    case 'text':
      return [token.tokens ? { kind: 'paragraph', parts: inlineIn(token, depth) } : plain(token.raw)];
    default:
      return [plain(token.raw)];
  }
}

/** As it is written, line by line. */
function plain(raw: string): Block {
  const parts = raw
    .trimEnd()
    .split('\n')
    .flatMap((text, index): Inline[] => [...(index > 0 ? [{ kind: 'break' } as const] : []), { kind: 'text', text }]);
  return { kind: 'paragraph', parts };
}

function languageOf(lang: unknown): string {
  return typeof lang === 'string' ? (/^[\w+#.-]{1,30}/.exec(lang)?.[0] ?? '') : '';
}

function startOf(token: Token): number | undefined {
  if (!('ordered' in token) || token.ordered !== true) return undefined;
  return typeof token.start === 'number' ? token.start : 1;
}

function itemsOf(token: Token, depth: number): ListItem[] {
  const items: Token[] = 'items' in token && Array.isArray(token.items) ? token.items : [];
  return items.map((item) => ({
    checked: 'checked' in item && typeof item.checked === 'boolean' ? item.checked : undefined,
    blocks: blocksIn(item, depth),
  }));
}

function blocksIn(token: Token, depth: number): Block[] {
  return partsOf(token)
    .filter(({ type }) => type !== 'checkbox')
    .flatMap((part) => blockOf(part, depth + 1));
}

function partsOf(token: Token): Token[] {
  return 'tokens' in token && Array.isArray(token.tokens) ? token.tokens : [];
}

type Cell = { tokens: Token[] };

function tableOf(token: Token, depth: number): Block {
  const header: Cell[] = 'header' in token ? token.header : [];
  const rows: Cell[][] = 'rows' in token ? token.rows : [];
  const align: (Align | null)[] = 'align' in token ? token.align : [];
  const cellOf = ({ tokens }: Cell) => inlineOf(tokens, depth + 1);
  return {
    kind: 'table',
    align: align.map((each) => each ?? undefined),
    header: header.map(cellOf),
    rows: rows.map((row) => row.map(cellOf)),
  };
}

function inlineIn(token: Token, depth: number): Inline[] {
  return inlineOf(partsOf(token), depth + 1);
}

function inlineOf(tokens: readonly Token[], depth: number): Inline[] {
  return tokens.flatMap((token) => partOf(token, depth));
}

function partOf(token: Token, depth: number): Inline[] {
  if (depth > depth_max) return [{ kind: 'text', text: token.raw }];
  switch (token.type) {
    case 'strong':
      return [{ kind: 'strong', parts: inlineIn(token, depth) }];
    case 'em':
      return [{ kind: 'emphasis', parts: inlineIn(token, depth) }];
    case 'del':
      return [{ kind: 'deleted', parts: inlineIn(token, depth) }];
    case 'codespan':
      return [{ kind: 'code', text: token['text'] }];
    case 'br':
      return [{ kind: 'break' }];
    case 'inline_formula':
      return [{ kind: 'formula', tex: token['tex'], is_block: token['is_block'] === true }];
    case 'link':
      return linkOf(token['href'], inlineIn(token, depth), token.raw);
    case 'image':
      return imageOf(token['href'], token['text']);
    case 'html':
      return /^<br\s*\/?>$/i.test(token.raw) ? [{ kind: 'break' }] : [{ kind: 'text', text: token.raw }];
    case 'escape':
      return [{ kind: 'text', text: token['text'] }];
    case 'text':
      return token.tokens ? inlineIn(token, depth) : [{ kind: 'text', text: withSigns(token.raw) }];
    default:
      return [{ kind: 'text', text: token.raw }];
  }
}

/** A link that leads nowhere good is its source: one sees what the model wrote. */
function linkOf(href: string, parts: Inline[], raw: string): Inline[] {
  const safe = safeLink(href);
  return safe === undefined ? [{ kind: 'text', text: raw }] : [{ kind: 'link', href: safe, parts }];
}

/** Images elsewhere are links: to load one would say who reads this, and may carry away what was said. */
function imageOf(src: string, text: string): Inline[] {
  if (isInlineImage(src)) return [{ kind: 'image', src, text }];
  const name: Inline = { kind: 'text', text: `Image: ${text === '' ? src : text}` };
  const href = safeLink(src);
  return href === undefined ? [name] : [{ kind: 'link', href, parts: [name] }];
}

const signs: Record<string, string> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  copy: '©',
  reg: '®',
  deg: '°',
  times: '×',
  ndash: '–',
  mdash: '—',
  hellip: '…',
  larr: '←',
  rarr: '→',
  euro: '€',
};

/** Names of signs, such as `&lt;`, as those signs; they are text then, as everything is. */
function withSigns(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,6}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return signs[String(name)] ?? whole;
    const code = hex === undefined ? Number(decimal) : Number.parseInt(String(hex), 16);
    return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : whole;
  });
}
