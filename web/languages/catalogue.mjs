// The messages of the dashboard, and their catalogues in web/messages: one file per language, `pl.po`.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findMessages } from './messages.mjs';
import { keyOf, readPo } from './po.mjs';
import { hasMessages } from './positions.mjs';

/** Returns the languages that have a catalogue: `['pl']`. English is in the code. */
export function languagesIn(web) {
  return readdirSync(join(web, 'messages'))
    .filter((name) => name.endsWith('.po'))
    .map((name) => name.slice(0, -'.po'.length))
    .toSorted();
}

/** Returns the catalogue of a language. */
export function readCatalogue(web, language) {
  return readPo(readFileSync(join(web, 'messages', `${language}.po`), 'utf8'));
}

/** Returns every message of the dashboard with the files in which it is, in the order of files: `{ text, plural, values, files }`. */
export function messagesIn(web) {
  const all = new Map();
  const files = readdirSync(join(web, 'src'), { recursive: true })
    .map((file) => file.replaceAll('\\', '/'))
    .filter(hasMessages)
    .toSorted();
  for (const file of files) {
    for (const message of findMessages(readFileSync(join(web, 'src', file), 'utf8'), file)) {
      const own = all.get(keyOf(message));
      if (own === undefined) all.set(keyOf(message), { ...message, files: [file] });
      else if (!own.files.includes(file)) own.files.push(file);
    }
  }
  return [...all.values()];
}

/** Returns a function from a message and its file to the translation, which is a list of forms; undefined where there is none. */
export function translations({ entries }) {
  const forms = new Map();
  for (const entry of entries) {
    if (entry.forms.length > 0 && entry.forms.every((form) => form !== ''))
      forms.set(`${entry.context ?? ''}\n${keyOf(entry)}`, entry.forms);
  }
  return (message, file) => forms.get(`${file}\n${keyOf(message)}`) ?? forms.get(`\n${keyOf(message)}`);
}

/** Returns the catalogue with every message of the dashboard, new ones without a translation, and none that is gone. */
export function mergeCatalogue({ head, entries }, messages) {
  const merged = messages.flatMap((message) => {
    const { text, plural, values, files } = message;
    const comments = [
      ...values.map((value, index) => `#. ${index}: ${value.replaceAll(/\s+/g, ' ').slice(0, 70)}`),
      ...files.map((file) => `#: ${file}`),
    ];
    const own = entries.filter((entry) => keyOf(entry) === keyOf(message));
    const usual = own.find(({ context }) => context === undefined) ?? { forms: plural === undefined ? [''] : ['', ''] };
    const others = own.filter(({ context }) => context !== undefined && files.includes(context));
    return [usual, ...others].map(({ context, forms }) => {
      return {
        ...(context !== undefined && { context }),
        text,
        ...(plural !== undefined && { plural }),
        forms,
        comments,
      };
    });
  });
  return { head, entries: merged };
}
