// Reads the text of a message: words, values, elements, and words that follow a number.

/**
 * Returns the parts of a message: `{0}` is a value, `<0/>` or `<0>…</0>` an element, and `{0|key|keys}` the one of these words that goes
 * with the value, in the order of the forms of the language.
 */
export function partsOf(text) {
  const { parts, rest } = read(text, undefined);
  if (rest !== '') throw new Error(`an element is closed that is not open: ${text}`);
  return parts;
}

const mark = /\{(\d+)((?:\|[^|{}]*)*)\}|<(\d+)(\/?)>|<\/(\d+)>/;

function read(text, open) {
  const parts = [];
  let rest = text;
  while (rest !== '') {
    const match = mark.exec(rest);
    if (match === null) {
      parts.push({ kind: 'text', text: rest });
      rest = '';
      break;
    }
    if (match.index > 0) parts.push({ kind: 'text', text: rest.slice(0, match.index) });
    const [whole, value, forms, element, is_empty, closed] = match;
    const after = rest.slice(match.index + whole.length);
    if (closed !== undefined) {
      if (closed !== open) throw new Error(`</${closed}> closes nothing: ${text}`);
      return { parts, rest: after };
    }
    if (value !== undefined) {
      parts.push(
        forms === ''
          ? { kind: 'value', index: Number(value) }
          : { kind: 'form', index: Number(value), forms: forms.slice(1).split('|') },
      );
      rest = after;
    } else if (is_empty === '/') {
      parts.push({ kind: 'element', index: Number(element), inner: undefined });
      rest = after;
    } else {
      const inner = read(after, element);
      parts.push({ kind: 'element', index: Number(element), inner: inner.parts });
      rest = inner.rest;
    }
  }
  if (open !== undefined) throw new Error(`<${open}> is not closed: ${text}`);
  return { parts, rest };
}
