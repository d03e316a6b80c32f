// Builds the dashboard in another language: every message is replaced before its file is compiled, so the browser loads no catalogue.
import { join, relative } from 'node:path';
import { readCatalogue, translations } from './catalogue.mjs';
import { form_module, translateCode } from './messages.mjs';
import { hasMessages } from './positions.mjs';

/** A plugin of Vite. Its page is `index.pl.html`; names of the other files tell their content, so they stand beside the English ones. */
export function inLanguage(web, language) {
  const translate = translations(readCatalogue(web, language));
  return {
    name: 'medley-language',
    enforce: 'pre',
    resolveId: (id) => (id === form_module ? `\0${form_module}` : undefined),
    load: (id) => (id === `\0${form_module}` ? formCode(language) : undefined),
    transform(code, id) {
      const file = relative(join(web, 'src'), id.split('?')[0]).replaceAll('\\', '/');
      if (file.startsWith('..') || !hasMessages(file)) return undefined;
      const translated = translateCode(code, file, (message) => translate(message, file), language);
      return translated === undefined ? undefined : { code: translated, map: null };
    },
    transformIndexHtml: (html) => html.replace('<html lang="en">', `<html lang="${language}">`),
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const page = bundle['index.html'];
        if (page === undefined) throw new Error('index.html is no entry of the build');
        delete bundle['index.html'];
        this.emitFile({ type: 'asset', fileName: `index.${language}.html`, source: page.source });
      },
    },
  };
}

/** Chooses the form for a number, which may be written as a text: `1 234`. */
function formCode(language) {
  return `
const rules = new Intl.PluralRules(${JSON.stringify(language)});
const { pluralCategories } = rules.resolvedOptions();
const categories = ['zero', 'one', 'two', 'few', 'many', 'other'].filter((each) => pluralCategories.includes(each));
export function formOf(count, forms) {
  const number = typeof count === 'number' ? count : Number(String(count).replace(/\\D/g, ''));
  return forms[Math.min(categories.indexOf(rules.select(number)), forms.length - 1)];
}
`;
}
