import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  languagesIn,
  mergeCatalogue,
  messagesIn,
  readCatalogue,
  translations,
} from '../../web/languages/catalogue.mjs';
import { findMessages, translateCode } from '../../web/languages/messages.mjs';
import { partsOf } from '../../web/languages/parts.mjs';
import { keyOf, readPo, writePo } from '../../web/languages/po.mjs';

const web = join(import.meta.dirname, '..', '..', 'web');

describe('messages in the code of the dashboard', () => {
  it.each([
    ["const about = 'Two words';", [{ text: 'Two words' }]],
    ['<Button onClick={run}>Save</Button>', [{ text: 'Save' }]],
    ['<p>{count} of {most}</p>', [{ text: '{0} of {1}' }]],
    ['<p>Open <b>the list</b> now.</p>', [{ text: 'Open <0>the list</0> now.' }]],
    ['<p>Send it to <Code>/v1/tasks</Code>.</p>', [{ text: 'Send it to <0/>.' }]],
    ['<Box title="Here" className="some class" />', [{ text: 'Here' }]],
    ["<p>{is_new ? 'added' : 'gone'}</p>", [{ text: 'added' }, { text: 'gone' }]],
    ["const text = `${n} ${n === 1 ? 'key' : 'keys'}`;", [{ text: 'key', plural: 'keys' }]],
    ["const text = n === 1 ? '1 key' : `${n} keys`;", [{ text: '1 key', plural: '{0} keys' }]],
    [
      "useSorted(rows, { Cost: (row) => row.cost, 'Period before': (row) => row.before });",
      [{ text: 'Cost' }, { text: 'Period before' }],
    ],
    ["if (state === 'Open now') go('/some/where', { queryKey: ['two words'] });", []],
    ["const kind = { Form: RerankForm, of: 'succeeded', label: 'It works' };", [{ text: 'It works' }]],
    ["import { a } from './a b.ts'; type State = 'Some state';", []],
    ["const text = `curl -sS '${url}'\n  -d 'some body'`;", []],
  ])('are found in %s', (code, expected) => {
    const messages = findMessages(code, 'page.tsx').map(({ text, plural }) => ({
      text,
      ...(plural !== undefined && { plural }),
    }));
    expect(messages).toEqual(expected);
  });
});

function inPolish(code: string, forms: Record<string, string[]>): string | undefined {
  return translateCode(code, 'page.tsx', (message: { text: string }) => forms[message.text], 'pl');
}

describe('a file in another language', () => {
  it('has its elements and values where the translation wants them', () => {
    const code = '<p>Open <a href="/keys">API keys</a> of {name}.</p>';
    const translated = inPolish(code, { 'Open <0>API keys</0> of {1}.': ['{1}: otwórz <0>klucze "API"</0>.'] });
    expect(translated).toBe('<p>{name}{": otwórz "}<a href="/keys">{"klucze \\"API\\""}</a>{"."}</p>');
  });

  it('chooses the word that goes with a number', () => {
    const code = "const text = n === 1 ? '1 key' : `${n} keys`;";
    const translated = inPolish(code, { '1 key': ['1 klucz', '{0} klucze', '{0} kluczy'] });
    expect(translated).toContain('$formOf(n, [`1 klucz`, `${n} klucze`, `${n} kluczy`])');
    expect(
      inPolish('const text = `${n} keys found`;', { '{0} keys found': ['{0} {0|klucz|klucze|kluczy}'] }),
    ).toContain('`${n} ${$formOf(n, ["klucz","klucze","kluczy"])}`');
  });

  it('keeps the spaces around a message, and signs that end a template', () => {
    expect(inPolish("const text = ' or ';", { or: ['lub'] })).toBe('const text = " lub ";');
    expect(inPolish('const text = `The ${a} key`;', { 'The {0} key': ['`${x}` {0}'] })).toBe(
      'const text = `\\`\\${x}\\` ${a}`;',
    );
  });

  it('writes numbers and dates as the language does', () => {
    expect(inPolish("count.toLocaleString('en-US');", {})).toBe('count.toLocaleString("pl");');
  });

  it('has another form after a fraction: 2 megapiksele, 1,5 megapiksela', () => {
    const file = 'ui/units.ts';
    const translate = translations(readCatalogue(web, 'pl'));
    const code = readFileSync(join(web, 'src', file), 'utf8');
    const translated = translateCode(code, file, (message) => translate(message, file), 'pl');
    expect(translated).toContain('megapixel: "megapiksela", second: "sekundy", minute: "minuty"');
  });

  it('stays as it is where nothing is translated', () => {
    expect(inPolish('<p>Open <b>{name ?? "a list"}</b> now.</p>', {})).toBeUndefined();
  });
});

describe('a catalogue', () => {
  const catalogue =
    'msgid ""\nmsgstr "Language: pl\\n"\n\n#: a.tsx\nmsgid "Open"\nmsgstr "Otwórz"\n\n#: a.tsx\nmsgctxt "b.tsx"\nmsgid "Open"\nmsgstr "Otwarte"\n';

  it('is written as it was read', () => {
    expect(writePo(readPo(catalogue))).toBe(catalogue);
  });

  it('may translate a message of one file in another way', () => {
    const translate = translations(readPo(catalogue));
    expect(translate({ text: 'Open' }, 'a.tsx')).toEqual(['Otwórz']);
    expect(translate({ text: 'Open' }, 'b.tsx')).toEqual(['Otwarte']);
    expect(translate({ text: 'Shut' }, 'b.tsx')).toBeUndefined();
  });
});

describe.each(languagesIn(web))('the catalogue of %s', (language) => {
  const catalogue = readCatalogue(web, language);
  const messages = messagesIn(web);

  it('has every message of the code and no other; `npm run messages` writes it again', () => {
    const merged = mergeCatalogue(catalogue, messages);
    expect(catalogue.entries.map(keyOf)).toEqual(merged.entries.map(keyOf));
    expect(writePo(catalogue)).toBe(writePo(merged));
  });

  it('translates every message', () => {
    const missing = catalogue.entries.filter(({ forms }) => forms.some((form) => form === ''));
    expect(missing.map(({ text }) => text)).toEqual([]);
  });

  it('has as many forms as the language for what is counted', () => {
    const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions();
    const whole_numbers = new Set(Array.from({ length: 200 }, (_, n) => new Intl.PluralRules(language).select(n)));
    expect(pluralCategories.length).toBeGreaterThanOrEqual(whole_numbers.size);
    for (const { text, plural, forms } of catalogue.entries) {
      expect([text, forms.length]).toEqual([text, plural === undefined ? 1 : whole_numbers.size]);
      const counted = forms.flatMap((form) => partsOf(form)).filter((part) => part.kind === 'form');
      for (const part of counted) expect([text, part.forms.length]).toEqual([text, whole_numbers.size]);
    }
  });

  it('names the values and elements of each message, and no others', () => {
    for (const { text, plural, forms } of catalogue.entries) {
      const own = marksOf(plural ?? text).union(marksOf(text));
      for (const form of forms) {
        expect([text, [...marksOf(form).difference(own)]]).toEqual([text, []]);
        const elements = [...own].filter((mark) => mark.startsWith('<'));
        expect([text, elements.filter((mark) => !marksOf(form).has(mark))]).toEqual([text, []]);
      }
    }
  });
});

/** `{0}` and `<1>` of a text. */
function marksOf(text: string): Set<string> {
  return new Set(
    [...text.matchAll(/\{(\d+)[|}]|<(\d+)\/?>/g)].map(([, value, element]) =>
      value === undefined ? `<${element}>` : `{${value}}`,
    ),
  );
}
