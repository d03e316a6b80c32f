// Reads and writes catalogues of messages: PO files, as translators' tools know them.

/**
 * One message: its English, in some files another translation than elsewhere (`context` is the file), the English for several, and the
 * translation: one text, or the forms for numbers in the order of the language.
 * @typedef {{ context?: string, text: string, plural?: string, forms: string[], comments: string[] }} Entry
 */

/** Returns the head of a catalogue, which are comments and fields, and its entries. */
export function readPo(source) {
  const [head, ...blocks] = source.trim().split(/\n\s*\n/);
  return { head, entries: blocks.map(readBlock) };
}

function readBlock(block) {
  const entry = { text: '', forms: [], comments: [] };
  let add;
  for (const line of block.split('\n')) {
    if (line.startsWith('#')) {
      entry.comments.push(line);
      continue;
    }
    const match = /^(?:(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d)\])?\s+)?(".*")$/.exec(line);
    if (!match) throw new Error(`this is no line of a PO file: ${line}`);
    const [, keyword, form = '0', quoted] = match;
    if (keyword !== undefined) add = adder(entry, keyword, Number(form));
    add(JSON.parse(quoted));
  }
  return entry;
}

function adder(entry, keyword, form) {
  if (keyword === 'msgstr') return (text) => void (entry.forms[form] = (entry.forms[form] ?? '') + text);
  const member = { msgctxt: 'context', msgid: 'text', msgid_plural: 'plural' }[keyword];
  return (text) => void (entry[member] = (entry[member] ?? '') + text);
}

/** Returns the text of a catalogue. */
export function writePo({ head, entries }) {
  return `${[head, ...entries.map(writeEntry)].join('\n\n')}\n`;
}

function writeEntry({ context, text, plural, forms, comments }) {
  return [
    ...comments,
    ...(context === undefined ? [] : [`msgctxt ${JSON.stringify(context)}`]),
    `msgid ${JSON.stringify(text)}`,
    ...(plural === undefined
      ? [`msgstr ${JSON.stringify(forms[0] ?? '')}`]
      : [
          `msgid_plural ${JSON.stringify(plural)}`,
          ...forms.map((form, index) => `msgstr[${index}] ${JSON.stringify(form)}`),
        ]),
  ].join('\n');
}

/** Returns the name of a message within its catalogue. */
export function keyOf({ text, plural }) {
  return plural === undefined ? text : `${text}\n${plural}`;
}
