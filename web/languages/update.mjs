// `npm run messages`: writes the messages of the code into the catalogues, and says what has no translation.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { languagesIn, mergeCatalogue, messagesIn, readCatalogue } from './catalogue.mjs';
import { writePo } from './po.mjs';

const web = join(import.meta.dirname, '..');
const messages = messagesIn(web);
for (const language of languagesIn(web)) {
  const catalogue = mergeCatalogue(readCatalogue(web, language), messages);
  writeFileSync(join(web, 'messages', `${language}.po`), writePo(catalogue));
  const missing = catalogue.entries.filter(({ forms }) => forms.some((form) => form === ''));
  process.stdout.write(`${language}: ${messages.length} messages, ${missing.length} without a translation\n`);
  for (const { text, comments } of missing) process.stdout.write(`  ${text}  ${comments.at(-1)}\n`);
}
