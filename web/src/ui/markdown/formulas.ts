import type { TokenizerExtension, Tokens } from 'marked';

/** Formulas in TeX as models write them: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`. */

/** A dollar sign before a number may be a price: a formula has no space inside its signs and no digit after them. */
const inline_forms = [
  { match: /^\$\$(?!\s)((?:\\[^]|[^$\\]){1,2000}?)\$\$/, is_block: true },
  { match: /^\$(?![\s$])((?:\\[^]|[^$\\\n]){0,500}?[^\s$\\])\$(?![\d$])/, is_block: false },
  { match: /^\\\((?=\s*\S)((?:(?!\\\))[^]){1,2000}?)\\\)/, is_block: false },
  { match: /^\\\[(?=\s*\S)((?:(?!\\\])[^]){1,2000}?)\\\]/, is_block: true },
];

const block_forms = [
  /^ {0,3}\$\$(?=\s*\S)((?:\\[^]|[^$\\]){1,5000}?)\$\$[ \t]*(?:\n|$)/,
  /^ {0,3}\\\[(?=\s*\S)((?:(?!\\\])[^]){1,5000}?)\\\][ \t]*(?:\n|$)/,
];

const inline: TokenizerExtension = {
  name: 'inline_formula',
  level: 'inline',
  start: (text) => {
    const at = text.search(/\$|\\[([]/);
    return at === -1 ? undefined : at;
  },
  tokenizer(text): Tokens.Generic | undefined {
    for (const { match, is_block } of inline_forms) {
      const [raw, tex = ''] = match.exec(text) ?? [];
      if (raw !== undefined && !isPrice(tex)) return { type: 'inline_formula', raw, tex: tex.trim(), is_block };
    }
    return undefined;
  },
};

/** `$5, or 10$`: words between two prices, with nothing of a formula. */
function isPrice(tex: string): boolean {
  return /^\d[^\\^_=+*/<>{}]*\s/.test(tex) && !/[\\^_=+*/<>{}]/.test(tex);
}

const block: TokenizerExtension = {
  name: 'block_formula',
  level: 'block',
  start: (text) => {
    const at = text.search(/\n {0,3}(?:\$\$|\\\[)/);
    return at === -1 ? undefined : at + 1;
  },
  tokenizer(text): Tokens.Generic | undefined {
    for (const match of block_forms) {
      const [raw, tex = ''] = match.exec(text) ?? [];
      if (raw !== undefined) return { type: 'block_formula', raw, tex: tex.trim() };
    }
    return undefined;
  },
};

export const formulas: TokenizerExtension[] = [inline, block];
