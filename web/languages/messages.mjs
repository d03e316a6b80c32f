// Finds the messages of a file of the dashboard, and writes the file in another language. The code says them in plain English, without
// marks; what is a message follows from where a string stands (positions.mjs). Plain JavaScript, which Vite reads.
import { parseAst } from 'rolldown/parseAst';
import { cleanJsxText, hasWords, isCode, isMessage, positionOf } from './positions.mjs';
import { partsOf } from './parts.mjs';

/**
 * A message: its English, the English for several if it counts something, and the code of its placeholders.
 * @typedef {{ text: string, plural?: string, values: string[] }} Message
 */

/** Returns the messages of a file in their order. */
export function findMessages(code, file) {
  const messages = [];
  rewrite(code, file, (message) => void messages.push(message), 'en');
  return messages;
}

/** Returns the file in another language; undefined where nothing changes. `translate` returns the forms of a message, or undefined. */
export function translateCode(code, file, translate, language) {
  const text = rewrite(code, file, translate, language);
  if (text === code) return undefined;
  return text.includes(`${form_name}(`) ? `${text}\nimport { formOf as ${form_name} } from '${form_module}';\n` : text;
}

export const form_module = 'virtual:form-of';
const form_name = '$formOf';

function rewrite(code, file, translate, language) {
  const program = parseAst(code, { lang: file.endsWith('.tsx') ? 'tsx' : 'ts' }, file);
  return new Writer(code, translate, language).text(program, 'plain');
}

/** Writes nodes as they are, but for the messages in them. */
class Writer {
  #code;
  #translate;
  #language;

  constructor(code, translate, language) {
    this.#code = code;
    this.#translate = translate;
    this.#language = language;
  }

  /** Returns the text of a node at a position: `text`, which people read; `code`, which they do not; `plain` is undecided. */
  text(node, position) {
    const own = this.#message(node, position);
    if (own !== undefined) return own;
    let end = node.start;
    let text = '';
    const children = childrenOf(node, position).toSorted((a, b) => a.node.start - b.node.start);
    for (const child of children) {
      if (child.node.start < end) continue; // a shorthand, whose name and value are one
      text += this.#code.slice(end, child.node.start) + this.text(child.node, child.position);
      end = child.node.end;
    }
    return text + this.#code.slice(end, node.end);
  }

  #source(node) {
    return this.#code.slice(node.start, node.end);
  }

  #message(node, position) {
    switch (node.type) {
      case 'Identifier':
        return position === 'key' ? this.#literal({ ...node, value: node.name }, 'key') : undefined;
      case 'Literal':
        return this.#literal(node, position);
      case 'TemplateLiteral':
        return this.#template(node, position);
      case 'ConditionalExpression':
        return this.#plural(node, position);
      case 'JSXElement':
      case 'JSXFragment':
        return this.#element(node);
      default:
        return undefined;
    }
  }

  #literal(node, position) {
    if (typeof node.value !== 'string') return undefined;
    if (position === 'locale') return this.#language === 'en' ? undefined : JSON.stringify(this.#language);
    if (!isMessage(node.value, position)) return undefined;
    const [before, text, after] = split(node.value);
    const translated = this.#translate({ text, values: [] });
    if (translated === undefined) return undefined;
    const written = JSON.stringify(before + translated[0] + after);
    return position === 'attribute' ? `{${written}}` : position === 'key' ? `[${written}]` : written;
  }

  #template(node, position) {
    const made = this.#templateText(node, position);
    if (made === undefined) return undefined;
    const [before, text, after] = split(made.text);
    const values = node.expressions;
    const translated = this.#translate({ text, values: values.map((value) => this.#source(value)) });
    if (translated === undefined) return this.#withValues(node, [node]);
    return this.#templateOf(before + translated[0] + after, (index) => this.text(values[index], 'text'));
  }

  #templateText(node, position) {
    const text = node.quasis.map(({ value }, index) => (index === 0 ? '' : `{${index - 1}}`) + value.cooked).join('');
    const words = node.quasis.map(({ value }) => value.cooked).join('{}');
    return isMessage(words, position) ? { text } : undefined;
  }

  /** `count === 1 ? 'key' : 'keys'` is one message with its plural. */
  #plural(node, position) {
    const count = countOf(node.test);
    const [one, many] = [this.#branch(node.consequent, position), this.#branch(node.alternate, position)];
    if (count === undefined || one === undefined || many === undefined) return undefined;
    const values = [];
    const numbered = ({ quasis, expressions }) =>
      quasis.reduce((text, quasi, index) => {
        const source = this.#source(expressions[index - 1]);
        let place = values.findIndex((value) => this.#source(value) === source);
        if (place === -1) place = values.push(expressions[index - 1]) - 1;
        return `${text}{${place}}${quasi}`;
      });
    const several = numbered(many);
    const [before, plural, after] = split(several);
    const single = numbered(one);
    const translated = this.#translate({
      text: single.trim(),
      plural,
      values: values.map((each) => this.#source(each)),
    });
    if (translated === undefined) return this.#withValues(node, [node.consequent, node.alternate]);
    const forms = translated.map((form) =>
      this.#templateOf(before + form + after, (index) => this.text(values[index], 'text')),
    );
    return `${form_name}(${this.text(count, 'code')}, [${forms.join(', ')}])`;
  }

  /** Returns a counted message in English, with the messages in its values. */
  #withValues(node, branches) {
    let written = '';
    let end = node.start;
    for (const value of branches.flatMap(({ expressions = [] }) => expressions)) {
      written += this.#code.slice(end, value.start) + this.text(value, 'text');
      end = value.end;
    }
    return written + this.#code.slice(end, node.end);
  }

  #branch(node, position) {
    if (node.type === 'Literal' && typeof node.value === 'string' && isMessage(node.value, looser(position)))
      return { quasis: [node.value], expressions: [] };
    if (node.type !== 'TemplateLiteral' || this.#templateText(node, looser(position)) === undefined) return undefined;
    return { quasis: node.quasis.map(({ value }) => value.cooked), expressions: node.expressions };
  }

  /** An element whose text has words is one message with its elements and values; others are written child by child. */
  #element(node) {
    const made = jsxMessage(node);
    if (made === undefined) return undefined;
    const translated = this.#translate({ text: made.text, values: made.parts.map((part) => this.#source(part)) });
    const [opening, closing] = [
      node.openingElement ?? node.openingFragment,
      node.closingElement ?? node.closingFragment,
    ];
    if (translated === undefined) {
      // nested elements are of this message: nothing but their attributes and values is visited
      return this.#untranslated(node);
    }
    const inner = this.#jsxOf(made.before + translated[0] + made.after, made.parts);
    return this.text(opening, 'plain') + inner + this.#source(closing);
  }

  #untranslated(node) {
    const parts = node.children.map((child) => {
      if (child.type === 'JSXText') return this.#source(child);
      if (child.type === 'JSXElement' && jsxMessage(child) !== undefined) return this.#untranslated(child);
      return this.text(child, 'text');
    });
    const [opening, closing] = [
      node.openingElement ?? node.openingFragment,
      node.closingElement ?? node.closingFragment,
    ];
    return this.text(opening, 'plain') + parts.join('') + this.#source(closing);
  }

  #jsxOf(translated, parts) {
    return partsOf(translated)
      .map((part) => this.#jsxPart(part, parts))
      .join('');
  }

  #jsxPart(part, parts) {
    if (part.kind === 'text') return `{${JSON.stringify(part.text)}}`;
    const node = parts[part.index];
    if (node === undefined) throw new Error(`there is no placeholder ${part.index} in this message`);
    const value = () => this.text(node.expression, 'text');
    if (part.kind === 'value')
      return node.type === 'JSXExpressionContainer' ? `{${value()}}` : this.text(node, 'plain');
    if (part.kind === 'form') return `{${formCall(value(), part.forms)}}`;
    if (part.inner === undefined) return this.text(node, 'plain');
    const inner = part.inner.map((each) => this.#jsxPart(each, parts)).join('');
    return this.text(node.openingElement, 'plain') + inner + this.#source(node.closingElement);
  }

  #templateOf(translated, valueAt) {
    const written = partsOf(translated).map((part) => {
      if (part.kind === 'text')
        return JSON.stringify(part.text)
          .slice(1, -1)
          .replaceAll('\\"', '"')
          .replaceAll(/`|\$\{/g, '\\$&');
      if (part.kind === 'value') return `\${${valueAt(part.index)}}`;
      if (part.kind === 'form') return `\${${formCall(valueAt(part.index), part.forms)}}`;
      throw new Error(`there are no elements in this message: ${translated}`);
    });
    return `\`${written.join('')}\``;
  }
}

function formCall(value, forms) {
  return `${form_name}(${value}, ${JSON.stringify(forms)})`;
}

/** Words of one number may be few: the other branch tells that they are read. */
function looser(position) {
  return position === 'code' ? 'code' : 'text';
}

/** Returns what is counted in `x === 1`. */
function countOf(test) {
  if (test.type !== 'BinaryExpression' || test.operator !== '===') return undefined;
  return test.right.type === 'Literal' && test.right.value === 1 ? test.left : undefined;
}

/** Returns spaces before, the text, and spaces after it. */
function split(text) {
  const trimmed = text.trim();
  const start = text.indexOf(trimmed);
  return [text.slice(0, start), trimmed, text.slice(start + trimmed.length)];
}

/** Returns the message that the children of an element make, and the nodes of its placeholders; undefined if their text has no words. */
function jsxMessage(node) {
  if (isCode(node)) return undefined;
  if (!node.children.some((child) => child.type === 'JSXText' && hasWords(child.value))) return undefined;
  const parts = [];
  const inner = jsxText(node, parts);
  const [before, text, after] = split(inner);
  return { before, text, after, parts };
}

function jsxText(node, parts) {
  return node.children
    .map((child) => {
      if (child.type === 'JSXText') return cleanJsxText(child.value);
      if (child.type === 'JSXExpressionContainer') {
        const { expression } = child;
        if (expression.type === 'JSXEmptyExpression') return '';
        if (expression.type === 'Literal' && typeof expression.value === 'string') return expression.value;
        return `{${parts.push(child) - 1}}`;
      }
      const index = parts.push(child) - 1;
      const own = child.type === 'JSXElement' ? jsxMessage(child) : undefined;
      if (own === undefined) return `<${index}/>`;
      return `<${index}>${jsxText(child, parts)}</${index}>`;
    })
    .join('');
}

/** Returns the nodes in a node, with their positions. */
function childrenOf(node, position) {
  return Object.entries(node).flatMap(([key, value]) =>
    [value]
      .flat()
      .filter((child) => typeof child?.type === 'string' && typeof child.start === 'number')
      .flatMap((child) => {
        const at = positionOf(node, key, child, position);
        return at === undefined ? [] : [{ node: child, position: at }];
      }),
  );
}
